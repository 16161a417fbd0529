"""NVLink state, error counters and capabilities, from `nvidia-smi nvlink -s`, `-e` and `-c`.

One text may hold several of them. Drivers differ in blanks and tabs, and in the names of counters:
those of NVLink 5 are as printed by driver 595.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from preflight.errors import ParseError
from preflight.facts.nvlink import Nvlink, NvlinkAnswer, NvlinkErrors, NvlinkGpu
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.printable import printable
from preflight.probes.spec import probe
from preflight.probes.values import missing_of

_GPU = re.compile(r"GPU (\d{1,3}): ([^\n]{1,200})")
_UUID = " (UUID: "
_LINK = re.compile(r"Link (\d{1,3})(?:[,:] {0,4}Lane (\d{1,3}))?[,:][ \t]{0,9}(\S[^\n]{0,200})")
_RATE = re.compile(r"(\d{1,5}(?:\.\d{1,6})?) ?GB/s")
_NUMBER = re.compile(r"\d{1,30}")
_BER = re.compile(r"\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,4})?")
#: 15e-255, the smallest that NVML can tell (exponent 255, nvml.h), stands for none.
_NO_BER = 1e-250
#: Words for a link that is not up: of -s, and of older and newer tools that print its state.
_DOWN = ("<inactive>", "inactive", "<down>", "down", "<disabled>", "disabled", "<off>", "off")
_ALL_INACTIVE = "all links are inactive"
#: Where an author left something out: "[...]", "...".
_GAP = re.compile(r"[\[(<]?\s?(?:\.{3,}|…|snip|truncated)\s?[\])>]?", re.IGNORECASE)
_SUPPORTED = "link is supported"
_PARTIAL = Missing("not-in-input", "the input is an excerpt: not all links are in it")

_ERRORS_OF = re.compile(r" errors?(?: count)?$")
#: What a counter is called, in lower case and without "errors" -> the fact that it adds to. What is
#: not here is traffic, or counts what is corrected on a sound link (FEC and raw bit errors).
_COUNTERS = {
    "replay": "replay",
    "recovery": "recovery",
    "crc": "crc",
    "crc flit": "crc",
    "crc data": "crc",
    "malformed packet": "packets",
    "buffer overrun": "packets",
    "rx": "packets",
    "rx remote": "packets",
    "rx general": "packets",
    "local link integrity": "packets",
    "tx discards": "packets",
    "link recovery failed events": "recovery_failed",
    "link recovery successful events": "recovered",
    "effective": "effective",
    "symbol": "symbol",
}
_RATES = {"effective ber": "effective_ber", "symbol ber": "symbol_ber"}
#: Facts that the list of states shows.
_STATES = ("up", "down", "listed", "rate_min_gbps")
_STATUS, _ERRORS = "nvlink-s", "nvlink-e"


class _Seen(Struct):
    """What the lines of one GPU hold: link -> what it says, and where."""

    index: int
    product: str
    uuid: str
    line: int
    rates: dict[int, tuple[Known[float], int]] = field(default_factory=dict)  # 0.0: not up
    #: fact -> (link, name and lane) -> value and line
    counters: dict[str, dict[tuple[int, str], tuple[Known[float], int]]] = field(
        default_factory=dict
    )
    supported: dict[int, bool] = field(default_factory=dict)
    said: tuple[str, int] = ("", 0)  # a sentence of NVML in place of the links
    partial: bool = False


def _locate(text: str, record_line: int, field_path: str) -> int:
    """The line that shows a field: the link that is down, the slowest, the one with most errors."""
    for gpu in _read(text):
        if record_line in (gpu.line, _first_line(gpu, "status"), _first_line(gpu, "errors")):
            name = field_path.rpartition(".")[2]
            return _line_of(gpu, name) or record_line
    return record_line


def _line_of(gpu: _Seen, name: str) -> int:
    if name in _STATES and gpu.rates:
        return min(gpu.rates.values(), key=lambda state: _order(state[0]))[1]
    values = list(gpu.counters.get(name, {}).values())
    gone = [value for value in values if isinstance(value[0], Missing)]
    if values:
        return max(values, key=_size)[1] if any(map(_size, values)) else (gone or values)[0][1]
    return gpu.said[1] if name in _STATES else 0


def _size(value: tuple[Known[float], int]) -> float:
    return 0.0 if isinstance(value[0], Missing) else value[0]


def _order(rate: Known[float]) -> float:
    return -1.0 if isinstance(rate, Missing) else rate


@probe(
    _STATUS,
    ["nvidia-smi", "nvlink", "-s"],
    timeout_s=30,
    waits_for="driver",
    with_stderr=True,
    locate=_locate,
)
def nvlink_status(text: str) -> NvlinkAnswer:
    """The links of all GPUs; a GPU without a line has none. Raises ParseError."""
    return _answer(text, _STATUS, asked=True)


@probe(
    _ERRORS,
    ["nvidia-smi", "nvlink", "-e"],
    timeout_s=30,
    waits_for="driver",
    with_stderr=True,
    locate=_locate,
)
def nvlink_errors(text: str) -> NvlinkAnswer:
    """The error counters of all links of all GPUs. Raises ParseError."""
    return _answer(text, _ERRORS)


@probe("nvlink", ["nvidia-smi", "nvlink"], locate=_locate)
def nvlink(text: str) -> NvlinkAnswer:
    """Any of them, or several, as recorded. Raises ParseError."""
    return _answer(text, "nvlink")


def _answer(text: str, name: str, *, asked: bool = False) -> NvlinkAnswer:
    seen = _read(text)
    if not seen:
        got = printable(text.strip()[:60])
        raise ParseError(f"expected nvidia-smi nvlink output, got '{got}'")
    asked |= any(gpu.rates for gpu in seen)
    gpus = tuple(_gpu(gpu, name, asked) for gpu in seen)
    return NvlinkAnswer(gpus, any(gpu.said[0] for gpu in seen))


# One text is looked into once for all that did not pass.
@lru_cache(maxsize=4)
def _read(text: str) -> tuple[_Seen, ...]:
    found: dict[int, _Seen] = {}
    here: _Seen | None = None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        header = _GPU.fullmatch(line)
        if header:
            here = _header(found, header, number)
        elif here is not None and line:
            _line(here, line, number)
    if here is not None and not text.endswith("\n"):
        # Cut in its last list: others have more links.
        here.partial |= len(here.rates) < max(len(gpu.rates) for gpu in found.values())
    return tuple(found[index] for index in sorted(found))


def _header(found: dict[int, _Seen], header: re.Match[str], number: int) -> _Seen:
    """The GPU that a header names; a second header of the same GPU goes on with it."""
    index = int(header[1])
    product, _, uuid = header[2].partition(_UUID)
    uuid = uuid.partition(")")[0].strip()
    before = found.setdefault(index, _Seen(index, product.strip(), uuid, number))
    if uuid and before.uuid and uuid != before.uuid:
        raise ParseError(f"GPU {index} has two UUIDs: two hosts in one text?", number)
    return before


def _line(gpu: _Seen, line: str, number: int) -> None:
    link = _LINK.fullmatch(line)
    if link:
        _link(gpu, int(link[1]), link[2] or "", link[3].strip(), number)
    elif line.startswith(("NVML:", "Unable to ")):
        gpu.said = gpu.said if gpu.said[0] else (line, number)
    elif _GAP.fullmatch(line):
        gpu.partial = True


def _link(gpu: _Seen, link: int, lane: str, said: str, number: int) -> None:
    """`25 GB/s`, `<inactive>`, `Replay Errors: 0`, `P2P is supported: true`."""
    name, colon, value = (part.strip() for part in said.rpartition(":"))
    if not colon:
        rate = _rate(value)
        before = gpu.rates.get(link)
        if before is None or _order(rate) < _order(before[0]):  # of two looks the worse
            gpu.rates[link] = rate, number
        return
    name = name.lower()
    if name == _SUPPORTED:
        gpu.supported[link] = value.lower() == "true"
    key = _ERRORS_OF.sub("", name)
    fact = _COUNTERS.get(key) or _RATES.get(name)
    if fact:
        counted = _number(value, _BER if name in _RATES else _NUMBER), number
        values, which = gpu.counters.setdefault(fact, {}), (link, f"{key} {lane}")
        if which not in values or _size(values[which]) < _size(counted):  # of two looks the worse
            values[which] = counted


def _rate(text: str) -> Known[float]:
    match = _RATE.fullmatch(text)
    if match:
        return float(match[1])
    if text.lower() in _DOWN:
        return 0.0
    return missing_of(text) or Missing("unreadable", f"'{printable(text[:40])}' is no link state")


def _number(text: str, form: re.Pattern[str]) -> Known[float]:
    if form.fullmatch(text):
        number = float(text) if form is _BER else int(text)
        return 0.0 if form is _BER and number < _NO_BER else number
    return missing_of(text) or Missing("unreadable", f"'{printable(text[:40])}' is no count")


def _gpu(gpu: _Seen, name: str, asked: bool) -> NvlinkGpu:
    product = gpu.product or NOT_IN_INPUT
    uuid = gpu.uuid or NOT_IN_INPUT
    return NvlinkGpu(gpu.index, product, uuid, gpu.line, name, _links(gpu, name, asked))


def _links(gpu: _Seen, name: str, asked: bool) -> Nvlink:
    line = _first_line(gpu, "status") or gpu.said[1] or gpu.line
    up = down = listed = rate = _why_none(gpu, asked)
    if gpu.rates:
        up, down, listed, rate = _states(gpu)
    elif _has_none(gpu, asked):
        up, rate = 0, Missing("not-applicable", "no link is up")
        listed = down = Missing("not-applicable", "nvidia-smi lists no link")
    supported = sum(gpu.supported.values()) if gpu.supported else NOT_IN_INPUT
    supported = _PARTIAL if gpu.supported and gpu.partial else supported
    return Nvlink(line, name, listed, up, down, rate, supported, _errors(gpu, name))


def _has_none(gpu: _Seen, asked: bool) -> bool:
    """Whether the links were asked for and there is none: by a sentence, or by an empty list."""
    if gpu.said[0]:
        return _ALL_INACTIVE in gpu.said[0].lower()
    return asked and not (gpu.partial or gpu.counters or gpu.supported)


def _why_none(gpu: _Seen, asked: bool) -> Any:
    said = gpu.said[0]
    if said and _ALL_INACTIVE not in said.lower():
        sentence = printable(said[:200])
        none = "not supported" in said.lower()
        return Missing("not-applicable" if none else "unreadable", sentence)
    return _PARTIAL if gpu.partial and asked else NOT_IN_INPUT


def _states(gpu: _Seen) -> tuple[Known[int], Known[tuple[int, ...]], Known[int], Known[float]]:
    """Links up, those that are not, links listed, the lowest rate."""
    rates = [rate for rate, _ in gpu.rates.values()]
    down = tuple(sorted(link for link, (rate, _) in gpu.rates.items() if rate == 0))
    unknown = next((rate for rate in rates if isinstance(rate, Missing)), None)
    if gpu.partial and down:
        # How many are up is not known, but that one is not up is seen: no reason to pass it over.
        told = f"link {down[0]} is not up, and the input is an excerpt: not all links are in it"
        unknown = unknown or Missing("unreadable", told)
    unknown = unknown or (_PARTIAL if gpu.partial else None)
    if unknown is not None:
        return unknown, down or unknown, unknown, unknown
    up = [rate for rate in rates if isinstance(rate, float) and rate > 0]
    lowest = min(up) if up else Missing("not-applicable", "no link is up")
    return len(up), down, len(rates), lowest


def _errors(gpu: _Seen, name: str) -> NvlinkErrors:
    facts: dict[str, Any] = {}
    for fact, values in gpu.counters.items():
        ways: Callable[[Iterable[Any]], Any] = max if fact in _RATES.values() else sum
        known = [value for value, _ in values.values() if not isinstance(value, Missing)]
        gone = [value for value, _ in values.values() if isinstance(value, Missing)]
        error = next((value for value in gone if value.kind != "not-applicable"), None)
        total = ways(known) if known else gone[0]
        # Some errors are errors, however many more there are; none is none only of all links. A
        # rate is that of the worst link, which may be the one that cannot be read.
        if error and (not total or fact in _RATES.values()):
            total = error
        facts[fact] = _PARTIAL if gpu.partial and not total else total
    return NvlinkErrors(_first_line(gpu, "errors") or gpu.line, name, **facts)


def _first_line(gpu: _Seen, which: str) -> int:
    if which == "status":
        return min((line for _, line in gpu.rates.values()), default=0)
    lines = [line for values in gpu.counters.values() for _, line in values.values()]
    return min(lines, default=0)
