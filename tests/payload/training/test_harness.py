"""Whole runs, small: what they tell, and that a resumed one goes on as if nothing had happened."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from preflight.payload.group.join import Place
from preflight.payload.training import cannot, layout, model
from preflight.payload.training.harness import settled
from preflight.payload.training.plan import Plan
from preflight.payload.training.presets import chosen
from tests.payload.training.runs import TINY, Line, losses, of, told


@pytest.fixture(scope="module", params=["ddp", "fsdp"])
def run(request: pytest.FixtureRequest) -> list[Line]:
    """Two ranks: a whole run, one that is killed in a save, one that resumes."""
    return told(ranks=2, sharding=request.param, workers=1)


def test_everything_is_told_and_nothing_failed(run: list[Line]) -> None:
    assert run[0]["preflight"] == "micro-train/1"
    assert [one["launch"] for one in of(run, "launched")] == ["whole", "killed", "resumed"]
    assert not of(run, "failed") + of(run, "died") + of(run, "silent") + of(run, "cannot")
    assert run[-1]["kind"] == "end"
    assert len(losses(run, "whole")) == TINY["steps"]


def test_the_run_begins_at_chance(run: list[Line]) -> None:
    assert abs(losses(run, "whole")[0] - math.log(TINY["vocabulary"])) < 0.5


def test_parts_of_a_step_are_all_of_it(run: list[Line]) -> None:
    for one in of(run, "step"):
        assert min(one["seconds"].values()) >= 0.0
        assert sum(one["seconds"].values()) > 0.0


def test_a_resumed_run_is_the_whole_one_bit_for_bit(run: list[Line]) -> None:
    whole, resumed = losses(run, "whole"), losses(run, "resumed")
    assert len(resumed) == TINY["steps"] // 2
    assert resumed == {step: whole[step] for step in resumed}
    for rank in (0, 1):
        read = {one["step"]: one["samples"] for one in of(run, "step", launch="whole", rank=rank)}
        for one in of(run, "step", launch="resumed", rank=rank):
            assert one["samples"] == read[one["step"]]
        ends = {one["launch"]: one["digest"] for one in of(run, "done", rank=rank)}
        assert ends["whole"] == ends["resumed"]


def test_what_is_loaded_is_what_was_saved(run: list[Line]) -> None:
    for back in of(run, "resumed"):
        saved = of(run, "saved", launch="whole", rank=back["rank"], step_at=back["step_from"])
        assert [one["digest"] for one in saved] == [back["digest"]]
        assert not back["wrong"]


def test_the_kill_met_a_save(run: list[Line]) -> None:
    (killed,) = of(run, "killed")
    assert any(name.startswith("step-00000009") for name in killed["left"])


def test_norms_by_layer_add_up_to_the_norm(run: list[Line]) -> None:
    looked = of(run, "norms", launch="whole", rank=0)
    assert [one["step"] for one in looked] == [0, 10]
    for one in looked:
        (step,) = of(run, "step", launch="whole", rank=0, step=one["step"])
        assert set(one["layers"]) == {"embedding", "blocks.0", "norm", "head"}
        assert math.sqrt(sum(each**2 for each in one["layers"].values())) == pytest.approx(
            step["norm"], rel=1e-4
        )


def test_what_is_measured_beside_the_steps(run: list[Line]) -> None:
    for rank in (0, 1):
        (alone,) = of(run, "loader_alone", rank=rank)
        assert alone["tokens_per_s"] > 0
        (pauses,) = of(run, "gc", rank=rank, launch="whole")
        assert 0 <= pauses["longest_s"] <= pauses["seconds"]
        (memory,) = of(run, "memory", rank=rank, launch="whole")
        assert memory["optimizer_bytes"] >= 2 * memory["weights_bytes"]


def test_proofs_hold(run: list[Line]) -> None:
    for one in of(run, "proof", name="accumulation") + of(run, "proof", name="attention"):
        assert one["loss"] < 1e-5
        assert one["gradient"] < 1e-4
        assert one["norm_ratio"] == pytest.approx(1.0, abs=1e-4)
    hashes = {tuple(each) for one in of(run, "proof", name="repeated") for each in one["hashes"]}
    assert len(hashes) == 1
    for one in of(run, "proof", name="membership"):
        assert one["trained"] > 0
        assert not one["missing"] + one["foreign"] + one["repeated"]


def test_the_loss_falls_to_the_floor() -> None:
    changes = {"steps": 100, "batch": 8, "vocabulary": 16, "learning_rate": 1e-2}
    run = told(ranks=1, resume=False, workers=0, changes=changes)
    found = losses(run, "whole")
    last = sum(found[step] for step in range(90, 100)) / 10
    assert run[0]["floor_nats"] == pytest.approx(math.log(4))
    assert run[0]["floor_nats"] - 0.05 < last < run[0]["floor_nats"] + 0.25


@pytest.mark.parametrize(
    "asked",
    [
        {"ranks": 2, "comm_hook": "fp16"},
        {"ranks": 2, "changes": {"accumulation": 2}},
        {"ranks": 1, "recompute": True, "changes": {"precision": "bf16"}},
    ],
)
def test_each_way_trains(asked: dict[str, Any]) -> None:
    run = told(resume=False, workers=0, **asked)
    assert not of(run, "failed") + of(run, "died")
    found = losses(run, "whole")
    assert len(found) == TINY["steps"]
    assert found[11] < found[0]


def test_replicas_of_pieces_are_looked_at() -> None:
    """Of two replicas in two pieces each; a bit of the last rank's is turned at step 4."""
    run = told(ranks=4, sharding="fsdp", mesh="2x2", resume=False, workers=0,
               inject={"flip-weight": ""})  # fmt: skip
    assert not of(run, "failed") + of(run, "died")
    found = losses(run, "whole")
    assert found[11] < found[0]
    digests = {one["rank"]: one["digest"] for one in of(run, "replica", step_at=10)}
    assert digests[0] == digests[2]
    assert len(set(digests.values())) == 3


