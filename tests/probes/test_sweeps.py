"""Lines of a sweep as facts: rounds, limits, failures, scaling; whatever is cut or odd."""

from __future__ import annotations

import json

import pytest

from preflight.errors import ParseError
from preflight.facts.sweeps import Rounds, Sweep
from preflight.facts.training import Training
from preflight.model import Missing
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


def test_where_no_setting_was_trained_nothing_passes() -> None:
    begin, *rest = swept().splitlines()
    lines = [json.loads(one) for one in rest]
    for one in lines:
        one.pop("tokens_per_s", None)
        one |= {"limit": "out of memory"} if one["kind"] == "setting" else {}
    told = training("\n".join([begin, *map(json.dumps, lines), ""]))
    broken = sweeps(told)["loader"].broken
    assert isinstance(broken, Missing)
    assert broken.kind == "exited"
    assert "out of memory" in broken.text


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
