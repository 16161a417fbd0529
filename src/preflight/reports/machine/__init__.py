"""A machine as it is drawn, and how to start a job on it."""
