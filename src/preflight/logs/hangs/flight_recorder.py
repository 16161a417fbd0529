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
_MOST_OBJECTS = 3_000_000  # of JSON: a ring of 20,000 with stacks has some 400,000


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
        if data.count(b"{") + data.count(b"[") > _MOST_OBJECTS:
            raise ParseError(f"it holds more than {_MOST_OBJECTS:,} objects")
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
    # The default group may have neither name nor number there; entries call it 0.
    names = {key or "0": _word(_dict(one).get("desc")) for key, one in config.items()}
    ranks = {key or "0": _ranks(_dict(one).get("ranks")) for key, one in config.items()}
    numbers = _numbers(told)
    for group, about in numbers.values():
        names[group] = names.get(group) or about
        ranks.setdefault(group, ())
    backend = entries[-1].name.partition(":")[0] if entries else ""
    return Dump(
        source, rank_of(name), version_of(told.get("version")), backend, names, ranks,
        _status(told, {number: group for number, (group, _) in numbers.items()}), entries,
        {names[group]: number for number, (group, _) in numbers.items() if names[group]},
    )  # fmt: skip


def rank_of(name: str) -> int | None:
    """By the file's name."""
    match = _RANK.search(name)
    return int(match[1] or match[2]) if match else None


def version_of(version: object) -> tuple[int, ...]:
    """ "2.10" is after "2.4"."""
    return tuple(int(part) for part in re.findall(r"\d{1,6}", _word(version))[:4])


def _dict(value: object) -> dict[str, Any]:
    return {_word(key): one for key, one in value.items()} if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _word(value: object) -> str:
    """Words and numbers: what holds others could be written out without end."""
    return str(value) if isinstance(value, (str, int, float)) else ""


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
    return (_word(named[0]) if named else "") or _word(one.get("pg_id"))


def _entry(one: dict[str, Any]) -> DumpEntry | None:
    name = one.get("profiling_name")
    if not isinstance(name, str):
        return None
    state = _word(one.get("state"))
    return DumpEntry(
        record_id=_int(one.get("record_id")), group=_group(one),
        seq=_int(one.get("collective_seq_id", one.get("seq_id"))),
        p2p_seq=_int(one.get("p2p_seq_id"), 0), op_id=_int(one.get("op_id")), name=name,
        # gloo never changes the state, and marks what is over as retired.
        state="completed" if one.get("retired") is True else state,
        input_sizes=_sizes(one.get("input_sizes")),
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
    return tuple(tuple(_int(one) for one in _list(shape)[:16]) for shape in _list(value)[:64])


def _words(value: object) -> tuple[str, ...]:
    return tuple(_word(one) for one in _list(value)[:64])


def _frames(value: object) -> Iterable[str]:
    for frame in _list(value)[:_FRAMES]:
        one = _dict(frame)
        if place := _word(one.get("filename")):
            yield f"{_word(one.get('name')) or '?'} ({place}:{_word(one.get('line')) or '?'})"


def _numbers(told: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """A group's number in this process -> its name and what it is for, as entries tell."""
    found = {}
    for one in _list(told.get("entries")):
        if isinstance(one, dict):
            named = _list(one.get("process_group"))
            about = _word(named[1]) if len(named) > 1 else ""
            found[_word(one.get("pg_id"))] = _group(one), about
    return found


def _status(told: dict[str, Any], known: dict[str, str]) -> dict[str, GroupStatus]:
    """By name. `pg_status` has the numbers of the process; a group that no entry names keeps
    `#number`."""
    found = {}
    for number, value in _dict(told.get("pg_status")).items():
        one = _dict(value)
        found[known.get(number) or ("0" if number == "0" else f"#{number}")] = GroupStatus(
            _int(one.get("last_enqueued_collective")), _int(one.get("last_started_collective")),
            _int(one.get("last_completed_collective")),
        )  # fmt: skip
    return found
