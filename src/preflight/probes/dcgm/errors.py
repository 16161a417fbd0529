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

#: The cores of the table's messages, for tables of text, which show no ids. A suggestion follows
#: each ("Check the libraries ..."), so only words of the message itself may count. The first that
#: is found counts.
_MESSAGES = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"row remapping failed", 80),
        (r"row remappings? (?:are|is) pending|pending row remap", 85),
        (r"rows were remapped", 84),
        (r"pending page retirements together", 83),
        (r"pending (?:retired page|page retirement)", 6),
        (r"retired pages due to DBE", 8),
        (r"retired pages have been", 7),
        (r"thermal violations totaling", 40),
        (r"throttling due to thermal|due to thermal violation", 10),
        (r"throttling due to power|due to power violation", 12),
        (r"exceeded user-specified maximum", 42),
        (r"clocks? (?:are|is) being \w+ for GPU|clock throttling|clocks event", 43),
        (r"persistence mode", 29),
        (r"on the denylist|nouveau", 23),
        (r"environment variable '", 28),
        (r"allocate \S+ bytes on the host", 73),
        (r"(?:couldn'?t|could not|cannot|can't|unable to|failed to) allocate"
         r"|allocat\w+ .{0,40}fail|MEMORY_ALLOC", 56),
        (r"double-bit ECC", 4),
        (r"(?<![a-z])dbe(?![a-z])", 103),
        (r"single-bit ECC", 5),
        (r"(?<![a-z])sbe(?![a-z])", 102),
        (r"faulty memory", 52),
        (r"memory mismatch", 58),
        (r"NaN-value", 111),
        (r"miscompare", 79),
        (r"does not support the L1", 78),
        (r"ECC memory is not turned on", 60),
        (r"ECC is not enabled", 55),
        (r"ECC memory .{0,40}pending", 61),
        (r"NvLink errors .{0,40}per second", 70),
        (r"NvLink errors .{0,40}should be 0", 71),
        (r"NvLink errors", 13),
        (r"NvLink link \d+ is currently down", 14),
        (r"NvSwitch .{0,40} down", 88),
        (r"NvLinks are up out of", 99),
        (r"non-?fatal errors? on NvSwitch", 16),
        (r"fatal errors? on NvSwitch", 15),
        (r"NvSwitch SXID", 109),
        (r"could not be accessed", 18),
        (r"number of devices NVML returns", 20),
        (r"cannot open library", 22),
        (r"cannot get pointer to", 24),
        (r"graphics contexts", 25),
        (r"could not query field", 27),
        (r"Bandwidth of GPU .{0,80}did not exceed", 30),
        (r"Latency type", 31),
        (r"PCIe replays", 3),
        (r"PCIe replay violation", 98),
        (r"PCIe?[_ ]replay", 104),
        (r"PCI link width", 46),
        (r"PCI link generation", 45),
        (r"aborted early", 47),
        (r"test is skipped", 48),
        (r"collect stat", 49),
        (r"stress level", 50),
        (r"Error using CUDA API", 51),
        (r"no longer bound to a CUDA context", 54),
        (r"corresponding CUDA device", 59),
        (r"only achieved a memory bandwidth", 62),
        (r"did not reach desired power", 63),
        (r"Enforced power limit", 72),
        (r"failed to create a CUDA context", 66),
        (r"Error using DCGM API", 67),
        (r"API call .{0,80}failed", 64),
        (r"without 2 or more", 68),
        (r"restore GPU state", 77),
        (r"uncontained error", 81),
        (r"No valid GPUs", 82),
        (r"peer-to-peer test", 86),
        (r"permissions to create a file", 96),
        (r"\bEUD\b.{0,80}test.{0,20}fail", 95),
        (r"\bEUD\b", 90),
        (r"Detected XID", 101),
        (r"below the threshold", 110),
        (r"above the threshold", 34),
        (r"exceeded the threshold", 38),
        (r"internal error during", 44),
        (r"InfoROM", 9),
        (r"uncorrectable memory error", 52),
        (r"not yet initialized|fabric ?manager", 108),
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
