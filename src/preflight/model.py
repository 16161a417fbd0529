"""Every record that crosses a boundary between two stages."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, TypeVar, Union

import msgspec
from msgspec import Struct

T = TypeVar("T")

MissingKind = Literal[
    "not-applicable",  # the device or host says it has none
    "not-asked",  # needs an option or a level that was not given
    "busy",  # active work stood back for somebody's
    "not-in-input",  # recorded text without that section
    "no-tool",
    "denied",
    "timeout",
    "unreachable",
    "exited",
    "unreadable",
]


class Missing(Struct, frozen=True, omit_defaults=True):
    """Why a fact, or one field of it, could not be had. `fault`: of a whole host, see faults.py."""

    kind: MissingKind
    text: str
    fault: str = ""


Known = Union[T, Missing]  # noqa: UP007 - a generic alias; `T | Missing` is none before 3.12
NOT_IN_INPUT = Missing("not-in-input", "not in the input")


class Status(str, Enum):
    """The outcome of one check on one subject."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"
    ERROR = "ERROR"


#: Worst first; the verdict is the first that occurs (SKIP only if there is nothing else).
SEVERITY = (Status.FAIL, Status.ERROR, Status.WARN, Status.PASS, Status.SKIP)

#: What a missing value makes of the check that asked for it. Unknown never passes.
STATUS_OF_MISSING: dict[MissingKind, Status] = {
    "not-applicable": Status.SKIP,
    "not-asked": Status.SKIP,
    "busy": Status.SKIP,
    "not-in-input": Status.SKIP,
    "no-tool": Status.ERROR,
    "denied": Status.ERROR,
    "timeout": Status.ERROR,
    "unreachable": Status.ERROR,
    "exited": Status.ERROR,
    "unreadable": Status.ERROR,
}


class Action(str, Enum):
    """What to do next, mildest first."""

    NONE = "none"
    WATCH = "watch"
    RESTART_JOB = "restart-job"
    FIX_CONFIG = "fix-config"
    RESTART_SERVICE = "restart-service"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    DRAIN = "drain"
    INSPECT = "inspect"
    REPLACE = "replace"


class Command(Struct, frozen=True):
    """One read-only question, ready to be asked: never a shell line."""

    probe: str
    argv: tuple[str, ...]
    timeout_s: int = 30
    needs_root: bool = False
    max_bytes: int = 64 * 1024 * 1024
    #: What it reads on its standard input: text, such as a program for `python3 -`.
    stdin: str = ""
    #: What --dry-run says of it besides.
    note: str = ""
    #: What it waits for when it hangs, such as "driver": once that has hung a command, no other of
    #: the same conversation is put to it.
    waits_for: str = ""


#: The shortest limit; and by how much less than its limit a command may be seen to take: its begin
#: is heard of later than it is. timeout(1) waits two seconds more before it kills.
_SHORTEST_S, _EARLY_S = 1.0, 0.5


class Raw(Struct, frozen=True, omit_defaults=True):
    """One answer as it came. `rc` is None where no end was seen (cut off, deadline, host gone)."""

    host: str
    probe: str
    argv: tuple[str, ...] = ()
    rc: int | None = 0
    stdout: str | bytes = ""
    stderr: str | bytes = ""
    started_at: str = ""
    elapsed_s: float = 0.0
    truncated: bool = False
    #: Set where the command never ran to an end: why.
    missing: Missing | None = None
    #: Where recorded text came from; `argv` is empty then.
    source: str = ""
    line_offset: int = 0  # lines of the source before this text begins (two tools in one paste)
    limit_s: float = 0.0  # after which timeout(1) was to end it; 0: not known

    @property
    def reached_limit(self) -> bool:
        """Whether timeout(1) ended it: it says 124, or kills, and no sooner than at the limit.
        Killed before, it was by somebody else."""
        least_s = max(self.limit_s - _EARLY_S, _SHORTEST_S)
        return self.rc == 124 or (self.rc == 137 and self.elapsed_s >= least_s)

    @property
    def tool(self) -> str:
        """What was asked, as a person is told."""
        return tool_of(self.probe, self.argv)


