"""The answers of several probes -> the facts of one host."""
