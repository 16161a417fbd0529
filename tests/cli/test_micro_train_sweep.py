"""`micro-train --sweep`: one live, tiny; what is refused; what is shown of a recorded one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from preflight.cli.news import news_of
from preflight.cli.options import Options
from preflight.cli.sweeps import AXES
from preflight.cli.training import estimate, plan_of
from preflight.errors import UsageError
from tests.cli.command import preflight
from tests.conftest import require
from tests.training_lines import swept

SAMPLE = Path(__file__).resolve().parents[1] / "samples/micro_train/sweep_loader.jsonl"


def test_the_axes_are_the_payloads() -> None:
    pytest.importorskip("torch")
    from preflight.payload.training import sweeps

    assert list(AXES) == list(sweeps.AXES)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["speed"], "--sweep 'speed' is no axis"),
        (["loader", "loader=1"], "there twice"),
        (["loader="], "are no values"),
        (["batch=1,,2"], "are no values"),
        (["batch=$(x)"], "are no values"),
    ],
)
def test_what_is_no_sweep_is_refused(asked: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("$", r"\$")):
        plan_of(Options(sweep=asked))


def test_values_travel_as_they_are() -> None:
    plan = plan_of(Options(sweep=["loader=0,4x2", "clip=none,global:0.5", "length"]))
    assert plan["sweep"] == {"loader": ["0", "4x2"], "clip": ["none", "global:0.5"], "length": []}
    assert "for the sweep" in estimate(plan)


@pytest.mark.parametrize("asked", ["hard", "global:0", "quantile:1", "layer:-1", "global"])
def test_a_policy_that_is_none_is_refused(asked: str) -> None:
    with pytest.raises(UsageError, match="no policy"):
        plan_of(Options(clip=asked))


def test_news_of_a_sweep() -> None:
    told = [news_of("micro-train", line) for line in swept().splitlines()]
    assert "scaling, 1 device: 995 tokens/s" in told
    assert news_of(
        "micro-train", '{"kind":"setting","axis":"batch","setting":"batch 8","limit":"full"}'
    ) == ("batch, batch 8: full")


def test_a_table_for_each_axis_and_what_to_type() -> None:
    ran = preflight("micro-train", "--from", str(SAMPLE), "--format", "json")
    assert ran.rc == 0
    (table,) = json.loads(ran.out)["measurements"]
    assert table["table"] == "sweep: loader"
    assert table["notes"][0].startswith("--workers 4 --prefetch 2 (DataLoader: num_workers=4")
    assert table["numbers"]["workers 0: tokens_per_s"] > 0


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_the_advice_is_in_what_people_read(form: str) -> None:
    ran = preflight("micro-train", "--from", str(SAMPLE), "--format", form)
    assert "take this" in ran.out
    assert "workers 4" in ran.out.replace("\\", "")


def test_a_loader_sweep_here(tmp_path: Path) -> None:
    require("torch", importlib.util.find_spec("torch") is not None)
    ran = preflight(
        "micro-train", "--sweep", "loader=0,1x2", "--ranks", "1", "--steps", "12", "--length", "16",
        "--batch", "2", "--python", sys.executable, "--format", "json",
        PREFLIGHT_LOCK=str(tmp_path / "lock"), TMPDIR=str(tmp_path),
    )  # fmt: skip
    assert ran.rc == 0, ran.out + ran.err
    report = json.loads(ran.out)
    (result,) = [one for one in report["hosts"][0]["results"] if one["check"] == "training.sweep"]
    assert (result["status"], result["subject"]) == ("PASS", "loader")
    (table,) = report["measurements"]
    assert [row["n"] for row in table["rows"]] == ["3", "3"]
    assert [row[""] for row in table["rows"]][1].startswith("now")
    assert not list(tmp_path.glob(".preflight-*"))


def test_a_fault_in_every_setting_is_told(tmp_path: Path) -> None:
    require("torch", importlib.util.find_spec("torch") is not None)
    ran = preflight(
        "micro-train", "--sweep", "batch=1,2", "--ranks", "1", "--steps", "12", "--length", "16",
        "--inject", "kill", "--python", sys.executable,
        PREFLIGHT_LOCK=str(tmp_path / "lock"), TMPDIR=str(tmp_path),
    )  # fmt: skip
    assert ran.rc == 1
    assert "batch 1: rank 0 ended with -9 (SIGKILL" in " ".join(ran.out.split())
