"""Checkpoints that are written beside training, whole or not at all, and read back checked.

    DIR/step-00000050.part/   while it is written
    DIR/step-00000050/        once every byte of every rank is there, with checksums.json

The state is copied at the step's boundary, so what is written is of one step. The rename is the
commit: a run that is killed leaves a .part, which is never read.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from ..group.join import Place
from .loop import State

_SUMS = "checksums.json"
#: What is written to ask a file system why it refused a checkpoint.
_TRIAL_BYTES = 4 << 20


class CheckpointError(Exception):
    """No checkpoint that can be read, or one that cannot be written: why."""


class Writer:
    """Writes one checkpoint at a time and keeps the newest few."""

    def __init__(self, folder: str, place: Place, *, keep: int = 2) -> None:
        self.folder, self.place, self.keep = Path(folder), place, keep
        self.staged_s = 0.0  # that the last one cost the step
        self.written_s: list[float] = []
        self.failed = self.failed_by = ""  # why one could not be written; what torch says of it
        # Of its own: what is written beside training must not get between its collectives.
        self._group = dist.new_group(backend="gloo") if place.ranks > 1 else None
        self._thread: threading.Thread | None = None

    def begin(self, state: State) -> None:
        """Copy the state and start to write it; waits for the one before, if that still runs."""
        self.wait()
        began = time.perf_counter()
        staged = {key: _copied(one) for key, one in contents(state, self.place).items()}
        part = self.folder / f"step-{state.step:08d}.part"
        if self.place.rank == 0:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
        if self.place.ranks > 1:
            dist.barrier(self._group)
        way = {"process_group": self._group} if self._group else {"no_dist": True}
        saving = dcp.async_save(staged, checkpoint_id=part, **way)
        self._thread = threading.Thread(target=self._finish, args=(saving, part, began))
        self._thread.start()
        self.staged_s = time.perf_counter() - began

    def wait(self) -> None:
        """Until nothing is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _finish(self, saving: Future[Any], part: Path, began: float) -> None:
        """The first rank's part ends last: it has gathered what all others wrote."""
        try:
            saving.result()
            if self.place.rank == 0:
                commit(part)
                self._rotate()
        # torch's CheckpointException is no Exception. Told in the report: training goes on.
        except BaseException as error:  # noqa: BLE001
            self.failed = f"{part.stem}: {_why(error, self.folder)}"
            self.failed_by = _reason(error)[:300]
        self.written_s.append(time.perf_counter() - began)

    def _rotate(self) -> None:
        for old in committed(self.folder)[: -self.keep]:
            shutil.rmtree(old, ignore_errors=True)


def _reason(error: BaseException) -> str:
    """Of one rank that could not write, without the traces that torch puts around it."""
    for rank, (cause, _) in getattr(error, "failures", {}).items():
        return f"rank {rank}: {type(cause).__name__}: {cause}"
    return f"{type(error).__name__}: {error}"


def _why(error: BaseException, folder: Path) -> str:
    """What torch says of a write that fails seldom tells that the disk is full: what the file
    system says of another write does, or what it said of this one."""
    there = os.statvfs(folder)
    free = f"{there.f_bavail * there.f_frsize >> 20} MiB free in its folder"
    refused = _refused(folder) or next(_system_errors(error), "")
    return f"{refused or f'{type(_cause(error)).__name__} while it was written'} ({free})"


def _cause(error: BaseException) -> BaseException:
    """Of one rank that could not write, without what torch puts around it."""
    return next((cause for cause, _ in getattr(error, "failures", {}).values()), error)


def _system_errors(error: BaseException) -> Iterator[str]:
    """What the system said, of an error or of what it came from."""
    at: BaseException | None = _cause(error)
    while at is not None:
        if isinstance(at, OSError) and at.strerror:
            yield at.strerror
        at = at.__cause__ or at.__context__


def _refused(folder: Path) -> str:
    """Why a file of some megabytes cannot be written there now; "" where it can."""
    trial = folder / f".trial-{os.getpid()}"
    try:
        with trial.open("wb") as file:
            file.write(bytes(_TRIAL_BYTES))
            os.fsync(file.fileno())
    except OSError as error:
        return str(error.strerror)
    finally:
        trial.unlink(missing_ok=True)
    return ""


def commit(part: Path) -> None:
    """Write the checksums, make all of it durable, rename."""
    files = sorted(one for one in part.iterdir() if one.name != _SUMS)
    sums = {one.name: {"bytes": one.stat().st_size, "sha256": _sum(one)} for one in files}
    (part / _SUMS).write_text(json.dumps(sums, indent=1))
    for one in (*files, part / _SUMS, part):
        _sync(one)
    target = part.with_suffix("")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)
    _sync(part.parent)


