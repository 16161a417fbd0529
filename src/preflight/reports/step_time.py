"""Where the step goes, as entries of a report's `measurements`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from preflight.diagnosis.reading import Reading
from preflight.units import number

Row = dict[str, Any]


def step_tables(readings: Sequence[Reading]) -> Iterator[dict[str, Any]]:
    """A table for each reading that tells parts of the step; one of the ranks where it tells them;
    one of the wall time."""
    for one in readings:
        if one.parts:
            yield {"table": f"the step, {one.input}", "rows": list(_parts(one)),
                   "notes": list(one.notes)}  # fmt: skip
        if one.goodput:
            yield {"table": f"the wall time, {one.input}", "rows": [
                {"part": part.name, "time": f"{number(part.seconds)} s",
                 "share": f"{number(part.share * 100)} %"} for part in one.goodput
            ], "notes": [] if one.parts else list(one.notes)}  # fmt: skip


def _parts(reading: Reading) -> Iterator[Row]:
    whole = sum(part.seconds for part in reading.parts)
    for part in reading.parts:
        share = part.seconds / whole * 100 if whole else 0.0
        yield {"part": part.name, "time": f"{number(part.seconds * 1e3)} ms",
               "share": f"{number(share)} %"}  # fmt: skip
