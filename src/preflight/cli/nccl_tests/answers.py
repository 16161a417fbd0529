"""What nccl-tests printed, in the form that a recorded file of it has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from msgspec.structs import replace

from preflight.model import Raw
from preflight.nccl_text import PROBE, speaks, taken_out
from preflight.ship import TESTS

#: In the command line of what runs a program (payload/programs): before its own words, and with
#: what these begin.
_WRAPS, _WRAPPED = ("-", "program"), "env"


def as_recorded(raw: Raw) -> list[Raw]:
    """The answer, and NCCL's lines in it as an answer of their own; with the command line that ran
    in place of what has started it."""
    if raw.probe.partition("#")[0] != TESTS:
        return [raw]
    raw = replace(raw, argv=_own(raw.argv))
    text = raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
    logs, rest = taken_out(text, "")
    if not logs:
        return [raw]
    log = replace(raw, probe=raw.probe.replace(TESTS, PROBE, 1), stdout=logs[0].stdout, stderr="",
                  rc=0, missing=None)  # fmt: skip
    return [replace(raw, stdout=rest), *([log] if speaks(str(log.stdout)) else [])]


def _own(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the program itself; --python may begin with env too."""
    pairs = pairwise(argv)
    wrapped = next((at for at, pair in enumerate(pairs) if pair == _WRAPS), None)
    return argv if wrapped is None else argv[argv.index(_WRAPPED, wrapped) :]


def with_logs(raws: Iterable[Raw]) -> list[Raw]:
    """All answers of a host, each in that form."""
    return [one for raw in raws for one in as_recorded(raw)]


def hung(raw: Raw) -> str:
    """What to say of the questions after one that took all of its time, or that was interrupted."""
    if raw.missing:
        return f"not asked: {raw.missing.text}"
    return f"not asked; before it {raw.tool} hung for {raw.elapsed_s:.0f} s" if (
        raw.reached_limit
    ) else ""  # fmt: skip
