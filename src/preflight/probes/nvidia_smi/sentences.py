"""What nvidia-smi says in sentences, in place of a report or between its lines.

It prints them to stdout and may still exit 0.
"""

from __future__ import annotations

import re

from msgspec import Struct

from preflight.facts.gpu import Driver
from preflight.model import Missing
from preflight.printable import printable
from preflight.probes.values import bus_id, missing_of, needs_reset

#: A refusal tells who may ask, not how the driver is ("suffient" is nvidia-smi's spelling).
_REFUSED = "not allowed"
#: The beginning of a line -> Driver.state. The first that fits counts.
_DRIVER = tuple(
    (re.compile(rf"^[ \t]*({pattern}.*?)[ \t\r]*$", re.MULTILINE | re.IGNORECASE), state)
    for pattern, state in (
        (r"Failed to initialize NVML: .*permission", _REFUSED),
        (r"NVIDIA-SMI has failed because .*permission", _REFUSED),
        (r"Failed to initialize NVML: .*version mismatch", "version-mismatch"),
        (r"Failed to initialize NVML: No supported GPUs", "no-devices"),
        (r"Failed to initialize NVML: (?:NVIDIA )?Driver (?:is )?Not Loaded", "not-running"),
        # "Unknown Error" of a module that is loaded: mostly a container whose device files were
        # taken from it (NVIDIA Container Toolkit, "Containers losing access to GPUs").
        (r"Failed to initialize NVML: ", "nvml-error"),
        (r"NVIDIA-SMI has failed because ", "not-running"),
        (r"NVIDIA-SMI couldn't find ", "not-running"),
        # The loader's words, of glibc and of musl.
        (r"(?:\S*/)?nvidia-smi: (?:error while loading shared|symbol lookup error)", "not-running"),
        (r"Error loading shared library", "not-running"),
        (r"(?:NVIDIA )?Driver (?:is )?Not Loaded", "not-running"),
        (r"No (?:supported )?(?:devices|GPUs)(?: were)? found", "no-devices"),
    )
)

_HANDLE = "unable to determine the device handle"
#: Seen: "... for GPU 0000:3B:00.0: GPU is lost.  Reboot ...", "... for GPU3: 0000:04:00.0: Unknown
#: Error", "... for GPU0000:25:00.0: ...", "... for GPU2: ...", "... for gpu 0000:08:00.0: ...".
_LOST = re.compile(
    rf"(?:^|>)[ \t]*(?P<sentence>{_HANDLE} for gpu ?(?:(?P<index>[0-9]{{1,3}})(?=:))?:? ?"
    r"(?P<bus>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])?:? *"
    r"(?P<reason>[^<\r\n]*?))[ \t\r]*$",
    re.MULTILINE | re.IGNORECASE,
)


_CORRUPT = "WARNING: infoROM is corrupted at gpu"  # 0000:4C:00.0
_INFOROM = re.compile(
    rf"(?:^|>)[ \t]*{_CORRUPT} (?P<bus>[\da-fA-F]{{4,8}}:[\da-fA-F]{{2}}:[\da-fA-F]{{2}}\.\d)",
    re.MULTILINE,
)


_MAY_ASK = "ask as root, or give this user or container the files /dev/nvidia*"


class LostGpu(Struct, frozen=True):
    """A GPU of which nvidia-smi has nothing but a sentence."""

    bus_id: str  # "" where only its index is told
    index: int | None
    line: int
    missing: Missing  # why none of its fields could be had
    to_reset: bool = False  # it is there, and held back until it is reset


class Sentences(Struct, frozen=True):
    """All that is said of single GPUs. `line`: of the first sentence, 0 where there is none."""

    lost: list[LostGpu]
    corrupt: dict[str, int]  # bus id of a GPU whose infoROM is corrupted -> line
    line: int


def sentences(text: str) -> Sentences:
    """What `text` says of single GPUs in sentences."""
    lost, corrupt = lost_gpus(text), _corrupt(text)
    lines = [*(one.line for one in lost), *corrupt.values()]
    return Sentences(lost, corrupt, min(lines, default=0))


def sentence_line(text: str, address: str, fact: str) -> int:
    """The line of the sentence that shows `fact` of the GPU at `address`; 0 where none does."""
    if fact == "inforom_corrupted":
        return _corrupt(text).get(address, 0)
    if fact not in ("answers", "reset_required"):
        return 0
    told = (one for one in lost_gpus(text) if one.bus_id == address)
    return next((one.line for one in told if one.to_reset or fact == "answers"), 0)


def driver_silence(text: str, probe: str) -> Driver | None:
    """What the driver said in place of a report; None where `text` holds no such sentence."""
    for pattern, state in _DRIVER:
        match = pattern.search(text)
        if match:
            line = text.count("\n", 0, match.start(1)) + 1
            said = printable(match[1])
            known = Missing("denied", f"{said} ({_MAY_ASK})") if state == _REFUSED else state
            return Driver(known, text=said, line=line, probe=probe)
    return None


def silence_beside(text: str, probe: str) -> Driver | None:
    """The same beside a report, of another time; looked for only where there is some sign of it."""
    signs = ("Failed to initialize NVML", "NVIDIA-SMI has failed", "devices were found")
    return driver_silence(text, probe) if any(sign in text for sign in signs) else None


def lost_gpus(text: str) -> list[LostGpu]:
    """Every GPU that `text` has a sentence about, once each, in the order of the text."""
    found: dict[object, LostGpu] = {}
    if _HANDLE not in text and _HANDLE.capitalize() not in text:
        return []
    for match in _LOST.finditer(text):
        address = bus_id(match["bus"]) if match["bus"] else ""
        index = int(match["index"]) if match["index"] else None
        # Whatever the reason, without a handle nothing of this GPU can be read; only a refusal is
        # about who asked, and says nothing of the GPU.
        why = missing_of(match["reason"])
        denied = why is not None and why.kind == "denied"
        missing = Missing("denied" if denied else "unreadable", match["sentence"])
        line = text.count("\n", 0, match.start("sentence")) + 1
        to_reset = needs_reset(match["reason"])
        found.setdefault(address or index, LostGpu(address, index, line, missing, to_reset))
    return list(found.values())


def _corrupt(text: str) -> dict[str, int]:
    if _CORRUPT not in text:
        return {}
    return {
        bus_id(match["bus"]): text.count("\n", 0, match.start("bus")) + 1
        for match in _INFOROM.finditer(text)
    }


def is_sentence(line: str) -> bool:
    """Whether a line of a report is a sentence about a GPU and no field of the report."""
    line = line.lstrip()
    return line.startswith(_CORRUPT) or line.lower().startswith(_HANDLE)
