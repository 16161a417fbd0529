"""The examples do what they say; of the frameworks they have here what a callback sees of them."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.guard.trained import rows

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "guard"


def example(name: str, module: str, monkeypatch: pytest.MonkeyPatch, **names: type) -> Any:
    """The callback of an example, on a framework that has these names."""
    there = ModuleType(module)
    vars(there).update(names)
    monkeypatch.setitem(sys.modules, module, there)
    return runpy.run_path(str(EXAMPLES / name))["GuardCallback"]


def test_each_is_short() -> None:
    lengths = {one.name: len(one.read_text().splitlines()) for one in EXAMPLES.glob("*.py")}
    assert len(lengths) == 3
    assert max(lengths.values()) <= 30, lengths


def test_the_plain_loop_saves_and_ends(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    argv = [sys.executable, str(EXAMPLES / "plain_loop.py"), "1000000"]
    with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            assert "kill -USR1 PID" in run.stderr.readline()
            run.send_signal(signal.SIGUSR1)
            assert "saved in " in run.stderr.readline()
            run.send_signal(signal.SIGTERM)
            assert "(SIGTERM)" in run.stderr.read()
            assert run.wait(20) == 0
        finally:
            run.kill()
    first, last = sorted(tmp_path.glob("step-*.pt"), key=lambda one: one.stat().st_mtime)
    assert first.stat().st_size == last.stat().st_size > 1000
    (left,) = tmp_path.glob("preflight-guard/*.jsonl")
    assert f"step-{rows(left)[-1]['step']}.pt" == last.name
    assert not list(tmp_path.glob("*.new"))


def test_the_trainer_of_transformers_saves_at_the_end_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callback = example("hf_trainer.py", "transformers", monkeypatch, TrainerCallback=object)()
    args, state = SimpleNamespace(output_dir=str(tmp_path)), SimpleNamespace(global_step=0)
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    callback.on_train_begin(args, state, control)
    asked: dict[int, tuple[bool, bool]] = {}
    for state.global_step in range(1, 5):
        control.should_save = False
        if number := {2: signal.SIGUSR1, 4: signal.SIGTERM}.get(state.global_step):
            os.kill(os.getpid(), number)
        callback.on_step_end(args, state, control)
        asked[state.global_step] = control.should_save, control.should_training_stop
        logs = {"loss": 2.5, "grad_norm": 1.5, "learning_rate": 1e-4, "epoch": 0.1}
        callback.on_log(args, state, control, logs=logs)
    callback.on_log(args, state, control, logs={"train_runtime": 3.0})
    assert asked == {1: (False, False), 2: (True, False), 3: (False, False), 4: (True, True)}
    callback.on_train_end(args, state, control)
    (left,) = tmp_path.glob("guard/*.jsonl")
    assert [(one["step"], one.get("loss"), one.get("lr")) for one in rows(left)][-2:] == [
        (4, None, None), (4, 2.5, 1e-4),
    ]  # fmt: skip


def test_lightning_saves_between_batches_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightning", ModuleType("lightning"))
    made = example("lightning_callback.py", "lightning.pytorch", monkeypatch, Callback=object)
    saved: list[str] = []
    trainer = SimpleNamespace(global_step=0, should_stop=False, save_checkpoint=saved.append)
    callback = made(str(tmp_path))
    callback.on_train_start(trainer, None)
    loss = SimpleNamespace(item=lambda: 2.5)
    for batch in range(40):  # two batches a step
        trainer.global_step = (batch + 1) // 2
        if batch == 20:
            os.kill(os.getpid(), signal.SIGUSR1)
        callback.on_train_batch_end(trainer, None, {"loss": loss}, None, batch)
    assert saved == [f"{tmp_path}/guard-step-11.ckpt"]
    assert not trainer.should_stop
    callback.on_exception(trainer, None, RuntimeError("boom"))
    (left,) = tmp_path.glob("guard/*.jsonl")
    assert [one["step"] for one in rows(left)] == list(range(1, 21))
    assert [one["step"] for one in rows(left) if "loss" in one] == [10, 20]
    assert json.loads(left.read_text().splitlines()[-1]) == {"ended": "RuntimeError: boom"}
    assert time.time() - rows(left)[-1]["wall_time"] < 60
