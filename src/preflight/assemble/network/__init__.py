"""The adapters and ports of a host, from all who tell of them."""
