"""What hangs on PCI, and the way of each device to its root."""
