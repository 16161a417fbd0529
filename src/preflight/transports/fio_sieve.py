"""A large file of fio's reports: of each run the last one, without the counts behind percentiles.

With --status-interval a run writes a report every few seconds, each with all that went before; with
json+ each has a line for every latency that occurred. Neither tells more than the last report does.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct, field

from preflight.errors import UsageError
from preflight.model import Raw
from preflight.pasted import cleaned
from preflight.probes.fio.documents import Document, documents, goes_on
from preflight.probes.fio.report import TOOL
from preflight.probes.kernel_log.gaps import mark
from preflight.unpack import Unpacking

#: One report, and all that are kept, are no larger without their counts: 600 jobs, and twice that.
REPORT_BYTES, KEPT_BYTES = 16 << 20, 32 << 20
_BLOCK = 1 << 20
_HEAD_BYTES = 1 << 16
#: More than a key has: it may be cut by the end of a block.
_KEY_BYTES = 32
_MOST_BYTES = 1 << 40
_BEGIN = re.compile(rb'\{\s*"fio version"\s*:')
_BINS = re.compile(rb'"bins"\s*:\s*\{[^{}]*\}')
_SAID, _SAID_MOST = re.compile(rb"^fio: [^\n]{1,300}", re.MULTILINE), 50
_OPEN = b'"bins"'
#: Reports of other tools: then the file is no log of fio alone, and is read whole.
_OTHERS = (b"<nvidia_smi_log", b"NVSMI LOG", b'"preflight.')


class NotAloneError(Exception):
    """The file holds more than reports of fio."""


def fio_sieved(path: Path, source: str) -> Raw | None:
    """The reports that count; None where the file is another's. UsageError where one is too large
    to be held."""
    try:
        with path.open("rb") as file:
            unpacking = Unpacking(file, _MOST_BYTES)
            head = cast(BinaryIO, unpacking).read(_HEAD_BYTES)
            if b"\0" in head[:4096] or not _BEGIN.search(head):
                return None
            sieve = _Sieve()
            for line, text in _reports(_blocks(head, cast(BinaryIO, unpacking))):
                if any(other in text for other in _OTHERS):
                    raise NotAloneError
                sieve.take(line, text, source)
            return sieve.raw(source, cut=bool(unpacking.cause))
    except (NotAloneError, OSError, EOFError, zlib.error):
        return None


def _blocks(head: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield head
    while block := file.read(_BLOCK):
        yield block


def _reports(blocks: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """From where each report begins to where the next one does, with the lines before it."""
    line, report, looked = 0, b"", 0
    for part in _without_counts(blocks):
        report += part
        while found := _BEGIN.search(report, max(looked, 1)):
            yield line, report[: found.start()]
            line += report.count(b"\n", 0, found.start())
            report, looked = report[found.start() :], 0
        looked = len(report) - _KEY_BYTES
        if len(report) > REPORT_BYTES:
            raise _too_large(f"one report is over {REPORT_BYTES >> 20} MiB")
    yield line, report


def _without_counts(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same text, and as many lines."""
    held = b""
    for block in blocks:
        text = _BINS.sub(_as_lines, held + block)
        opened = text.rfind(_OPEN)
        end = len(text) - _KEY_BYTES
        if opened >= 0 and b"}" not in text[opened:]:
            end = min(end, opened)
        end = max(end, 0)
        yield text[:end]
        held = text[end:]
        if len(held) > REPORT_BYTES:
            raise _too_large("one list of latencies has no end")
    yield _BINS.sub(_as_lines, held)


def _as_lines(match: re.Match[bytes]) -> bytes:
    return b'"bins":{}' + b"\n" * match[0].count(b"\n")


def _too_large(what: str) -> UsageError:
    return UsageError(what, "fio --output-format=json --group_reporting writes a row for each job")


class _Kept(Struct):
    """The report of a run that counts so far."""

    line: int
    text: bytes
    told: Document
    behind: bytes = b""  # one that the file ends in
    behind_line: int = 0


class _Sieve(Struct):
    kept: list[_Kept] = field(default_factory=list)
    said: dict[str, None] = field(default_factory=dict)  # what fio told of errors, between reports

    def take(self, line: int, text: bytes, source: str) -> None:
        """One report, with what stands behind it."""
        if len(self.said) < _SAID_MOST:
            self.said |= dict.fromkeys(cleaned(one[0].decode("utf-8", "replace"))
                                       for one in _SAID.finditer(text))  # fmt: skip
        found = next(iter(documents(_text(text))), None)
        if found is None:
            return
        if self.kept and goes_on(self.kept[-1].told, found):
            if found.cut:
                self.kept[-1].behind, self.kept[-1].behind_line = text, line
            else:
                self.kept[-1] = _Kept(line, text, found)
        else:
            self.kept.append(_Kept(line, text, found))
        if sum(len(one.text) for one in self.kept) > KEPT_BYTES:
            raise _too_large(f"{source} holds over {KEPT_BYTES >> 20} MiB of different runs")

    def raw(self, source: str, *, cut: bool) -> Raw | None:
        """What is kept as one answer, with marks for the lines between."""
        pieces, at = [], 0
        for one in self.kept:
            for line, text in ((one.line, one.text), (one.behind_line, one.behind)):
                if not text:
                    continue
                if line > at:
                    pieces.append(mark(line - at))
                said = _text(text)
                pieces.append(said if said.endswith("\n") else f"{said}\n")
                at = line + pieces[-1].count("\n")
        if not pieces:
            return None
        there = "".join(pieces)
        pieces += [f"{one}\n" for one in self.said if one not in there]
        return Raw("", TOOL, stdout="".join(pieces), source=source, truncated=cut)


def _text(data: bytes) -> str:
    return cleaned(data.decode("utf-8", "replace"))
