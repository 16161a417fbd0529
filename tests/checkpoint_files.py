"""Checkpoints as the libraries write them, and ways to harm them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from preflight.checkpoints.lines import scans
from preflight.diagnosis.checkpoint.whole import Verdict, verdict
from preflight.facts.checkpoints import Scan
from preflight.payload.checkpoint.harness import harness
from preflight.payload.checkpoint.plan import Plan

_SAFE = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64"}


def scanned(*paths: Path, **plan: Any) -> tuple[Scan, ...]:
    """What the payload tells of the paths, read as it is read of a host."""
    lines: list[str] = []
    harness(Plan(tuple(map(str, paths)), **plan), lambda line: lines.append(json.dumps(line)))
    return scans("\n".join(lines))


def verified(*paths: Path, **plan: Any) -> Verdict:
    """The verdict on the paths."""
    return verdict(scanned(*paths, **plan))


def names(found: Verdict) -> list[str]:
    """What became of each checkpoint, the newest first."""
    return [one.finding.finding.partition(".")[2] for one in found.judged]


def state(seed: int = 1, rows: int = 40, **more: Any) -> dict[str, Any]:
    """The state of a small run: model, optimizer, scheduler, random numbers."""
    made = torch.Generator().manual_seed(seed)
    model = {
        "embed.weight": torch.randn(rows, 64, generator=made),
        "layers.0.w": torch.randn(64, 64, generator=made).bfloat16(),
        "norm.bias": torch.zeros(64),
    }
    moments = {at: {"exp_avg": torch.randn(64, 64, generator=made)} for at in range(2)}
    return {
        "model": model, "optimizer": {"state": moments, "param_groups": [{"lr": 1e-4}]},
        "lr_scheduler": {"last_epoch": seed}, "rng_state": torch.get_rng_state(),
        "iteration": seed, **more,
    }  # fmt: skip


def save_safetensors(path: Path, tensors: dict[str, torch.Tensor], **about: str) -> Path:
    """As the library does it: header, padded to eight bytes, then the values."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt", **about}}
    data, at = [], 0
    for name, one in tensors.items():
        raw = bytes(one.contiguous().view(torch.uint8).numpy().tobytes()) if one.dim() else b""
        header[name] = {"dtype": _SAFE[one.dtype], "shape": list(one.shape),
                        "data_offsets": [at, at + len(raw)]}  # fmt: skip
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
    return path


def save_sharded(folder: Path, shards: Sequence[dict[str, torch.Tensor]]) -> Path:
    """A model of several files and their index."""
    listed, count = {}, len(shards)
    for at, shard in enumerate(shards, 1):
        name = f"model-{at:05d}-of-{count:05d}.safetensors"
        save_safetensors(folder / name, shard)
        listed.update(dict.fromkeys(shard, name))
    total = sum(one.nbytes for shard in shards for one in shard.values())
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": listed})
    (folder / "model.safetensors.index.json").write_text(text)
    return folder


def save_trainer(folder: Path, step: int, ranks: int = 2) -> Path:
    """A checkpoint of the Trainer of transformers: weights, optimizer, scheduler, random states."""
    whole = state(step)
    save_sharded(folder, [whole["model"], {"head.weight": torch.randn(40, 64)}])
    torch.save(whole["optimizer"], folder / "optimizer.pt")
    torch.save(whole["lr_scheduler"], folder / "scheduler.pt")
    for rank in range(ranks):
        torch.save({"cpu": torch.get_rng_state()}, folder / f"rng_state_{rank}.pth")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    (folder / "config.json").write_text(json.dumps({"vocab_size": 40, "hidden_size": 64}))
    return folder


def changed(path: Path, at: int, to: bytes) -> None:
    """Overwrite bytes of a file in place; from the end where `at` is negative."""
    with path.open("r+b") as file:
        file.seek(at, 0 if at >= 0 else 2)
        file.write(to)


def flipped(path: Path, at: int) -> None:
    """One bit of the byte there is another."""
    data = path.read_bytes()
    changed(path, at, bytes([data[at] ^ 0x10]))


def cut(path: Path, to: int) -> None:
    """Only so many bytes are left; from the end where it is negative."""
    data = path.read_bytes()
    path.write_bytes(data[:to])


def each(paths: Sequence[Path], harm: Callable[[Path], None]) -> None:
    """The same harm to all."""
    for path in paths:
        harm(path)
