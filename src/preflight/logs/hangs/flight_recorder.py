"""Dumps of torch's flight recorder: the last collectives of a rank, as pickle or as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from preflight.errors import ParseError
from preflight.facts.hangs import Dump, DumpEntry, GroupStatus
from preflight.unpack import Unpacking

#: nccl_trace_rank_7, comm_lib_trace_rank_7, node12_rank_7.json, _dump_7: the last number counts,
#: for a host's name with numbers may stand before it.
_RANK = re.compile(r"(?:rank|dump)_?(\d{1,7})(?:\.\w+)*$|(\d{1,7})(?:\.(?:json|pickle|pkl|gz))*$")
_MOST_ENTRIES = 200_000
_FRAMES = 12


def sniff(head: bytes, name: str) -> bool:
    """A pickle or JSON with the keys of a dump."""
    begins = head[:1] == b"\x80" or head.lstrip()[:1] == b"{"
    own = (b"profiling_name", b"collective_seq_id", b"last_enqueued_collective")
    return begins and b"traceEvents" not in head and any(key in head for key in own)


def read(path: Path, tell: Callable[[str], None]) -> Dump:
    """ParseError for what is no dump, or would run something."""
    from preflight.logs.hangs.plain_pickle import MOST_BYTES, loads

    with path.open("rb") as file:
        source = Unpacking(file, MOST_BYTES)
        data = b"".join(iter(lambda: source.read(1 << 20), b""))
    if data.lstrip()[:1] == b"{":
        try:
            told: Any = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ParseError(f"it is damaged or cut: {error}") from None
    else:
        told = loads(data)
    if not isinstance(told, dict) or not ({"pg_config", "entries", "pg_status"} & set(told)):
        raise ParseError("it has neither collectives nor groups of a flight recorder")
    return dump_of(told, str(path), path.name)


def dump_of(told: dict[str, Any], source: str, name: str) -> Dump:
    """The record; fields of odd types are left out."""
    config = _dict(told.get("pg_config"))
    entries = tuple(
        entry for one in _list(told.get("entries"))[-_MOST_ENTRIES:]
        if isinstance(one, dict) and (entry := _entry(one)) is not None
    )  # fmt: skip
    names = {key: str(_dict(one).get("desc") or "") for key, one in config.items()}
    ranks = {key: _ranks(_dict(one).get("ranks")) for key, one in config.items()}
    backend = entries[-1].name.partition(":")[0] if entries else ""
    return Dump(
        source, rank_of(name), version_of(told.get("version")), backend, names, ranks,
        _status(told, entries, names), entries,
    )  # fmt: skip


def rank_of(name: str) -> int | None:
    """By the file's name."""
    match = _RANK.search(name)
    return int(match[1] or match[2]) if match else None


def version_of(version: object) -> tuple[int, ...]:
    """ "2.10" is after "2.4"."""
    return tuple(int(part) for part in re.findall(r"\d{1,6}", str(version or ""))[:4])


def _dict(value: object) -> dict[str, Any]:
    return {str(key): one for key, one in value.items()} if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _int(value: object, default: int = -1) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _ranks(value: object) -> tuple[int, ...]:
    """A JSON string, or a list."""
    if isinstance(value, str):
        return tuple(int(one) for one in re.findall(r"\d{1,7}", value))
    return tuple(_int(one) for one in _list(value))


def _group(one: dict[str, Any]) -> str:
    """A group's name, which all its ranks share; the number of it in this process where it has
    none."""
    named = _list(one.get("process_group"))
    name = str(named[0]) if named else ""
    return name or str(one.get("pg_id", ""))


def _entry(one: dict[str, Any]) -> DumpEntry | None:
    name = one.get("profiling_name")
    if not isinstance(name, str):
        return None
    return DumpEntry(
        record_id=_int(one.get("record_id")), group=_group(one),
        seq=_int(one.get("collective_seq_id", one.get("seq_id"))),
        p2p_seq=_int(one.get("p2p_seq_id"), 0), op_id=_int(one.get("op_id")), name=name,
        state=str(one.get("state", "")), input_sizes=_sizes(one.get("input_sizes")),
        output_sizes=_sizes(one.get("output_sizes")), input_dtypes=_words(one.get("input_dtypes")),
        output_dtypes=_words(one.get("output_dtypes")), created_ns=_time(one, "time_created_ns"),
        started_ns=_time(one, "time_discovered_started_ns"),
        completed_ns=_time(one, "time_discovered_completed_ns"),
        duration_ms=_float(one.get("duration_ms")), timeout_ms=_float(one.get("timeout_ms")),
        is_p2p=bool(one.get("is_p2p", "send" in name or "recv" in name)),
        frames=tuple(_frames(one.get("frames"))),
    )  # fmt: skip


def _time(one: dict[str, Any], key: str) -> int | None:
    value = _int(one.get(key))
    return value if value > 0 else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _sizes(value: object) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(_int(one) for one in _list(shape)) for shape in _list(value)[:64])


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in _list(value)[:64])


def _frames(value: object) -> Iterable[str]:
    for frame in _list(value)[:_FRAMES]:
        one = _dict(frame)
        if one.get("filename"):
            yield f"{one.get('name', '?')} ({one['filename']}:{one.get('line', '?')})"


def _status(
    told: dict[str, Any], entries: tuple[DumpEntry, ...], names: dict[str, str]
) -> dict[str, GroupStatus]:
    """By name. The numbers of groups in `pg_status` are those of the process; entries say which
    name each has, and a group without entries keeps `#number`."""
    known = {
        str(one.get("pg_id")): _group(one) for one in _list(told.get("entries"))
        if isinstance(one, dict)
    }  # fmt: skip
    if "0" in names:
        known.setdefault("0", "0")
    found = {}
    for number, value in _dict(told.get("pg_status")).items():
        one = _dict(value)
        found[known.get(number, f"#{number}")] = GroupStatus(
            _int(one.get("last_enqueued_collective")), _int(one.get("last_started_collective")),
            _int(one.get("last_completed_collective")),
        )  # fmt: skip
    return found
