"""What a training run will take, from what was measured and what its user states."""
