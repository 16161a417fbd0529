"""Readers of logs that the user has: text in, facts out."""
