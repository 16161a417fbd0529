"""What is told of active work: on a terminal what goes on now, in a pipe each part once."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from preflight.cli.news import News
from preflight.cli.streams import Streams
from preflight.reports.progress import progress_line
from preflight.transports.progress import Progress

ROUND = {
    "kind": "round", "round": 2, "what": "who is slow? 6 pairs and more, side by side",
    "pairs": 6, "tests": [3, 4], "among": [["h1", "h3"], ["h2", "h4"]],
}  # fmt: skip
LINES: list[dict[str, Any]] = [
    {"kind": "begin", "world": 4},
    {"kind": "step", "name": "all_reduce, 1024 bytes"},
    {"kind": "size", "bytes": 1024},
    {**ROUND, "round": 1, "tests": [1, 2], "among": [["h1", "h2"], ["h3", "h4"]]},
    ROUND,
]


def told(*, terminal: bool, quiet: bool = False) -> tuple[str, list[str]]:
    """What stands on standard error, and the news behind each line."""
    err = io.StringIO()
    news = News(Streams(io.StringIO(), err, progress=terminal), quiet=quiet)
    latest = []
    for one in LINES:
        news.hear("nccl-bench", json.dumps(one))
        latest.append(news.latest)
    news.hear("nccl-bench", "")
    return err.getvalue(), latest


def test_on_a_terminal_it_is_what_goes_on_now() -> None:
    written, latest = told(terminal=True)
    assert written == ""  # the one who draws the line of progress shows it
    assert latest == [
        "4 ranks start", "all_reduce, 1024 bytes", "all_reduce, 1024 bytes",
        "tests 1 to 2 of 6: h1 and h2, h3 and h4", "tests 3 to 4 of 6: h1 and h3, h2 and h4",
    ]  # fmt: skip


def test_in_a_pipe_it_is_each_part_once() -> None:
    assert told(terminal=False)[0] == (
        "nccl-bench: collectives, size by size\n"
        "nccl-bench: who is slow? 6 pairs and more, side by side\n"
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_with_q_it_is_nothing(terminal: bool) -> None:
    assert told(terminal=terminal, quiet=True) == ("", [""] * len(LINES))


def test_tests_of_many_hosts_fit_into_a_line() -> None:
    one = {**ROUND, "pairs": 0, "tests": [5], "among": [[f"node-{at:03}" for at in range(40)]]}
    news = News(Streams(io.StringIO(), io.StringIO(), progress=True), quiet=False)
    news.hear("nccl-bench", json.dumps(one))
    assert news.latest == "test 5: a group of 40 hosts"
    news.hear("nccl-bench", json.dumps({"kind": "round"}))  # a payload that tells it otherwise
    assert news.latest == "test 5: a group of 40 hosts"


def test_the_line_of_progress_has_room_for_it() -> None:
    progress = Progress(4, 0, "h1", "nccl-bench", 23.0, "")
    line = progress_line(progress, 3660.0, "tests 3 to 4 of 6: h1 and h3, h2 and h4")
    assert line == "4 hosts, 23 s: tests 3 to 4 of 6: h1 and h3, h2 and h4"
    some = progress_line(Progress(4, 1, "h1", "nccl-bench", 23.0), 3660.0, "x\x1b[2J" * 50)
    assert some.startswith("1 of 4 hosts done; 23 s: ") and len(some) < 100 and "\x1b" not in some
