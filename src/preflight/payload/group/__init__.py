"""How a process becomes one of several ranks."""
