"""The links by themselves: RDMA by the programs of perftest, TCP by sockets of our own.

What a host has is asked first (look.py); then pairs of hosts are timed in rounds in which no host
has a part in two pairs (part.py), and of all tests together it is told how each end compares with
the others (ends.py).
"""
