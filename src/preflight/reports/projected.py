"""The checkpoint of a model that is not there yet, at the speeds that a report's tables hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from preflight.estimate.storage import READS, WRITES, Kind, Together, not_storage, together
from preflight.expect.checkpoint_bytes import NO_READ, NO_WRITE, Projection, project
from preflight.model import Known, Missing
from preflight.reports.projection import projection_table
from preflight.units import number


class Wanted(Struct, frozen=True):
    """The model, as its user states it. `interval_s`: of training between two saves."""

    params: float
    optimizer: str = "adamw"
    ranks: int = 1
    interval_s: float | None = None

    def at(
        self, write_gbps: Known[float] = NO_WRITE, read_gbps: Known[float] = NO_READ
    ) -> Projection:
        """UsageError where a number cannot be one of a model."""
        return project(
            self.params, optimizer=self.optimizer, ranks=self.ranks, interval_s=self.interval_s,
            write_gbps=write_gbps, read_gbps=read_gbps,
        )  # fmt: skip


def projected(wanted: Wanted, tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One more table, of what the others measured."""
    write, read = together(tables, WRITES), together(tables, READS)
    told = wanted.at(
        write.gbps if write else _none(tables, WRITES, NO_WRITE),
        read.gbps if read else _none(tables, READS, NO_READ),
    )
    of = "; ".join(filter(None, (_told("to save", write), _told("to load", read))))
    several = len({table.get("host") for table in tables}) > 1
    return projection_table(told, of=of, alone=bool(of) and not several)


def _none(tables: Sequence[dict[str, Any]], kind: Kind, none: Missing) -> Missing:
    """Why there is no speed: what was measured may be of no storage."""
    of = not_storage(tables, kind)
    text = (
        f"what was measured is of: {of}, which does not count: --dir on the storage that is meant"
    )
    return Missing("not-applicable", text) if of else none


def _told(what: str, found: Together | None) -> str:
    if found is None:
        return ""
    slower = ", ".join(f"{job} {number(gbps)} GB/s" for job, gbps in found.slower)
    return f"{what} {found.how}{f' (against {slower})' if slower else ''}"
