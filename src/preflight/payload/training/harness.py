"""The harness: prepare, launch, kill, launch again; everything that happens is told as lines."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from .. import meet
from ..places import PlaceError, place_of
from ..ranks import Among, Launch, Tell
from ..scratch import sweep
from . import cannot, checkpoint, devices, hosts, loop, shards, sweeping
from .census import census
from .model import flops_per_token, parameters
from .plan import KILLED, RESUMED, WHOLE, Plan, PlanError
from .presets import PRESETS, Preset
from .warm import warm
from .work import saved_at, shape_of, work

#: A synthetic run reads each sample once: a shard for each worker of each rank, at least two.
_SHARDS = 2
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Until the first step: kernels that are loaded, and compiled where that is asked for.
_START_S, _COMPILED_S = 120.0, 400.0


def harness(plan: Plan, tell: Tell) -> None:
    """All launches of a plan. Whoever interrupts it gets the ranks ended and the folder removed."""
    began = time.monotonic()
    torch.set_num_threads(1)  # ranks are forked: no thread of this process may hold anything
    try:
        asked, plan = plan.sharding, settled(plan)
        at = place_of(plan.hosts)
    except (PlanError, PlaceError) as error:
        tell({"kind": "cannot", "text": str(error)})
        return
    if plan.hosts:
        tell = _named(plan.hosts[at], tell)
    gpus = devices.found() if plan.device == "cuda" else []
    tell({"kind": "begin", **_about(plan, gpus), "sharding_asked": asked})
    reason = cannot.reason(plan, shape_of(plan), gpus)
    if reason:
        tell({"kind": "cannot", "text": reason})
        return
    current: list[Launch] = []
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix=".preflight-train-", dir=plan.folder or None)
        sweep(folder)
        tell = _without(folder, tell)
        # torch's compiler makes one when it is imported, and its default stays behind.
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{folder}/compiled")
        warm()
        with hosts.checkpoints(plan, at, folder) as kept:
            plan = replace(plan, folder=folder, checkpoints=kept)
            _launches(plan, at, gpus, tell, current)
    except (PlanError, shards.ShardError) as error:
        tell({"kind": "cannot", "text": str(error)})
    except BrokenPipeError:
        raise
    except OSError as error:
        text = f"{error.filename or folder or plan.folder}: {error.strerror}"
        # Before the first rank it is what was asked for that cannot be had, and no fault of a rank.
        begun = {"kind": "failed", "launch": WHOLE, "error": "OSError"}
        tell({**(begun if current else {"kind": "cannot"}), "text": text})
    finally:
        with _undisturbed():
            for one in current:
                one.kill()
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Whoever asks twice to end it does not get it half cleaned up."""
    before = [(one, signal.signal(one, signal.SIG_IGN)) for one in _ENDING]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def _named(host: str, tell: Tell) -> Tell:
    return lambda line: tell({**line, "host": host})


def _without(folder: str, tell: Tell) -> Tell:
    """Lines in whose sentences our own folder, gone when they are read, has no name."""
    shown = f"{Path(folder).parent}/..."

    def told(line: dict[str, Any]) -> None:
        tell({
            key: one.replace(folder, shown) if isinstance(one, str) and folder in one else one
            for key, one in line.items()
        })  # fmt: skip

    return told


def _launches(
    plan: Plan, at: int, gpus: list[dict[str, Any]], tell: Tell, current: list[Launch]
) -> None:
    tell(census(_prepare(plan, shape_of(plan))))
    if plan.sweep:
        sweeping.sweep(plan, gpus, tell, current)
        return
    resumes = plan.resume and plan.checkpoints
    for number, launch in enumerate((WHOLE, KILLED, RESUMED) if resumes else (WHOLE,)):
        if not _launched(plan, launch, hosts.among(plan, at, number), tell, current):
            return
        if launch == KILLED and at == 0:
            _spoil(plan)


def settled(plan: Plan) -> Plan:
    """The plan with what it left open decided by what is here. CUDA is not started: the ranks are
    forked from this process."""
    gpus = torch.cuda.device_count()
    device = plan.device or ("cuda" if gpus else "cpu")
    cores = len(os.sched_getaffinity(0))
    many = 1 if plan.sharding == "single" else max(1, gpus) if device == "cuda" else min(2, cores)
    ranks = plan.ranks or many
    preset = plan.preset or ("gpu-small" if device == "cuda" else "cpu-tiny")
    if preset not in PRESETS:
        raise PlanError(f"no preset {preset}: there are {', '.join(PRESETS)}")
    plan = replace(plan, device=device, ranks=ranks, preset=preset)
    return replace(plan, sharding=plan.sharding if plan.world > 1 else "single")


