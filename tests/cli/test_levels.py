"""A recording is judged for all that it holds, whatever the level that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.assemble.asked import NO_TRAINING
from preflight.cli import hints as next_steps
from preflight.cli.levels import as_recorded
from preflight.cli.options import Options
from preflight.cli.plan import Plan, Question
from preflight.model import NOT_IN_INPUT, HostReport, Result, Status
from tests.cli.command import preflight

SAMPLES = Path(__file__).parent.parent / "samples"
BEYOND = frozenset({"training.finite", "training.replicas"})


def _of(*results: tuple[str, Status, str]) -> list[Result]:
    return [Result(check, "host", status, reason=reason) for check, status, reason in results]


def test_a_recorded_run_that_failed_fails_at_the_level_quick() -> None:
    sample = SAMPLES / "micro_train" / "injected_nan.jsonl"
    told = preflight("run", "--from", str(sample))
    assert told.rc == 1, told.err
    assert "training.finite" in told.out


def test_what_was_not_recorded_is_not_counted() -> None:
    found = _of(
        ("gpu.present", Status.PASS, ""),
        ("training.finite", Status.SKIP, NOT_IN_INPUT.text),
        ("training.replicas", Status.SKIP, NO_TRAINING.text),
    )
    assert [one.check for one in as_recorded(found, BEYOND)] == ["gpu.present"]


def test_a_recorded_run_is_whole_with_its_skips() -> None:
    found = _of(
        ("training.finite", Status.PASS, ""),
        ("training.replicas", Status.SKIP, NOT_IN_INPUT.text),
    )
    assert as_recorded(found, BEYOND) == found
    busy = _of(("training.finite", Status.SKIP, "GPU 3 holds process 4711"))
    assert as_recorded(busy, BEYOND) == busy


def test_what_is_chosen_above_the_level_is_told_how_to_be_judged() -> None:
    told = preflight("run", "--only", "training.*")
    again = "preflight run --level standard --only 'training.*'"
    assert (told.rc, told.out.count("next")) == (3, 1)
    assert again in told.out


def test_a_bound_is_set_by_the_name_of_its_check() -> None:
    sample = str(SAMPLES / "micro_train" / "cpu_ddp_x2.jsonl")
    told = preflight("micro-train", "--from", sample, "--set", "training_behind=5")
    assert (told.rc, told.err.splitlines()[1]) == (2, "hint: --set training.straggler=VALUE")
    assert (
        "instead    --set training.straggler=VALUE"
        in preflight("explain", "training.straggler").out
    )


@pytest.mark.parametrize(("status", "told"), [(Status.PASS, True), (Status.SKIP, False)])
def test_hosts_that_trained_each_by_itself_say_so(status: Status, told: bool) -> None:
    result = Result("training.finite", "n", status)
    hosts = [HostReport(name, status, results=(result,)) for name in ("a", "b")]

    def hints(question: Question) -> list[str]:
        return list(next_steps.hints(question, Plan([], [], ()), Options(level="standard"), hosts))

    assert (next_steps.EACH_ALONE_HINT in hints(Question("run", ()))) is told
    assert next_steps.EACH_ALONE_HINT not in hints(Question("micro-train", (), trains={}))
    swept = Question("micro-train", (), trains={"sweep": {"comm-hook": []}})
    assert (next_steps.SWEPT_ALONE_HINT in hints(swept)) is told
    assert next_steps.SWEPT_ALONE_HINT not in hints(Question("micro-train", (), trains={}))


def test_a_python_that_is_named_and_not_there_is_no_pass() -> None:
    args = ("run", "--level", "standard", "--only", "training.*", "--only", "system.sysctl.*")
    told = preflight(*args, "--python", "no-such-python")
    assert (told.rc, "no-such-python is not installed" in told.out) == (3, True), told.out
