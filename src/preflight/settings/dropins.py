"""The files that make a change survive a reboot: their names, and the lines that go in.

Sources: sysctl.d(5), tmpfiles.d(5) of systemd; limits.conf(5) and pam_limits(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from preflight.settings.wanted import Change
from preflight.writable import SYSFS

#: The later name is taken where another file comes behind the first and sets the same.
SYSCTL_NAMES = ("90-preflight.conf", "zz-preflight.conf")
#: Where files of sysctl.d lie. They are read in the order of their names, whatever the folder.
SYSCTL_FOLDERS = (
    "/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)  # fmt: skip
TMPFILES = "/etc/tmpfiles.d/preflight.conf"
LIMITS = "/etc/security/limits.d/90-preflight.conf"
HEADER = "# Written by `preflight sysctl`; its reasons: preflight explain ID"
#: Every file that preflight may write and put back.
FILES = frozenset({*(f"/etc/sysctl.d/{name}" for name in SYSCTL_NAMES), TMPFILES, LIMITS})


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


def dropins(changes: Sequence[Change], sysctl_name: str = SYSCTL_NAMES[0]) -> list[DropIn]:
    """The files that keep these changes, none where there is nothing for one."""
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
        names = "|".join(one.name for one in of["limit"])
        pattern = rf"^[[:space:]]*(\*|root)[[:space:]]+-[[:space:]]+({names})[[:space:]]"
        found.append(_dropin(LIMITS, pattern, lines))
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


def later_files(root: Path, names: Sequence[str], than: str) -> list[str]:
    """Files of sysctl.d that come behind the name `than` and set one of these parameters."""
    ours = re.compile(sysctl_pattern(names).replace("[[:space:]]", r"\s"), re.MULTILINE)
    paths = [
        path
        for folder in SYSCTL_FOLDERS
        for path in sorted((root / folder.lstrip("/")).glob("*.conf"))
        if path.name > than and path.name not in SYSCTL_NAMES
    ]
    # `sysctl --system` reads this one last; systemd only where a link in /etc/sysctl.d says so.
    paths.append(root / "etc/sysctl.conf")
    return [
        f"/{path.relative_to(root)}"
        for path in paths
        if path.is_file() and ours.search(path.read_text(encoding="utf-8", errors="replace"))
    ]


def sysctl_name(root: Path, changes: Sequence[Change]) -> str:
    """The name of our file in sysctl.d that nothing overrides, as far as there is one."""
    first, last = SYSCTL_NAMES
    names = [one.name for one in changes if one.kind == "sysctl"]
    ours = (root / "etc/sysctl.d" / last).exists()  # it would override the first
    return last if ours or (names and later_files(root, names, first)) else first
