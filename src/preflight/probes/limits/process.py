"""Processes that the user named: their limits, what they have of them, the NCCL they run on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from preflight.errors import ParseError
from preflight.facts.system import AskedProcess, Limit
from preflight.model import Known, Missing
from preflight.probes.limits.limits import RESOURCES, read_limits
from preflight.probes.spec import probe

_PROBE = "process"

# The process ids are the arguments. A process of somebody else shows neither limits nor files. A
# library is read as the process sees it, which may be in a container; one whose name has no version
# tells it in its text, which lies before the code for GPUs.
_ASK = """\
count() { set -- "$1"/*; if [ -L "$1" ]; then echo "files $#"; else echo "files 0"; fi; }
for p in "$@"; do
  echo "process $p"
  if [ ! -d "/proc/$p" ]; then echo gone; continue; fi
  cat "/proc/$p/limits" 2>/dev/null || echo denied
  grep -s -E '^(Name|State|Threads|CapEff):' "/proc/$p/status"
  if maps=$(grep -s -o '/[^ ]*/libnccl[.]so[^ ]*' "/proc/$p/maps"); [ $? -le 1 ]; then
    f=${maps%%"
"*}; echo "maps $f"
    case $f in *libnccl.so.*.*|'') ;; *)
      head -c 67108864 "/proc/$p/root$f" 2>/dev/null |
        grep -a -o -m 1 'NCCL version [0-9][0-9.]*' ;;
    esac
  fi
  if [ -r "/proc/$p/fd" ]; then count "/proc/$p/fd"; else echo "files denied"; fi
done
echo end"""

_NCCL_FILE = re.compile(r"libnccl\.so\.([0-9]+(?:\.[0-9]+){1,3})$")
_NCCL_TEXT = re.compile(r"NCCL version ([0-9]+(?:\.[0-9]+){1,3})")

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
    if ended := _ended(name, lines[1:2], told):
        return _unknown(name, ended, first_line)
    if "denied" in lines:
        limits = _unread(name, first_line)
    else:
        limits = read_limits(lines, name, _PROBE, first_line)
    of = {each.resource: each for each in limits}
    files = _number(told.get("files", ""))
    return AskedProcess(
        name, told.get("Name") or _DENIED, _number(told.get("Threads", "")), files,
        _percent(files, of["nofile"].soft), _nccl(lines),
        **{resource: limit.soft for resource, limit in of.items()},
        memlock_lifted=of["memlock"].lifted, limits=limits, line=first_line, probe=_PROBE,
    )  # fmt: skip


def _ended(name: str, first: Sequence[str], told: Mapping[str, str]) -> Missing | None:
    """Why nothing of it can be looked at. A zombie keeps its limits and shows no open file."""
    if "gone" in first:
        return Missing("unreadable", f"there is no process {name[4:]}: ended, or mistyped")
    if told.get("State", "")[:1] not in ("Z", "X"):
        return None
    if told.get("Threads", "1") in ("0", "1"):
        return Missing("unreadable", f"process {name[4:]} has ended (zombie): nothing of it runs")
    text = f"the main thread of process {name[4:]} has ended (zombie): others of it still run"
    return Missing("unreadable", text)


def _unknown(name: str, why: Missing, first_line: int) -> AskedProcess:
    return AskedProcess(
        name, why, why, why, why, why, why, why, why, why, why, line=first_line, probe=_PROBE
    )


def _unread(name: str, first_line: int) -> tuple[Limit, ...]:
    return tuple(
        Limit(f"{resource} ({name})", resource, name, _DENIED, _DENIED, _DENIED,
              line=first_line, probe=_PROBE)
        for resource in RESOURCES.values()
    )  # fmt: skip


def _nccl(lines: Sequence[str]) -> Known[str]:
    """The version of the NCCL that it has loaded."""
    at = next((at for at, line in enumerate(lines) if line.partition(" ")[0] == "maps"), None)
    if at is None:
        return _DENIED
    path = lines[at].partition(" ")[2]
    if not path:
        return Missing("not-applicable", "it has loaded no NCCL, or has it inside another library")
    found = _NCCL_FILE.search(path) or _NCCL_TEXT.match(
        lines[at + 1] if at + 1 < len(lines) else ""
    )
    return found[1] if found else Missing("unreadable", f"no version in {path[:200]}")


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if match := re.fullmatch(r"(Name|State|Threads|files)(?::\s*| )(.{1,60})", line):
            yield match[1], match[2]


def _number(text: str) -> Known[int]:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else _DENIED


def _percent(files: Known[int], limit: Known[int | str]) -> Known[float]:
    if isinstance(files, Missing):
        return files
    if isinstance(limit, Missing):
        return limit
    return 100 * files / limit if isinstance(limit, int) and limit else 0.0
