"""`micro-train --sweep`: one live, tiny; what is refused; what is shown of a recorded one."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from preflight.cli import drills, sweeps, training
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
    from preflight.payload.training.sweeps import AXES as OF_PAYLOAD

    assert list(AXES) == list(OF_PAYLOAD)


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


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("batch=0", "'0' is no value"), ("batch=-1", "'-1' is no value"),
        ("batch=1.5", "'1.5' is no value"), ("clip=abc", "'abc' is no value"),
        ("clip=none,global", "'global' is no value"), ("comm-hook=foo", "'foo' is no value"),
        ("loader=abc", "'abc' is no value"), ("loader=2x", "'2x' is no value"),
        ("recompute=yes", "'yes' is no value"), ("recompute=3/2", "3/2 is more than all"),
        ("recompute=1.5", "'1.5' is no value"), ("length=4", "4 is too short"),
        ("kv-heads=3", "3 does not divide the 4 heads of cpu-tiny"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_are_refused_before_anything_is_asked(asked: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        plan_of(Options(sweep=[asked], preset="cpu-tiny"))
    assert refused.value.hint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sweep": ["scaling=9999"]}, "9999 devices are more than this machine has"),
        ({"sweep": ["scaling"], "ranks": 1}, "compares several ranks, and there is one"),
        ({"sweep": ["comm-hook=topk"], "ranks": 1}, "compares several ranks, and there is one"),
        ({"sweep": ["comm-hook"], "sharding": "fsdp"}, "is of DDP, and --sharding is fsdp"),
        ({"sweep": ["comm-hook=bf16"]}, "bf16 for NCCL only"),
        ({"comm_hook": "bf16", "ranks": 2}, "bf16 for NCCL only"),
        ({"kv_heads": 3}, "3 does not divide the 4 heads"),
        ({"sweep": ["batch"], "inject": ["flip-weight"]}, "a sweep judges no run"),
        ({"sweep": ["batch"], "inject": ["slow-loader"]}, "a sweep judges no run"),
    ],
)
def test_what_can_never_be_swept_on_processors_is_refused(
    given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (drills, sweeps, training):
        monkeypatch.setattr(module, "has_no_gpu", lambda options: not options.hosts)
    with pytest.raises(UsageError, match=said):
        plan_of(Options(**given))
    elsewhere = Options(**given, hosts=["a"])
    if "scaling=9999" in given.get("sweep", ()) or "bf16" in said or "heads" in said:
        assert plan_of(elsewhere)


def test_a_fault_that_a_sweep_shows_may_be_put_in() -> None:
    assert plan_of(Options(sweep=["loader"], inject=["slow-loader:20"]))["inject"]
    assert plan_of(Options(sweep=["batch"], inject=["kill", "stop"]))["inject"]


def test_heads_are_the_payloads() -> None:
    pytest.importorskip("torch")
    from preflight.payload.training.presets import PRESETS

    assert {name: one.heads for name, one in PRESETS.items()} == sweeps.HEADS


@pytest.mark.parametrize("axis", AXES)
def test_each_axis_has_values_that_it_takes_and_a_time(axis: str) -> None:
    one = AXES[axis]
    plan = plan_of(Options(sweep=[f"{axis}={one.example}"], hosts=["a"]))
    assert plan["sweep"][axis] == one.example.split(",")
    longer = {**plan, "changes": {"steps": 1000}}
    assert 9 < sweeps.seconds(plan) < sweeps.seconds(longer)


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
