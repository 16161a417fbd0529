"""What is told of a file: gathered while it is read, written as a line when it is through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .blocks import Checked, Runs
from .held import Placed
from .values import Seen, as_number
from .window import DamagedError

#: Flaws of one file that are told; names of tensors in the text of one.
_MOST_FLAWS, _MOST_NAMES = 50, 3
_MOST_GLOBALS = 500
_MOST_TOLD = 16 << 20


class Told:
    """One file. Fields as in ScannedFile of facts/checkpoints.py."""

    def __init__(self, path: str, size: int, modified_s: float) -> None:
        self.path = path
        self.size = size
        self.modified_s = modified_s
        self.kind = "binary"
        self.checksum = "none"
        self.checked_bytes = 0
        self.flaws: list[dict[str, Any]] = []
        self.left_out = 0
        self.globals: dict[str, None] = {}
        self.top: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.tensors: list[dict[str, Any]] = []
        self.runs = Runs()

    def flaw(self, kind: str, text: str, offset: int | None = None) -> None:
        if len(self.flaws) < _MOST_FLAWS:
            self.flaws.append({"kind": kind, "text": text[:1000], "offset": offset})
        else:
            self.left_out += 1

    def damaged(self, error: DamagedError) -> None:
        self.flaw(error.kind, error.text, error.offset)
        self.names(error.names)

    def names(self, found: Iterable[str]) -> None:
        for name in found:
            if len(self.globals) < _MOST_GLOBALS:
                self.globals[name[:200]] = None

    def tensor(
        self, placed: Placed, offset: int | None, checked: Checked | None, damage: str = ""
    ) -> None:
        """`checked`: of the storage that holds it; None where that was not read."""
        seen = checked.seen if checked is not None else Seen()
        self.tensors.append({
            "name": placed.name[:500] or "(value)",
            "dtype": placed.dtype, "shape": placed.shape, "nbytes": placed.nbytes,
            "offset": offset, "damage": damage[:300],
            **figures(seen, placed.dtype, placed.storage.values),
        })  # fmt: skip

    def lines(self) -> Iterable[dict[str, Any]]:
        """Tensors first: whoever has the line of the file has all of it."""
        for one in self.tensors:
            yield {"kind": "tensor", "file": self.path, **_without_empty(one)}
        if self.left_out:
            self.flaws.append({"kind": "more", "text": f"{self.left_out:,} more flaws"})
        file = {
            "path": self.path, "size": self.size, "kind": self.kind,
            "modified_s": round(self.modified_s, 3), "checked_bytes": self.checked_bytes,
            "checksum": self.checksum, "flaws": self.flaws, "globals": list(self.globals),
            "tensors": len(self.tensors), "top": self.top, "told": self.told,
        }  # fmt: skip
        yield {"kind": "file", "file": _without_empty(file)}


def figures(seen: Seen, dtype: str, count: int) -> dict[str, Any]:
    """Counts as they are told; of what was not looked at none."""
    return {
        "count": count, "looked_at": seen.looked_at, "nans": seen.nans, "infs": seen.infs,
        "largest": as_number(seen.largest_bits, dtype),
    }  # fmt: skip


def _without_empty(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if value or key in ("shape", "size")}


def named(names: list[str]) -> str:
    """Some of the names, for the text of a flaw."""
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
