"""Every device under load, each in a process of its own; read harness.py first."""
