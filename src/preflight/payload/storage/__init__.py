"""Storage as it is used: files written into a directory of their own, and removed."""
