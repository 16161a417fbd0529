"""nccl-tests as an engine of `preflight nccl-bench`: asked for, started, and its answers brought
into the form of recorded ones, so that both are read and judged alike."""
