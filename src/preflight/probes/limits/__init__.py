"""Limits of processes: of a shell, of services, of a login, in recorded text."""
