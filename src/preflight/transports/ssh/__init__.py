"""Hosts over SSH: by connections of our own, or by the ssh command."""
