"""What a log says beside its steps: a table of patterns, and what a line of each kind tells."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct, field

from preflight.facts.series import LogEvent

MOST_TEXT = 2_000
#: Kept of a kind; more are counted.
MOST_EVENTS = 2_000


class Pattern(Struct, frozen=True):
    """A row: lines with one of `marks` in which `tells` is found are of this kind. Groups: step,
    seconds, ms, rank, others are values."""

    kind: str
    marks: tuple[bytes, ...]
    tells: re.Pattern[str]
    loose: bool = False  # the marks stand in other lines too


def _row(kind: str, marks: str, tells: str, *, loose: bool = False) -> Pattern:
    words = tuple(one.encode() for one in marks.split("|"))
    return Pattern(kind, words, re.compile(tells), loose)


_S = r"(?P<seconds>\d+(?:\.\d+)?)"
#: The first that a line tells has it.
PATTERNS: tuple[Pattern, ...] = (
    _row("watchdog", "collective operation timeout|Watchdog|watchdog",
         r"collective operation timeout|[Ww]atchdog.*(?:timeout|timed out|timing out|stuck)"),
    _row("watchdog", "last enqueued", r"last enqueued (?:NCCL )?work: ?-?\d"),
    _row("desync", "desync|joined but didn|finished collective",
         r"(?i)desync|joined but didn't finish collective|finished collective #?\d"),
    _row("desync", "Timeout at collective", r"Timeout at collective: \w+"),
    _row("desync", "#", r"^.{0,40}#\d+ \S+ from \S+:\d+$", loose=True),
    _row("timer", ":", r"^.{0,80}?\s{2,}(?P<name>[\w-]+):\s*$", loose=True),
    _row("straggler", "/Rnk", r"M[nx]\w+/Rnk:"),
    _row("straggler", "Ranks with", r"\^\^\^\^ (?:Bottom|Top) +\d+ Ranks with"),
    _row("stacks", "ost recent call first", r"hread 0x[0-9a-f]+ .{0,90}\(most recent call first\)"),
    _row("save-ends", "heckpoint|aved",
         r"(?i)successfully saved checkpoint|checkpoint (?:was |successfully )?saved|\bsaved "
         rf".{{0,40}}checkpoint|finished saving the checkpoint(?:.* in {_S} s)?"),
    _row("saved-async", "sync",
         r"(?i)(?:scheduled|started|launch\w*) .{0,20}async\w* (?:checkpoint|save)"
         r"|async\w* checkpoint .{0,30}(?:scheduled|started|queued|in background)"),
    _row("save-begins", "heckpoint|aving",
         r"(?i)\bsaving (?:the |a )?(?:full )?(?:model )?checkpoint|starting checkpoint save"
         r"|save_checkpoint.*begin"),
    _row("loaded", "heckpoint|esum",
         r"(?i)successfully loaded checkpoint|loaded checkpoint|checkpoint loaded"
         r"|resum(?:ing|ed) (?:training )?from|finished loading the checkpoint"
         r"|loading (?:the )?(?:model |states )?(?:from )?checkpoint"),
    _row("eval-begins", "valuat|alidat",
         r"(?i)\*{5} running evaluation|(?:start|begin)\w* (?:evaluation|validation)"),
    _row("eval-ends", "valuat|alidat",
         r"(?i)validation loss at|(?:evaluation|validation) (?:finished|done|completed?)"),
    _row("gc", "GC]|garbage",
         rf"(?:\[GC\]|[Gg]arbage collect).*?(?:took|in) {_S}|\[GC\]"),
    _row("allocator-flush", "cache flushes", r"(?P<count>\d+) pytorch allocator cache flushes"),
    _row("alloc-retry", "allocation retries|alloc_retries",
         r"(?P<count>\d+) CUDA memory allocation retries|alloc_retries[=: ]+(?P<retries>[1-9]\d*)"),
    _row("recompile", "recompile_limit|cache_size_limit|ecompiling",
         r"torch\._dynamo hit config\.(?:recompile|cache_size)_limit|[Rr]ecompiling"),
    _row("overflow", "OVERFLOW|overflow",
         r"OVERFLOW!.*?loss scale: (?P<scale>[\d.]+)(?:, reducing to (?P<to>[\d.]+))?"
         r"|[Gg]radient overflow|overflow detected"),
    _row("out-of-memory", "out of memory|OutOfMemory|oom-kill|OOM|oom_kill",
         r"(?:CUDA|HIP|[Oo]ut) (?:out )?of memory|OutOfMemoryError|oom[-_]kill|OOM[- ][Kk]ill"),
    _row("error", "us error|egmentation fault|SIGSEGV",
         r"[Bb]us error|[Ss]egmentation fault|SIGSEGV"),
    _row("killed", "Killed|killed by|SIGKILL|SIGTERM|CANCELLED|exitcode",
         r"\bKilled\b|SIGKILL|SIGTERM|killed by signal|CANCELLED AT"
         r"|exitcode ?: ?-?(?:9|15|137|143)\b"),
    _row("error", "rror|xception",
         r"^(?:.{0,60}[\s:\]])?[\w.]{0,100}(?:Error|Exception): +\S|CUDA error|NCCL error"
         r"|what\(\): |(?:srun|slurmstepd): error"),
    _row("transport", "NET/|via SHM|via P2P|via NET|Using network",
         r"Using network (?P<net>\w+)|NET/\w+ ?: Using|via (?:SHM|P2P|NET)(?:/\w+)?"),
    _row("started", "raining|restart",
         r"(?i)\*{5} running training|training starts|starting training|beginning training"
         r"|\[before the start of training step\]|(?:elastic|torchrun|agent).*restart\w* .*worker"),
    _row("ended", "raining|uning|rain_runtime|exiting program",
         r"(?i)\b(?:training|tuning) (?:is )?(?:complete|finished|done)|'train_runtime'"
         r"|done training|exiting program at iteration"),
)  # fmt: skip
_ANY = re.compile(
    b"|".join(re.escape(mark) for one in PATTERNS for mark in one.marks if mark != b":")
)
_TAKEN = {"step", "seconds", "ms", "rank", "net"}
_STEP = re.compile(
    r"(?:iteration|global_step|step|checkpoint-|batch)[\s:=_#-]*(\d{1,12})", re.IGNORECASE
)
_PAIR = re.compile(r"(M[nx]\w+)/Rnk: ?([\d.]+)\w*/(\d+)")


def pattern_of(line: bytes) -> Pattern | None:
    """The kind of a line; None where it is of none."""
    if not line.rstrip().endswith(b":") and b"#" not in line and _ANY.search(line) is None:
        return None
    line = line[: 2 * MOST_TEXT]
    for one in PATTERNS:
        if any(mark in line for mark in one.marks) and one.tells.search(line.decode("latin-1")):
            return one
    return None


def event_of(
    pattern: Pattern, line: bytes, number: int, step: float | None, time_s: float | None,
    rank: int | None,
) -> LogEvent:  # fmt: skip
    """What the line tells. `step` is of the row before; one that it names itself counts more."""
    text = line[:MOST_TEXT].decode("utf-8", "replace").strip()
    found = pattern.tells.search(line[: 2 * MOST_TEXT].decode("latin-1"))
    groups = {name: one for name, one in (found.groupdict() if found else {}).items() if one}
    own = _STEP.search(text) if pattern.kind.startswith(("save", "load", "eval")) else None
    values = {name: float(one) for name, one in groups.items() if name not in _TAKEN}
    if pattern.kind == "straggler":
        values |= _ranks(text)
    seconds = float(groups["seconds"]) if "seconds" in groups else None
    told = int(own[1]) if own else step
    return LogEvent(
        pattern.kind, number, text, step=None if told is None or told != told else int(told),
        time_s=time_s, seconds=seconds, rank=rank, values=values,
    )  # fmt: skip


def _ranks(text: str) -> dict[str, float]:
    """MnRtt -> seconds and MnRtt/rank -> whose, of a line of Megatron's detector."""
    found: dict[str, float] = {}
    for name, value, rank in _PAIR.findall(text):
        found[name], found[f"{name}/rank"] = float(value), float(rank)
    return found


class Events(Struct):
    """Those found, in the order of the log."""

    found: list[LogEvent] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, make: Callable[[], LogEvent]) -> None:
        """One more; made only where it is kept."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.counts[kind] <= MOST_EVENTS:
            self.found.append(make())

    @property
    def more(self) -> dict[str, int]:
        return {kind: count - MOST_EVENTS for kind, count in self.counts.items()
                if count > MOST_EVENTS}  # fmt: skip
