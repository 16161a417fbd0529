"""A file of the user's data as a table: who decodes it here, and how fast. MB are 1e6 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.facts.host import Host
from preflight.facts.shard import Decoder, Shard
from preflight.model import Known, Missing
from preflight.units import format_bytes, number

Row = dict[str, Any]
_LOCKS = (
    "HDF5: to be opened by each worker, after the fork, as its library keeps state that processes "
    "must not share"
)
_LOCKS_SHARED = (
    "it locks the file, which hangs or fails on file systems without locks: "
    "HDF5_USE_FILE_LOCKING=FALSE, where nothing writes it meanwhile"
)
_WITHIN = {"parquet": "column by column", "arrow": "as its writer chose", "zip": "member by member",
           "hdf5": "chunk by chunk"}  # fmt: skip


def shard_tables(host: Host) -> tuple[Row, ...]:
    """One of each file."""
    if isinstance(host.shards, Missing):
        return ()
    return tuple(_table(one, host.name) for one in host.shards)


def _table(told: Shard, host: str) -> Row:
    return {
        "table": f"decoding {told.name}", "host": host,
        "rows": [_row(one) for one in told.decoders], "notes": list(_notes(told)),
        "numbers": {one.by or "as it is": _numbers(one) for one in told.decoders},
    }  # fmt: skip


def _row(one: Decoder) -> Row:
    return {
        "by": one.by or "as it is", "MB/s of a core": _short(one.decoded_mbps),
        "of the file": _short(one.taken_mbps), "times": _short(one.times),
        "MB/s as JSON": _short(one.json_mbps), "workers": _short(one.workers),
    }  # fmt: skip


def _short(value: Known[float] | Known[int]) -> float | str:
    return "" if isinstance(value, Missing) else float(f"{value:.3g}")


def _notes(told: Shard) -> Iterator[str]:
    where = told.file_system or "a file system"
    yield f"{_form(told)}; {_size(told)} on {where}, from memory: storage is not in it"
    yield from (f"{one.by}: {one.trouble}" for one in told.decoders if one.trouble)
    if any(not isinstance(one.json_mbps, Missing) for one in told.decoders):
        yield "records are lines of JSON: as JSON is what json.loads of that Python takes in"
    if not isinstance(told.demand_mbps, Missing):
        has = told.processors
        of = "" if isinstance(has, Missing) else f"; this host has {has} processors"
        yield f"workers: processes that do nothing else, for {number(told.demand_mbps)} MB/s{of}"
    if told.format == "hdf5":
        yield _LOCKS
        if told.shared is True:
            yield f"{told.file_system}: {_LOCKS_SHARED}"


def _form(told: Shard) -> str:
    if told.format in _WITHIN:
        return f"{told.format}, which may be compressed within, {_WITHIN[told.format]}"
    return told.format or "neither gzip, zstd, lz4, xz nor bzip2, so nothing is to be decoded"


def _size(told: Shard) -> str:
    size, sample = told.size_bytes, told.sample_bytes
    if isinstance(size, Missing) or isinstance(sample, Missing):
        return "of a size that is not told"
    first = "" if sample >= size else f"the first {format_bytes(sample)} of "
    return f"{first}{format_bytes(size)}"


def _numbers(one: Decoder) -> dict[str, float]:
    told = {"decoded_mbps": one.decoded_mbps, "taken_mbps": one.taken_mbps, "times": one.times,
            "json_mbps": one.json_mbps, "workers": one.workers}  # fmt: skip
    return {name: value for name, value in told.items() if not isinstance(value, Missing)}
