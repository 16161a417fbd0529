"""File systems, the devices below them, and what both tell of themselves."""
