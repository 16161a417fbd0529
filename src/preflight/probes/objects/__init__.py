"""What benches of object stores told."""
