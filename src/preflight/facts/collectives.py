"""What benchmarks of the network measured: collectives, and RDMA between two ports.

Bandwidth is in 1e9 bytes a second (nccl-tests, doc/PERFORMANCE.md) or in Gbit/s, time in
microseconds.
"""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.bench import Lasting, NetworkGrowth, SettingSweep
from preflight.facts.wire import Wire
from preflight.model import NOT_IN_INPUT, Known


class Side(Struct, frozen=True):
    """One size, with the result in a buffer of its own or in place."""

    time_us: float
    algbw_gbps: float
    busbw_gbps: float
    wrong: Known[float] = NOT_IN_INPUT  # elements; of old versions the largest error


class SizeRow(Struct, frozen=True):
    """One message size."""

    size_bytes: int
    out_of_place: Known[Side] = NOT_IN_INPUT
    in_place: Known[Side] = NOT_IN_INPUT
    line: int = 0


#: Of a host that took part in a run which another host tells.
TOLD_BY = "measured with the others, told by"


class Shape(Struct, frozen=True):
    """How times go with sizes in one run."""

    name: str  # that of the run
    #: The longest time of a size over that of a larger one, from 64 KiB on; 1 or less is sound.
    reversal: Known[float] = NOT_IN_INPUT
    spike: Known[float] = NOT_IN_INPUT  # the same of smaller sizes
    #: The longer of both sides over the shorter, the worst size from 1 MiB on.
    sides_apart: Known[float] = NOT_IN_INPUT
    where: str = ""  # at which sizes these are
    line: int = 0
    probe: str = ""


class Collective(Struct, frozen=True):
    """One run of one collective: a table of sizes."""

    name: str  # all_reduce; all_reduce, run 2
    tool: str  # nccl-tests | all_reduce_bench
    collective: Known[str] = NOT_IN_INPUT  # all_reduce; "all_gather or alltoall": no telling which
    ranks: Known[int] = NOT_IN_INPUT
    hosts: Known[tuple[str, ...]] = NOT_IN_INPUT
    host_count: Known[int] = NOT_IN_INPUT
    ranks_per_host: Known[int] = NOT_IN_INPUT  # of the host with the fewest
    even: Known[bool] = NOT_IN_INPUT  # as many on each host
    product: Known[str] = NOT_IN_INPUT  # of all its GPUs
    rows: tuple[SizeRow, ...] = ()
    ended: Known[bool] = NOT_IN_INPUT  # it came to its own end
    #: What stopped it, in the tool's words; that its processes ran each by itself, or how many
    #: ranks each host had, where these differ.
    trouble: str = ""
    trouble_ranks: tuple[int, ...] = ()
    left_out: tuple[tuple[int, str], ...] = ()  # sizes in bytes that were not timed, and why
    together: Known[bool] = NOT_IN_INPUT  # the ranks are of one job
    wrong: Known[int] = NOT_IN_INPUT  # results out of bounds
    reaches_own_limit: Known[bool] = NOT_IN_INPUT  # NCCL_TESTS_MIN_BW
    average_gbps: Known[float] = NOT_IN_INPUT  # of all sizes, as nccl-tests prints it
    #: At the largest size, where that is 1 GB or more: the worse of both sides.
    busbw_gbps: Known[float] = NOT_IN_INPUT
    at_bytes: Known[int] = NOT_IN_INPUT
    #: The same where that is 64 MiB or more, and below 1 GB.
    rough_gbps: Known[float] = NOT_IN_INPUT
    rough_bytes: Known[int] = NOT_IN_INPUT
    #: The median over the sizes from 8 B to 4 KiB, of each the slower side.
    small_us: Known[float] = NOT_IN_INPUT
    shape: Known[Shape] = NOT_IN_INPUT
    variables: tuple[str, ...] = ()  # NCCL_ALGO=Ring: those of its ranks, where the tool tells them
    line: int = 0
    probe: str = ""


class Collectives(Struct, frozen=True):
    """One answer."""

    runs: tuple[Collective, ...]
    line: int = 1
    probe: str = ""


class LocateTest(Struct, frozen=True):
    """One collective among some of the hosts."""

    number: int
    hosts: tuple[str, ...]  # in the order of their ring
    why: str
    busbw_gbps: Known[float] = NOT_IN_INPUT  # the median
    repeats: int = 0
    trouble: str = ""  # why it did not come to its end
    line: int = 0


class Culprit(Struct, frozen=True):
    """What is slow: a host, the link between two, what lies between groups of them; and within a
    host a GPU, a fabric or a rail."""

    name: str  # node-07; node-07 to node-08; node[01-04] | node[05-08]; node-07 GPU 3
    kind: str  # host | link | boundary | gpu | fabric | nic
    #: Below healthy tests of that kind, in percent, of those that prove it; 100: none came to an
    #: end.
    behind_percent: Known[float] = NOT_IN_INPUT
    tests: tuple[int, ...] = ()
    proof: str = ""  # those tests in words
    line: int = 0
    probe: str = ""


