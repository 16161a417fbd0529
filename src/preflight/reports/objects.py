"""What a bench of an object store measured, as a table. In 1e6 bytes a second, and ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.expect.failures import most_share
from preflight.facts.host import Host
from preflight.facts.objects import ObjectStore, ObjectWay
from preflight.model import Known, Missing

Row = dict[str, Any]


def object_tables(host: Host) -> tuple[Row, ...]:
    """A table for each store that was reached."""
    if isinstance(host.object_stores, Missing) or isinstance(host.object_ways, Missing):
        return ()
    return tuple(
        {"table": store.name, "host": host.name, "rows": [_row(one) for one in host.object_ways],
         "notes": list(_notes(store)),
         "numbers": {one.name: _numbers(one) for one in host.object_ways}}
        for store in host.object_stores
    )  # fmt: skip


def _row(way: ObjectWay) -> Row:
    return {
        "requests": way.name, "n": way.requests, "failed": way.failed,
        "a second": _short(way.per_s),
        "MB/s": _short(way.bandwidth_mbps), "ms, 50 %": _ms(way.p50_us), "99 %": _ms(way.p99_us),
        "most": _ms(way.max_us),
    }  # fmt: skip


def _short(value: Known[float]) -> float | str:
    return "" if isinstance(value, Missing) else float(f"{value:.3g}")


def _ms(value: Known[float]) -> float | str:
    return "" if isinstance(value, Missing) else _short(value / 1e3)


def _numbers(way: ObjectWay) -> dict[str, float]:
    """All digits, for programs."""
    told = {"bandwidth_mbps": way.bandwidth_mbps, "per_s": way.per_s, "p50_us": way.p50_us,
            "p99_us": way.p99_us, "max_us": way.max_us}  # fmt: skip
    known = {name: value for name, value in told.items() if not isinstance(value, Missing)}
    return {"requests": way.requests, "failed": way.failed, **known}


def _notes(store: ObjectStore) -> Iterator[str]:
    yield f"by {store.library}, in one process; MB/s of 1e6 bytes{_removed(store)}"
    yield from _failures(store)
    yield _wire(store)
    if not isinstance(store.parts_put_mbps, Missing) and not isinstance(
        store.parts_get_mbps, Missing
    ):
        yield (f"one object in parts of 8 MiB: put with {store.parts_put_mbps:.3g} MB/s, got with "
               f"{store.parts_get_mbps:.3g}")  # fmt: skip
    if not isinstance(store.unlisted, Missing) and not store.unlisted:
        yield "all that was put was listed right after"
    if not isinstance(store.read, Missing) and not isinstance(store.wrong, Missing):
        yield f"other bytes than were put: {store.wrong} of {store.read:,} objects"
    if store.lost:
        yield f"lost: {store.lost:,} objects were put and acknowledged, and are not there any more"
    if store.folder and store.left != 0:
        scheme = store.name.partition("://")[0]
        known = {"s3": "aws s3 rm --recursive s3://", "gs": "gcloud storage rm -r gs://",
                 "file": "rm -r "}  # fmt: skip
        yield f"what stays there: {known.get(scheme, f'{scheme}://')}{store.folder}"
    if store.swept:
        yield f"removed what {store.swept} earlier run(s) had left there"


def _removed(store: ObjectStore) -> str:
    return "; removed afterwards" if store.left == 0 else ""


def _failures(store: ObjectStore) -> Iterator[str]:
    tries, failed = store.requests, store.failed
    if isinstance(tries, Missing) or isinstance(failed, Missing):
        return
    most = 100 * most_share(tries, failed)
    yield f"failed: {failed:,} of {tries:,}, which shows a rate below {most:.2g} % (95 % certainty)"
    if store.said:
        yield f"such as {'; '.join(store.said)}"


def _wire(store: ObjectStore) -> str:
    if isinstance(store.exchanges, Missing):
        return f"retries: {store.exchanges.text}"
    by_status = ", ".join(
        f"{many:,} x {'no answer' if one == '0' else one}" for one, many in store.statuses
    )
    return f"on the wire, with what the library tries again unseen: {by_status}"
