"""The GPUs of a host, from all who tell of them."""
