"""Changing what the checks found: a script for a person to read, or here with an undo file."""
