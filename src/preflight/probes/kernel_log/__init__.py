"""The kernel log in any of its forms."""
