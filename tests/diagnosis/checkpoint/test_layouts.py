"""How frameworks lay checkpoints out: a whole one of each, and one that lacks a part."""

from __future__ import annotations

import json
import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp

from preflight.diagnosis.checkpoint.layouts import flaw_table, layouts, matches
from tests.checkpoint_files import cut, names, save_safetensors, save_trainer, state, verified


def save(what: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(what, path)


def save_dcp(what: dict[str, Any], folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(what, checkpoint_id=folder, no_dist=True)


def parts() -> tuple[Any, Any]:
    whole = state()
    return whole["model"], whole["optimizer"]


def trainer(run: Path, step: int = 100) -> Path:
    save_trainer(run / f"checkpoint-{step}", step)
    return run / f"checkpoint-{step}" / "model-00002-of-00002.safetensors"


def trainer_with_deepspeed(run: Path) -> Path:
    folder = run / "checkpoint-10"
    save_trainer(folder, 10)
    (folder / "optimizer.pt").unlink()
    (folder / "scheduler.pt").unlink()
    return deepspeed(folder, 10)


def deepspeed(run: Path, step: int = 100) -> Path:
    model, _ = parts()
    folder = run / f"global_step{step}"
    save({"module": model, "lr_scheduler": {"last": 1}, "dp_world_size": 3, "mp_world_size": 1},
         folder / "mp_rank_00_model_states.pt")  # fmt: skip
    for rank in range(3):
        path = folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        save({"optimizer_state_dict": {"flat": torch.randn(100)}}, path)
    (run / "latest").write_text(f"global_step{step}")
    return path


def deepspeed_stage_3(run: Path) -> Path:
    for rank in range(2):
        folder = run / "global_step5"
        save({"module": {}, "dp_world_size": 2, "mp_world_size": 1},
             folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt")  # fmt: skip
        save({"optimizer_state_dict": {"flat": torch.randn(100)}},
             folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")  # fmt: skip
    return folder / "zero_pp_rank_1_mp_rank_00_model_states.pt"


def megatron(run: Path, step: int = 100) -> Path:
    model, optimizer = parts()
    for tp in range(2):
        for pp in range(2):
            path = run / f"iter_{step:07d}" / f"mp_rank_{tp:02d}_{pp:03d}" / "model_optim_rng.pt"
            save({"model": model, "optimizer": optimizer, "opt_param_scheduler": {"lr": 1.0},
                  "rng_state": [1], "iteration": step}, path)  # fmt: skip
    (run / "latest_checkpointed_iteration.txt").write_text(str(step))
    return run / f"iter_{step:07d}" / "mp_rank_00_001" / "model_optim_rng.pt"


def megatron_dist(run: Path) -> Path:
    model, optimizer = parts()
    folder = run / "iter_0000100"
    save_dcp({"model": model, "optimizer": {"state": optimizer["state"]}}, folder)
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    save({"opt_param_scheduler": {"lr": 1.0}, "rng_state": [1]}, folder / "common.pt")
    (run / "latest_checkpointed_iteration.txt").write_text("100")
    return folder / ".metadata"


def olmo_core(run: Path) -> Path:
    model, optimizer = parts()
    folder = run / "step50"
    save_dcp({"model": model, "optim": optimizer["state"]}, folder / "model_and_optim")
    for rank in range(3):
        save({"rng": torch.get_rng_state()}, folder / "train" / f"rank{rank}.pt")
    (folder / ".metadata.json").write_text("{}")
    return folder / "train" / "rank1.pt"


def nanotron(run: Path) -> Path:
    folder = run / "10"
    for rank in range(2):
        name = f"model_weight_pp-rank-0-of-1_tp-rank-{rank}-of-2.safetensors"
        path = save_safetensors(folder / "model" / "decoder" / name, {"data": torch.randn(8, 8)})
    for name in ("optimizer", "lr_scheduler", "random"):
        save({"state": torch.ones(2)}, folder / name / f"{name}_0.pt")
    (folder / "checkpoint_metadata.json").write_text("{}")
    (run / "latest.txt").write_text("10")
    return path


def composer(run: Path) -> Path:
    model, optimizer = parts()
    for rank in range(3):
        path = run / f"ep0-ba100-rank{rank}.pt"
        save({"state": {"model": model, "optimizers": optimizer}, "rng": [1]}, path)
    (run / "latest-rank0.pt.symlink").write_text("ep0-ba100-rank0.pt")
    return run / "ep0-ba100-rank1.pt"


def metaseq(run: Path) -> Path:
    model, optimizer = parts()
    for part in range(2):
        for shard in range(2):
            path = run / f"checkpoint_23_22750-model_part-{part}-shard{shard}.pt"
            save({"model": model, "last_optimizer_state": optimizer}, path)
    return run / "checkpoint_23_22750-model_part-1-shard0.pt"


def accelerate(run: Path) -> Path:
    model, optimizer = parts()
    folder = run / "checkpoint_3"
    save_safetensors(folder / "model.safetensors", model)
    save(optimizer, folder / "optimizer.bin")
    for rank in range(3):
        path = folder / f"random_states_{rank}.pkl"
        path.write_bytes(pickle.dumps({"python": random.getstate()}))
    return folder / "random_states_1.pkl"


def colossal_ai(run: Path) -> Path:
    folder = run / "epoch-0_step-300"
    for part in (1, 2):
        save(parts()[0], folder / "modeling" / f"pytorch_model-{part:05d}-of-00002.bin")
        path = folder / "optimizer" / f"pytorch_optim-{part:05d}-of-00002.bin"
        save(parts()[1], path)
    save({"last": 1}, folder / "lr_scheduler")
    (folder / "running_states.json").write_text("{}")
    return path


#: Saves a whole checkpoint into a run, and gives a file of which the loss makes it incomplete.
LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "hf-trainer": trainer, "hf-trainer, deepspeed": trainer_with_deepspeed,
    "deepspeed": deepspeed, "deepspeed, stage 3": deepspeed_stage_3,
    "megatron-legacy": megatron, "megatron-dist": megatron_dist, "olmo-core": olmo_core,
    "nanotron": nanotron, "composer": composer, "metaseq": metaseq, "accelerate": accelerate,
    "colossal-ai": colossal_ai,
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_whole_one_is_resumable_and_one_that_lost_a_file_is_not(
    tmp_path: Path, layout: str
) -> None:
    lost = LAYOUTS[layout](tmp_path)
    found = verified(tmp_path)
    assert names(found) == ["resumable"]
    assert [one.finding for one in found.findings] == ["checkpoint.resumable"]
    known = found.judged[0].found.layout
    assert known is not None
    assert known.id == layout.partition(",")[0]
    itself = found.judged[0].found.shown
    assert verified(tmp_path if "*" in itself else Path(itself)).judged[0].can_resume
    lost.unlink()
    broken = verified(tmp_path)
    assert names(broken) == ["incomplete"]
    assert lost.name in broken.findings[0].text
    assert broken.hints == ("nothing here can be resumed from",)


def test_the_steps_of_each_are_told(tmp_path: Path) -> None:
    for name, saves in LAYOUTS.items():
        saves(tmp_path / name)
    steps = {one.found.path.partition("/")[0]: one.found.step for one in verified(tmp_path).judged}
    assert steps == {
        "hf-trainer": 100, "hf-trainer, deepspeed": 10, "deepspeed": 100, "deepspeed, stage 3": 5,
        "megatron-legacy": 100, "megatron-dist": 100, "olmo-core": 50, "nanotron": 10,
        "composer": 100, "metaseq": 22750, "accelerate": 3,
        "colossal-ai": 300,
    }  # fmt: skip


def test_lightning_with_an_optimizer_and_without(tmp_path: Path) -> None:
    model, optimizer = parts()
    save({"state_dict": model, "optimizer_states": [optimizer], "lr_schedulers": [{"a": 1}],
          "loops": {"fit": 1}}, tmp_path / "epoch=1-step=100.ckpt")  # fmt: skip
    save({"state_dict": model, "optimizer_states": []}, tmp_path / "epoch=2-step=200.ckpt")
    (tmp_path / "last.ckpt").symlink_to("epoch=2-step=200.ckpt")
    found = verified(tmp_path)
    assert names(found) == ["weights-only", "resumable"]
    assert found.findings[0].status.value == "WARN"
    assert "epoch=1-step=100.ckpt (step 100)" in found.hints[0]


def test_a_model_of_a_hub_is_weights_alone(tmp_path: Path) -> None:
    save_safetensors(tmp_path / "model.safetensors", parts()[0])
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 40}))
    (tmp_path / "README.md").write_text("")
    assert names(verified(tmp_path)) == ["weights-only"]


def test_without_scheduler_or_random_states_it_is_said_what_starts_anew(tmp_path: Path) -> None:
    trainer(tmp_path)
    (tmp_path / "checkpoint-100" / "scheduler.pt").unlink()
    finding = verified(tmp_path).findings[0]
    assert (finding.finding, finding.status.value) == ("checkpoint.partly", "WARN")
    assert "without the scheduler's state" in finding.text


def test_links_within_a_cache_lead_to_the_files(tmp_path: Path) -> None:
    """As huggingface_hub keeps a model: names are links to files called after their content."""
    blobs, shown = tmp_path / "blobs", tmp_path / "snapshots" / "1a2b"
    blobs.mkdir()
    shown.mkdir(parents=True)
    save_safetensors(blobs / "c0ffee", {"a.w": torch.randn(9, 9)})
    save_safetensors(blobs / "decade", {"b.w": torch.randn(9, 9)})
    for at, blob in enumerate(("c0ffee", "decade"), 1):
        (shown / f"model-{at:05d}-of-00002.safetensors").symlink_to(f"../../blobs/{blob}")
    listed = {"a.w": "model-00001-of-00002.safetensors", "b.w": "model-00002-of-00002.safetensors"}
    (shown / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    assert names(verified(tmp_path)) == ["weights-only"]
    assert names(verified(shown)) == ["unknown"]
    cut(blobs / "decade", 100)
    assert names(verified(tmp_path)) == ["damaged"]


def test_a_state_of_another_step_is_told(tmp_path: Path) -> None:
    trainer(tmp_path)
    (tmp_path / "checkpoint-100").rename(tmp_path / "checkpoint-200")
    finding = verified(tmp_path).findings[0]
    assert finding.finding == "checkpoint.damaged"
    assert "trainer_state.json is of step 100, and the folder of 200" in finding.text


def test_an_index_and_files_of_two_saves_are_told(tmp_path: Path) -> None:
    trainer(tmp_path)
    save_safetensors(tmp_path / "checkpoint-100" / "model-00002-of-00002.safetensors",
                     {"other.weight": torch.ones(4)})  # fmt: skip
    finding = verified(tmp_path).findings[0]
    assert finding.finding == "checkpoint.incomplete"
    assert "head.weight is not in the files that it names" in finding.text


def test_every_pattern_of_the_table_can_be_read() -> None:
    for row in layouts().rows:
        for pattern in row.patterns():
            matches(pattern, "x")
        assert row.needs or row.id == "orbax"
        assert {*row.needs, *row.wants} <= set(row.resume)
    kinds = [row.kind for row in flaw_table().rows]
    assert len(kinds) == len(set(kinds))


def test_the_step_that_stands_in_a_file_orders_files_without_one_in_their_names(
    tmp_path: Path,
) -> None:
    """As nanoGPT saves; the younger file is of a run that has just begun."""
    model, optimizer = parts()
    for name, step in (("ckpt.pt", 2000), ("ckpt_best.pt", 0)):
        save({"model": model, "optimizer": optimizer, "iter_num": step}, tmp_path / name)
    told = verified(tmp_path)
    assert [one.found.step for one in told.judged] == [2000, 0]
    assert "ckpt.pt" in " ".join(told.hints)
