"""What benchmarks of collectives and of RDMA printed."""
