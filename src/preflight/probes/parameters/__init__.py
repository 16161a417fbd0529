"""Parameters of the kernel, what sets them at boot, and what it counts of their being hit."""
