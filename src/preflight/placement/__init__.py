"""From the facts of a host to its picture, and to how a job should be started on it."""
