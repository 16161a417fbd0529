"""What of the software of a host fits together, from all who tell of it."""
