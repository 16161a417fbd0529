"""The forms in which nvidia-smi tells of GPUs."""
