"""/dev/shm, through which workers hand over batches and ranks of one host exchange data."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.system import SharedMemory
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "shared-memory"
# -P keeps a line together whatever the length of the device's name.
_ASK = """\
if [ -d /dev/shm ]; then df -P -k /dev/shm; else echo none; fi
echo end"""

#: Filesystem, 1024-blocks, used, available, capacity, mounted on (POSIX, df).
_ROW = re.compile(r".* ([0-9]+) +([0-9]+) +([0-9]+) +(?:[0-9]+%|-) (/.*)")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=5)
def shared_memory(text: str) -> Known[SharedMemory]:
    """The line of df."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the answer is cut short: no closing `end`", len(lines))
    if lines[0] == "none":
        return Missing("unreadable", "there is no /dev/shm")
    for number, line in enumerate(lines, 1):
        match = _ROW.fullmatch(line)
        if match and match[4] == "/dev/shm":
            size, used, free = (int(match[at]) * 1024 for at in (1, 2, 3))
            percent = 100 * used / (used + free) if used + free else 100.0
            return SharedMemory(size, free, percent, number, _PROBE)
        if match:  # a chroot: a directory of another file system
            return Missing("not-applicable", f"/dev/shm is a directory of {match[4][:80]}")
    raise ParseError("expected df's line for /dev/shm", len(lines))
