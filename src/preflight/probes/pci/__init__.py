"""PCI, from sysfs, lspci in its forms, and hwloc."""
