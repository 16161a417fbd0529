"""The files that make a change survive a reboot: their names, and the lines that go in.

Sources: sysctl.d(5), tmpfiles.d(5) of systemd; limits.conf(5) and pam_limits(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from preflight.settings.wanted import Change
from preflight.writable import SYSFS

#: The later name is taken where another file comes behind the first and sets the same.
SYSCTL_NAMES = ("90-preflight.conf", "zz-preflight.conf")
LIMITS_NAMES = SYSCTL_NAMES
TMPFILES = "/etc/tmpfiles.d/preflight.conf"
HEADER = "# Written by `preflight sysctl`; its reasons: preflight explain ID"
#: Every file that preflight may write and put back.
FILES = frozenset({
    *(f"/etc/sysctl.d/{name}" for name in SYSCTL_NAMES),
    *(f"/etc/security/limits.d/{name}" for name in LIMITS_NAMES),
    TMPFILES,
})  # fmt: skip


class DropIn(Struct, frozen=True):
    """A file: lines that match `pattern` (an extended regular expression that grep and Python read
    alike) give way to `lines`; the others stay."""

    path: str
    pattern: str
    lines: tuple[str, ...]

    def content(self, before: str) -> str:
        """The whole file as it is to be."""
        ours = re.compile(self.pattern.replace("[[:space:]]", r"\s"))
        kept = [line for line in before.splitlines() if not ours.match(line)]
        return "".join(f"{line}\n" for line in (*kept, *self.lines))


def dropins(
    changes: Sequence[Change], names: tuple[str, str] = (SYSCTL_NAMES[0], LIMITS_NAMES[0])
) -> list[DropIn]:
    """The files that keep these changes, none where there is nothing for one. `names`: of those in
    sysctl.d and limits.d."""
    sysctl_name, limits_name = names
    of = {
        kind: [one for one in changes if one.kind == kind] for kind in ("sysctl", "sysfs", "limit")
    }
    found = []
    if of["sysctl"]:
        lines = [f"{one.name} = {one.value}" for one in of["sysctl"]]
        pattern = sysctl_pattern(one.name for one in of["sysctl"])
        found.append(_dropin(f"/etc/sysctl.d/{sysctl_name}", pattern, lines))
    if of["sysfs"]:
        lines = [f"w {glob(one.name)} - - - - {one.value}" for one in of["sysfs"]]
        places = "|".join(_literal(glob(one.name)) for one in of["sysfs"])
        found.append(_dropin(TMPFILES, rf"^w[[:space:]]+({places})[[:space:]]", lines))
    if of["limit"]:
        # `*` is everybody but root.
        lines = [f"{who} - {one.name} {one.value}" for one in of["limit"] for who in ("*", "root")]
        pattern = _limits("-", [one.name for one in of["limit"]])
        found.append(_dropin(f"/etc/security/limits.d/{limits_name}", pattern, lines))
    return found


def _literal(text: str) -> str:
    """A pattern of this text: grep complains of a hyphen that is escaped."""
    return re.escape(text).replace(r"\-", "-")


def _dropin(path: str, pattern: str, lines: Sequence[str]) -> DropIn:
    return DropIn(path, f"{pattern}|^# Written by .preflight sysctl", (HEADER, *lines))


def glob(name: str) -> str:
    """Where a parameter of sysfs lies, as tmpfiles.d and a shell write it."""
    return SYSFS[name]


def sysctl_pattern(names: Iterable[str]) -> str:
    """A line of sysctl.d that sets one of these."""
    either = "|".join(name.replace(".", "[./]") for name in names)
    return f"^[[:space:]]*-?[[:space:]]*({either})[[:space:]]*="


def limits_pattern(names: Iterable[str]) -> str:
    """A line of limits.conf that limits everybody or root."""
    return _limits("(soft|hard|-)", names)


def _limits(kind: str, names: Iterable[str]) -> str:
    who = rf"^[[:space:]]*(\*|root)[[:space:]]+{kind}[[:space:]]+"
    return f"{who}({'|'.join(names)})[[:space:]]"


def nearer_pattern(names: Iterable[str]) -> str:
    """A line of limits.conf for a user or a group; root's too."""
    kind = "[[:space:]]+(soft|hard|-)[[:space:]]+"
    return rf"^[[:space:]]*[^*#[:space:]][^[:space:]]*{kind}({'|'.join(names)})[[:space:]]"
