"""What a look at running processes told, as facts."""
