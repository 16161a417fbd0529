"""The plan of a rescue, and what it does for the user: moves, a tracker, a signal; its undoing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.cli.command import PREFLIGHT, Ran, preflight
from tests.diagnosis import losses

STEPS = (200, 300, 480, 600)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """It diverges at step 500, with checkpoints before and after; that of 300 is damaged."""
    diverged = losses.rows(1, losses.FAULTS["divergence"].change)
    (tmp_path / "train.log").write_text(losses.json_lines(diverged))
    folder = tmp_path / "ck"
    folder.mkdir()
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 64)).sum().backward()
    optimizer.step()
    for step in STEPS:
        path = folder / f"ckpt_{step}.pt"
        told = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(told, path)
    data = bytearray((folder / "ckpt_300.pt").read_bytes())
    data[9000] ^= 0x40
    (folder / "ckpt_300.pt").write_bytes(data)
    (folder / "latest").write_text("ckpt_600.pt")
    return tmp_path


def rescue(run: Path, *more: str) -> Ran:
    return preflight("divergence-rescue", str(run / "train.log"), "--checkpoints",
                     str(run / "ck"), *more)  # fmt: skip


def plan(ran: Ran) -> dict[str, object]:
    told = json.loads(ran.out)["findings"]
    (found,) = [one for one in told if one["finding"] == "rescue"]
    return dict(found)


def test_the_newest_whole_one_that_is_old_enough_is_chosen(run: Path) -> None:
    found = plan(rescue(run, "--format", "json"))
    assert found["status"] == "PASS" and str(found["subject"]).endswith("ckpt_200.pt")
    assert "newest of 4 checkpoints" in str(found["text"]) and "by 300 steps" in str(found["text"])
    steps = " ".join(found["fix"])  # type: ignore[arg-type]
    assert "ckpt_300.pt (damaged)" in steps and "ckpt_600.pt (100 steps after" in steps
    assert "ckpt_480.pt (too near to it)" in steps and "learning rate" in steps


def test_commands_of_the_plan_do_what_execute_does(run: Path) -> None:
    """Typed as they stand."""
    steps: list[str] = plan(rescue(run, "--format", "json"))["fix"]  # type: ignore[assignment]
    (moves,) = [one for one in steps if "--execute quarantine" in one]
    (names,) = [one for one in steps if "--execute tracker" in one]
    shell = re.sub(r"^.*?\): (.*) \(or --execute \w+\)$", r"\1", moves)
    subprocess.run(["sh", "-c", shell], check=True)
    subprocess.run(["sh", "-c", re.sub(r"^.*?: (.*) \(or .*$", r"\1", names)], check=True)
    assert sorted(path.name for path in (run / "ck").glob("*.pt")) == ["ckpt_200.pt"]
    assert (run / "ck" / "latest").read_text() == "ckpt_200.pt"


def test_nothing_is_changed_unless_it_is_named_and_all_of_it_is_undone(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in (run / "ck").iterdir()}
    rescue(run)
    assert {path.name: path.read_bytes() for path in (run / "ck").iterdir()} == before
    ran = rescue(run, "--execute", "quarantine,tracker")
    assert ran.rc == 1 and ran.err.count("moved ") == 3
    assert sorted(path.name for path in (run / "ck").glob("*.pt")) == ["ckpt_200.pt"]
    assert (run / "ck" / "latest").read_text() == "ckpt_200.pt"
    (record,) = (run / "ck").glob("quarantine-*/preflight-undo.json")
    assert str(record) in ran.err
    again = preflight("checkpoint", "verify", str(run / "ck" / "ckpt_200.pt"))
    assert again.rc == 0
    undone = preflight("divergence-rescue", "--undo", str(record))
    assert undone.rc == 0
    now = {path.name: path.read_bytes() for path in (run / "ck").iterdir() if path.is_file()}
    assert now == before


def test_what_was_changed_since_is_left_alone_by_undo(run: Path) -> None:
    rescue(run, "--execute", "quarantine,tracker")
    (run / "ck" / "latest").write_text("ckpt_250.pt")
    (run / "ck" / "ckpt_600.pt").write_text("another")
    (record,) = (run / "ck").glob("quarantine-*/preflight-undo.json")
    undone = preflight("divergence-rescue", "--undo", str(record))
    assert undone.err.count("left alone") == 2
    assert (run / "ck" / "latest").read_text() == "ckpt_250.pt"
    assert (run / "ck" / "ckpt_600.pt").read_text() == "another"


def test_steps_that_are_not_of_the_plan_and_records_that_are_none(run: Path) -> None:
    ran = rescue(run, "--execute", "resume")
    assert ran.rc == 2 and "quarantine" in ran.err
    assert preflight("divergence-rescue", "--undo", str(run / "train.log")).rc == 2
    assert rescue(run, "--checkpoints", str(run / "none")).rc == 2


def test_checkpoints_stand_in_the_picture_with_what_became_of_them(run: Path) -> None:
    rescue(run, "--save", str(run / "loss.svg"))
    drawn = (run / "loss.svg").read_text()
    assert "checkpoint damaged 300" in drawn and "checkpoint 200" in drawn and "shift" in drawn


def test_a_healthy_run_has_no_plan(run: Path) -> None:
    (run / "train.log").write_text(losses.json_lines(losses.rows(1)))
    ran = rescue(run)
    assert ran.rc == 0 and "rescue" not in ran.out.replace("divergence-rescue", "")


def test_without_checkpoints_the_plan_says_how_they_are_given(run: Path) -> None:
    ran = preflight("divergence-rescue", str(run / "train.log"))
    assert ran.rc == 1 and "--checkpoints DIR" in " ".join(ran.out.split())


CATCHES = (
    "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('saves', flush=True))\n"
)


@pytest.fixture
def process() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for one in started:
        one.kill()
        one.communicate()


def start(code: str, started: list[subprocess.Popen[str]]) -> int:
    loop = "print('up', flush=True)\nwhile True: time.sleep(0.05)\n"
    one = subprocess.Popen([sys.executable, "-c", f"import time\n{code}{loop}"], text=True,
                           stdout=subprocess.PIPE)  # fmt: skip
    started.append(one)
    assert one.stdout is not None and one.stdout.readline() == "up\n"
    return one.pid


def test_a_signal_is_sent_only_where_it_saves(
    run: Path, process: list[subprocess.Popen[str]]
) -> None:
    healthy = run / "healthy.log"
    healthy.write_text(losses.megatron(losses.rows(1)))
    catches, deaf = start(CATCHES, process), start("", process)
    sent = preflight("divergence-rescue", str(healthy), "--signal", str(catches))
    assert sent.rc == 0 and "sent SIGTERM" in sent.err
    stdout = process[0].stdout
    assert stdout is not None and stdout.readline() == "saves\n"
    kept = preflight("divergence-rescue", str(healthy), "--signal", str(deaf))
    assert kept.rc == 2 and "no signal was sent" in kept.err and "is lost" in kept.err
    time.sleep(0.1)
    assert process[1].poll() is None
    diverged = run / "diverged.log"
    diverged.write_text(losses.megatron(losses.rows(1, losses.FAULTS["divergence"].change)))
    bad = preflight("divergence-rescue", str(diverged), "--signal", str(catches))
    assert "diverged" in bad.err and "no signal was sent" in bad.err
    os.kill(deaf, signal.SIGKILL)
    process[1].wait()
    assert preflight("divergence-rescue", str(healthy), "--signal", str(deaf)).rc == 2


def test_a_log_that_grows_is_watched_until_something_fails(tmp_path: Path) -> None:
    """A spike that passes is told, and the watch goes on; what stays ends it, with the report."""
    drawn = losses.rows(1, losses.FAULTS["divergence"].change, steps=540)
    drawn[449].loss *= 3
    lines = losses.json_lines(drawn).splitlines(keepends=True)
    log = tmp_path / "train.log"
    log.write_text("".join(lines[:448]))
    with subprocess.Popen(
        [str(PREFLIGHT), "divergence-rescue", str(log), "--follow"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as watch:  # fmt: skip
        assert watch.stdout is not None and watch.stderr is not None
        assert "448 steps so far" in watch.stderr.readline()
        with log.open("a") as file:
            file.writelines(lines[448:451])
            file.flush()
            told = watch.stdout.readline()
            assert "WARN  step 450 spike" in told
            file.writelines(lines[451:])
        out, _ = watch.communicate(timeout=60)
    assert watch.returncode == 1
    first, *_ = out.splitlines()
    assert "FAIL  step 500" in first and "FAIL: " in out


def test_only_one_log_is_watched(tmp_path: Path) -> None:
    assert preflight("divergence-rescue", str(tmp_path), "--follow").rc == 2


def test_what_was_moved_away_is_no_checkpoint_of_the_next_plan(run: Path) -> None:
    rescue(run, "--execute", "quarantine,tracker")
    found = plan(rescue(run, "--format", "json"))
    assert "newest of 1 checkpoints" in str(found["text"])
    assert not any("move away" in step for step in found["fix"])  # type: ignore[attr-defined]


def test_weights_alone_and_what_tells_no_step_stay_where_they_are(run: Path) -> None:
    """An export, or a base model, that lies beside the checkpoints is sound."""
    weights = torch.load(run / "ck" / "ckpt_200.pt")["model"]
    torch.save(weights, run / "ck" / "export.pt")
    torch.save(weights, run / "ck" / "ckpt_100.pt")
    rescue(run, "--execute", "quarantine")
    left = sorted(path.name for path in (run / "ck").glob("*.pt"))
    assert left == ["ckpt_100.pt", "ckpt_200.pt", "export.pt"]


def test_each_of_two_folders_keeps_what_is_moved_within_itself(run: Path) -> None:
    other = run / "other"
    shutil.copytree(run / "ck", other)
    ran = rescue(run, "--checkpoints", str(other), "--execute", "quarantine")
    assert ran.err.count("moved ") == 7  # all but the one that is chosen
    assert len(list((run / "ck").glob("quarantine-*/*.pt"))) == 3
    assert len(list(other.glob("quarantine-*/*.pt"))) == 4


@pytest.mark.parametrize("record", [
    '{"preflight": "undo/1", "done": [{"moved": 3}]}', '{"preflight": "undo/1", "done": [1]}',
    '{"preflight": "undo/1", "done": [{"moved": "/a"}]}', "[]", "{",
])  # fmt: skip
def test_a_record_that_is_none_is_refused(tmp_path: Path, record: str) -> None:
    (tmp_path / "undo.json").write_text(record)
    assert preflight("divergence-rescue", "--undo", str(tmp_path / "undo.json")).rc == 2


def test_a_watch_leaves_standard_output_to_the_document(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(losses.json_lines(losses.rows(1, losses.FAULTS["divergence"].change)))
    ran = preflight("divergence-rescue", str(log), "--follow", "--format", "json")
    assert json.loads(ran.out)["verdict"] == "FAIL" and "FAIL  step 500" in ran.err
