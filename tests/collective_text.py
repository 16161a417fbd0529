"""What nccl-tests, all_reduce_bench and perftest print, with figures that are made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: Bus bandwidth over algorithm bandwidth.
_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "broadcast": lambda _: 1.0,
}
GIB = 1 << 30
SIZES = (8, 1 << 16, 1 << 20, 1 << 26, GIB, 8 * GIB)


def nccl_tests(
    busbw: float = 370.0,
    *,
    hosts: int = 1,
    gpus: int = 8,
    product: str = "NVIDIA H100 80GB HBM3",
    collective: str = "all_reduce",
    sizes: Sequence[int] = SIZES,
    wrong: str = "0",
    label: str = "",
    ends: bool = True,
    most: int | None = None,
) -> str:
    """One run whose larger sizes reach `busbw` GB/s, as nccl-tests 2.13 and later print it."""
    most = most or max(sizes)
    lines = [
        f"# nThread 1 nGpus 1 minBytes {min(sizes)} maxBytes {most} step: 2(factor) "
        "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#", "# Using devices",
        *(f"#  Rank {rank:2} Group  0 Pid {7000 + rank} on node-{rank // gpus + 1:02} device "
          f"{rank % gpus:2} [0x{16 + rank % gpus:x}] {product}" for rank in range(hosts * gpus)),
        "#",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
        "            (us)  (GB/s)  (GB/s)       ",
        *(_row(size, busbw, hosts * gpus, collective, wrong) for size in sizes),
    ]  # fmt: skip
    count = 0 if wrong in ("0", "N/A") else int(wrong)
    closing = [
        f"# Out of bounds values : {count} {'FAILED' if count else 'OK'}",
        f"# Avg bus bandwidth    : {busbw / 2:.3f} ", "#",
    ]  # fmt: skip
    return "".join(f"{label}{line}\n" for line in (lines + closing if ends else lines))


def _row(size: int, busbw: float, ranks: int, collective: str, wrong: str) -> str:
    factor = _FACTORS[collective](ranks)
    time_us = 20.0 + (size * factor / busbw / 1e3 if factor else size / 3e6)
    algbw = size / time_us / 1e3
    side = f"{time_us:8.1f} {algbw:8.2f} {algbw * factor:8.2f} {wrong:>6}"
    return f"{size:12} {size // 4:12}     float     sum      -1 {side} {side}"


def perftest(
    average: float = 392.0, *, device: str = "mlx5_0", link: str = "IB", mtu: int = 4096,
    unit: str = "Gb/sec", size: int = 8388608,
) -> str:  # fmt: skip
    """One ib_write_bw."""
    rule = "-" * 87
    return (
        f"{rule}\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         "
        f": {device}\n Number of qps   : 1\t\tTransport type : IB\n Connection type : RC\t\tUsing "
        f"SRQ      : OFF\n Mtu             : {mtu}[B]\n Link type       : {link}\n{rule}\n"
        " local address: LID 0x01 QPN 0x0127 PSN 0x1b2c3d RKey 0x1fff00 VAddr 0x007f0000000000\n"
        " remote address: LID 0x02 QPN 0x0128 PSN 0x2b2c3d RKey 0x1fff00 VAddr 0x007f0000000000\n"
        f"{rule}\n #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]"
        "   MsgRate[Mpps]\n"
        f" {size}    5000             {average + 0.1:.2f}             {average:.2f}"
        f"             0.005\n{rule}\n"
    )


LATENCY = """\
---------------------------------------------------------------------------------------
                    RDMA_Write Latency Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : IB
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.04           4.25         1.07            1.08            0.08         \
1.31                    4.25
---------------------------------------------------------------------------------------
"""

BENCH = """\
Environment:
- software: torch=2.9.1+cu130, cuda=13.0, nccl=(2, 27, 7)
- hardware: _CudaDeviceProperties(name='NVIDIA H200', major=9, minor=0, total_memory=143155MB)

The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|   32KiB |   1.44GBps |   0.82GBps |
|    8GiB | 477.40GBps | 272.80GBps |
|   16GiB | 482.30GBps | 275.60GBps |
"""
