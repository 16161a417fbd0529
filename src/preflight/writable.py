"""What preflight may change on a machine where it is asked to, and nothing else.

All of it is harmless in anybody's hands: no parameter here names a program to be run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from preflight.probes.parameters.sysctls import FILES, NAMES

#: Parameters of sysfs, by our name. The others are settled at boot or by the BIOS.
SYSFS: dict[str, str] = {
    name: FILES[name]
    for name in ("thp.enabled", "thp.defrag", "cpu.governor", "cpu.no_turbo", "cpu.boost")
}
#: Follows from another parameter, and so is put back with it: the governor changes the preference.
FOLLOWS: dict[str, str] = {"cpu.governor": FILES["cpu.preference"]}
#: Limits of a login (limits.conf(5)).
LIMITS = frozenset({"nofile", "memlock", "nproc"})
#: limits.conf counts it in KiB, the kernel in bytes: no other value can be taken for the wrong one.
UNLIMITED = "unlimited"

KINDS = ("sysctl", "sysfs", "limit")
#: A value on one line, without what a shell, sysctl.d, tmpfiles.d or limits.conf takes for more.
VALUE = re.compile(r"[A-Za-z0-9_+.:,-]{1,60}(?: [A-Za-z0-9_+.:,-]{1,60}){0,9}", re.ASCII)


def faults(declared: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the key `set` of a check."""
    known: dict[str, object] = {"sysctl": NAMES, "sysfs": SYSFS, "limit": LIMITS}
    kinds = [kind for kind in KINDS if kind in declared]
    if len(kinds) != 1 or not set(declared) <= {*KINDS, "value"}:
        yield "it is {sysctl: NAME}, {sysfs: NAME} or {limit: NAME}, and perhaps a value"
        return
    name = declared[kinds[0]]
    if name not in known[kinds[0]]:  # type: ignore[operator]
        yield f"{kinds[0]} {name!r} is none that preflight may write"
    value = declared.get("value", "0")
    if name == "memlock" and value != UNLIMITED:
        yield f"memlock is {UNLIMITED} or left alone"
    if not (isinstance(value, str) and VALUE.fullmatch(value)):
        yield f"value {value!r} is no short text of letters, digits and spaces; quote a number"
