"""Values of a variable that a bench held against each other: read, judged, shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from preflight.collect import examine_one_of_many
from preflight.facts.bench import SettingSweep
from preflight.judge.load import load
from preflight.model import Missing, Raw, Status
from preflight.probes.collectives.bench import bench
from tests.conftest import sample

Line = dict[str, Any]
TEXT = sample("nccl_bench/swept_h1.jsonl")
SWEPT = next(one for one in map(json.loads, TEXT.splitlines()) if one["kind"] == "swept")


def edited(**new: Any) -> str:
    """With other values in the line that ends the sweep."""
    lines = [json.loads(one) for one in TEXT.splitlines()]
    return "".join(
        f"{json.dumps({**one, **new} if one['kind'] == 'swept' else one)}\n" for one in lines
    )


def sweep_of(text: str) -> SettingSweep:
    found = bench(text).settings
    assert not isinstance(found, Missing)
    (one,) = found
    return one


def shown(text: str) -> tuple[Status, str, list[str]]:
    """The check's status and reason, and what is said below the table."""
    found = examine_one_of_many("h1", [Raw("h1", "nccl-bench", stdout=text)],
                                load(("collectives",)).checks)  # fmt: skip
    (one,) = [one for one in found.report.results if one.check == "collectives.settings"]
    notes = [note for table in found.measured if "GLOO" in table["table"]
             for note in table["notes"]]  # fmt: skip
    return one.status, one.reason, notes


def test_the_faster_one_is_told_with_its_interval_and_what_to_type() -> None:
    small, large = sweep_of(TEXT).gains
    assert (large.value, large.size_bytes, large.verdict) == ("eth0", 1 << 20, "faster")
    assert 90 < large.low_percent < large.gain_percent < large.high_percent < 110
    assert small.verdict == "open"
    status, _, notes = shown(TEXT)
    assert status is Status.WARN
    assert any("`export GLOO_SOCKET_IFNAME=eth0`" in one for one in notes)
    assert any(one.startswith("GLOO_SOCKET_IFNAME=eth9 failed in the trial") for one in notes)


def test_where_nothing_is_faster_nothing_is_to_be_set() -> None:
    gains = [{**one, "verdict": "open", "low": -0.02, "high": 0.031}
             for one in SWEPT["gains"]]  # fmt: skip
    status, _, notes = shown(edited(gains=gains, failed=[]))
    assert status is Status.PASS
    assert "no difference beyond 3.1 %: leave it unset" in notes
    assert not any("export" in one for one in notes)


def test_faster_in_one_size_and_slower_in_another_is_no_advice() -> None:
    gains = [{**SWEPT["gains"][0], "verdict": "slower"}, SWEPT["gains"][1]]
    _, _, notes = shown(edited(gains=gains))
    assert "eth0 is faster at 1 MiB and slower at 4 KiB" in notes
    assert not any("export" in one for one in notes)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ({"lost": ["h2"], "gains": []}, "h2 was lost in mid-sweep"),
        ({"failed": [{"value": "", "turn": -1, "text": "no way"}], "gains": []},
         "nothing to compare with: without GLOO_SOCKET_IFNAME no way"),
    ],
)  # fmt: skip
def test_what_could_not_be_compared_does_not_pass(new: Line, reason: str) -> None:
    status, told, _ = shown(edited(**new))
    assert status is Status.ERROR and reason in told


def test_one_that_was_cut_short_does_not_pass() -> None:
    lines = [one for one in TEXT.splitlines() if '"kind":"swept"' not in one]
    swept = sweep_of("".join(f"{one}\n" for one in lines))
    assert isinstance(swept.failed_values, Missing)
    assert shown("".join(f"{one}\n" for one in lines))[0] is Status.ERROR
    assert isinstance(bench(sample("nccl_bench/one_host.jsonl")).settings, Missing)
