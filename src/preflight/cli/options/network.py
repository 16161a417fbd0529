"""Options of benches of the network."""

from __future__ import annotations

from preflight.cli.options.option import Option

BENCH = (
    "collective", "begin", "end", "factor", "dtype", "ranks", "threads", "repeats", "pairwise",
    "no_locate", "nccl_tests", "interface", "even_if_busy", "settings", "lasting", "wire",
)  # fmt: skip

OPTIONS: dict[str, Option] = {
    "collective": Option(
        list[str], ("--collective",),
        "Time this one: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
        "sendrecv; all of them where none is named. Repeatable.", "NAME",
    ),
    "begin": Option(str, ("--begin", "-b"), "The smallest size.", "SIZE"),
    "end": Option(str, ("--end", "-e"), "The largest size.", "SIZE"),
    "factor": Option(int, ("--factor", "-f"), "From one size to the next.", "N"),
    "dtype": Option(str, ("--dtype",), "Type of numbers.", "float32|float16|bfloat16"),
    "repeats": Option(
        int, ("--repeats",), "Measurements of each test of the search, of which the median counts.",
        "N",
    ),
    "pairwise": Option(
        bool, ("--pairwise",),
        "Try each pair of hosts, as is done with up to eight: a round for each host. Shown as a "
        "map; --save heat.svg draws it.",
    ),
    "no_locate": Option(bool, ("--no-locate",), "Look for no slow host or link."),
    "settings": Option(
        list[str], ("--sweep",),
        "Hold a variable of NCCL or gloo with these values against it unset, in fresh processes "
        "and in turns, at -b and -e; a faster one is told only where it is beyond the spread. "
        "Between semicolons values may hold commas. Repeatable.", "NAME=V,V",
    ),
    "lasting": Option(
        str, ("--duration",),
        "Repeat one collective for so long: level, trend, drops, stalls.", "TIME",
    ),
    "wire": Option(
        str, ("--wire",),
        "Time the links too, without collectives: RDMA by perftest, or TCP where there is none.",
        "auto|rdma|tcp",
    ),
    "nccl_tests": Option(
        str, ("--nccl-tests",),
        "Measure with the binaries of nccl-tests in DIR (or DIR/build, on every host) in place of "
        "torch: one process on one host; on several mpirun of this machine, or srun, starts a "
        "rank for each GPU.", "DIR",
    ),
}  # fmt: skip
