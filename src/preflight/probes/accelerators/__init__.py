"""Accelerators of other makers than NVIDIA."""
