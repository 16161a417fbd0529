"""The software under a run: libraries, Python packages, variables of the environment."""
