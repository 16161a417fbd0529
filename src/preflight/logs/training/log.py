"""A training log of any framework."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.hangs import StackProcess
from preflight.facts.series import Log
from preflight.logs.training.assemble import Assembler
from preflight.logs.training.records import is_state, is_table, read_state, read_table
from preflight.logs.training.sieve import sieved, worthwhile
from preflight.logs.training.tensorboard import is_events, read_events
from preflight.logs.training.text import MOST_LINE_BYTES, Reach, batches
from preflight.unpack import Unpacking

#: Programs, settings, pages.
_NOT_LOGS = re.compile(
    r".*\.(?:py|sh|ya?ml|toml|md|rst|c|cc|cpp|cu|h|html|xml|svg|ini|cfg|lock|patch|diff|ipynb|tex|js"
    r"|ts|css|sbatch|slurm|json)(?:\.gz)?", re.IGNORECASE,
)  # fmt: skip
_HEAD_BYTES = 64 << 10
_TELL_EVERY = 1 << 28


def sniff(head: bytes, name: str) -> bool:
    """Whether it could be a log: text, and not called as programs and settings are."""
    if is_state(head) or is_events(head):
        return True
    if not head.strip(b"\0 \r\n\t") or _NOT_LOGS.fullmatch(name):
        return False
    odd = len(head.translate(None, bytes(range(32, 256)) + b"\t\n\r\x1b\x08\x0c\0"))
    return odd * 50 < len(head) and head.count(b"\0") * 4 < len(head)


def _whole(path: Path, assembler: Assembler, reach: Reach, tell: Callable[[str], None]) -> None:
    told = _TELL_EVERY
    for one in batches(path, reach):
        assembler.take(one)
        if reach.bytes > told:
            tell(f"{path.name}: {reach.bytes >> 20:,} MiB read")
            told += _TELL_EVERY


def read(path: Path, tell: Callable[[str], None]) -> Log:
    """Series and events; ParseError where there is neither, OSError."""
    head = _head(path)
    if is_state(head):
        return read_state(path)
    if is_table(head):
        return read_table(path)
    if is_events(head):
        return read_events(path)
    return _read_text(path, tell)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return Unpacking(file, _HEAD_BYTES).read(_HEAD_BYTES) or b""


def _read_text(path: Path, tell: Callable[[str], None]) -> Log:
    source = str(path)
    assembler, reach = Assembler(source), Reach()
    if worthwhile(path):
        for one in sieved(path, reach):
            assembler.take(one)
    if not assembler.styled:  # small, or all of steps, or of a style that has no words of its own
        assembler, reach = Assembler(source), Reach()
        _whole(path, assembler, reach, tell)
    long = f"{reach.left_out:,} line(s) longer than {MOST_LINE_BYTES >> 20} MiB"
    log = Log(
        source, assembler.series(), tuple(assembler.events.found), assembler.events.more,
        (long,) if reach.left_out else (), reach.lines, reach.bytes, bool(reach.cut),
        told=assembler.told,
    )  # fmt: skip
    if not log.series and not log.events:
        raise ParseError("no lines of training steps, and no words of a training run, in it")
    if any(one.kind == "stacks" for one in log.events):
        log.stacks = _stacks(path, source)
    return log


def _stacks(path: Path, source: str) -> tuple[StackProcess, ...]:
    """Those of faulthandler in it: read once more, for their lines belong together."""
    from preflight.logs.hangs.stacks import stacks_in

    lines = (text for one in batches(path, Reach()) for text in one.texts)
    return stacks_in((text.decode("utf-8", "replace") for text in lines), source)
