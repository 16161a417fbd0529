"""The harness: prepare, launch, kill, launch again; everything that happens is told as lines."""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ..ranks import Launch, Tell
from . import checkpoint, shards
from .model import flops_per_token
from .plan import KILLED, RESUMED, WHOLE, Plan
from .presets import Preset
from .work import shape_of, work

#: A synthetic run reads each sample once: a shard for each worker of each rank, at least two.
_SHARDS = 2


def harness(plan: Plan, tell: Tell) -> None:
    """All launches of a plan. Whoever interrupts it gets the ranks ended and the folder removed."""
    began = time.monotonic()
    plan = settled(plan)
    shape = shape_of(plan)
    tell({"kind": "begin", **_about(plan, shape)})
    reason = _cannot(plan)
    if reason:
        tell({"kind": "cannot", "text": reason})
        return
    parent = plan.folder or None
    folder = tempfile.mkdtemp(prefix=".preflight-train-", dir=parent)
    current: list[Launch] = []
    try:
        plan = replace(plan, folder=folder)
        _prepare(plan, shape)
        for launch in (WHOLE, KILLED, RESUMED) if plan.resume else (WHOLE,):
            if not _launched(plan, launch, tell, current):
                break
            if launch == KILLED:
                _spoil(plan)
    except shards.ShardError as error:
        tell({"kind": "failed", "launch": WHOLE, "error": "ShardError", "text": str(error)})
    except OSError as error:
        tell({"kind": "failed", "launch": WHOLE, "error": "OSError",
              "text": f"{error.filename or folder}: {error.strerror}"})  # fmt: skip
    finally:
        for one in current:
            one.kill()
        shutil.rmtree(folder, ignore_errors=True)
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


def settled(plan: Plan) -> Plan:
    """The plan with what it left open decided by what is here. CUDA is not started: the ranks are
    forked from this process."""
    gpus = torch.cuda.device_count()
    device = plan.device or ("cuda" if gpus else "cpu")
    cores = len(os.sched_getaffinity(0))
    ranks = plan.ranks or (max(1, gpus) if device == "cuda" else min(2, cores))
    preset = plan.preset or ("gpu-small" if device == "cuda" else "cpu-tiny")
    return replace(plan, device=device, ranks=ranks, preset=preset,
                   sharding=plan.sharding if ranks > 1 else "single")  # fmt: skip


def _about(plan: Plan, shape: Preset) -> dict[str, Any]:
    """What is trained, on what, by which versions."""
    gpu = plan.device == "cuda"
    count = torch.cuda.device_count() if gpu else 0
    return {
        "plan": {**asdict(plan), "data": bool(plan.data)},
        "shape": asdict(shape),
        "flops_per_token": flops_per_token(shape),
        "floor_nats": None if plan.data else shards.floor_nats(),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "cores": len(os.sched_getaffinity(0)),
        "devices": count,
        "architectures": list(torch.cuda.get_arch_list()) if gpu and count else [],
    }


def _cannot(plan: Plan) -> str:
    """Why nothing can be trained here; "" where it can."""
    if plan.device == "cuda":
        count = torch.cuda.device_count()
        if torch.version.cuda is None:
            return f"this torch ({torch.__version__}) is built without CUDA"
        if count < plan.ranks:
            return f"{plan.ranks} GPUs are asked for, and torch finds {count}"
    return ""


def _prepare(plan: Plan, shape: Preset) -> None:
    """Shards where the user gave none; a folder for checkpoints."""
    (Path(plan.folder) / "checkpoints").mkdir()
    if plan.data:
        shards.open_shards(plan.data, shape.vocabulary)
        return
    folder = Path(plan.folder) / "shards"
    folder.mkdir()
    tokens = shape.tokens_per_step(plan.ranks) * shape.steps
    shards.write_synthetic(
        str(folder), vocabulary=shape.vocabulary, shards=_SHARDS, seed=plan.seed,
        tokens=tokens + _SHARDS * (shape.length + 1) * 2,
    )  # fmt: skip


def _launched(plan: Plan, launch: str, tell: Tell, current: list[Launch]) -> bool:
    """One launch to its end; whether the next one may follow."""
    began = time.monotonic()
    one = Launch(plan.ranks, lambda tell_it: work(plan, launch, tell_it), silent_s=plan.silent_s)
    current[:] = [one]
    sound = True
    for line in one.lines():
        tell({"launch": launch, **line})
        if launch == KILLED and line["kind"] == "saving":
            _kill_one(plan, one, tell)
            break
        sound &= line["kind"] not in ("died", "failed", "silent")
        sound &= not (line["kind"] == "done" and line["failed"])
    one.kill()
    tell({"kind": "launched", "launch": launch, "elapsed_s": round(time.monotonic() - began, 3)})
    return sound


def _kill_one(plan: Plan, launch: Launch, tell: Tell) -> None:
    """Kill a rank within the first milliseconds of a save, and with it the run."""
    draw = random.Random(plan.seed)
    time.sleep(draw.random() * 0.02)
    victim = draw.choice(launch.ranks)
    victim.kill()
    left = [one.name for one in Path(plan.folder, "checkpoints").iterdir()]
    tell({"kind": "killed", "launch": KILLED, "rank": victim.number, "left": sorted(left)})


def _spoil(plan: Plan) -> None:
    """Injected damage to the newest checkpoint, before the resume."""
    whole = checkpoint.committed(Path(plan.folder) / "checkpoints")
    files = sorted(whole[-1].glob("*.distcp")) if whole else []
    if files and "corrupt-checkpoint" in plan.inject:
        with files[0].open("r+b") as file:
            file.seek(files[0].stat().st_size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
    if files and "half-checkpoint" in plan.inject:
        os.truncate(files[0], files[0].stat().st_size // 2)
