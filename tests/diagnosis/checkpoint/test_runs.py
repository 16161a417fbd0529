"""A run with many checkpoints: which is the newest that is whole, what its tracker says, since when
values are no numbers, what another save left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from tests.checkpoint_files import flipped, names, save_trainer, state, verified
from tests.diagnosis.checkpoint.test_layouts import deepspeed, megatron


def series(run: Path, steps: int = 4, bad_from: int = 99) -> None:
    run.mkdir(exist_ok=True)
    for at in range(1, steps + 1):
        whole = state(at)
        if at >= bad_from:
            whole["model"]["layers.0.w"][0, 0] = float("nan")
        torch.save(whole, run / f"ckpt_{at * 100}.pt")


def test_the_newest_whole_one_is_what_to_resume_from(tmp_path: Path) -> None:
    series(tmp_path)
    assert names(verified(tmp_path)) == ["resumable"] * 4
    assert verified(tmp_path).hints == (f"resume from {tmp_path}/ckpt_400.pt (step 400)",)
    flipped(tmp_path / "ckpt_400.pt", 5000)
    found = verified(tmp_path)
    assert [one.found.step for one in found.judged] == [400, 300, 200, 100]
    assert names(found) == ["damaged", "resumable", "resumable", "resumable"]
    assert found.hints[0].startswith(f"resume from {tmp_path}/ckpt_300.pt (step 300); 1 newer")


def test_since_when_there_are_values_that_are_no_numbers(tmp_path: Path) -> None:
    series(tmp_path, bad_from=3)
    found = verified(tmp_path)
    assert names(found) == ["damaged", "damaged", "resumable", "resumable"]
    for one in found.judged[:2]:
        assert "no numbers since step 300; step 200 has none" in one.finding.text
    assert "(step 200)" in found.hints[0]
    assert "2 whole ones are kept: keep 3" in found.hints[0]


def test_of_one_that_was_just_written_it_is_said_that_a_save_may_be_under_way(
    tmp_path: Path,
) -> None:
    deepspeed(tmp_path, 300).unlink()
    told = verified(tmp_path).findings[0].against
    assert any("a save may be under way" in text for text in told)
    for path in (tmp_path / "global_step300").iterdir():
        os.utime(path, (1e9, 1e9))
    told = verified(tmp_path).findings[0].against
    assert not any("a save may be under way" in text for text in told)


def test_a_file_that_only_one_lacks_is_missed(tmp_path: Path) -> None:
    """The last rank of a grid without its number anywhere: only the others tell that it was."""
    for step in (100, 200, 300):
        megatron(tmp_path, step)
    for rank in ("00_001", "01_001"):
        folder = tmp_path / "iter_0000300" / f"mp_rank_{rank}"
        (folder / "model_optim_rng.pt").unlink()
        folder.rmdir()
    found = verified(tmp_path)
    assert names(found) == ["incomplete", "resumable", "resumable"]
    assert "in all 2 others of this run" in found.findings[0].text


@pytest.mark.parametrize(("text", "said"), [
    ("global_step100", ""), ("global_step999", "there is no such checkpoint"),
    ("global_step300", "that is incomplete"), ("../../etc", "there is no such checkpoint"),
])  # fmt: skip
def test_a_tracker_that_names_what_cannot_be_resumed_from(
    tmp_path: Path, text: str, said: str
) -> None:
    for step in (100, 200):
        deepspeed(tmp_path, step)
    deepspeed(tmp_path, 300).unlink()
    (tmp_path / "latest").write_text(f"{text}\n")
    told = [one for one in verified(tmp_path).findings if one.finding == "checkpoint.tracker"]
    assert [said in one.text for one in told] == ([True] if said else [])
    if said:
        assert told[0].fix == (f"`echo -n global_step200 > {tmp_path}/latest`",)


def test_the_tracker_of_megatron_is_a_number(tmp_path: Path) -> None:
    megatron(tmp_path, 100)
    megatron(tmp_path, 200).unlink()
    told = verified(tmp_path).findings
    assert "checkpoint.tracker" in [one.finding for one in told]
    assert any(one.fix[0].startswith("`echo -n 100 >") for one in told if one.fix)


def test_what_a_save_left_is_named_and_no_checkpoint(tmp_path: Path) -> None:
    save_trainer(tmp_path / "checkpoint-100", 100)
    (tmp_path / "checkpoint-200").mkdir()
    save_trainer(tmp_path / "tmp-checkpoint-300", 300)
    found = verified(tmp_path)
    left = [one for one in found.findings if one.finding == "checkpoint.leftover"]
    assert len(left) == 1
    assert "checkpoint-200, tmp-checkpoint-300" in left[0].text
    assert f"{tmp_path}/checkpoint-100 (step 100)" in found.hints[0]
