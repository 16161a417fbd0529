"""The options of `micro-train`: what they make of the plan, and what is refused in a sentence."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from preflight.cli import drills
from preflight.cli.drills import FAULTS, NUMBER_OF
from preflight.cli.news import news_of
from preflight.cli.options import OPTIONS, TRAIN, Options
from preflight.cli.training import PRESETS, estimate, plan_of
from preflight.errors import UsageError
from preflight.payload.training import plan as payload_plan
from preflight.payload.training import presets
from tests.cli.command import preflight

PAYLOAD = Path(presets.__file__).parent


def test_what_is_not_asked_for_is_left_open() -> None:
    assert plan_of(Options()) == {}


def test_each_option_is_in_the_plan_and_the_payload_knows_it() -> None:
    given = Options(
        preset="cpu-tiny", ranks=4, sharding="fsdp", mesh="2x2", precision="fp32", steps=20,
        batch=2, length=64, accumulation=2, compiled=True, recompute=True, data="/usr",
        folder="/tmp", workers=0, threads=2, seed=7, no_resume=True, interface="lo",
        even_if_busy=True, inject=["kill:1", "nan"], prefetch=4, sweep=["loader=0,2"],
        clip="layer:0.5", kv_heads=2,
    )  # fmt: skip
    plan = plan_of(given)
    assert plan["changes"] == {
        "steps": 20, "batch": 2, "length": 64, "accumulation": 2, "precision": "fp32",
        "kv_heads": 2,
    }  # fmt: skip
    assert plan["inject"] == {"kill": "1", "nan": ""}
    assert plan["sweep"] == {"loader": ["0", "2"]}
    assert (plan["resume"], plan["compiled"], plan["workers"]) == (False, True, 0)
    fields = {one.name for one in dataclasses.fields(payload_plan.Plan)}
    assert set(plan) <= fields
    shape = {one.name for one in dataclasses.fields(presets.Preset)}
    assert set(plan["changes"]) <= shape
    unused = {name for name in TRAIN if not getattr(given, name)} - {"comm_hook", "workers"}
    assert unused == set()


def test_presets_and_faults_are_the_payloads() -> None:
    assert {name: one.steps for name, one in PRESETS.items()} == {
        name: one.steps for name, one in presets.PRESETS.items()
    }
    tree = ast.parse((PAYLOAD / "inject.py").read_text())  # importing it takes torch
    (table,) = (
        node.value for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "FAULTS"
    )  # fmt: skip
    assert tuple(ast.literal_eval(table)) == FAULTS


def test_the_help_names_every_fault() -> None:
    text = OPTIONS["inject"].help
    assert {name for name in FAULTS if name not in text} == set()
    tree = ast.parse((PAYLOAD / "inject.py").read_text())
    sets = {
        getattr(node.targets[0], "id", ""): set(ast.literal_eval(node.value.args[0]))
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    }
    of = {name: {one for one, of in NUMBER_OF.items() if of == name} for name in ("rank", "step")}
    assert of == {"rank": sets["OF_RANK"], "step": sets["OF_STEP"]}
    for table in ("OF_RESUME", "OF_SEVERAL", "OF_REPLICAS"):
        assert set(getattr(drills, table)) == sets[table]


@pytest.mark.parametrize("name", PRESETS)
def test_a_checkpoint_is_as_large_as_told(name: str) -> None:
    one = presets.PRESETS[name]
    each = one.width * (2 * one.width * (1 + one.kv_heads / one.heads) + 3 * one.hidden)
    states = 12 * (one.layers * each + 2 * one.vocabulary * one.width)  # fp32: weights, two moments
    assert PRESETS[name].checkpoint_bytes == pytest.approx(states, rel=0.2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"preset": "gpu-huge"}, "--preset 'gpu-huge' is no choice"),
        ({"precision": "fp8"}, "--precision 'fp8' is no choice"),
        ({"sharding": "zero"}, "--sharding 'zero' is no choice"),
        ({"comm_hook": "fp8"}, "--comm-hook 'fp8' is no choice"),
        ({"ranks": 0}, "--ranks 0 is too small"),
        ({"steps": 3}, "--steps 3 is too small"),
        ({"workers": -1}, "--workers -1 is too small"),
        ({"sharding": "single", "ranks": 2}, "--sharding single is one rank"),
        ({"sharding": "single", "hosts": ["a,b"]}, "--sharding single is one rank"),
        ({"sharding": "fsdp", "comm_hook": "bf16"}, "--comm-hook is of DDP"),
        ({"mesh": "2x2"}, "--mesh says how FSDP shards"),
        ({"mesh": "2by2", "sharding": "fsdp"}, "--mesh '2by2' is no mesh"),
        ({"mesh": "0x2", "sharding": "fsdp"}, "--mesh '0x2' is no mesh"),
        ({"inject": ["gremlin"]}, "--inject 'gremlin' is no fault"),
        ({"inject": ["slow-rank:x"]}, "'x' is no number"),
        ({"inject": ["nan:1", "full-disk:2"]}, "full-disk takes no number"),
        ({"inject": ["kill:2"], "ranks": 2}, "kill:2: there is no rank 2"),
        ({"inject": ["nan:40"], "steps": 40}, "nan:40: there is no step 40"),
        ({"inject": ["nan:"]}, "'' is no number"),
        ({"inject": ["kill:9"]}, "kill:9: there is no rank 9"),
        ({"inject": ["stall:999"], "preset": "cpu-tiny"}, "there is no step 999"),
        ({"inject": ["stall:999"]}, "there is no step 999"),
        ({"inject": ["lost-optimizer"], "no_resume": True}, "nothing is resumed"),
        ({"inject": ["half-checkpoint"], "hosts": ["a,b"]}, "a folder that all of them share"),
        ({"inject": ["slow-rank"], "ranks": 1}, "one rank has no other"),
        ({"inject": ["flip-weight"], "sharding": "fsdp"}, "no other rank holds the same"),
        ({"inject": ["churn"]}, "this machine has none"),
        ({"inject": ["nan"], "precision": "fp16"}, "the scaler of fp16 leaves such a step out"),
        ({"inject": ["bad-batch"], "steps": 24}, "the 10 steps before it"),
        ({"inject": ["bad-batch:4"]}, "the 10 steps before it"),
        ({"sharding": "single", "comm_hook": "bf16"}, "--comm-hook is of DDP"),
        ({"ranks": 1, "comm_hook": "bf16"}, "there is one rank"),
        ({"interface": "nowhere0"}, "this machine has no such interface"),
        ({"folder": "/not/there"}, "--folder /not/there is not there"),
        ({"folder": "/etc/hostname"}, "--folder /etc/hostname is no folder"),
        ({"data": "/not/there"}, "--data /not/there is not there"),
        ({"seed": 1 << 63}, "--seed 9223372036854775808 is too large"),
        ({"threads": 100000}, "--threads 100000 is too large"),
        ({"mesh": "2x4", "sharding": "fsdp", "ranks": 2}, "--mesh 2x4 is of 8 ranks, and there"),
        ({"interface": "eth0; true"}, "is no interface"),
        ({"data": "shards", "hosts": ["a"]}, "--data 'shards' is in the working folder"),
    ],
)
def test_what_cannot_be_is_refused(
    given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drills, "_GPU_SIGNS", ())
    with pytest.raises(UsageError) as raised:
        plan_of(Options(**given))
    assert said in raised.value.what
    assert raised.value.hint


def test_a_fault_that_can_be_seen_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drills, "_GPU_SIGNS", ())
    on_two = [one for one in FAULTS if one not in drills.ON_GPUS]
    assert set(plan_of(Options(ranks=2, inject=on_two))["inject"]) == set(on_two)
    mesh = Options(sharding="fsdp", ranks=4, mesh="2x2", inject=["flip-weight"])
    assert plan_of(mesh)["inject"] == {"flip-weight": ""}
    # What another machine has is known there.
    assert plan_of(Options(hosts=["a,b"], inject=["churn", "kill:9"]))


def test_where_there_may_be_a_gpu_the_host_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(drills, "_GPU_SIGNS", (f"{tmp_path.relative_to('/')}/nvidia[0-9]*",))
    assert plan_of(Options(inject=["churn", "kill:5", "stall:999"]))


def test_a_folder_of_this_machine_is_found_from_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shards").mkdir()
    assert plan_of(Options(data="shards"))["data"] == str(tmp_path / "shards")


def test_a_wrong_option_ends_the_command_before_it_begins() -> None:
    ran = preflight("micro-train", "--preset", "gpu-huge")
    assert (ran.rc, ran.out) == (2, "")
    assert ran.err.startswith("error: --preset 'gpu-huge' is no choice\nhint: one of cpu-tiny")


def test_the_time_and_the_bytes_are_told_before() -> None:
    assert estimate({"preset": "gpu-small", "folder": "/scratch"}) == (
        "gpu-small about 60 s and 3.35 GiB in /scratch, removed"
    )
    assert "or on GPUs gpu-small" in estimate({})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"kind":"step","launch":"whole","step":4,"loss":2.3456}', "training: step 4, loss 2.346"),
        ('{"kind":"begin","plan":{"preset":"cpu-tiny"}}', "cpu-tiny: the ranks start"),
        ('{"kind":"killed","rank":1}', "rank 1 was killed; resuming"),
        ('{"kind":"step","step":"x","loss":null}', ""),
        ('{"kind":"memory"}', ""),
        ("half a li", ""),
        ("[1]", ""),
    ],
)  # fmt: skip
def test_a_line_as_news(line: str, said: str) -> None:
    assert news_of("micro-train", line) == said
