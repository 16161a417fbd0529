"""preflight checkpoint verify as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.checkpoint_files import flipped, save_trainer, state
from tests.cli.command import preflight


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (100, 200):
        save_trainer(tmp_path / "run" / f"checkpoint-{step}", step)
    return tmp_path / "run"


def test_a_sound_run_passes_and_its_last_lines_say_what_to_resume_from(run: Path) -> None:
    ran = preflight("checkpoint", "verify", str(run), "--color", "never")
    assert ran.rc == 0, ran.err
    assert "PASS   checkpoint.resumable" in ran.out
    assert f"next   resume from {run}/checkpoint-200 (step 200)" in ran.out.replace(
        "\n       ", " "
    )
    assert "checkpoints, the newest first" in ran.out


def test_damage_fails_with_file_tensor_and_byte(run: Path) -> None:
    flipped(run / "checkpoint-200" / "optimizer.pt", 5000)
    ran = preflight("checkpoint", "verify", str(run), "--format", "json")
    assert ran.rc == 1
    report = json.loads(ran.out)
    first = report["findings"][0]
    assert first["finding"] == "checkpoint.damaged"
    assert "optimizer.pt: state.0.exp_avg: its CRC32 is" in first["text"]
    assert first["evidence"][0]["source"] == "optimizer.pt"
    assert "byte " in first["evidence"][0]["text"]
    assert first["runbook"] == "checkpoint-damaged"
    assert f"resume from {run}/checkpoint-100" in report["hints"][0]


def test_exit_status_tells_weights_alone_and_what_is_not_known(tmp_path: Path) -> None:
    torch.save(state()["model"], tmp_path / "weights.pt")
    assert preflight("checkpoint", "verify", str(tmp_path / "weights.pt")).rc == 0
    assert preflight("checkpoint", "verify", str(tmp_path / "weights.pt"), "--strict").rc == 1
    (tmp_path / "empty").mkdir()
    ran = preflight("checkpoint", "verify", str(tmp_path / "empty"))
    assert ran.rc == 3
    assert "INCOMPLETE" in ran.out


@pytest.mark.parametrize(("words", "said"), [
    ((), "no checkpoint is named"), (("/nowhere/at/all",), "/nowhere/at/all: No such file"),
    (("",), "a PATH is empty"), (("x", "--sample", "0"), "--sample 0: expected a size above 0"),
    (("x", "--from", "y"), "--from reads what was recorded"),
])  # fmt: skip
def test_what_cannot_be_started_is_told(words: tuple[str, ...], said: str) -> None:
    ran = preflight("checkpoint", "verify", *words)
    assert ran.rc == 2, ran.out
    assert said in ran.err
    assert "hint:" in ran.err


def test_a_capture_is_judged_as_the_live_run(run: Path, tmp_path: Path) -> None:
    capture = tmp_path / "c.capture.gz"
    live = preflight("checkpoint", "verify", str(run), "--save", str(capture))
    assert live.rc == 0, live.err
    again = preflight("checkpoint", "verify", "--from", str(capture))
    assert again.rc == 0, again.err
    assert again.out.splitlines()[2:] == live.out.splitlines()[2:]


def test_a_dry_run_reads_nothing(run: Path) -> None:
    ran = preflight("checkpoint", "verify", str(run), "--dry-run")
    assert ran.rc == 0
    assert f"reads every file below {run}, writes none" in ran.out


def test_another_model_to_compare_with_is_told(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "config.json"
    other.write_text(json.dumps({"vocab_size": 48, "hidden_size": 64}))
    ran = preflight("checkpoint", "verify", str(run), "--compare", str(other), "--format", "json")
    told = [one for one in json.loads(ran.out)["findings"] if "compared" in one["finding"]]
    assert told[0]["status"] == "FAIL"
    assert "vocabulary rows 40 against 48" in told[0]["text"]


def test_a_path_that_looks_like_an_option_or_has_marks_in_it_stays_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a;touch x $(touch y) 'b'.pt"
    torch.save(state(), path)
    ran = preflight("checkpoint", "verify", str(path), cwd=tmp_path)
    assert ran.rc == 0, ran.err
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_one_path_that_is_not_there_does_not_stop_the_others(run: Path) -> None:
    ran = preflight("checkpoint", "verify", str(run), str(run / "gone"), "--format", "json")
    assert ran.rc == 3
    found = [one["finding"] for one in json.loads(ran.out)["findings"]]
    assert found == ["checkpoint.resumable", "checkpoint.resumable", "checkpoint.unknown"]
