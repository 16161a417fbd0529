"""What a user may use of file systems, as quota(1) and `lfs quota` tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.storage import Quota
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "quotas"
# quota(1) asks servers of NFS, which may take its time; -w keeps a row on one line, -p gives the
# grace time a column of its own. Lustre has a command of its own for each of its file systems.
_ASK = """\
exec 2>/dev/null
command -v quota >/dev/null && timeout -k 1 5 quota -w -p
if command -v lfs >/dev/null; then
  grep -E '^[^ ]+ [^ ]+ lustre ' /proc/mounts | head -n 8 | while read -r d p r; do
    timeout -k 1 5 lfs quota -u "$(id -u)" "$p"
  done
fi
echo end"""

_WHOSE = re.compile(
    r"Disk quotas for (?:usr|user|grp|group|prj|project) (\S{1,80})(?: \([pug]id \d+\))?:.*"
)
_HEAD = re.compile(r"Filesystem\s+(?:blocks|kbytes|space)\s+quota\s+limit\b.*")
#: File system, used, quota, limit, grace (or nothing), files, quota, limit. `*`: it is over.
_ROW = re.compile(
    r"(\S{1,4000})\s+\[?(\d{1,18})\*?\]?\s+(\d{1,18})\s+(\d{1,18})(?:\s+(\S{1,30}))??"
    r"\s+\[?(\d{1,18})\*?\]?\s+(\d{1,18})\s+(\d{1,18})(?:\s+\S{1,30})?",
    re.ASCII,
)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=15)
def quotas(text: str) -> tuple[Quota, ...]:
    """Tables of both tools; only rows with a limit are facts. Sizes are in KiB."""
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if lines[-1] != "end" and not any(_WHOSE.fullmatch(line) for line in lines):
        raise ParseError("expected `Disk quotas for user ...`, or a closing `end`", len(lines))
    return tuple(_rows(_joined(lines)))


def _joined(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Without -w the name of a file system that is long has a line for itself."""
    name, at = "", 0
    for number, line in enumerate(lines, 1):
        if len(line.split()) == 1 and line not in ("end", ""):
            name, at = line, number
        else:
            yield (at, f"{name} {line}") if name else (number, line)
            name = ""


def _rows(lines: Iterator[tuple[int, str]]) -> Iterator[Quota]:
    whose, within = "", False
    for number, line in lines:
        if match := _WHOSE.fullmatch(line):
            whose, within = match[1], False
        elif _HEAD.fullmatch(line):
            within = True
        elif within and (match := _ROW.fullmatch(line)):
            used, soft, hard = (int(match[at]) for at in (2, 3, 4))
            files, soft_files, hard_files = (int(match[at]) for at in (6, 7, 8))
            if soft or hard or soft_files or hard_files:
                limit = (soft or hard) * 1024  # beyond the first of them writes end in a week
                none = Missing("not-applicable", "no limit of bytes is set")
                yield Quota(
                    name=f"{match[1]} {whose}",
                    used_bytes=used * 1024,
                    limit_bytes=limit or none,
                    used_percent=_percent(used, soft or hard, "bytes"),
                    files_percent=_percent(files, soft_files or hard_files, "files"),
                    line=number,
                    probe=_PROBE,
                )


def _percent(used: int, limit: int, what: str) -> Known[float]:
    return 100 * used / limit if limit else Missing("not-applicable", f"no limit of {what} is set")
