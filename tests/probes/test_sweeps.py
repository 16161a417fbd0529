"""Lines of a sweep as facts: rounds, limits, failures, scaling; whatever is cut or odd."""

from __future__ import annotations

import json

import pytest

from preflight.errors import ParseError
from preflight.facts.sweeps import Rounds, Sweep
from preflight.facts.training import Training
from preflight.model import Known, Missing
from preflight.probes.training.run import training
from tests.conftest import sample
from tests.training_lines import swept, text


def sweeps(told: Training) -> dict[str, Sweep]:
    assert not isinstance(told.sweeps, Missing)
    return {one.name: one for one in told.sweeps}


def test_rounds_of_a_setting_are_one() -> None:
    found = sweeps(training(swept()))
    assert list(found) == ["scaling", "loader"]
    first = found["loader"].settings[0]
    assert first.name == "workers 0, pinned"
    assert first.values == {"workers": 0, "prefetch": 0, "pin": True}
    assert first.tokens_per_s == Rounds(3, 800.0, 796.0, 800.0)
    assert first.steps == 45
    assert [one.base for one in found["loader"].settings] == [False, True, False]


def test_of_a_sweep_no_run_is_judged() -> None:
    told = training(swept())
    assert isinstance(told.ranks, Missing)
    assert told.ranks.kind == "not-asked"
    assert "--sweep" in told.ranks.text
    assert told.device == "cuda"


def test_a_run_without_a_sweep_says_how_to_get_one() -> None:
    told = training(text())
    assert isinstance(told.sweeps, Missing)
    assert told.sweeps.kind == "not-asked"
    assert told.scaling == told.sweeps


def test_scaling_names_the_part_that_grew() -> None:
    told = training(swept().replace('"tokens_per_s":3760.0', '"tokens_per_s":2000.0'))
    assert not isinstance(told.scaling, Missing)
    assert [(one.name, one.efficiency) for one in told.scaling] == [
        ("2 devices", 0.97), ("4 devices", 0.5),
    ]  # fmt: skip
    assert "communication is 12 % of the step, with 1 device 6 %" in told.scaling[-1].when


def test_scaling_over_processors_is_not_judged() -> None:
    told = training(swept().replace('"device":"cuda"', '"device":"cpu"'))
    assert isinstance(told.scaling, Missing)
    assert told.scaling.kind == "not-applicable"


def test_a_limit_is_an_answer_and_a_failure_is_named() -> None:
    lines = swept().splitlines()
    about = {"kind": "setting", "axis": "loader", "values": {}, "round": 0}
    limit = json.dumps({**about, "setting": "a", "limit": "out of memory: tried 2 GiB"})
    failed = json.dumps({**about, "setting": "b", "failed": "rank 1 ended with -9"})
    told = training("\n".join([*lines, limit, failed, ""]))
    assert sweeps(told)["loader"].broken == ("b: rank 1 ended with -9",)


def limited(limit: str, *names: str, met: bool = False) -> Known[tuple[str, ...]]:
    """What is broken of the loader's sweep where settings with these names end at a limit."""
    begin, *rest = (json.loads(one) for one in swept().splitlines())
    kept = [
        {**one, "limit": limit, "met": met, "tokens_per_s": None}
        if str(one.get("setting", "")).startswith(names)
        else one
        for one in rest
    ]
    told = training("\n".join([*map(json.dumps, [begin, *kept]), ""]))
    return sweeps(told)["loader"].broken


def test_where_no_setting_was_trained_nothing_passes() -> None:
    broken = limited("out of memory", "workers", met=True)
    assert isinstance(broken, Missing)
    assert broken.kind == "exited"
    assert "no setting could be trained; workers 0, pinned: out of memory" in broken.text


def test_one_setting_alone_is_nothing_to_compare_unless_a_limit_was_met() -> None:
    two = ("workers 0", "workers 2")
    broken = limited("it takes 2 TiB", *two)
    assert isinstance(broken, Missing)
    assert "only workers 1, pinned was trained; workers 0, pinned: it takes 2 TiB" in broken.text
    assert limited("out of memory", *two, met=True) == ()
    assert limited("it takes 2 TiB", "workers 2") == ()


def test_where_all_settings_fail_each_is_named() -> None:
    lines = [json.loads(one) for one in swept().splitlines()]
    for one in lines:
        if one["kind"] == "setting":
            one.pop("tokens_per_s")
            one["failed"] = "rank 0 ended with -9"
    broken = sweeps(training("\n".join([*map(json.dumps, lines), ""])))["loader"].broken
    assert not isinstance(broken, Missing)
    assert len(broken) == 3


def test_a_sweep_that_told_nothing_is_unknown() -> None:
    begin = swept().splitlines()[0]
    broken = sweeps(training(f"{begin}\n"))["loader"].broken
    assert isinstance(broken, Missing)
    half = "\n".join(swept().splitlines()[:12])
    broken = sweeps(training(f"{half}\n"))["scaling"].broken
    assert isinstance(broken, Missing)  # unknown never passes
    interrupted = training(f'{begin}\n{{"kind":"interrupted"}}\n')
    broken = sweeps(interrupted)["loader"].broken
    assert isinstance(broken, Missing)
    assert interrupted.interrupted


@pytest.mark.parametrize("at", range(0, 4000, 97))
def test_text_that_is_cut_anywhere_is_read_or_refused(at: int) -> None:
    try:
        told = training(swept()[:at])
    except ParseError:
        return
    for one in sweeps(told).values():
        assert one.settings or isinstance(one.broken, Missing)


@pytest.mark.parametrize("odd", ["NaN", "null", '"many"', "-1e999", "[]"])
def test_odd_numbers_are_none(odd: str) -> None:
    for name in ("tokens_per_s", "step_s", "peak_bytes", "steps"):
        old = json.loads(swept().splitlines()[1])[name]
        training(swept().replace(f'"{name}":{json.dumps(old)}', f'"{name}":{odd}'))


def test_a_recorded_sweep() -> None:
    told = training(sample("micro_train/sweep_loader.jsonl"))
    (found,) = sweeps(told).values()
    assert [one.name for one in found.settings if one.base] == ["workers 1, prefetch 2"]
    assert found.broken == ()
