"""What NCCL itself says of the ways that it took while ranks were at work.

Each rank writes into a file of its own; when all have ended, what matters of it is told line by
line, as a collector of logs would: {"kind": "nccl_log", "log": "h1:4000:4100 [0] NCCL INFO ..."}.
A fast enough number over a wrong way is seen by these lines alone.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

from .plan import Plan

Line = dict[str, Any]

KIND = "nccl_log"
#: What is asked of NCCL (its User Guide, "Environment Variables"): ways, networks, variables. Who
#: has chosen by himself is not overruled.
_ASKED = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH"}
_FILE = "NCCL_DEBUG_FILE"
#: Of a host's log so much is told, each rank with its share; of one file so much is looked at.
_HOST_BYTES, _FILE_BYTES = 256 << 10, 8 << 20
#: Ways of one kind from one rank: to a thousand peers it has a thousand, and all tell the same.
_OF_A_WAY = 16
_SAYS = re.compile(r"NCCL (?:(?P<level>INFO|WARN) (?P<text>.*)|version \d)")
_CHANNEL = re.compile(r"Channel \d+(?:/\d+)? ")
#: Lists of rings and of the machine's tree: indented, or begun with a number or a sign.
_OF_A_LIST = re.compile(r"[^A-Za-z]")


class NcclLog:
    """The log of the ranks of one order. `environment`: what these need for it; none where nothing
    is to be written, or the user has it written elsewhere."""

    def __init__(self, plan: Plan, order: Line) -> None:
        self.folder: Path | None = None
        self.environment: dict[str, str] = {}
        if order.get("log") and plan.device == "cuda" and _FILE not in os.environ:
            # The folder of this process' scratch: whoever ends it, nothing of this is left behind.
            self.folder = Path(tempfile.mkdtemp(prefix="nccl-", dir=get_temp_dir()))
            own = {name: value for name, value in _ASKED.items() if name not in os.environ}
            self.environment = {**own, _FILE: f"{self.folder}/%h.%p"}

    def lines(self) -> Iterator[Line]:
        """What is told of it, once the ranks have ended; the files are gone afterwards."""
        if self.folder is None:
            return
        try:
            # By pid: the first rank of the host comes first.
            files = sorted(self.folder.iterdir(), key=lambda one: (len(one.name), one.name))
            for file in files:
                with file.open(encoding="utf-8", errors="replace") as text:
                    written = text.read(_FILE_BYTES)
                for line in kept(written, _HOST_BYTES // len(files)):
                    yield {"kind": KIND, "log": line}
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def kept(text: str, most_bytes: int) -> list[str]:
    """The lines of one rank that tell which ways it took: each channel of a way says the same, and
    lists of rings nobody reads. Warnings, and which ranks have come, are kept before all else."""
    told: list[str] = []
    seen: set[str] = set()
    ways: Counter[str] = Counter()
    size = 0
    for line in text.splitlines():
        said = _SAYS.search(line)
        if said is None or not _new(said, seen, ways):
            continue
        if size + len(line) > most_bytes and not _must_be_told(said):
            continue
        size += len(line)
        if size < 2 * most_bytes:
            told.append(line)
    return told


def _must_be_told(said: re.Match[str]) -> bool:
    """Warnings, and that a communicator has come to be: without its end it would seem to hang."""
    return said["level"] == "WARN" or str(said["text"]).startswith(("comm ", "ncclComm"))


def _new(said: re.Match[str], seen: set[str], ways: Counter[str]) -> bool:
    """Whether a line tells what none before it did."""
    text = said["text"] or said[0]
    if said["level"] == "INFO" and _OF_A_LIST.match(text):
        return False
    shape, _, way = _CHANNEL.sub("", text).partition(" via ")
    if way:
        ways[way] += shape not in seen
        if shape + way in seen or ways[way] > _OF_A_WAY:
            return False
    elif text in seen:
        return False
    seen.update((shape, shape + way))
    return True
