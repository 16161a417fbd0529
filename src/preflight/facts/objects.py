"""What a bench of an object store measured. Bandwidth is in 1e6 bytes a second, time in us."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class ObjectStore(Struct, frozen=True):
    """One store, from one host."""

    name: str  # the URL, as the user named it
    library: str = ""  # of the host, with its version
    reached: Known[bool] = NOT_IN_INPUT  # an object could be put, got, listed and removed
    trouble: str = ""
    #: Puts and gets; those that the library gave up on, or that had no answer in time.
    requests: Known[int] = NOT_IN_INPUT
    failed: Known[int] = NOT_IN_INPUT
    said: tuple[str, ...] = ()  # of those, some
    #: What went over the wire for them, and of that: answered 429 or 503; otherwise without an
    #: answer that counts, and tried again by the library, which told nobody.
    exchanges: Known[int] = NOT_IN_INPUT
    throttled_percent: Known[float] = NOT_IN_INPUT
    retried_percent: Known[float] = NOT_IN_INPUT
    statuses: tuple[tuple[str, int], ...] = ()  # HTTP's, "0" where no answer came
    read: Known[int] = NOT_IN_INPUT  # objects that were got
    wrong: Known[int] = NOT_IN_INPUT  # other bytes than were put, or lost
    lost: int = 0  # of these: put and acknowledged, and not there any more
    unlisted: Known[int] = NOT_IN_INPUT  # that were put and are not in the list right after
    parts: Known[str] = NOT_IN_INPUT  # an object in parts: whole, or what went wrong
    left: Known[int] = NOT_IN_INPUT  # objects and uploads that stay there
    put_mbps: Known[float] = NOT_IN_INPUT  # of large objects, by as many at once as gave most
    get_mbps: Known[float] = NOT_IN_INPUT
    parts_put_mbps: Known[float] = NOT_IN_INPUT
    parts_get_mbps: Known[float] = NOT_IN_INPUT
    folder: str = ""  # of this run, with its bucket
    swept: int = 0  # folders that earlier runs had left, removed
    line: int = 0
    probe: str = ""


class ObjectWay(Struct, frozen=True):
    """Objects of one size, put or got by so many at once."""

    name: str  # put 16 KiB, 4 at once
    op: str  # put | get
    size_bytes: int
    at_once: int
    requests: int
    failed: int
    per_s: Known[float] = NOT_IN_INPUT
    bandwidth_mbps: Known[float] = NOT_IN_INPUT
    p50_us: Known[float] = NOT_IN_INPUT
    p99_us: Known[float] = NOT_IN_INPUT
    max_us: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Objects(Struct, frozen=True):
    """One answer of the bundled bench."""

    stores: tuple[ObjectStore, ...] = ()
    ways: tuple[ObjectWay, ...] = ()
    cannot: str = ""  # why nothing was begun
    lacks: bool = False  # a library
    busy: str = ""  # whose work it did not disturb
    interrupted: bool = False
    line: int = 1
    probe: str = ""
