"""Programs of the host's own that are run as active work, and what is looked up of them before."""
