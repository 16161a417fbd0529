"""The lines of a stress run as facts."""
