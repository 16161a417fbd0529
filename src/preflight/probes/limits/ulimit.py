"""Limits of resources as shells and tools list them: `ulimit -a`, /proc/PID/limits, `prlimit`.

The layouts are those of bash, zsh, dash, ksh93, mksh, busybox and fish, of proc(5) and prlimit(1).
Shells tell one of the two limits, the soft one where nothing else is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.errors import ParseError
from preflight.facts.system import UNLIMITED, Amount, Limit
from preflight.model import Known, Missing
from preflight.probes.limits.limits import RESOURCES, amount
from preflight.probes.spec import probe

#: Whose limits they are: those of the shell that listed them, or started what was looked at.
_OF = "shell"

#: The option of ulimit -> the resource.
_RESOURCES = {"n": "nofile", "l": "memlock", "u": "nproc", "s": "stack"}
#: The same by the words of shells that tell no option (dash, mksh) or another one (busybox).
_WORDS = {
    "nofiles": "nofile", "locked memory": "memlock", "lockedmem": "memlock", "process": "nproc",
    "processes": "nproc", "stack": "stack",
}  # fmt: skip
_PRLIMIT = {"NOFILE": "nofile", "MEMLOCK": "memlock", "NPROC": "nproc", "STACK": "stack"}

_AMOUNT = r"(unlimited|[0-9]{1,20})"
_AMOUNTS = re.compile(_AMOUNT)
#: open files (-n) 1024; max locked memory (kbytes, -l) 64; -l: locked-in-memory size (kbytes) 64;
#: locked memory(kbytes) 64
_SHELL = re.compile(
    r"(?:-(?P<option>\w): )?(?P<words>[A-Za-z](?:[A-Za-z -]{0,60}[A-Za-z])?)[ \t]*"
    r"(?:\((?P<unit>\w[\w -]{0,20}?)(?:, -(?P<last>\w))?\))?[ \t]*(?:\(-(?P<alone>\w)\))?"
)
_ROW_OF_PROC = re.compile(
    r"(Max [a-z]{3,20}(?: [a-z]{3,20}){0,3})"
    rf"\s{{1,40}}{_AMOUNT}\s{{1,40}}{_AMOUNT}(?:\s+\w+)?"
)
_ROW_OF_PRLIMIT = re.compile(
    rf"([A-Z]{{3,10}})\s+[a-z][\w -]{{2,60}}?\s{{1,40}}{_AMOUNT}\s{{1,40}}{_AMOUNT}(?:\s+\w+)?"
)
_IN_BYTES = frozenset({"memlock", "stack"})
#: Shells count memory in KiB, whatever they call it.
_KIB = frozenset({"kbytes", "kb", "kib", "kibytes"})
#: No line of theirs is as long.
_LONGEST = 120
_NO_HARD = Missing("not-in-input", "`ulimit -a` tells one limit; `ulimit -Ha` tells the hard one")
_NO_SOFT = Missing(
    "not-in-input",
    "these are the hard limits, or look like them, with a stack without limit: put `$ ulimit -a`"
    " above the soft ones, or give /proc/self/limits",
)


def _one_of_each(form: str, found: Iterator[Limit]) -> tuple[Limit, ...]:
    """One limit of each resource; raises ParseError where there is none."""
    each: dict[str, Limit] = {}
    for limit in found:
        each.setdefault(limit.resource, limit)
    if not each:
        raise ParseError(f"expected lines such as `{form}`", 1)
    return tuple(each.values())


@probe("ulimit", ["sh", "-c", "ulimit -a"], timeout_s=10)
def ulimit(text: str) -> tuple[Limit, ...]:
    """The soft limits, as a shell lists them."""
    found = (_limit(name, soft, _NO_HARD, at, "ulimit") for name, soft, at in _of_shell(text))
    return _one_of_each("open files (-n) 1024", found)


@probe("ulimit-hard", ["sh", "-c", "ulimit -Ha"], timeout_s=10)
def ulimit_hard(text: str) -> tuple[Limit, ...]:
    """The hard limits, which look alike: only the command above them tells."""
    found = (_limit(name, _NO_SOFT, hard, at, "ulimit-hard") for name, hard, at in _of_shell(text))
    return _one_of_each("open files (-n) 1048576", found)


def _of_shell(text: str) -> Iterator[tuple[str, Known[Amount], int]]:
    """Resource, amount and line."""
    for number, line in enumerate(text.split("\n"), 1):
        told, value = [*line.rsplit(None, 1), "", ""][:2]
        fits = len(line) < _LONGEST and _AMOUNTS.fullmatch(value)
        match = _SHELL.fullmatch(told.strip()) if fits else None
        if not match:
            continue
        option = match["option"] or match["last"] or match["alone"]
        resource = _WORDS.get(match["words"]) or _RESOURCES.get(option)
        if resource:
            yield resource, _in_units(resource, match["unit"] or "", value), number


def _in_units(resource: str, unit: str, value: str) -> Known[Amount]:
    """Bytes of memory, or a count."""
    if resource not in _IN_BYTES or value == UNLIMITED or unit.lower() == "bytes":
        return amount(value)
    if unit.lower() in _KIB:
        return amount(value, 1024)
    return Missing("unreadable", f"{value} of {resource}: the unit is not told")


def _limit(
    resource: str, soft: Known[Amount], hard: Known[Amount], line: int, probe_name: str
) -> Limit:
    return Limit(f"{resource} ({_OF})", resource, _OF, soft, hard, line=line, probe=probe_name)


@probe("proc-limits", ["cat", "/proc/self/limits"], timeout_s=10)
def proc_limits(text: str) -> tuple[Limit, ...]:
    """Soft and hard limits of a process, see proc(5)."""
    found = _of_rows(text, _ROW_OF_PROC, RESOURCES, "proc-limits")
    return _one_of_each("Max open files  1024  1048576  files", found)


@probe("prlimit", ["prlimit"], timeout_s=10)
def prlimit(text: str) -> tuple[Limit, ...]:
    """Soft and hard limits, see prlimit(1)."""
    found = _of_rows(text, _ROW_OF_PRLIMIT, _PRLIMIT, "prlimit")
    return _one_of_each("NOFILE  max number of open files  1024  1048576 files", found)


def _of_rows(
    text: str, shape: re.Pattern[str], names: dict[str, str], probe_name: str
) -> Iterator[Limit]:
    for number, line in enumerate(text.split("\n"), 1):
        match = shape.fullmatch(line.strip()) if len(line) < _LONGEST else None
        resource = names.get(match[1].strip()) if match else None
        if match and resource:
            yield _limit(resource, amount(match[2]), amount(match[3]), number, probe_name)