def tool_of(probe: str, argv: Sequence[str]) -> str:
    """The program that is run; a script of our own by what it asks for: all of them are sh."""
    if not argv:
        return probe
    if argv[0] == "env":  # with variables before it
        return next((word for word in argv[1:] if "=" not in word), probe)
    return f"the script {probe}" if argv[0] == "sh" else argv[0]


class Evidence(Struct, frozen=True, omit_defaults=True):
    """The line of a raw or file that shows it; `line` counts from 1.

    The judge, which never sees raws, names the record's first line and the field; the text, and the
    field's own line, are looked up in the raw afterwards.
    """

    probe: str
    text: str = ""
    line: int | None = None
    source: str = ""
    field: str = ""


Scalar = bool | int | float | str | None
Level = Literal["quick", "standard", "full"]
LEVELS: tuple[Level, ...] = ("quick", "standard", "full")


class Check(Struct, frozen=True, omit_defaults=True):
    """A declared rule on facts, as loaded from checks/*.yaml.

    `fail_unless` and `warn_unless` hold one operator and its argument. A check with a `rule` is
    judged by the function of that name, with `row` as its data; the others by their operators.
    """

    id: str
    title: str
    domain: str = ""
    source: str = ""  # checks/gpu.yaml:12
    fact: str = ""
    level: Level = "quick"
    when: dict[str, Any] = {}
    where: dict[str, Any] = {}
    across: Literal["", "host", "fleet"] = ""
    like: tuple[str, ...] = ()  # paths that must be equal for two values to be compared
    optional: bool = False
    host_only: bool = False
    fail_unless: dict[str, Any] = {}
    warn_unless: dict[str, Any] = {}
    why: str = ""
    fix: tuple[str, ...] = ()
    action: Action = Action.NONE
    runbook: str = ""
    learn: tuple[str, ...] = ()  # what to type where it is undetermined
    #: Where the question of a command was measured and its bound is unknown, that is undetermined.
    needs_bound: bool = False
    set: dict[str, str] = {}  # what to write, and where, so that it holds: see settings/wanted.py
    everywhere: bool = False  # over the fleet: what most hosts have, and one has not, is odd
    rule: str = ""
    row: dict[str, Any] = {}


class Result(Struct, omit_defaults=True):
    """One check on one subject. A PASS carries only the fields up to `unit`."""

    check: str
    subject: str
    status: Status
    measured: Scalar = None
    expected: str = ""
    unit: str = ""
    title: str = ""
    reason: str = ""
    why: str = ""
    fix: tuple[str, ...] = ()
    action: Action = Action.NONE
    runbook: str = ""
    device: str = ""  # how the subject is known to others: PCI address, serial
    cause: str = ""  # the check whose failure on this host this one follows from
    evidence: tuple[Evidence, ...] = ()


class Finding(Struct, omit_defaults=True):
    """A diagnosis' conclusion. `share`: of the step, 0 to 1; `seconds`: of a step."""

    finding: str
    status: Status
    subject: str = ""
    share: float | None = None
    confidence: str = ""
    evidence: tuple[Evidence, ...] = ()
    fix: tuple[str, ...] = ()
    text: str = ""  # what was seen, with its numbers
    seconds: float | None = None
    against: tuple[str, ...] = ()  # counter-evidence that was looked for, and what was found
    runbook: str = ""


class MissingProbe(Struct, frozen=True, omit_defaults=True):
    """A question that got no usable answer; with a `fault` (faults.py) it is the whole host."""

    probe: str
    kind: MissingKind
    text: str
    fault: str = ""


class MapNode(Struct, frozen=True, omit_defaults=True):
    """A part of a machine, and what hangs below it. `kind`: numa | root | switch | bridge | gpu |
    nvswitch | nic | nvme | other."""

    kind: str
    name: str  # gpu0, mlx5_0, 0000:15:01.0, NUMA node 0
    label: str = ""  # H100 80GB HBM3
    link: str = ""  # of the link above it: gen5 x16
    fault: str = ""  # x8 of x16
    below: tuple[MapNode, ...] = ()


class LinkTable(Struct, frozen=True, omit_defaults=True):
    """What lies between each two devices: rows and columns in one order, "X" on the diagonal."""

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]  # NV18, PIX, ...; "?" where it is not known


