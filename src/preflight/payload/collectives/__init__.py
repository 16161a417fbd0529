"""Collectives timed and proved: what nccl-tests does, where nothing but torch is there."""
