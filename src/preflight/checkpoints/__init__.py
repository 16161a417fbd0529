"""Readers of what the scan of checkpoints told."""