def _about(plan: Plan, gpus: list[dict[str, Any]]) -> dict[str, Any]:
    """What is trained, on what, by which versions."""
    shape = shape_of(plan)
    cuda = torch.version.cuda
    return {
        "preflight": "micro-train/1",
        # Paths are the user's own.
        "plan": {**asdict(plan), "data": bool(plan.data), "folder": bool(plan.folder)},
        "shape": asdict(shape),
        "world": plan.world,
        "hosts": plan.hosts,
        "parameters": parameters(shape),
        "flops_per_token": flops_per_token(shape),
        "beta2": loop.BETAS[1],
        "floor_nats": None if plan.data else shards.floor_nats(),
        "torch": torch.__version__,
        "cuda": cuda,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if cuda else None,
        "python": sys.version.split()[0],
        "cores": len(os.sched_getaffinity(0)),
        "threads": plan.threads,
        "devices": gpus,
    }


def _prepare(plan: Plan, shape: Preset) -> list[shards.Shard]:
    """The user's shards, or where none were given our own."""
    if plan.data:
        return shards.open_shards(plan.data, shape.vocabulary)
    folder = Path(plan.folder) / "shards"
    folder.mkdir()
    tokens = shape.tokens_per_step(plan.world) * shape.steps
    shards.write_synthetic(
        str(folder), vocabulary=shape.vocabulary, shards=_SHARDS, seed=plan.seed,
        tokens=tokens + _SHARDS * (shape.length + 1) * 2,
    )  # fmt: skip
    return shards.open_shards(str(folder), shape.vocabulary)


def _launched(
    plan: Plan, launch: str, among: Among, tell: Tell, current: list[Launch]
) -> bool:  # fmt: skip
    """One launch to its end; whether the next one may follow."""
    began = time.monotonic()
    start_s = _COMPILED_S if plan.compiled else _START_S
    one = Launch(plan.ranks, lambda tell_it: work(plan, launch, tell_it), silent_s=plan.silent_s,
                 among=among, start_s=start_s)  # fmt: skip
    current[:] = [one]
    sound, fallen_silent = True, False
    for line in one.lines():
        if launch == KILLED and _killed(plan, one, line, tell):
            sound = True
            break
        if line["kind"] == "failed" and line["error"] == shards.ShardError.__name__ and plan.data:
            # What the user gave is wrong, and no fault of a rank.
            raise shards.ShardError(f"--data: {line['text']}")
        tell({"launch": launch, **line})
        fallen_silent |= line["kind"] == "silent"
        sound &= line["kind"] not in ("died", "failed", "silent")
        sound &= not (line["kind"] == "done" and line["failed"])
    one.kill()
    if fallen_silent and plan.hosts:
        tell({"launch": launch, **meet.left(asdict(plan), place_of(plan.hosts))})
    tell({"kind": "launched", "launch": launch, "elapsed_s": round(time.monotonic() - began, 3)})
    return sound


def _killed(plan: Plan, launch: Launch, line: dict[str, Any], tell: Tell) -> bool:
    """Kills within a save, and tells it; or whether another host has done it: then the connections
    of our ranks break once they have come so far."""
    if line["kind"] == "saving":
        tell({"launch": KILLED, **line})
        _kill_one(plan, launch, tell)
        return True
    reached = max(one.step for one in launch.ranks) + 2 >= saved_at(shape_of(plan))[2]
    if plan.hosts and reached and line["kind"] in ("failed", "died"):
        tell({"kind": "killed", "launch": KILLED, "rank": None, "left": []})
        return True
    return False


def _kill_one(plan: Plan, launch: Launch, tell: Tell) -> None:
    """Kill a rank within the first milliseconds of a save, and with it the run. All hosts draw the
    same moment and rank."""
    draw = random.Random(plan.seed)
    time.sleep(draw.random() * 0.02)
    number = draw.randrange(plan.world)
    for one in launch.ranks:
        if one.number == number:
            one.kill()
    left = [one.name for one in Path(plan.checkpoints).iterdir()]
    tell({"kind": "killed", "launch": KILLED, "rank": number, "left": sorted(left)})


def _spoil(plan: Plan) -> None:
    """Injected damage to the newest checkpoint, before the resume."""
    whole = checkpoint.committed(Path(plan.checkpoints))
    files = sorted(whole[-1].glob("*.distcp")) if whole else []
    if files and "corrupt-checkpoint" in plan.inject:
        with files[0].open("r+b") as file:
            file.seek(files[0].stat().st_size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
    if files and "half-checkpoint" in plan.inject:
        os.truncate(files[0], files[0].stat().st_size // 2)
