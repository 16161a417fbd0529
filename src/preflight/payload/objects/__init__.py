"""Objects put and got: a bench of an object store."""
