"""The lines of a training run as facts."""
