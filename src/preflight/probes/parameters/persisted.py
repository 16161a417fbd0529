"""Which parameters files set when the host boots: sysctl.d, and tmpfiles.d for those of sysfs.

Sources: sysctl.d(5), tmpfiles.d(5) and systemd-sysctl.service(8) of systemd; sysctl(8) of procps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.setup import AtBoot, Persisted
from preflight.probes.parameters.sysctls import FILES, NAMES
from preflight.probes.spec import probe

_PROBE = "persisted"

#: Best first: of files of one name only the first counts.
_FOLDERS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
_SYSCTL_CONF = "/etc/sysctl.conf"
#: Lines that may name one of ours, so that no others leave the host: patterns are looked at here.
_NAMED = "|".join(sorted(name.replace(".", "[./]") for name in NAMES))
_LINES = (
    rf"^[[:space:]]*-?[[:space:]]*({_NAMED})[[:space:]]*(=|$)"
    r"|^[[:space:]]*-?[[:space:]]*(vm|kernel|fs|net)[./][][a-z0-9_./?-]*[*][][a-z0-9_./?*-]*[[:space:]]*="
    r"|^[[:space:]]*w[^[:space:]]*[[:space:]]+/sys/(kernel/mm/transparent_hugepage|devices/system/cpu)/"
)
_SYSCTL_D = " ".join(f"{folder}/sysctl.d" for folder in _FOLDERS)
_TMPFILES_D = " ".join(f"{folder}/tmpfiles.d" for folder in _FOLDERS)
_ALL = " ".join(f"{folder}/*.conf" for folder in f"{_SYSCTL_D} {_TMPFILES_D}".split())
# A file that is a link to /dev/null takes the place of one of the same name further down; so does
# one that leads nowhere, which only root can tell from one whose end may not be seen.
_ASK = f"""\
told=
for f in {_ALL} {_SYSCTL_CONF}; do
  w=; if [ -r "$f" ]; then w=file; elif [ -e "$f" ]; then w=denied
  elif [ -L "$f" ]; then w=denied; [ "$(id -u)" != 0 ] || w=file; fi
  [ -z "$w" ] || told="$told$w $f
"
done
printf %s "$told"
if [ -d /run/systemd/system ]; then echo systemd; fi
if [ -e /run/tuned/tuned.pid ]; then
  t=; {{ read -r t </etc/tuned/active_profile; }} 2>/dev/null; echo "tuned ${{t:-unknown}}"
fi
grep -s -H -n -E '{_LINES}' {_ALL} {_SYSCTL_CONF}
echo end"""

_FOUND = re.compile(r"(/[^:]{1,300}\.conf):([0-9]{1,7}):(.*)", re.ASCII)
_SETTING = re.compile(r"(-?)\s*([\w./*?\[\]-]+)\s*(?:=\s*(.*))?", re.ASCII)
_WRITES = re.compile(r"w\S*\s+(\S+)\s+\S+\s+\S+\s+\S+\s+\S+\s+(.+)", re.ASCII)

Line = tuple[str, int, str, int]  # file, its line there, text, line of the answer


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def persisted(text: str) -> Persisted:
    """`file PATH` for each file, then `PATH:LINE:TEXT` for each line that may name one of ours."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of files is cut short: no closing `end`", len(lines))
    told = [line.partition(" ")[::2] for line in lines]
    files = [path for word, path in told if word in ("file", "denied")]
    denied = tuple(path for word, path in told if word == "denied")
    found = [
        (match[1], int(match[2]), match[3].strip(), number)
        for number, line in enumerate(lines, 1)
        if (match := _FOUND.fullmatch(line))
    ]
    order = _order(files, systemd="systemd" in lines)
    counted = [line for path in order for line in found if line[0] == path]
    settings = [*_sysctls(counted), *_sysfs(counted)]
    tuned = next((path for word, path in told if word == "tuned"), "none")
    return Persisted(tuple(settings), denied, tuned[:80], probe=_PROBE)


def _order(paths: Iterable[str], *, systemd: bool) -> list[str]:
    """The files that count, in the order in which they are read. /etc/sysctl.conf itself is read by
    procps only, after all others; systemd reads it where a link in sysctl.d leads to it."""
    by_name: dict[tuple[str, str], str] = {}
    conf = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if path == _SYSCTL_CONF:
            conf = [] if systemd else [path]
        else:
            by_name.setdefault((folder.rpartition("/")[2], name), path)
    return [*(by_name[key] for key in sorted(by_name)), *conf]


def _sysctls(lines: Iterable[Line]) -> Iterator[AtBoot]:
    """As systemd does: of lines for one name, or for one pattern, the last counts, be it a `-name`
    that only keeps patterns off; a name in full counts before any pattern, a later pattern before
    an earlier one."""
    told: dict[str, AtBoot | None] = {}
    for line in lines:
        if named := _setting(*line):
            told.pop(named[0], None)  # it counts where it stands last
            told[named[0]] = named[1]
    found: dict[str, AtBoot] = {}
    for name, one in told.items():
        for each in _meant(name) - (told.keys() - {name}):
            if one:
                found[each] = replace(one, name=each)
    yield from (found[name] for name in sorted(found))


def _setting(file: str, at: int, text: str, line: int) -> tuple[str, AtBoot | None] | None:
    """The name or pattern that a line sets, and to what: to nothing in `-name`."""
    match = _SETTING.fullmatch(text)
    if not match or "/tmpfiles.d/" in file or (match[3] is None and not match[1]):
        return None
    name = match[2].replace("/", ".")
    if match[3] is None:
        return name, None
    return name, AtBoot(name, " ".join(match[3].split()) or "none", file, at, line, _PROBE)


def _meant(name: str) -> frozenset[str]:
    """Those of ours that a name or a pattern means."""
    if "*" not in name:
        return NAMES & {name}
    return frozenset(filter(_pattern(name).fullmatch, NAMES))


def _pattern(name: str) -> re.Pattern[str]:
    """A pattern of the shell within a name: a star stands for one part of it."""
    return re.compile(re.escape(name).replace(r"\*", "[^.]*").replace(r"\?", "[^.]"))


def _sysfs(lines: Iterable[Line]) -> Iterator[AtBoot]:
    """Of lines of tmpfiles.d for one path the first counts."""
    ends = {path.rpartition("/sys/")[2].rpartition("*/")[2]: name for name, path in FILES.items()}
    found: dict[str, AtBoot] = {}
    for file, at, text, line in lines:
        match = _WRITES.fullmatch(text)
        if not match or "/tmpfiles.d/" not in file:
            continue
        for end, name in ends.items():
            if match[1].endswith(f"/{end}"):
                found.setdefault(name, AtBoot(name, match[2].strip(), file, at, line, _PROBE))
    yield from (found[name] for name in sorted(found))
