"""What the kernel log shows, judged by the rows of its tables."""
