"""Many hosts: which they are, how they are reached, and their answers as they come."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from preflight.assemble.same_host import told_apart
from preflight.capture import pack, unpack
from preflight.cli.asking import Captures, Keeper, host_timeout_s, rescue
from preflight.cli.news import News
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.collect import trimmed
from preflight.errors import UsageError
from preflight.faults import CONNECTION, fault
from preflight.hostlists import Target, lines, parse
from preflight.model import Command, Raw
from preflight.nodesets import fold
from preflight.reports.progress import progress_line
from preflight.reports.wording import plural
from preflight.transports.progress import Progress

if TYPE_CHECKING:
    from preflight.transports.ways import Way


#: Seconds in which what is not done is ended and told.
_ENDS_WITHIN_S = 5.0
_HOSTFILE = "a file with one host a line"


class Fleet(Protocol):
    """A way to put commands to many hosts."""

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        """Each host with its answers, as it is done; until `interrupted`, then what there is."""


class Asking(Struct):
    """The hosts of a run, as far as they are known before they answer, and the way to them."""

    hosts: tuple[str, ...]
    way: str
    fleet: Fleet
    #: What is started here to reach them all; empty where there is no one such command.
    shown: str = ""
    interrupted: threading.Event = field(default_factory=threading.Event)
    #: What all of them take together, where that is more than each by itself.
    takes: str = ""
    spool: Spool = field(default_factory=lambda: Spool())

    def told(self) -> str:
        """The hosts and the way to them in a line."""
        named = f" ({fold(self.hosts)})" if self.hosts else ""
        return f"{self._count()} {self.way}{named}" + (f" by\n{self.shown}\n" if self.shown else "")

    def _count(self) -> str:
        return plural(len(self.hosts), "host") if self.hosts else "the nodes that Slurm gives"

    def answers(
        self, commands: Sequence[Command], options: Options, streams: Streams, captures: Captures
    ) -> Iterator[tuple[str, list[Raw]]]:
        """Each host as it is done, put into the captures. Ctrl-C ends the asking, not the report;
        one that comes much later ends all."""
        limit_s = host_timeout_s(commands, options)
        takes = [one.note.partition(";")[0] for one in commands if one.note.startswith("about ")]
        takes = [self.takes] if self.takes else takes
        told = f" ({'; '.join(takes)})" if takes else ""
        streams.phase(f"asking {self._count()} {self.way}{told}, {limit_s:g} s each at most")
        with _heard(self.interrupted), captures.opened() as keeper:
            asked = told_apart(self.fleet.run(trimmed(commands, limit_s)))
            for name, raws in _kept_to_the_end(asked, self.hosts, keeper):
                if keeper:
                    keeper.put(raws)
                elif not captures.paths:
                    self.spool.put(raws)
                yield name, raws
        if self.interrupted.is_set() and not captures.paths:
            rescue(list(self.spool.all()), captures, streams)
        self.spool.close()


def _kept_to_the_end(
    answers: Iterator[tuple[str, list[Raw]]], hosts: Sequence[str], keeper: Keeper | None
) -> Iterator[tuple[str, list[Raw]]]:
    """The answers; where they are left off, the hosts that are still due stand in the capture too:
    whoever reads it must not take those that are there for all."""
    due = dict.fromkeys(hosts)
    try:
        for name, raws in answers:
            yield name, raws
            due.pop(name, None)
    except (KeyboardInterrupt, GeneratorExit):
        missing = fault("interrupted", "interrupted before it was done")
        if keeper:
            for name in due:
                keeper.put([Raw(name, CONNECTION, rc=None, missing=missing)])
        raise


class Spool:
    """Answers of hosts that were judged, on disk where there is room, for a run that is interrupted
    and has no capture to keep them."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115 - for the run
        self._sizes: list[int] = []

    def put(self, raws: Sequence[Raw]) -> None:
        """Keep the answers of one host; without room they are lost, the report is not."""
        packed = pack(raws)
        with suppress(OSError):
            self._file.seek(sum(self._sizes))  # behind the last that is whole
            self._file.write(packed)
            self._sizes.append(len(packed))

    def all(self) -> Iterator[Raw]:
        """Everything that was put."""
        self._file.seek(0)
        for size in self._sizes:
            yield from unpack(self._file.read(size))

    def close(self) -> None:
        """Nothing of it is needed any more."""
        self._file.close()


