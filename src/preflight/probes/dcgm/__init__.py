"""DCGM's diagnostics and its sampling."""
