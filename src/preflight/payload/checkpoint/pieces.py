"""The pieces of tensors of distributed checkpoints: where they lie, and what became of each."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from . import dcp, torch_zip
from .blocks import How
from .dtypes import BYTES
from .report import Told, figures
from .values import Seen
from .walk import Entry
from .window import DamagedError, Window


class _Sum:
    """A whole tensor, as far as its pieces were read."""

    def __init__(self, whole: dcp.Whole, metadata: str) -> None:
        self.whole = whole
        self.metadata = metadata
        self.seen = Seen()
        self.damage = ""


class Pieces:
    """Of all the folders below one path."""

    def __init__(self, root: str, entries: list[Entry]) -> None:
        self._by_file: dict[str, list[dcp.Piece]] = defaultdict(list)
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._chunks: dict[tuple[str, str, tuple[int, ...]], tuple[int, ...]] = {}
        self._lock = threading.Lock()
        for entry in entries:
            if dcp.is_metadata(os.path.basename(entry.path)) and not entry.path.endswith(".tmp"):
                self._add(root, entry)
        self._missing = self._not_there({entry.path for entry in entries})

    def _add(self, root: str, entry: Entry) -> None:
        """What cannot be read is told when the file's own turn comes."""
        try:
            fd = os.open(os.path.join(root, entry.path), os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            found = dcp.described(Window(fd, 0, os.fstat(fd).st_size))
        except (DamagedError, OSError):
            return
        finally:
            os.close(fd)
        folder = os.path.dirname(entry.path)
        for piece in found.pieces:
            self._by_file[os.path.normpath(os.path.join(folder, piece.file))].append(piece)
        for whole in found.tensors.values():
            self._sums.setdefault((folder, whole.name), _Sum(whole, entry.path))
            for at, size in whole.chunks:
                self._chunks[folder, whole.name, at] = size

    def _not_there(self, files: set[str]) -> dict[str, list[str]]:
        """Files that are named and missing, by the metadata that names them."""
        missing: dict[str, list[str]] = defaultdict(list)
        for path, pieces in self._by_file.items():
            if path in files:
                continue
            folder = os.path.dirname(path)
            for piece in pieces:
                kept = self._sums.get((folder, piece.name))
                if kept is not None:
                    kept.damage = f"{path} is missing"
            missing[folder].append(path)
        return missing

    def lie_in(self, path: str) -> bool:
        """Whether any do in this file."""
        return path in self._by_file

    def missing_beside(self, path: str) -> list[str]:
        """Files that the metadata at this path names, and that are not there."""
        return self._missing.get(os.path.dirname(path), [])

    def scan(self, window: Window, told: Told, how: How) -> None:
        """Fill in what is told of a file of pieces."""
        told.kind = "distcp"
        checksums = []
        for piece in sorted(self._by_file[told.path], key=lambda one: one.offset):
            part = Told(told.path, piece.size, 0.0)
            seen, damage = self._one(window, piece, part, how)
            told.checked_bytes += part.checked_bytes
            told.names(part.globals)
            checksums.append(part.checksum)
            if damage:
                at = part.flaws[0].get("offset") if part.flaws else None
                kind = str(part.flaws[0]["kind"]) if part.flaws else "size"
                told.flaw(kind, f"{piece.name[:200]}: {damage}",
                          at if isinstance(at, int) else piece.offset)  # fmt: skip
            self._keep(os.path.dirname(told.path), piece, seen, damage)
        told.checksum = _worst(checksums)

    def _one(self, window: Window, piece: dcp.Piece, part: Told, how: How) -> tuple[Seen, str]:
        """What was seen of the values of a piece, and what is wrong with it."""
        try:
            inner = window.part(piece.offset, piece.size)
            if piece.packed or not inner.read(0, min(4, inner.size)).startswith(b"PK"):
                part.checksum = "not-looked"
                zeros = not piece.packed and not inner.read(0, min(4096, inner.size)).strip(b"\0")
                return Seen(), "it is nothing but zeros" if zeros else ""
            archive, seen, wrong = torch_zip.scan_blob(inner, part, how)
        except DamagedError as error:
            part.damaged(error)
            part.checksum = "failed"
            return Seen(), error.text
        if not wrong and archive is not None:
            wrong = self._unlike(os.path.dirname(part.path), piece, archive)
        return seen, "; ".join(wrong[:3])

    def _unlike(self, folder: str, piece: dcp.Piece, archive: torch_zip.Archive) -> list[str]:
        """Where what lies there is another tensor than the metadata says."""
        due = self._chunks.get((folder, piece.name, piece.at))
        if due is None or len(archive.placed) != 1 or archive.placed[0].shape == due:
            return []
        return [f"its shape is {list(archive.placed[0].shape)}, and {list(due)} in {dcp.METADATA}"]

    def _keep(self, folder: str, piece: dcp.Piece, seen: Seen, damage: str) -> None:
        kept = self._sums.get((folder, piece.name))
        if kept is not None:
            with self._lock:
                kept.seen.add(seen)
                kept.damage = kept.damage or damage

    def lines(self) -> Iterator[dict[str, Any]]:
        """A line for each whole tensor, once all files were read."""
        for one in self._sums.values():
            whole = one.whole
            count = _product(whole.shape)
            told = figures(one.seen, whole.dtype, count)
            yield {
                "kind": "tensor", "file": one.metadata, "name": whole.name[:500],
                "dtype": whole.dtype, "shape": whole.shape,
                "nbytes": count * BYTES.get(whole.dtype, 1),
                **{key: value for key, value in told.items() if value},
                **({"damage": one.damage[:300]} if one.damage else {}),
            }  # fmt: skip


def _worst(checksums: list[str]) -> str:
    order = ("failed", "off", "not-looked", "none", "verified")
    return next((one for one in order if one in checksums), "not-looked")


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for one in shape:
        product *= one
    return product
