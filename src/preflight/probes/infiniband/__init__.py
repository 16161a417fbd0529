"""What tools tell of RDMA devices and their ports."""
