"""Captures of one host made at several times: the last is judged as a whole, the others are named.

Mixed, a host would have the kernel log of one day beside the GPUs of another, and what one of the
captures tells could be lost.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from preflight.capture import pack, unpack
from preflight.faults import CONNECTION
from preflight.model import Raw
from preflight.nodesets import fold

#: Every asking of a host begins with it.
_FIRST = "identity"
_STANDARD_INPUT = "standard input"


class Piece(Struct, frozen=True):
    """Answers of one host that stand together in one file. `asked`: when, empty where nobody wrote
    it down; None where it is no asking of its own, such as the output of one tool."""

    host: str
    label: str
    asked: str | None
    raws: list[Raw] | bytes

    def packed(self) -> Piece:
        """The same in about a tenth of the memory."""
        return self if isinstance(self.raws, bytes) else replace(self, raws=pack(self.raws))

    def unpacked(self) -> list[Raw]:
        """Its answers."""
        return unpack(self.raws) if isinstance(self.raws, bytes) else self.raws


class LeftOut(Struct, frozen=True):
    """A piece that gave way to another of its host."""

    host: str
    label: str
    asked: str
    for_label: str


def askings(host: str, label: str, raws: Sequence[Raw], created_at: str | None) -> Iterator[Piece]:
    """The pieces in a host's answers; of joined captures each begins anew. `created_at` is the
    capture's, None where the file is none."""
    begun: list[Raw] = []
    for raw in raws:
        if raw.probe == _FIRST and created_at is not None and _whole(begun):
            yield Piece(host, label, _asked(begun, created_at), begun)
            begun = []
        begun.append(raw)
    whole = created_at is not None and _whole(begun)
    yield Piece(host, label, _asked(begun, created_at or "") if whole else None, begun)


def _whole(raws: Sequence[Raw]) -> bool:
    return any(raw.probe in (_FIRST, CONNECTION) for raw in raws)


def _asked(raws: Sequence[Raw], created_at: str) -> str:
    return max((raw.started_at for raw in raws), default="") or created_at


def latest(pieces: Sequence[Piece]) -> tuple[list[Piece], list[LeftOut]]:
    """The pieces to be judged together, and those that are older than the last asking; of askings
    without a time the one in the later file is the last."""
    last: Piece | None = None
    for piece in pieces:
        if piece.asked is not None and not (last and piece.asked and piece.asked < _time(last)):
            last = piece
    kept = [piece for piece in pieces if piece.asked is None or piece is last]
    left = [
        LeftOut(piece.host, piece.label, _time(piece), last.label)
        for piece in pieces
        if last and piece.asked is not None and piece is not last
    ]
    return kept, left


def _time(piece: Piece) -> str:
    return piece.asked or ""


def notes(left: Sequence[LeftOut], alone: Mapping[str, str | None]) -> list[str]:
    """A sentence for each file, and how it is judged after all. `alone`: the one host of a file;
    None of a file that has several, which cannot be given a name."""
    files: dict[tuple[str, bool], list[LeftOut]] = {}
    for one in left:
        files.setdefault((one.label, one.label == one.for_label), []).append(one)
    return [_note(label, same, found, alone) for (label, same), found in files.items()]


def _note(label: str, same: bool, found: Sequence[LeftOut], alone: Mapping[str, str | None]) -> str:
    hosts = list(dict.fromkeys(one.host for one in found))
    names = fold(hosts)
    names = names if len(names) <= 100 else f"{len(hosts):,} hosts"
    verb = "is" if len(hosts) == 1 else "are"
    when = max(one.asked for one in found)[:16].replace("T", " ")
    asked = f", asked {when}" if when else ""
    if same:
        return f"{names} {verb} more than once in {label}: only the last is judged"
    file = "-" if label == _STANDARD_INPUT else label
    if alone.get(label) is None:
        how = f"to judge it, by itself: --from {shlex.quote(file)}"
    else:
        spec = shlex.quote(f"{_another(hosts[0], label)}={file}")
        how = f"give it another name to judge both: --from {spec}"
    return f"{names} {verb} also in {label}{asked}: left out; {how}"


def _another(host: str, label: str) -> str:
    """A name for the same host at another time, by its file's."""
    name = re.sub(r"[^\w-]", "-", PurePath(label).name.partition(".")[0]).strip("-")
    return name if name and name != host else f"{host}-before"
