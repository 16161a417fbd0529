"""Files that come behind ours and override it, and what in limits.conf counts before any order.

Sources: sysctl.d(5) of systemd; limits.conf(5) and pam_limits(8).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from preflight.settings.dropins import LIMITS_NAMES, SYSCTL_NAMES, limits_pattern, sysctl_pattern
from preflight.settings.wanted import Change

#: Where files of sysctl.d lie. They are read in the order of their names, whatever the folder.
SYSCTL_FOLDERS = (
    "/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)  # fmt: skip
LIMITS_FOLDER = "/etc/security/limits.d"
#: The marks of a container: files and variables, as the probe of the identity looks for them.
MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
VARIABLES = (
    "container", "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER",
)  # fmt: skip


def in_container(root: Path) -> bool:
    """Whether this is one: limits come from what started it there, and limits.d says nothing."""
    marked = any((root / mark.lstrip("/")).exists() for mark in MARKS)
    here = root == Path("/")  # variables tell nothing of a machine below a folder
    return marked or (here and any(os.environ.get(name) for name in VARIABLES))


def file_names(root: Path, changes: Sequence[Change]) -> tuple[str, str]:
    """The names of our files in sysctl.d and limits.d that nothing overrides, as far as there are
    such."""
    return _sysctl_name(root, changes), _limits_name(root, changes)


def later_files(root: Path, names: Sequence[str], than: str) -> list[str]:
    """Files of sysctl.d that come behind the name `than` and set one of these parameters."""
    paths = [path for folder in SYSCTL_FOLDERS for path in _behind(root / folder[1:], than)]
    # `sysctl --system` reads this one last; systemd only where a link in /etc/sysctl.d says so.
    paths.append(root / "etc/sysctl.conf")
    return _setting(root, paths, sysctl_pattern(names))


def later_limits(root: Path, names: Sequence[str], than: str) -> list[str]:
    """Files of limits.d that come behind the name `than` and limit everybody or root."""
    return _setting(root, _behind(root / LIMITS_FOLDER[1:], than), limits_pattern(names))


def nearer_limits(root: Path, names: Sequence[str]) -> Iterator[str]:
    """Lines for a user or a group: they count before those for everybody, whatever the order."""
    pattern = re.compile(
        rf"\s*([^\s#*]\S*)\s+(?:soft|hard|-)\s+({'|'.join(map(re.escape, names))})\s", re.ASCII
    )
    files = [root / "etc/security/limits.conf", *_behind(root / LIMITS_FOLDER[1:], "")]
    for path in files:
        for at, line in enumerate(_text(path).splitlines(), 1):
            match = pattern.match(f"{line} ")
            if match and match[1] != "root":
                yield f"/{path.relative_to(root)}:{at} sets {match[2]} for {match[1]}"


def _behind(folder: Path, than: str) -> list[Path]:
    ours = {*SYSCTL_NAMES, *LIMITS_NAMES}
    found = sorted(folder.glob("*.conf"))
    return [path for path in found if path.name > than and path.name not in ours]


def _setting(root: Path, paths: Iterable[Path], pattern: str) -> list[str]:
    sets = re.compile(pattern.replace("[[:space:]]", r"\s"), re.MULTILINE)
    return [f"/{path.relative_to(root)}" for path in paths if sets.search(_text(path))]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""


def _sysctl_name(root: Path, changes: Sequence[Change]) -> str:
    first, last = SYSCTL_NAMES
    names = [one.name for one in changes if one.kind == "sysctl"]
    ours = (root / "etc/sysctl.d" / last).exists()  # it would override the first
    return last if ours or (names and later_files(root, names, first)) else first


def _limits_name(root: Path, changes: Sequence[Change]) -> str:
    first, last = LIMITS_NAMES
    names = [one.name for one in changes if one.kind == "limit"]
    ours = (root / LIMITS_FOLDER[1:] / last).exists()
    return last if ours or (names and later_limits(root, names, first)) else first
