"""What is known of a run that stands still: dumps of collectives, words of watchdogs, stacks."""

from __future__ import annotations

from msgspec import Struct, field


class DumpEntry(Struct, frozen=True):
    """One collective in a flight recorder's ring. Times in nanoseconds, of the host's clock."""

    record_id: int
    group: str
    seq: int
    p2p_seq: int
    op_id: int
    name: str  # nccl:all_reduce
    state: str  # scheduled | started | completed
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    created_ns: int | None = None
    started_ns: int | None = None
    completed_ns: int | None = None
    duration_ms: float | None = None
    timeout_ms: float | None = None
    is_p2p: bool = False
    frames: tuple[str, ...] = ()  # innermost first: "all_reduce at train.py:12"


class GroupStatus(Struct, frozen=True):
    """Sequence numbers of a group as a rank knew them; -1 before the first."""

    enqueued: int = -1
    started: int = -1
    completed: int = -1


class Dump(Struct):
    """A flight recorder's dump of one rank."""

    source: str
    rank: int | None
    version: tuple[int, ...] = ()
    backend: str = ""  # nccl | gloo | xccl
    group_names: dict[str, str] = field(default_factory=dict)  # id -> what it is for
    group_ranks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    status: dict[str, GroupStatus] = field(default_factory=dict)
    entries: tuple[DumpEntry, ...] = ()
    #: What a group is for -> its number in this process; ranks make their groups in one order.
    numbers: dict[str, str] = field(default_factory=dict)


class Watchdog(Struct, frozen=True):
    """A timeout, as ProcessGroupNCCL writes it into a log."""

    source: str
    line: int
    rank: int | None
    seq: int
    name: str  # ALLREDUCE
    group: str = ""
    elements_in: int | None = None
    elements_out: int | None = None
    timeout_ms: float | None = None
    ran_ms: float | None = None
    enqueued: int | None = None
    completed: int | None = None
    text: str = ""


class Desync(Struct, frozen=True):
    """What torch's report of ranks out of step says of one of them."""

    source: str
    line: int
    rank: int
    state: str  # waits | finished | not-joined
    name: str = ""
    seq: int | None = None
    where: str = ""  # the call: train.py:8
    text: str = ""


class Stack(Struct, frozen=True):
    """One thread, once. Frames are innermost first: "name (file.py:12)"."""

    source: str
    line: int
    rank: int | None = None
    host: str = ""
    pid: int | None = None
    thread: str = ""
    state: str = ""  # active | idle | gil
    frames: tuple[str, ...] = ()
    main: bool = False
    code: str = ""  # the line of the program that the innermost frame is at


class StackProcess(Struct, frozen=True):
    """One process at one moment, as a text of stacks has it."""

    line: int
    threads: tuple[Stack, ...] = ()
    pid: int | None = None
    rank: int | None = None  # that stands beside it: a label, its command, a variable
    local_rank: int | None = None  # of its command
    host: str = ""
    command: str = ""
    parent: int | None = None
    #: Where there is no PID: the number of its first thread, which it keeps.
    mark: str = ""
    fatal: str = ""  # what it died of: Segmentation fault
    time_s: float | None = None  # that stands beside it, Unix seconds


class StackFile(Struct):
    """Stacks of one or more processes, one after another; a process may come again later."""

    source: str
    form: str  # py-spy | faulthandler
    processes: tuple[StackProcess, ...] = ()
    rank: int | None = None  # by the file's name
    time_s: float | None = None  # by the file's name, Unix seconds of an unknown zone
    truncated: bool = False
    unread: int = 0  # lines that are no stack
