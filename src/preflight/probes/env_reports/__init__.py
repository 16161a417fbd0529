"""Recorded texts that describe an environment, one file for each kind."""
