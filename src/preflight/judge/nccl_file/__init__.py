"""NCCL's topology file held against the host."""
