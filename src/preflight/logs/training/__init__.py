"""Logs of training runs, of whatever framework: step lines to series, other lines to events."""
