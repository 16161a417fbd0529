"""Where the time of a step goes, and who is behind."""