class InsideTest(Struct, frozen=True):
    """One collective in one way: among some GPUs, over one fabric or rail."""

    number: int
    what: str  # GPUs 0 and 1; its adapters; over mlx5_3 alone
    hosts: tuple[str, ...] = ()  # none: the host is alone
    busbw_gbps: Known[float] = NOT_IN_INPUT  # the median
    line: int = 0


class Inside(Struct, frozen=True):
    """What was looked at within one host."""

    counts: dict[str, int] = {}  # tests by kind: gpu, fabric, nic
    #: Those that prove a culprit; where there is none, all in which the host took part.
    tests: tuple[InsideTest, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    alone: bool = False  # no sound host was there to compare it with
    product: Known[str] = NOT_IN_INPUT  # of all its GPUs
    line: int = 0
    probe: str = ""


class Localisation(Struct, frozen=True):
    """One search."""

    hosts: tuple[str, ...] = ()
    tests: tuple[LocateTest, ...] = ()  # on the host that led; elsewhere those that prove a culprit
    test_count: int = 0
    culprits: tuple[Culprit, ...] = ()  # this host, and what it is an end or a side of
    rounds: int = 0
    undetermined: str = ""  # what the tests could not tell, and why; "" where they told all
    covered: str = ""
    level_gbps: dict[str, float] = {}  # of healthy tests, by kind
    #: GB/s of each pair, where all were tried; on the host that led.
    matrix: tuple[tuple[str, str, float], ...] = ()
    size_bytes: int = 0
    looked_for_percent: float = 8.0  # what is so far below the level is slow
    line: int = 0
    probe: str = ""


class BenchStack(Struct, frozen=True):
    """What the ranks of this host ran with."""

    torch: Known[str] = NOT_IN_INPUT
    nccl: Known[str] = NOT_IN_INPUT
    backend: str = ""  # nccl | gloo | mpi ...
    interface: str = ""  # of sockets, where one was named
    line: int = 0
    probe: str = ""


class RdmaRow(Struct, frozen=True):
    """One message size between two ports."""

    size_bytes: int
    peak_gbits: Known[float] = NOT_IN_INPUT
    average_gbits: Known[float] = NOT_IN_INPUT
    typical_us: Known[float] = NOT_IN_INPUT
    average_us: Known[float] = NOT_IN_INPUT
    p99_us: Known[float] = NOT_IN_INPUT
    line: int = 0


class RdmaTest(Struct, frozen=True):
    """One test of perftest."""

    name: str  # mlx5_1 write bandwidth
    verb: str  # write | read | send | atomic ...
    kind: str  # bandwidth | latency
    device: Known[str] = NOT_IN_INPUT
    connection: Known[str] = NOT_IN_INPUT  # RC | UC | UD | XRC | DC | SRD
    link_layer: Known[str] = NOT_IN_INPUT  # InfiniBand | Ethernet
    mtu_bytes: Known[int] = NOT_IN_INPUT  # of RDMA on the wire
    pairs: Known[int] = NOT_IN_INPUT  # queue pairs
    gid_index: Known[int] = NOT_IN_INPUT
    rate_gbits: Known[float] = NOT_IN_INPUT  # of the port, where whoever ran the test told it
    loopback: bool = False  # both ends are in the text, and of one port
    bidirectional: bool = False
    rows: tuple[RdmaRow, ...] = ()
    ended: Known[bool] = NOT_IN_INPUT
    trouble: str = ""
    #: At the largest size, where that is 64 KiB or more; and for a small message.
    average_gbits: Known[float] = NOT_IN_INPUT
    at_bytes: Known[int] = NOT_IN_INPUT
    typical_us: Known[float] = NOT_IN_INPUT
    p99_us: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class RdmaTests(Struct, frozen=True):
    """One answer."""

    tests: tuple[RdmaTest, ...]
    line: int = 1
    probe: str = ""


class Bench(Collectives, frozen=True):
    """What the bundled engine told."""

    located: Known[Localisation] = NOT_IN_INPUT
    stack: Known[BenchStack] = NOT_IN_INPUT
    inside: Known[Inside] = NOT_IN_INPUT
    wire: Known[Wire] = NOT_IN_INPUT
    rdma: tuple[RdmaTest, ...] = ()  # of its links, those by which an adapter is judged
    settings: Known[tuple[SettingSweep, ...]] = NOT_IN_INPUT
    lasting: Known[tuple[Lasting, ...]] = NOT_IN_INPUT
    growth: Known[NetworkGrowth] = NOT_IN_INPUT
    cannot: str = ""  # why nothing was timed
    busy: str = ""  # whose work it did not disturb
    lacks_torch: bool = False
    few_gpus: bool = False  # there is nobody to send to
    #: What is wrong with this host itself: it could be no part of the bench, or was lost in it.
    fault: str = ""
    unmet: str = ""  # why the hosts did not come together
    interrupted: bool = False
    leads: bool = True  # the host that tells what all of them measured
    speaks_for_all: bool = False  # it does, and there are others
    ended_job: bool = False  # what stopped the job was this host's own
