"""The log that NCCL writes with NCCL_DEBUG=INFO or WARN, of 2.4 and later."""