def asking(options: Options, commands: Sequence[Command], streams: Streams) -> Asking:
    """The hosts and the way to them. UsageError for what cannot be."""
    hold_hosts(options)
    found = parse([*options.hosts, *_from_files(options.hostfile)])
    if found.repeated:
        streams.note(f"note: asked once, named more than once: {fold(found.repeated)}")
    limit_s = host_timeout_s(commands, options)
    make = _under_slurm if options.slurm else _over_ssh
    return make(found.targets, limit_s, options, _progress(streams, limit_s, quiet=options.quiet))


def _over_ssh(
    targets: Sequence[Target], limit_s: float, options: Options,
    told: Callable[[Progress], None],
) -> Asking:  # fmt: skip
    from preflight.transports.fan import Fan

    if not targets:
        raise UsageError("there are no hosts to ask", "--hosts 'node[01-16]'")
    names = tuple(target.name for target in targets)
    fan = Fan(names, _way(options, targets), limit_s, options.sudo, told)
    return Asking(names, "over SSH", fan, interrupted=fan.interrupted)


def _under_slurm(
    targets: Sequence[Target], limit_s: float, options: Options,
    told: Callable[[Progress], None],
) -> Asking:  # fmt: skip
    from preflight.transports.slurm.fleet import Slurm

    named = next((one.name for one in targets if one.user or one.port), None)
    if named:
        raise UsageError(f"--slurm asks nodes, and {named} has a user or a port", "its name alone")
    names = tuple(target.name for target in targets)
    args = words_of(options)
    slurm = Slurm(names, args, limit_s, options.sudo, told)
    return Asking(slurm.wanted(), "under srun", slurm, slurm.shown(), slurm.interrupted)


def words_of(options: Options) -> tuple[str, ...]:
    """What srun is given besides."""
    return tuple(word for text in options.slurm_args for word in _words(text))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--slurm-args {text!r}: {error}", "--slurm-args '-p gpu -N 4'") from None


def hold_hosts(options: Options) -> None:
    """Refuse options that contradict each other."""
    if options.ssh not in ("builtin", "system"):
        raise UsageError(f"--ssh {options.ssh!r} is no choice", "--ssh system, or leave it out")
    if options.slurm_args and not options.slurm:
        raise UsageError("--slurm-args are for --slurm", "--slurm --slurm-args '-p gpu -N 4'")
    if options.slurm and (options.ssh == "system" or options.accept_new_host_keys):
        raise UsageError("under --slurm there is no SSH to choose", "leave --slurm or the rest out")


def _way(options: Options, targets: Sequence[Target]) -> Way:
    if options.ssh == "system":
        from preflight.transports.ssh import system

        return system.make(targets, accept_new=options.accept_new_host_keys)
    from preflight.transports.ssh import builtin

    return builtin.make(targets, accept_new=options.accept_new_host_keys)


def _from_files(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--hostfile {name}: {error.strerror}", _HOSTFILE) from None
        except UnicodeDecodeError:
            raise UsageError(f"--hostfile {name} is no text", _HOSTFILE) from None
        found = lines(text)
        if not found:
            raise UsageError(f"--hostfile {name}: names no host", _HOSTFILE)
        yield from found


def _progress(streams: Streams, limit_s: float, *, quiet: bool) -> Callable[[Progress], None]:
    news = News(streams, quiet=quiet)

    def told(progress: Progress) -> None:
        news.hear(progress.waits_for, progress.latest)
        streams.step(progress_line(progress, limit_s, news.latest))

    return told


@contextmanager
def _heard(interrupted: threading.Event) -> Iterator[None]:
    """The first signal sets the event; one that comes when it should long have worked is raised.
    Two in quick succession are one: a nervous hand, or a shell and a terminal that both send it."""
    first_s: list[float] = []

    def heard(_number: int, _frame: FrameType | None) -> None:
        first_s.append(time.monotonic())
        if first_s[-1] - first_s[0] >= _ENDS_WITHIN_S:
            raise KeyboardInterrupt
        interrupted.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, heard) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(ValueError, TypeError):
                signal.signal(number, handler)
