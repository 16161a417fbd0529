"""What --preset, --ranks and the like ask of a training run, as the plan that travels to it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec import Struct

from preflight.cli.drills import faults, has_no_gpu, world
from preflight.cli.options import Options, are_many
from preflight.cli.sweeps import BF16, CLIP, HOOKS, NEWS, hold_kv_heads, seconds, sweeps_of
from preflight.errors import UsageError
from preflight.units import format_bytes, format_duration

#: The question that trains.
TRAINS = "micro-train"


class Preset(Struct, frozen=True):
    """What a preset takes, for --dry-run: seconds, and bytes of one checkpoint (payload/training:
    weights and both moments of AdamW in fp32)."""

    seconds: int
    checkpoint_bytes: float
    needs: str
    steps: int


#: Those of payload/training/presets.py; a test holds them together.
PRESETS = {
    "cpu-tiny": Preset(30, 5.2e6, "any machine", 100),
    "gpu-small": Preset(60, 1.2e9, "8 GB of GPU memory", 100),
    "gpu-1b": Preset(120, 13.2e9, "64 GB of GPU memory (recomputing: 32) and 40 GB of disk", 60),
    "gpu-7b-slice": Preset(120, 13.6e9, "32 GB of GPU memory and 40 GB of disk", 60),
}
#: Checkpoints that are there at the same time, the one being written among them.
_CHECKPOINTS = 3
_CHOICES = {
    "preset": tuple(PRESETS),
    "sharding": ("single", "ddp", "fsdp"),
    "precision": ("bf16", "fp16", "fp32"),
    "comm_hook": HOOKS,
}
#: Least values of numbers. More steps than a warm-up, and a quarter of them to each checkpoint.
_LEAST = {
    "ranks": 1, "steps": 12, "batch": 1, "length": 8, "accumulation": 1, "workers": 0,
    "prefetch": 1, "kv_heads": 1, "threads": 1, "seed": 0,
}  # fmt: skip
#: The largest: beyond these a typing error takes the host, or does not fit what holds it.
_MOST = {
    "ranks": 1024, "steps": 10**7, "batch": 1 << 16, "length": 1 << 20, "accumulation": 1 << 16,
    "workers": 256, "prefetch": 1024, "kv_heads": 1024, "threads": 1024, "seed": (1 << 63) - 1,
}  # fmt: skip
_OF_PRESET = ("steps", "batch", "length", "accumulation", "precision", "kv_heads")
_OF_PLAN = (
    "preset", "ranks", "sharding", "mesh", "comm_hook", "clip", "data", "folder", "workers",
    "prefetch", "threads", "seed", "interface",
)  # fmt: skip


def plan_of(options: Options) -> dict[str, Any]:
    """The plan: what was asked for, and nothing that was left open. Raises UsageError."""
    _hold(options)
    plan = {name: value for name in _OF_PLAN if (value := getattr(options, name)) is not None}
    for name in ("data", "folder"):
        if name in plan:
            plan[name] = str(Path(plan[name]).absolute())
    changes = {name: value for name in _OF_PRESET if (value := getattr(options, name)) is not None}
    flags = {
        "compiled": options.compiled, "recompute": options.recompute,
        "even_if_busy": options.even_if_busy,
    }  # fmt: skip
    plan |= {name: True for name, value in flags.items() if value}
    plan |= {"resume": False} if options.no_resume else {}
    plan |= {"changes": changes} if changes else {}
    plan |= {"sweep": found} if (found := sweeps_of(options)) else {}
    inject = dict(faults(options, _steps(options)))
    return plan | ({"inject": inject} if inject else {})


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _hold(options: Options) -> None:
    """Refuse what cannot be, before anything is done."""
    for name, allowed in _CHOICES.items():
        value = getattr(options, name)
        if value is not None and value not in allowed:
            raise UsageError(
                f"{_flag(name)} {value!r} is no choice", f"one of {', '.join(allowed)}"
            )
    for name, least in _LEAST.items():
        value = getattr(options, name)
        if value is not None and value < least:
            raise UsageError(
                f"{_flag(name)} {value} is too small", f"{_flag(name)} {least} or more"
            )
    for name, most in _MOST.items():
        value = getattr(options, name)
        if value is not None and value > most:
            raise UsageError(f"{_flag(name)} {value} is too large", f"{_flag(name)} {most} or less")
    if options.sharding == "single" and ((options.ranks or 1) > 1 or are_many(options)):
        raise UsageError("--sharding single is one rank, and several are asked for",
                         "--sharding ddp or fsdp, or --ranks 1 on one host")  # fmt: skip
    if options.comm_hook not in (None, "none"):
        if options.sharding in ("fsdp", "single"):
            raise UsageError(f"--comm-hook is of DDP, and --sharding is {options.sharding}",
                             "leave one of them out")  # fmt: skip
        if world(options) == 1:
            raise UsageError("--comm-hook says how ranks average, and there is one rank",
                             f"--ranks 2 --comm-hook {options.comm_hook}")  # fmt: skip
        if options.comm_hook == "bf16" and has_no_gpu(options):
            raise UsageError(f"--comm-hook bf16: {BF16}", "--comm-hook fp16, or none")
    if options.kv_heads is not None:
        hold_kv_heads(options, options.kv_heads, "--kv-heads")
    if options.clip is not None and not re.fullmatch(CLIP, options.clip):
        raise UsageError(f"--clip {options.clip!r} is no policy",
                         "none, global:1, layer:1, or quantile:0.9")  # fmt: skip
    _hold_mesh(options)
    _hold_here(options)


def _hold_mesh(options: Options) -> None:
    if options.mesh is None:
        return
    if not re.fullmatch(r"[1-9]\d{0,5}x[1-9]\d{0,5}", options.mesh):
        raise UsageError(f"--mesh {options.mesh!r} is no mesh",
                         "--mesh 2x4: two replicas, each sharded over four ranks")  # fmt: skip
    replicas, pieces = map(int, options.mesh.split("x"))
    alone = not are_many(options) and options.ranks is not None
    if alone and replicas * pieces != options.ranks:
        raise UsageError(
            f"--mesh {options.mesh} is of {replicas * pieces} ranks, and there are {options.ranks}",
            f"--ranks {replicas * pieces} --mesh {options.mesh}",
        )
    if options.sharding != "fsdp":
        raise UsageError("--mesh says how FSDP shards, and --sharding is not fsdp",
                         f"--sharding fsdp --mesh {options.mesh}")  # fmt: skip


def _hold_here(options: Options) -> None:
    """Where another host trains the working folder is another."""
    for name in ("data", "folder"):
        value = getattr(options, name)
        if value is not None and are_many(options) and not value.startswith("/"):
            raise UsageError(f"--{name} {value!r} is in the working folder, and other hosts train",
                             f"--{name} /a/folder/that/they/have")  # fmt: skip
        if value is not None and not are_many(options):
            _hold_folder(name, Path(value))
    if options.interface is not None and not re.fullmatch(r"[\w.:@-]{1,15}", options.interface):
        raise UsageError(f"--interface {options.interface!r} is no interface",
                         "`ip -brief address` names them")  # fmt: skip
    if options.interface is not None and not are_many(options):
        there = sorted(name for _, name in socket.if_nameindex())
        if options.interface not in there:
            raise UsageError(f"--interface {options.interface}: this machine has no such interface",
                             f"it has {', '.join(there)}")  # fmt: skip


def _hold_folder(name: str, path: Path) -> None:
    """A folder of this machine that cannot be used."""
    if not path.is_dir():
        what = "is no folder" if path.exists() else "is not there"
        hint = f"mkdir -p {quote(str(path))}" if name == "folder" else "--data DIR with shards"
        hint = f"--{name} {quote(str(path.parent))}" if path.exists() else hint
        raise UsageError(f"--{name} {path} {what}", hint)
    if name == "folder" and not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"--folder {path} cannot be written", "--folder DIR of your own")


def _steps(options: Options) -> int | None:
    """Of the run, where they are known before anything is asked."""
    preset = options.preset or ("cpu-tiny" if has_no_gpu(options) else None)
    return options.steps or (PRESETS[preset].steps if preset else None)


def estimate(plan: dict[str, Any]) -> str:
    """What it takes, for --dry-run."""
    if plan.get("sweep"):
        took = format_duration(seconds(plan))
        return f"about {took} for the sweep; removed afterwards what it writes"
    named = plan.get("preset", "")
    folder = plan.get("folder") or "the temporary folder"
    shown = [named] if named else ["cpu-tiny", "gpu-small"]
    pieces = []
    for name in shown:
        of = PRESETS[name]
        written = format_bytes(int(_CHECKPOINTS * of.checkpoint_bytes))
        pieces.append(f"{name} about {of.seconds} s and {written} in {folder}, removed")
    return ", or on GPUs ".join(pieces)


def told_of(told: dict[str, Any]) -> str:
    """A line of the payload in words for a terminal; "" for one that is no news."""
    say = _NEWS.get(str(told.get("kind", "")))
    try:
        return say(told) if say else ""
    except (KeyError, TypeError, ValueError):
        return ""


_LAUNCHES = {"whole": "training", "killed": "training, to be killed", "resumed": "resumed"}


def _step(told: dict[str, Any]) -> str:
    launch = _LAUNCHES.get(told.get("launch", ""), "training")
    return f"{launch}: step {int(told['step'])}, loss {float(told['loss']):.3f}"


_NEWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "begin": lambda told: f"{told['plan']['preset']}: the ranks start",
    "compiling": lambda _: "compiling: the first step can take minutes",
    "proof": lambda told: f"proving: {told['name']}",
    "step": _step,
    "saving": lambda told: f"saving at step {int(told['step_at'])}",
    "killed": lambda told: f"rank {int(told['rank'])} was killed; resuming",
    "resumed": lambda told: f"resumed from step {int(told['step_from'])}",
    **NEWS,
}
