"""Bounds: what the hardware found allows, with the formula. Pure functions."""