class Map(Struct, frozen=True, omit_defaults=True):
    """A machine as it is drawn."""

    nodes: tuple[MapNode, ...] = ()
    table: LinkTable | None = None
    domains: tuple[tuple[str, ...], ...] = ()  # GPUs that NVLink joins
    unknown: tuple[str, ...] = ()  # what cannot be told here, and why


class Group(Struct, frozen=True, omit_defaults=True):
    """Devices that should work together, in the order of their ranks."""

    members: tuple[str, ...]  # gpu0 ...
    why: str


class Seat(Struct, frozen=True, omit_defaults=True):
    """Where the process of one local rank should run, and which adapter is its nearest."""

    local_rank: int
    gpu: str
    nics: tuple[str, ...] = ()
    numa_node: int | None = None
    cpus: str = ""  # 0-47,96-143
    bind: str = ""  # the command before the program: numactl ...
    why: str = ""


class Export(Struct, frozen=True):
    """A variable for the job's environment."""

    name: str
    value: str
    why: str


class Snippet(Struct, frozen=True):
    """Lines to paste. `kind`: sbatch | torchrun | mesh ..."""

    kind: str
    text: str


class Advice(Struct, frozen=True, omit_defaults=True):
    """How to start a job on this machine. `left`: settings that are better left alone, and why."""

    groups: tuple[Group, ...] = ()
    seats: tuple[Seat, ...] = ()
    exports: tuple[Export, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    left: tuple[str, ...] = ()


class HostReport(Struct):
    """What was found on one host."""

    host: str
    verdict: Status
    missing: tuple[MissingProbe, ...] = ()
    summary: str = ""  # one line: hardware and driver
    reach: str = ""  # how much there was to look at, such as the length of the kernel log
    facts: dict[str, Any] | None = None
    results: tuple[Result, ...] = ()
    map: Map | None = None
    advice: Advice | None = None


class Override(Struct, frozen=True):
    """A threshold that the user or a profile changed."""

    id: str
    value: Any
    source: str


class Counts(Struct):
    """How many results of each status."""

    passed: int = msgspec.field(default=0, name="pass")
    warn: int = 0
    fail: int = 0
    skip: int = 0
    error: int = 0


#: What became of something since an earlier report, worst first.
ChangeKind = Literal[
    "silent",  # the host answered, and does so no more
    "failed",
    "unknown",  # it was determined, and is not
    "gone",  # a host or a device is not there any more
    "warned",
    "unseen",  # it was judged, and is not
    "changed",  # hardware, software or a setting is another
    "new",
    "better",
    "fixed",
]


class Change(Struct, frozen=True, omit_defaults=True):
    """What differs from an earlier report, equal on all `hosts`; without hosts it is of the fleet.

    `about`: a check's id; a fact's path; or host, device, summary, reboot. A status is none where
    there was no result.
    """

    kind: ChangeKind
    about: str
    hosts: tuple[str, ...] = ()
    subject: str = ""  # folded, on each of the hosts
    was_status: Status | None = None
    now_status: Status | None = None
    was: str = ""
    now: str = ""


class Changes(Struct, frozen=True):
    """How a report differs from an earlier one."""

    since: str  # when the earlier one began
    preflight: str  # which version wrote it
    hosts: int  # how many are in both
    new_checks: int = 0  # checks that the earlier one did not know
    gone_checks: int = 0  # checks that only the earlier one knew
    notes: tuple[str, ...] = ()  # what to keep in mind when reading
    each: tuple[Change, ...] = ()  # worst first


class Report(Struct):
    """The whole answer of one command; see the JSON Schema beside the renderers."""

    command: str
    argv: tuple[str, ...]
    level: str
    started_at: str
    elapsed_s: float
    verdict: Status
    counts: Counts
    hosts: tuple[HostReport, ...]
    profile: str | None = None
    overrides: tuple[Override, ...] = ()
    fleet: tuple[Result, ...] = ()
    findings: tuple[Finding, ...] = ()
    measurements: tuple[dict[str, Any], ...] = ()
    hints: tuple[str, ...] = ()  # what to run next
    changes: Changes | None = None  # since an earlier report
    preflight: str = "0.1.0"
    schema: str = "preflight.report/1"
