"""The nodes of a Slurm allocation, by one srun."""