def committed(folder: Path) -> list[Path]:
    """The whole ones, oldest first."""
    found = (one for one in folder.glob("step-*") if one.suffix != ".part" and one.is_dir())
    return sorted(found)


def damage(at: Path) -> str:
    """What of a committed checkpoint is not as it was written; "" where all is."""
    try:
        sums = json.loads((at / _SUMS).read_text())
    except (OSError, ValueError) as error:
        return f"{at.name}: {_SUMS} cannot be read: {error}"
    for name, expected in sums.items():
        file = at / name
        if not file.exists():
            return f"{at.name}: {name} is missing"
        size = file.stat().st_size
        if size != expected["bytes"]:
            return f"{at.name}: {name} was written in part: {size} of {expected['bytes']} bytes"
        if _sum(file) != expected["sha256"]:
            return f"{at.name}: {name} is not as it was written: other bytes, as many"
    return ""


def newest_sound(folder: str) -> tuple[Path, list[str]]:
    """The newest checkpoint whose bytes are as they were written, and what is wrong with newer
    ones. Raises CheckpointError where there is none."""
    wrong: list[str] = []
    for at in reversed(committed(Path(folder))):
        fault = damage(at)
        if not fault:
            return at, wrong
        wrong.append(fault)
    raise CheckpointError("; ".join(wrong) or f"{folder}: no whole checkpoint in it")


def agreed(folder: str, place: Place) -> tuple[Path, list[str]]:
    """The same for all ranks, found by the first: others may see an older list of a shared
    folder. Raises CheckpointError on all of them."""
    told: list[Any] = [None]
    if place.rank == 0:
        try:
            told = [newest_sound(folder)]
        except CheckpointError as error:
            told = [str(error)]
    if place.ranks > 1:
        dist.broadcast_object_list(told, src=0, device=place.device)
    if isinstance(told[0], str):
        raise CheckpointError(told[0])
    return told[0]


def resume(state: State, place: Place, at: Path) -> None:
    """Read a checkpoint into a state that begin() made; afterwards it is as it was at that step."""
    wanted = contents(state, place)
    alone = place.ranks == 1
    dcp.load(wanted, checkpoint_id=at, **({"no_dist": True} if alone else {}))
    set_state_dict(
        state.model, state.optimizer,
        model_state_dict=wanted["model"], optim_state_dict=wanted["optimizer"],
    )  # fmt: skip
    state.step = int(wanted["step"])
    if state.scaler.is_enabled():
        state.scaler.load_state_dict(wanted["scaler"])
    _set_random(wanted[f"random{place.rank}"], place)


def contents(state: State, place: Place) -> dict[str, Any]:
    """Everything that a resumed run needs; the learning rate and the position in the data follow
    from the step."""
    model, optimizer = get_state_dict(state.model, state.optimizer)
    return {
        "model": model,
        "optimizer": optimizer,
        "scaler": state.scaler.state_dict() if state.scaler.is_enabled() else {},
        "step": state.step,
        f"random{place.rank}": _random(place),
    }


def digest(model: torch.nn.Module) -> str:
    """One hash of all parameters, bit for bit, as they lie on this rank."""
    found = hashlib.sha256()
    for name, weight in model.state_dict().items():
        local = weight.to_local() if hasattr(weight, "to_local") else weight
        found.update(name.removeprefix("module.").encode())
        flat = local.detach().contiguous().cpu().flatten().view(torch.uint8)
        found.update(_memory(flat))
    return found.hexdigest()[:16]


def _memory(flat: Tensor) -> Any:
    """The memory of a tensor of bytes, in place: as bytes(storage) each one would be a Python call,
    which takes seconds for a megabyte; torch's other way needs NumPy. The tensor must live on."""
    return (ctypes.c_char * len(flat)).from_address(flat.data_ptr())


def _copied(value: Any) -> Any:
    """Memory of its own for every tensor: the optimizer goes on in the old one. Those on a GPU are
    copied to the host by async_save() before it returns: here it would take as much again there."""
    if isinstance(value, Tensor):
        return value if value.is_cuda else value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(one) for one in value)
    return value


def _random(place: Place) -> dict[str, Tensor]:
    told = {"cpu": torch.get_rng_state()}
    if place.gpu:
        told["cuda"] = torch.cuda.get_rng_state(place.device)
    return told


def _set_random(told: dict[str, Tensor], place: Place) -> None:
    torch.set_rng_state(told["cpu"])
    if place.gpu:
        torch.cuda.set_rng_state(told["cuda"], place.device)


def _sum(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
