"""What a bench over several hosts is said to take holds what it took."""

from __future__ import annotations

import pytest

from preflight.cli.bench_time import KINDS, _sizes, seconds
from preflight.cli.benches import COLLECTIVES, estimate
from preflight.payload.collectives.plan import Plan
from tests.cli.command import preflight

ONE = {"collectives": ["all_reduce"], "end_bytes": 1 << 10}


@pytest.mark.parametrize(
    ("plan", "hosts", "took_s"),
    [  # over hosts with links of 400 Mb/s and processors that others use too
        ({}, 4, 68.0), (ONE, 4, 19.5), (ONE, 4, 23.4), (ONE, 3, 21.5),
        ({**ONE, "locate": False, "wire": "tcp"}, 4, 46.3),
    ],
)  # fmt: skip
def test_it_holds_what_was_measured(plan: dict[str, object], hosts: int, took_s: float) -> None:
    count = 1 if "collectives" in plan else len(COLLECTIVES)
    low, high = seconds(plan, hosts, count, KINDS["processors"])
    assert low <= took_s <= high <= 10 * low


def test_more_hosts_take_longer_and_no_search_takes_less() -> None:
    kind = KINDS["GPUs"]
    few, many = (seconds({}, hosts, 7, kind) for hosts in (16, 1024))
    assert few[1] < many[1]
    assert seconds({"locate": False}, 16, 7, kind)[1] < few[1]
    assert seconds({"pairwise": True}, 64, 7, kind)[0] > 63 * kind.start_s[0]


def test_what_is_done_besides_is_added() -> None:
    kind, few = KINDS["processors"], seconds(ONE, 4, 1, KINDS["processors"])
    sweep = [["NCCL_ALGO", "", "Ring", "Tree"]]
    for more in ({"lasting_s": 600.0}, {"wire": "tcp"}, {"sweep": sweep}):
        low, high = seconds({**ONE, **more}, 4, 1, kind)
        assert low > few[0] + 10 and high > few[1] + 20
    assert seconds({**ONE, "lasting_s": 600.0}, 4, 1, kind)[1] == few[1] + 600


def test_it_is_told_before_it_begins() -> None:
    told = estimate({}, 4)
    assert told.startswith("about 20 s to 2 min on processors, ")
    assert told in preflight("nccl-bench", "--hosts", "h[1-4]", "--dry-run").out
    assert estimate({}) in preflight("nccl-bench", "--dry-run").out


@pytest.mark.parametrize(
    "asked", [{}, {"end_bytes": 1 << 20}, {"begin_bytes": 8, "end_bytes": 100, "factor": 3}]
)
def test_its_sizes_are_those_that_are_timed(asked: dict[str, int]) -> None:
    pytest.importorskip("torch")
    from preflight.payload.collectives.work import sizes_of

    for kind, device in (("processors", "cpu"), ("GPUs", "cuda")):
        timed = list(sizes_of(Plan(device=device, **asked)))  # type: ignore[arg-type]
        assert _sizes(asked, KINDS[kind]) == timed
