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
    #: By those that are here; Missing where none is.
    decodes: Known[bool] = NOT_IN_INPUT
    trouble: str = ""
    #: With the fastest of them.
    workers: Known[int] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class ShardAnswer(Struct, frozen=True):
    """One answer."""

    shards: tuple[Shard, ...] = ()
    cannot: str = ""  # why nothing was decoded
    busy: str = ""  # whose work it did not disturb
    line: int = 1
    probe: str = ""
