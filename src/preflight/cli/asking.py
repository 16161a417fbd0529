"""Getting answers: from this machine or from files; into captures where the user wants them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from preflight.cli.clock import now
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.collect import Transport, ask, trimmed
from preflight.errors import PreflightError, ToldInterrupt
from preflight.model import Command, Missing, Raw
from preflight.units import parse_duration

if TYPE_CHECKING:
    from preflight.capture import Writer
    from preflight.redact.stand_ins import Redactor

CAPTURE_SUFFIX = ".capture.gz"
#: Questions that tell how far they are.
WORK = ("stress", "micro-train", "io-bench", "objects", "nccl-bench", "checkpoint")


class Captures(Struct):
    """Captures to be written. What goes wrong with them is kept: no reason to lose the report."""

    paths: list[Path]
    redact: bool = False
    failed: list[PreflightError] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    _stand_ins: Redactor | None = None

    def stand_ins(self) -> Redactor:
        """The same for all that one command writes; others than those of another command, lest two
        machines that are both host-1 are taken for one."""
        from preflight.redact.stand_ins import Redactor

        if self._stand_ins is None:
            self._stand_ins = Redactor(tag=os.urandom(2).hex())
        return self._stand_ins

    @contextmanager
    def opened(self) -> Iterator[Keeper | None]:
        """All of them open before the work starts, in place after it, interrupted or not; None
        where there is none."""
        if not self.paths:
            yield None
            return
        with ExitStack() as stack:
            writers = [stack.enter_context(self._one(path)) for path in self.paths]
            yield Keeper(writers, self.stand_ins(), self)

    @contextmanager
    def _one(self, path: Path) -> Iterator[Writer]:
        from preflight.capture import Writer
        from preflight.redact.secrets import in_arguments

        # A command line may hold the names that --redact is to hide.
        writer = Writer(path, argv=() if self.redact else tuple(in_arguments(sys.argv)))
        try:
            with writer:
                yield writer
        except PreflightError as error:
            if error not in self.failed:
                raise
        else:
            self.written.append(path)


class Keeper(Struct):
    """Puts the answers of one host after another into every open capture."""

    writers: list[Writer]
    redactor: Redactor
    captures: Captures

    def put(self, raws: Sequence[Raw]) -> None:
        """Write them, secrets masked, names too where the user wants that."""
        from preflight.redact.redactor import redact_raw

        shown = [redact_raw(raw, self.redactor, full=self.captures.redact) for raw in raws]
        for writer in self.writers:
            try:
                writer.write(shown)
            except PreflightError as error:
                self.captures.failed.append(error)


def ask_here(
    commands: Sequence[Command], options: Options, streams: Streams, captures: Captures,
    by: Callable[[Transport], Transport] = lambda transport: transport,
) -> list[Raw]:  # fmt: skip
    """All answers of this machine. Interrupted, what came so far is saved, unasked if need be."""
    import socket

    from preflight.transports.local import Local

    timeout_s = host_timeout_s(commands, options)
    transport = by(Local(socket.gethostname(), timeout_s, options.sudo,
                         _told(commands, streams, quiet=options.quiet)))  # fmt: skip
    kept: list[Raw] = []
    try:
        with captures.opened() as keeper:
            try:
                ask(transport, trimmed(commands, timeout_s), kept, streams.step)
            except KeyboardInterrupt:
                kept += _interrupted(transport.host, commands[len(kept) :])
                raise
            finally:
                if keeper:
                    keeper.put(kept)
    except KeyboardInterrupt:
        raise ToldInterrupt(*rescue(kept, captures, streams)) from None
    return kept


def _told(commands: Sequence[Command], streams: Streams, *, quiet: bool) -> Callable[[str], None]:
    """What shows the news of active work; of other questions none comes before the answer. Where
    nobody watches, what takes minutes is told once when it begins."""
    work = [one.probe for one in commands if one.probe in WORK]
    if not work or quiet:
        return lambda _: None
    from preflight.cli.news import News, news_of

    news = News(streams, quiet=quiet)

    def told(line: str) -> None:
        for probe in work:
            news.hear(probe, line)
            if streams.progress and (text := news_of(probe, line)):
                streams.step(f"{probe}: {text}")

    return told


def host_timeout_s(commands: Sequence[Command], options: Options) -> float:
    """The deadline of one host: what the user states, and beyond it the time to be watched."""
    watch_s = sum(each.timeout_s for each in commands if each.stdin)
    return parse_duration(options.host_timeout) + watch_s


def _interrupted(host: str, commands: Sequence[Command]) -> list[Raw]:
    """What had not answered yet: whoever reads the capture must not take it for not asked."""
    cut = Missing("timeout", "interrupted before it answered")
    return [Raw(host, each.probe, each.argv, None, missing=cut) for each in commands]


def rescue(kept: Sequence[Raw], captures: Captures, streams: Streams) -> list[Path]:
    """Say where the answers of an interrupted run are; put them somewhere if they are nowhere."""
    told = sum(1 for raw in kept if raw.missing is None)
    if not told:
        streams.note("interrupted before the first answer: there is no capture")
        return []
    import tempfile

    places = list(captures.paths)
    if not places:
        name = f"preflight-interrupted-{now().replace(':', '')}{CAPTURE_SUFFIX}"
        for where in (Path.cwd, lambda: Path(tempfile.gettempdir())):  # which may not answer
            with suppress(OSError, PreflightError):
                folder = where()
                spare = Captures([folder / name], captures.redact)
                with spare.opened() as keeper:
                    if keeper:
                        keeper.put(kept)
                places = [folder / name]
                break
    for place in places:
        streams.note(f"interrupted; {told} of {len(kept)} answers are saved: {place}")
    return places


def shown_commands(commands: Sequence[Command], options: Options, where: str = "") -> Iterator[str]:
    """What --dry-run prints: each command as it would be run, and its limit."""
    import socket

    timeout_s = host_timeout_s(commands, options)
    on_each = ", on each" if where else ""
    where = where or socket.gethostname()
    yield f"on {where}{on_each} one after another, at most {timeout_s:g} s in all:\n"
    for each in trimmed(commands, timeout_s):
        sudo = ["sudo", "-n"] if options.sudo and each.needs_root else []
        shown = shlex.join([*sudo, *each.argv])
        if "\n" in shown and not options.verbose:
            shown = f"a script of {shown.count(chr(10)) + 1} lines that only reads (-v shows it)"
        note = f" ({each.note})" if each.note else ""
        yield f"  at most {each.timeout_s:>3} s  {each.probe:<16} {shown}{note}\n"
