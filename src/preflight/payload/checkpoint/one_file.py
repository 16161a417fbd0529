"""One file of a checkpoint: what it is by its content, and what its reader tells."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import dcp, pickles, safetensors, texts, torch_legacy, torch_zip, zips
from .blocks import How
from .held import top
from .pieces import Pieces
from .report import Told
from .walk import Entry
from .window import DamagedError, Window

_HEAD = 4096
#: Names of files of values: text in one is no text that belongs there.
_VALUES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".distcp")
#: What else is known by how it begins.
_OTHERS = (
    (b"GGUF", "gguf"), (b"\x89HDF", "hdf5"), (b"\x1f\x8b", "gzip"), (b"\x93NUMPY", "numpy"),
    (b"(\xb5/\xfd", "zstd"),
)  # fmt: skip


def scan(root: str, entry: Entry, how: How, pieces: Pieces) -> Told:
    """Everything that can be told of the file; never raises for what is in it."""
    told = Told(entry.path, entry.size, entry.modified_s)
    if entry.links_to:
        told.kind = "link"
        told.told.update(
            {"links_to": entry.links_to[:1000], "leads": entry.leads, "target": entry.target}
        )
        return told
    try:
        fd = os.open(os.path.join(root, entry.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        told.flaw("unreadable", error.strerror or str(error))
        return told
    try:
        window = Window(fd, 0, os.fstat(fd).st_size)
        told.size = window.size
        _content(window, told, how, pieces)
    except DamagedError as error:
        told.damaged(error)
    except OSError as error:
        told.flaw("unreadable", error.strerror or str(error))
    except (MemoryError, RecursionError) as error:
        told.flaw("hostile", f"reading it takes more than what is allowed ({type(error).__name__})")
    except Exception as error:  # noqa: BLE001 - one file must not keep the others from being told
        told.flaw("unreadable", f"a bug in preflight: {type(error).__name__}: {error}")
    finally:
        os.close(fd)
    return told


def _content(window: Window, told: Told, how: How, pieces: Pieces) -> None:
    name = os.path.basename(told.path)
    head = window.read(0, min(_HEAD, window.size))
    if not head:
        told.kind = "empty"
        told.flaw("empty", "it has no bytes")
    elif not head.strip(b"\0"):
        _zeros(window, told)
    elif pieces.lie_in(told.path) and not head.startswith(b"{", 8):
        pieces.scan(window, told, how)
    else:
        _reader(head, name)(window, told, how)
    if head and name.endswith(_VALUES) and told.kind in ("text", "json"):
        told.flaw("header", "it is text, and no file of values")


def _reader(head: bytes, name: str) -> Callable[[Window, Told, How], None]:
    if dcp.is_metadata(name):
        return _metadata
    if name.endswith(".distcp"):
        return _without_metadata
    if head.startswith(zips.LOCAL):
        return torch_zip.scan
    if head.startswith(torch_legacy.MAGIC):
        return torch_legacy.scan
    if (name.endswith(".safetensors") and not texts.is_text(head)) or _has_header(head):
        return safetensors.scan
    if texts.is_text(head):
        return lambda window, told, _: texts.scan(window, told, head)
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return _pickle
    return lambda window, told, _: _other(head, told)


def _has_header(head: bytes) -> bool:
    length = int.from_bytes(head[:8], "little")
    return head[8:10] in (b'{"', b"{}") and 2 <= length <= safetensors.LONGEST_HEADER


def _zeros(window: Window, told: Told) -> None:
    told.kind = "zeros"
    told.flaw("zeros", f"its first {min(_HEAD, window.size):,} bytes are zero: space was set "
              "aside, and what belongs there never written", 0)  # fmt: skip


def _without_metadata(_: Window, told: Told, __: How) -> None:
    """Archives one after the other: without `.metadata` nothing tells where each begins."""
    told.kind = "distcp"
    told.checksum = "not-looked"


def _metadata(window: Window, told: Told, _: How) -> None:
    """Its pieces were read before any file that holds them."""
    told.kind = "dcp-metadata"
    found = dcp.described(window)
    told.names(found.names)
    told.told["tensors"] = str(len(found.tensors))
    told.told["others"] = "\n".join(found.others[:2000])
    for whole in found.tensors.values():
        wrong = dcp.tiling(whole)
        if wrong:
            told.flaw("hole" if "in no piece" in wrong else "overlap", f"{whole.name}: {wrong}")


def _pickle(window: Window, told: Told, _: How) -> None:
    """Pickled by Python itself: states of random numbers, arguments."""
    told.kind = "pickle"
    read = pickles.read(window.read(0, min(window.size, pickles.MOST_BYTES)))
    told.names(read.names)
    told.top = top(read.value)


def _other(head: bytes, told: Told) -> None:
    told.kind = next((kind for begin, kind in _OTHERS if head.startswith(begin)), "binary")
    if told.path.endswith(_VALUES) and told.kind in ("binary", "gzip"):
        told.flaw("unknown", f"it begins with {head[:4].hex()}, as no known file of values does", 0)
