"""Processes that the user named: their limits, and what they have of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.system import AskedProcess, Limit
from preflight.model import Known, Missing
from preflight.probes.limits import read_limits
from preflight.probes.spec import probe

_PROBE = "process"

# The process ids are the arguments. A process of somebody else shows neither limits nor files.
_ASK = """\
count() { set -- "$1"/*; if [ -L "$1" ]; then echo "files $#"; else echo "files 0"; fi; }
for p in "$@"; do
  echo "process $p"
  if [ ! -d "/proc/$p" ]; then echo gone; continue; fi
  cat "/proc/$p/limits" 2>/dev/null || echo denied
  grep -s -E '^(Name|Threads|CapEff):' "/proc/$p/status"
  if [ -r "/proc/$p/fd" ]; then count "/proc/$p/fd"; else echo "files denied"; fi
done
echo end"""

_DENIED = Missing(
    "denied", "the process is another user's: run preflight as that user, as root or with --sudo"
)


@probe(_PROBE, ["sh", "-c", _ASK, "sh"], timeout_s=10, needs_root=True)
def process(text: str) -> tuple[AskedProcess, ...]:
    """A block for each process, which begins with `process PID`."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the processes are cut short: no closing `end`", len(lines))
    starts = [at for at, line in enumerate(lines) if re.fullmatch(r"process [0-9]+", line)]
    if not starts:
        raise ParseError("expected a line `process PID`", 1)
    ends = [*starts[1:], len(lines) - 1]
    return tuple(_one(lines[start:end], start + 1) for start, end in zip(starts, ends, strict=True))


def _one(lines: Sequence[str], first_line: int) -> AskedProcess:
    name = f"pid {lines[0].split()[1]}"
    told = dict(_pairs(lines))
    if "gone" in lines[1:2]:
        missing = Missing("unreadable", f"there is no process {name[4:]}: ended, or mistyped")
        return AskedProcess(name, missing, missing, missing, missing, (), first_line, _PROBE)
    limits: tuple[Limit, ...] = ()
    if "denied" not in lines:
        limits = read_limits(lines, name, _PROBE, first_line)
    files = _number(told.get("files", ""))
    nofile = next((each.soft for each in limits if each.resource == "nofile"), _DENIED)
    return AskedProcess(
        name, told.get("Name") or _DENIED, _number(told.get("Threads", "")), files,
        _percent(files, nofile), limits, first_line, _PROBE,
    )  # fmt: skip


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if match := re.fullmatch(r"(Name|Threads|files)(?::\s*| )(.{1,60})", line):
            yield match[1], match[2]


def _number(text: str) -> Known[int]:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else _DENIED


def _percent(files: Known[int], limit: Known[int | str]) -> Known[float]:
    if isinstance(files, Missing):
        return files
    if isinstance(limit, Missing):
        return limit
    return 100 * files / limit if isinstance(limit, int) and limit else 0.0
