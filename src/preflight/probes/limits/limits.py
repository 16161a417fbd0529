"""Resource limits of the shell that was asked, from /proc/PID/limits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.errors import ParseError
from preflight.facts.system import UNLIMITED, Amount, Limit
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "limits"

#: The kernel's words (fs/proc/base.c) -> ours, as ulimit and limits.conf(5) have them.
RESOURCES = {
    "Max open files": "nofile",
    "Max locked memory": "memlock",
    "Max processes": "nproc",
    "Max stack size": "stack",
}
#: What lifts the limit of locked memory: CAP_IPC_LOCK, capabilities(7). Whoever is root in a
#: container mostly lacks it.
_IPC_LOCK = 1 << 14

# `cat` has the limits of the shell that started it.
_ASK = """\
cat /proc/self/limits
grep -s CapEff: /proc/self/status
echo end"""

#: RLIM_INFINITY as a number, or what a tool makes of it that counts in KiB.
_INFINITY = (1 << 63) - 1024
_LINE = re.compile(r"(Max [a-z ]+?) {2,}(\S+) +(\S+)(?: .*)?")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def limits(text: str) -> tuple[Limit, ...]:
    """The table of the kernel, then the shell's capabilities."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the limits are cut short: no closing `end`", len(lines))
    return read_limits(lines, "shell", _PROBE)


def read_limits(
    lines: Sequence[str], of: str, probe_name: str, first_line: int = 1
) -> tuple[Limit, ...]:
    """The rows of one /proc/PID/limits that matter; ParseError where one is not there."""
    found: dict[str, Limit] = {}
    lifted = _lifted(lines)
    for number, line in enumerate(lines, first_line):
        match = _LINE.fullmatch(line)
        if not match or match[1] not in RESOURCES:
            continue
        resource = RESOURCES[match[1]]
        found[resource] = Limit(
            f"{resource} ({of})", resource, of, amount(match[2]), amount(match[3]),
            lifted=lifted if resource == "memlock" else False,
            line=number, probe=probe_name,
        )  # fmt: skip
    absent = set(RESOURCES.values()) - set(found)
    if absent:
        text = f"expected the rows of /proc/PID/limits; {', '.join(sorted(absent))} is not there"
        raise ParseError(text, first_line)
    return tuple(found.values())


def amount(text: str, unit: int = 1) -> Known[Amount]:
    """A limit as tools write it; `unit`: the bytes in one, where it is none by itself."""
    if text in ("unlimited", "infinity", "max", "-1"):
        return UNLIMITED
    if re.fullmatch(r"[0-9]{1,20}", text):
        value = int(text) * unit
        return UNLIMITED if value >= _INFINITY else value
    return Missing("unreadable", f"{text[:60]!r} is no limit")


def _lifted(lines: Sequence[str]) -> Known[bool]:
    told = next((line for line in lines if line.startswith("CapEff:")), "")
    if match := re.fullmatch(r"CapEff:\s*([0-9a-f]{1,16})", told):
        return bool(int(match[1], 16) & _IPC_LOCK)
    return Missing("unreadable", "the kernel does not tell the capabilities (CapEff)")