def test_ways_that_change_nothing_give_the_same_losses() -> None:
    plain = losses(told(ranks=1, resume=False, workers=0), "whole")
    again = losses(told(ranks=1, resume=False, workers=0, recompute=True), "whole")
    twice = losses(told(ranks=2, resume=False, workers=1, changes={"batch": 4}), "whole")
    assert again == plain
    assert [twice[step] for step in plain] == pytest.approx(list(plain.values()), abs=1e-4)


def test_a_loss_scale_that_falls_is_told() -> None:
    run = told(ranks=1, resume=False, workers=0, inject={"nan": "4"}, changes={"precision": "fp16"})
    (change,) = of(run, "scale")
    assert (change["step"], change["from"], change["to"]) == (4, 65536.0, 32768.0)
    assert [one["step"] for one in of(run, "step") if one["skipped"]] == [4]


def test_nothing_stays_in_the_folder(tmp_path: Path) -> None:
    told(ranks=1, folder=str(tmp_path), workers=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("grouped", "norm"), [(True, False), (False, False)])
def test_older_torch_gives_the_same_model(
    grouped: bool, norm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.4 has no attention that shares heads, 2.3 no norm."""
    shape = chosen("cpu-tiny", layers=1)
    place = Place(0, 1, 0, torch.device("cpu"))
    ids = torch.arange(2 * shape.length).view(2, -1) % shape.vocabulary
    now = layout.built(shape, place, seed=1)(ids, ids.flip(1))
    monkeypatch.setattr(model, "_GROUPED", grouped)
    monkeypatch.setattr(model, "_HAS_RMS_NORM", norm)
    then = layout.built(shape, place, seed=1)(ids, ids.flip(1))
    assert then.item() == pytest.approx(now.item(), rel=1e-6)


@pytest.mark.parametrize(
    ("version", "asked", "text"),
    [
        ("2.5.1+cu121", {"sharding": "fsdp"}, "FSDP2 needs torch 2.6 or later, and this is 2.5.1"),
        ("2.5.1", {}, ""),
        ("2.3.0", {"ranks": 1, "sharding": "single"}, ""),
        ("2.2.2+cu118", {}, "torch 2.3 or later is needed, and this is 2.2.2+cu118: --python"),
    ],
)
def test_what_an_older_torch_can(
    version: str, asked: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    plan = Plan(device="cpu", preset="cpu-tiny", **{"ranks": 2, **asked})
    found = cannot.reason(plan, chosen("cpu-tiny"), [])
    assert found.startswith(text)
    assert bool(found) == bool(text)


@pytest.mark.parametrize("gpus", [0, 8])
def test_what_is_single_is_one_rank(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    found = settled(Plan(sharding="single"))
    assert (found.ranks, found.sharding) == (1, "single")
    assert settled(Plan(ranks=1, sharding="fsdp")).sharding == "single"
