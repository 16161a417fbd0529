"""A training log of any framework."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.series import Log
from preflight.logs.training.assemble import Assembler
from preflight.logs.training.sieve import sieved, worthwhile
from preflight.logs.training.text import Reach, batches

_NOT_LOGS = {".py", ".sh", ".yaml", ".yml", ".toml", ".md", ".rst", ".c", ".cc", ".cpp", ".cu", ".h",
             ".html", ".xml", ".svg", ".ini", ".cfg", ".lock", ".patch", ".diff", ".ipynb", ".tex",
             ".js", ".ts", ".css", ".sbatch", ".slurm", ".json"}  # fmt: skip
_TELL_EVERY = 1 << 28


def sniff(head: bytes, name: str) -> bool:
    """Whether it could be a log: text, and not called as programs and settings are."""
    if not head.strip(b"\0 \r\n\t") or Path(name.removesuffix(".gz")).suffix.lower() in _NOT_LOGS:
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
    source = str(path)
    assembler, reach = Assembler(source), Reach()
    if worthwhile(path):
        for one in sieved(path, reach):
            assembler.take(one)
    if not assembler.steps:  # small, or all of steps, or of a style that has no words of its own
        assembler, reach = Assembler(source), Reach()
        _whole(path, assembler, reach, tell)
    log = Log(
        source, assembler.series(), tuple(assembler.events.found), assembler.events.more,
        (), reach.lines, reach.bytes, truncated=bool(reach.cut), told=assembler.told,
    )  # fmt: skip
    if not log.series and not log.events:
        raise ParseError("no lines of training steps, and no words of a training run, in it")
    return log
