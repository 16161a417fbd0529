"""The lines of payload/checkpoint -> facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from preflight.errors import ParseError
from preflight.facts.checkpoints import Scan, ScannedFile, Tensor

FORM = "checkpoint/1"


def scans(text: str, host: str = "") -> tuple[Scan, ...]:
    """One for each path, in order; the last is not `whole` where the lines break off. ParseError
    where the text is of something else."""
    found: list[Scan] = []
    files: list[ScannedFile] = []
    tensors: list[Tensor] = []
    way = ""
    for number, line in _lines(text):
        kind = line.get("kind")
        if number == 1:
            way = _begun(line)
        elif kind == "source":
            _close(found, files, tensors)
            found.append(msgspec.convert({"host": host, "way": way, **line}, Scan))
            files, tensors = [], []
        elif kind == "file":
            files.append(msgspec.convert(line["file"], ScannedFile))
        elif kind == "tensor":
            tensors.append(msgspec.convert({"nbytes": 0, **line}, Tensor))
        elif kind == "end" and found:
            _ended(found[-1], line)
    _close(found, files, tensors)
    return tuple(found)


def _begun(line: dict[str, Any]) -> str:
    if line.get("preflight") != FORM:
        raise ParseError(f"expected {FORM}, got {str(line)[:80]}", 1)
    return str(line.get("way", ""))


def _lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines that are whole: the last may be cut."""
    rows = text.splitlines()
    for number, row in enumerate(rows, 1):
        try:
            line = msgspec.json.decode(row)
        except msgspec.DecodeError:
            if number == len(rows) and number > 1:
                return
            raise ParseError(f"expected JSON, got {row[:80]!r}", number) from None
        if isinstance(line, dict):
            yield number, line


def _ended(scan: Scan, line: dict[str, Any]) -> None:
    told = msgspec.convert({"source": scan.source, **line}, Scan)
    for name in ("trouble", "absent", "every", "values_every", "values", "elapsed_s"):
        setattr(scan, name, getattr(told, name))
    scan.whole = True


def _close(found: list[Scan], files: list[ScannedFile], tensors: list[Tensor]) -> None:
    if found:
        found[-1].files = tuple(sorted(files, key=lambda one: one.path))
        found[-1].tensors = tuple(sorted(tensors, key=lambda one: (one.file, one.offset or 0)))
