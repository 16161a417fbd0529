"""Each injected fault changes the report as it should, and a clean run raises nothing: real runs of
two ranks, judged as recorded ones. `make accuracy` has all faults, ways to spread, seeds.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from bench.fault_table import FAULTS, SMALL, Fault, Seen
from bench.faults import judged, rows, with_faults, without
from preflight.cli.stress import FAULTS as STRESS_FAULTS
from preflight.expect.drills import SEEN_BY, STRESS_SEEN_BY
from preflight.judge.load import load
from tests.conftest import require

#: One worker makes the runs of all tests here.
pytestmark = pytest.mark.xdist_group("faults of training")

_INJECT = Path(__file__).parents[2] / "src/preflight/payload/training/inject.py"
#: One of each kind: a rank, its data, a process, numbers, what is learned, what is resumed, disks.
_HERE = ("slow-rank", "slow-loader", "stop", "flip-weight", "nan", "bad-batch", "lost-optimizer",
         "corrupt-checkpoint", "full-disk")  # fmt: skip
_RUNS = [
    *with_faults([fault for fault in FAULTS if fault.name in _HERE], [1], SMALL, ["ddp"]),
    *without(1, SMALL),
]


@pytest.fixture(scope="module")
def wrong() -> dict[str, str]:
    """What is wrong with the report of each run. Times are not held: other tests run beside."""
    require("torch", importlib.util.find_spec("torch") is not None)
    return judged(_RUNS, steady=False)


@pytest.mark.parametrize("name", [one.name for one in _RUNS])
def test_the_report_is_as_it_should_be(name: str, wrong: dict[str, str]) -> None:
    assert wrong[name] == ""


def test_the_table_names_every_fault() -> None:
    names = {fault.name for fault in FAULTS}
    tree = ast.parse(_INJECT.read_text(encoding="utf-8"))
    (known,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == "FAULTS" for one in node.targets)
    )
    assert names == set(known) == set(SEEN_BY)
    assert tuple(STRESS_SEEN_BY) == STRESS_FAULTS


def test_the_table_names_checks_that_there_are() -> None:
    ids = {check.id for check in load(("training", "stress")).checks}
    everything = (*SEEN_BY.values(), *STRESS_SEEN_BY.values())
    assert {one for seen_by in everything for one in seen_by} <= ids
    assert {one for fault in FAULTS for one in fault.also} <= ids


def test_a_fault_that_nothing_can_see_says_why() -> None:
    assert all(bool(fault.seen) != bool(fault.why) for fault in FAULTS)


def seen(failed: str = "", warned: str = "") -> Seen:
    return Seen(frozenset(failed.split()), frozenset(warned.split()))


def test_what_counts_as_wrong() -> None:
    fault = Fault("nan", ("training.loss.jump",))
    assert seen("training.finite").wrong(fault) == ""
    assert seen("training.finite", "training.loss.jump training.jitter").wrong(fault) == ""
    assert seen("", "training.loss.jump").wrong(fault) == "not seen by training.finite"
    assert seen("training.finite training.hashes").wrong(fault) == "raised training.hashes"
    assert seen("training.finite", "training.gc").wrong(fault) == "raised training.gc"
    assert seen("training.finite training.data.wait").wrong(fault) == "raised training.data.wait"
    assert seen("training.finite training.data.wait").wrong(fault, steady=False) == ""


def test_a_clean_run_raises_nothing_at_all() -> None:
    assert seen().wrong(None) == ""
    assert seen("", "training.jitter").wrong(None) == "raised training.jitter"
    assert seen("", "training.jitter").wrong(None, steady=False) == ""
    assert seen("training.hashes").wrong(None, steady=False) == "raised training.hashes"


def test_the_rows_count_what_is_right() -> None:
    runs = without(6, SMALL)
    told = {one.name: "" for one in runs}
    assert all(row.met for row in rows(runs, told))
    told[runs[0].name] = "raised training.hashes"
    missed = [row for row in rows(runs, told) if not row.met]
    assert [(row.reached, row.target) for row in missed] == [
        ("5 of 6 (1 x raised training.hashes)", "6 of 6")
    ]
