"""DCGM's error table: what a message of `dcgmi diag` is, and how severe DCGM holds it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from preflight.model import Known, Missing

#: dcgmErrorSeverity_t, dcgmlib/dcgm_errors.h. RESET is the highest number and not the worst.
SEVERITIES = {
    0: "none", 1: "monitor", 2: "isolate", 3: "unknown", 4: "triage", 5: "config", 6: "reset",
}  # fmt: skip
#: Which of several decides what to do.
_WORST = ("isolate", "reset", "triage", "unknown", "monitor", "config", "none")

#: dcgmErrorMeta, dcgmlib/src/dcgm_errors.c of DCGM 4: error id -> severity, for output without one.
_IDS: dict[str, tuple[int, ...]] = {
    "isolate": (
        3, 4, 7, 8, 13, 15, 24, 33, 35, 36, 38, 39, 52, 57, 58, 70, 71, 79, 80, 81, 86, 87, 88, 95,
        98, 102, 103, 104, 105, 106, 107, 109, 111, 113, 114, 115, 116,
    ),
    "monitor": (
        5, 10, 11, 12, 16, 17, 19, 26, 27, 32, 34, 40, 41, 42, 43, 51, 53, 61, 69, 74, 75, 76, 108,
    ),
    "reset": (6, 25, 83, 84, 85),
    "config": (18, 20, 23, 28, 29, 46, 47, 48, 55, 60, 68, 72, 78, 82, 96, 112, 117),
    "triage": (
        9, 14, 22, 30, 31, 37, 44, 45, 49, 50, 54, 56, 59, 62, 63, 64, 65, 66, 67, 73, 77, 89, 90,
        91, 92, 93, 94, 97, 99, 100, 101, 110,
    ),
}  # fmt: skip
_SEVERITY_OF = {code: severity for severity, codes in _IDS.items() for code in codes}

#: Of a message; DCGM's own are shorter.
_LOOKED_AT = 500

_TOPICS = {
    "thermal": frozenset({10, 40, 41, 42}),
    "remap": frozenset({6, 7, 8, 80, 83, 84, 85}),
    "allocation": frozenset({56}),
}

#: The messages of the table by their beginnings or cores, for tables of text, which show no ids.
#: The first that is found counts: a row remap tells of the memory error as well.
_MESSAGES = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"row remap\w* (?:has |have )?fail|remapping fail", 80),
        (r"remap\w* (?:are|is) pending|pending row remap|row remap\w* pending", 85),
        (r"uncorrectable remap|remapped rows", 84),
        (r"pending (?:page retire|retired page)|pages? pending", 6),
        (r"retired pages", 7),
        (r"thermal violation", 40),
        (r"temperature (?:of|value|is|above|exceed)|Temperature .{0,40}exceed", 42),
        (r"persistence mode", 29),
        (r"denylist|nouveau", 23),
        (r"allocat\w* .{0,60}(?:fail|error|unable|cannot)"
         r"|(?:fail\w*|unable|cannot|could not|not enough|insufficient) .{0,60}(?:allocat|memory to)"
         r"|MEMORY_ALLOC", 56),
        (r"double[- ]bit|\bDBEs?\b", 4),
        (r"single[- ]bit|\bSBEs?\b", 102),
        (r"faulty memory|miscompare|memory mismatch|memory error|uncorrectable", 52),
        (r"NaN value", 111),
        (r"NvLink .{0,40}down|NVLinks? .{0,40}up", 14),
        (r"NvLink .{0,60}error|CRC error", 13),
        (r"PCIe replay|replay", 3),
        (r"PCIe generation|link generation", 45),
        (r"PCIe .{0,20}width|link width", 46),
        (r"bandwidth", 30),
        (r"latency", 31),
        (r"EUD .{0,60}(?:root|permission)", 90),
        (r"permission|No such file|access to the file|cannot read|not accessible", 18),
        (r"graphics process", 25),
        (r"inforom", 9),
        (r"fabric ?manager|not yet initialized", 108),
        (r"environment variable|CUDA_\w+ ", 28),
        (r"ECC .{0,30}(?:disabled|not enabled|unsupported)", 55),
        (r"clocks? .{0,40}(?:throttl|event|slow)|throttl", 43),
        (r"enforced power limit", 72),
        (r"power", 63),
        (r"stress level|gflops", 50),
        (r"\bXID\b", 101),
        (r"test is disabled|not supported|unsupported", 48),
        (r"aborted|signal", 47),
        (r"CUDA API|CUDA library|cuInit", 51),
        (r"CUDA", 66),
    )
)  # fmt: skip


class Message(Struct, frozen=True):
    """One error or warning, with what DCGM's JSON says of it, where it does."""

    text: str
    error_id: int | None = None
    severity: int | None = None


def code_of(message: Message) -> int | None:
    """The error's number: as told, else by its text; None where the text is not known."""
    if message.error_id is not None:
        return message.error_id
    return _code_in(message.text[:_LOOKED_AT])


@lru_cache(maxsize=256)
def _code_in(text: str) -> int | None:
    return next((code for pattern, code in _MESSAGES if pattern.search(text)), None)


def severity_of(messages: Iterable[Message]) -> Known[str]:
    """The severity that decides, of all messages of a result."""
    found = {_severity(message) for message in messages}
    if not found:
        return Missing("not-in-input", "no message says how severe it is")
    return min(found, key=_WORST.index)


def _severity(message: Message) -> str:
    told = SEVERITIES.get(message.severity or 0, "unknown")
    if told != "none":
        return told
    code = code_of(message)
    return "unknown" if code is None else _SEVERITY_OF.get(code, "unknown")


def topic_of(messages: Iterable[Message]) -> str:
    """What the messages are about, where there is more to say of it than of its severity."""
    codes = {code_of(message) for message in messages}
    return next((topic for topic, ids in _TOPICS.items() if codes & ids), "")
