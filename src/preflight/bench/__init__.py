"""Launching of benchmarks that others have written: what is typed for them. Nothing is run here."""
