"""Mutated inputs over every parser: nothing but their own errors, and never slow. `make fuzz`."""
