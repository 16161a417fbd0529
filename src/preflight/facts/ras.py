"""What NCCL's service of reliability (RAS, port 28028, the client ncclras) says of a job."""

from __future__ import annotations

from msgspec import Struct, field


class Peer(Struct, frozen=True):
    """A process of the job that does not answer. `dead`: given up, after sixty seconds."""

    host: str
    pid: int | None
    gpus: str = ""  # "3", "0,1 (NVML 2,3)"
    dead: bool = False
    line: int = 0


class CommRank(Struct, frozen=True):
    """A rank of a communicator: its number there, which is that of the job only in one of all."""

    rank: int
    host: str = ""
    pid: int | None = None
    gpu: str = ""


class Counted(Struct, frozen=True):
    """Ranks that have launched as many operations of a kind. `ranks`: as far as they are named."""

    operation: str  # AllReduce; "collective" where an old version counts all together
    count: int
    number: int  # of ranks
    ranks: tuple[CommRank, ...] = ()
    line: int = 0


class Failed(Struct, frozen=True):
    """Ranks whose communicator has an error."""

    text: str  # Remote process error
    number: int
    ranks: tuple[CommRank, ...] = ()
    line: int = 0


class Comm(Struct):
    """A communicator of which the service says something by itself; of JSON each of them."""

    name: str  # #0-0, or its hash
    hash: str
    size: int | None = None
    missing: tuple[CommRank, ...] = ()
    missing_number: int = 0
    counts: tuple[Counted, ...] = ()
    failed: tuple[Failed, ...] = ()
    statuses: dict[str, int] = field(default_factory=dict)  # RUNNING -> ranks
    line: int = 0


class CommGroup(Struct, frozen=True):
    """A row of the table: communicators that are alike."""

    number: int
    comms: int
    nodes: int
    ranks_per_comm: int
    ranks: int
    status: str  # INIT | RUNNING | FINALIZE | ABORT | NOCOMM
    errors: tuple[str, ...]  # MISMATCH, ERROR, INCOMPLETE; none is OK
    line: int = 0


class RasReport(Struct):
    """One answer of the service."""

    line: int = 1
    version: str = ""
    time_s: float | None = None  # Unix seconds, of an unknown zone
    nodes: int | None = None
    processes: int | None = None
    gpus: int | None = None
    groups: tuple[CommGroup, ...] = ()
    comms: tuple[Comm, ...] = ()
    peers: tuple[Peer, ...] = ()
    dead: int = 0
    missing: int = 0  # processes that gave no answer and are not dead
    timeouts: int = 0
    has_counts: bool = False  # of all communicators: JSON


class RasFile(Struct):
    """Answers one after another. `unread`: lines that were not understood, a few of them."""

    source: str
    reports: tuple[RasReport, ...] = ()
    unread: tuple[str, ...] = ()
    truncated: bool = False
