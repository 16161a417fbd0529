"""NCCL's log judged: the ways it took against those that the machine has, and what failed."""
