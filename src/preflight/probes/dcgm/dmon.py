"""GPUs over time, from the table of `dcgmi dmon`: columns by DCGM's short field names."""

from __future__ import annotations

import re

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.watch_lost import Rounds, find_lost
from preflight.probes.watch_series import Series, looked_twice, watched

_PROBE = "dcgmi-dmon"
#: Short name -> quantity and factor to its unit. Field ids and names are those of DCGM's
#: dcgm_fields.h and dcgm_fields.cpp; `dcgmi dmon -l` lists them. Note that 1001 to 1003 are no
#: clocks: graphics engine active, SM active, SM occupancy.
_COLUMNS: dict[str, tuple[str, float]] = {
    "SMCLK": ("sm_mhz", 1),  # 100
    "MMCLK": ("memory_mhz", 1),  # 101
    "DVCCTR": ("reasons", 1),  # 112
    "SMMAX": ("sm_max_mhz", 1),  # 113
    "MMMAX": ("memory_max_mhz", 1),  # 114
    "MMTMP": ("memory_c", 1),  # 140
    "TMPTR": ("gpu_c", 1),  # 150
    "POWER": ("power_w", 1),  # 155
    "SDTMP": ("slowdown_c", 1),  # 158
    "PMLMT": ("power_limit_w", 1),  # 160
    "RPCTR": ("pcie_replays", 1),  # 202
    "GPUTL": ("utilization_percent", 1),  # 203
    "MCUTL": ("memory_utilization_percent", 1),  # 204
    "XIDER": ("xid", 1),  # 230: the last one
    "FBUSD": ("memory_used_bytes", 2**20),  # 252
    "ESVTL": ("ecc_corrected", 1),  # 310
    "EDVTL": ("ecc_uncorrected", 1),  # 311
    "NFELT": ("nvlink_crc", 1),  # 409
    "NRELT": ("nvlink_replays", 1),  # 429
    "NRCLT": ("nvlink_recoveries", 1),  # 439
    "GRACT": ("graphics_active_percent", 100),  # 1001
    "SMACT": ("sm_active_percent", 100),  # 1002
    "SMOCC": ("sm_occupancy_percent", 100),  # 1003
    "TENSO": ("tensor_active_percent", 100),  # 1004
    "DRAMA": ("dram_active_percent", 100),  # 1005
    "PCITX": ("pcie_tx_gbps", 1e-9),  # 1009
    "PCIRX": ("pcie_rx_gbps", 1e-9),  # 1010
    "NVLTX": ("nvlink_tx_gbps", 1e-9),  # 1011
    "NVLRX": ("nvlink_rx_gbps", 1e-9),  # 1012
}
#: Of the card, not of the moment.
_OF_CARD = ("sm_max_mhz", "memory_max_mhz", "slowdown_c")
#: What tells best whether there was work, where the first is not among the columns.
_WORK = ("graphics_active_percent", "sm_active_percent")
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,9})?")
_MASK = re.compile(r"\d{1,18}|0x[\da-fA-F]{1,16}")
_ENTITIES = ("GPU-I", "GPU-CI", "vGPU", "Switch", "Link", "CPU", "Core", "UNKNOWN")
_STOPPED = "dmon was stopped"
#: dcgmi dmon's own -d, in milliseconds, is 1000; the table shows neither times nor interval.
_DEFAULT_S = 1.0


@probe(_PROBE, ["dcgmi", "dmon"], timeout_s=3600)
def dcgm_dmon(text: str) -> Watch:
    """Rows `GPU 0  value ...` under a header `#Entity  TAG ...` (again after some rows) and its
    line of units; N/A is no value. Raises ParseError where a row does not fit or there is none."""
    tags, seen = list[str](), dict[str, None]()
    series: dict[int, Series] = {}
    lines, ended = text.split("\n"), ""
    rounds = Rounds()
    for number, line in enumerate(lines, 1):
        words = line.replace("#", " ").split()
        if not words or words[0].lower() == "id" or words[0].startswith("^C"):
            continue
        if words[0].lower() == "entity":
            tags = words[1:]
            seen.update(dict.fromkeys(tags))
            rounds.header()
        elif line.startswith(_STOPPED):
            ended = "interrupted"
        elif words[0] == "GPU" and tags:
            if number == len(lines) and len(words) < len(tags) + 2:
                ended = "cut"
                break
            gpu = _row(words[1:], tags, series, number)
            series[gpu].began = rounds.row(gpu)
        elif words[0] not in _ENTITIES:
            raise ParseError(f"expected a row `GPU 0  value ...`, got {line[:60]!r}", number)
    if not series:
        raise ParseError("expected `#Entity` and rows of values as dcgmi dmon prints", 1)
    return _watch(series, ended, tuple(tag for tag in seen if tag not in _COLUMNS))


def _row(words: list[str], tags: list[str], series: dict[int, Series], number: int) -> int:
    if len(words) != len(tags) + 1 or not words[0].isdecimal() or len(words[0]) > 4:
        raise ParseError(f"expected GPU, its number and {len(tags)} values", number)
    gpu = int(words[0])
    one = series.setdefault(gpu, Series(gpu, number))
    sample: dict[str, float] = {}
    for tag, word in zip(tags, words[1:], strict=True):
        name, factor = _COLUMNS.get(tag, ("", 0))
        if not name:
            continue
        if name == "reasons" and _MASK.fullmatch(word):
            sample[name] = int(word, 16 if "x" in word else 10)
        elif _NUMBER.fullmatch(word):
            (one.card if name in _OF_CARD else sample)[name] = float(word) * factor
        else:
            one.missing[name] = _none(word)
    _with_work(sample, one)
    one.samples.append(sample)
    return gpu


def _none(word: str) -> Missing:
    if word.strip("<>") in ("N/A", "NOT_SUPPORTED", "NOT_FOUND"):
        return Missing("not-applicable", "dcgmi prints N/A")
    return Missing("unreadable", f"dcgmi prints {word[:40]}")


def _with_work(sample: dict[str, float], one: Series) -> None:
    """The share of time with work on the GPU, by another field where GPUTL was not asked."""
    name = "utilization_percent"
    for other in () if name in sample else _WORK:
        if other in sample:
            sample[name] = sample[other]
            return
        if other in one.missing:
            one.missing[name] = one.missing[other]


def _watch(series: dict[int, Series], ended: str, unread: tuple[str, ...]) -> Watch:
    for one in series.values():
        one.watched_s = (len(one.samples) - 1) * _DEFAULT_S
        looked_twice(one)
    find_lost(series.values())
    gpus = watched(list(series.values()), _PROBE)
    if not isinstance(gpus, Missing):
        gpus = tuple(replace(gpu, last_xid=_last_xid(series[gpu.index])) for gpu in gpus)
    basis = "1 s, the default of dcgmi dmon, which prints no times"
    return Watch(gpus, _DEFAULT_S, basis, ended or "done", unread=unread, probe=_PROBE)


def _last_xid(one: Series) -> Known[int]:
    told = [int(sample["xid"]) for sample in one.samples if "xid" in sample]
    return next(filter(None, reversed(told)), 0) if told else one.missing.get("xid", NOT_IN_INPUT)
