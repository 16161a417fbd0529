"""Whether the software under a training run fits together, by published tables."""
