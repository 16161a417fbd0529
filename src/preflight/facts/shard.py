"""A file of the user's data, and how fast one core decodes it. Rates are in 1e6 bytes a second."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Decoder(Struct, frozen=True):
    """One module or program. `by` "": nothing is to be decoded, and its records are read."""

    by: str
    decodes: Known[bool] = NOT_IN_INPUT
    trouble: str = ""
    decoded_mbps: Known[float] = NOT_IN_INPUT  # that come out, of one core
    taken_mbps: Known[float] = NOT_IN_INPUT  # of the file
    times: Known[float] = NOT_IN_INPUT  # so many bytes come of one
    json_mbps: Known[float] = NOT_IN_INPUT  # of records, by Python's json; Missing where none are
    #: Lines that are no JSON among lines that are, and the number of the first, from 1.
    json_wrong: Known[int] = NOT_IN_INPUT
    json_wrong_line: Known[int] = NOT_IN_INPUT
    json_lines: Known[int] = NOT_IN_INPUT  # so many were looked at
    #: Processes that do nothing else, for the demand.
    workers: Known[int] = NOT_IN_INPUT


class Shard(Struct, frozen=True):
    """One file."""

    name: str
    format: str  # gzip | zstd | lz4 | xz | bzip2 | hdf5 | parquet | arrow | zip | "": none known
    size_bytes: Known[int] = NOT_IN_INPUT
    sample_bytes: Known[int] = NOT_IN_INPUT  # so many of them were read
    shared: Known[bool] = NOT_IN_INPUT
    file_system: str = ""
    processors: Known[int] = NOT_IN_INPUT
    demand_mbps: Known[float] = NOT_IN_INPUT
    decoders: tuple[Decoder, ...] = ()
    #: By those that are here; Missing where none is. What of it was, in words, or "damaged".
    decodes: Known[bool] = NOT_IN_INPUT
    decoded: Known[str] = NOT_IN_INPUT
    decoded_said: str = ""
    trouble: str = ""
    #: Lines that are no JSON; Missing where its lines are of something else.
    wrong_records: Known[int] = NOT_IN_INPUT
    wrong_records_said: str = ""
    #: With the fastest of them, and what takes most of their time.
    workers: Known[int] = NOT_IN_INPUT
    workers_said: str = ""
    line: int = 1
    probe: str = ""


class ShardAnswer(Struct, frozen=True):
    """One answer."""

    shards: tuple[Shard, ...] = ()
    cannot: str = ""  # why nothing was decoded
    busy: str = ""  # whose work it did not disturb
    line: int = 1
    probe: str = ""
