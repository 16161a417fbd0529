"""The line of progress says how far it is and never takes a second line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.reports.layout import cells
from preflight.reports.progress import progress_line
from preflight.transports.progress import Progress


@pytest.mark.parametrize(
    ("progress", "limit_s", "said"),
    [
        (
            Progress(128, 87, "node-07", "nvidia-smi", 23.4), 60.0,
            "87 of 128 hosts done; slowest node-07 (nvidia-smi, 23 s); at most 37 s left",
        ),
        (
            Progress(4000, 0, "n1", "", 0.1), 60.0,
            "0 of 4,000 hosts done; slowest n1 (connecting, 0 s); at most 1 min left",
        ),
        (
            Progress(2, 1, "n1", "dmesg", 61.0), 60.0,
            "1 of 2 hosts done; slowest n1 (dmesg, 1 min 1 s); at most 0 s left",
        ),
        (Progress(128, 128, "", "", 0.0), 60.0, "128 of 128 hosts done"),
        (Progress(128, 3, "", "", 0.0), 60.0, "3 of 128 hosts done"),
    ],
)  # fmt: skip
def test_the_line(progress: Progress, limit_s: float, said: str) -> None:
    assert progress_line(progress, limit_s) == said


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.text(), st.text(), st.floats(0, 1e6))
def test_it_fits_and_obeys_nothing(
    hosts: int, done: int, slowest: str, waits_for: str, slowest_s: float
) -> None:
    line = progress_line(Progress(hosts, done, slowest, waits_for, slowest_s), 60)
    assert cells(line) <= 99
    assert line.isprintable() or all(char >= " " for char in line)
