"""Memory: what a rank takes is foreseen, and that it ran out is named."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from preflight.payload import host_memory, ranks
from preflight.payload.training import fits, harness, memory, room, work
from preflight.payload.training.model import Decoder
from preflight.payload.training.plan import Plan
from preflight.payload.training.presets import PRESETS, Preset, chosen
from tests.payload.training.runs import of, told

GIB = 1 << 30


def kept(shape: Preset, *, recompute: bool) -> int:
    """Bytes that torch itself keeps for backward, of a forward pass here."""
    model = Decoder(shape, recompute=recompute)
    own = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    found: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.zeros((shape.batch, shape.length), dtype=torch.long)
    half = torch.autocast("cpu", torch.bfloat16) if shape.precision == "bf16" else nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one), half:
        model(ids, ids)
    return sum(found.values())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_bound_is_below_what_torch_keeps_and_near_it(precision: str, recompute: bool) -> None:
    shape = chosen("cpu-tiny", layers=4, width=256, hidden=704, vocabulary=512, batch=16,
                   precision=precision)  # fmt: skip
    plan = Plan(recompute=recompute)
    tokens = shape.batch * shape.length
    # Of the logits' gradient nothing is there after forward; of one block that is computed again.
    later = 4 * shape.vocabulary
    if recompute:
        size = 4 if precision == "fp32" else 2
        later += fits._block(plan, shape, size)
    bound = fits.needs(plan, shape).activations - tokens * later
    counted = kept(shape, recompute=recompute)
    assert 0.3 * counted < bound <= counted


def gpus(free_gib: int) -> list[dict[str, Any]]:
    return [{"memory_bytes": 80 * GIB, "free_bytes": free} for free in (70 * GIB, free_gib * GIB)]


def test_what_does_not_fit_on_a_gpu_is_told_with_what_would() -> None:
    plan = Plan(preset="gpu-1b", device="cuda", ranks=2)
    text = fits.reason(plan, PRESETS["gpu-1b"], gpus(40))
    assert text.startswith("a rank takes at least 47 GiB of memory (12.3 GiB weights and optimizer")
    assert text.endswith("and GPU 1 has 40 GiB free: take --batch 4 or --activation-checkpointing")
    assert fits.reason(plan, PRESETS["gpu-1b"], gpus(60)) == ""
    small = fits.reason(plan, PRESETS["gpu-1b"], gpus(8))
    assert small.endswith("free: take a smaller --preset")


def test_what_is_named_instead_fits() -> None:
    plan, shape = Plan(preset="gpu-1b", device="cuda", ranks=2), PRESETS["gpu-1b"]
    assert not fits.reason(plan, replace(shape, batch=4), gpus(40))
    assert not fits.reason(replace(plan, recompute=True), shape, gpus(40))
    assert "--sharding fsdp" in fits.reason(
        Plan(device="cuda", ranks=2, recompute=True), shape, gpus(18)
    )


def test_ranks_on_processors_share_the_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "available_bytes", lambda: 8 * GIB)
    (cannot,) = of(told(ranks=2, changes={"batch": 100_000}), "cannot")
    text = cannot["text"]
    assert text.startswith("2 ranks take at least ")
    assert "and this host has 8 GiB free: take --batch " in text


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_fit_where_they_are_said_to(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "available_bytes", lambda: GIB)
    room = {"gpu-small": 8, "gpu-1b": 64, "gpu-7b-slice": 32, "cpu-tiny": 1}[preset] * 10**9
    device = "cpu" if preset == "cpu-tiny" else "cuda"
    shape = PRESETS[preset]
    assert not fits.reason(Plan(preset=preset, device=device, ranks=1), shape,
                           [{"memory_bytes": room, "free_bytes": None}])  # fmt: skip


def files(monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    meminfo = {"/proc/meminfo": "MemTotal: 64 kB\nMemAvailable: 4000 kB\nSwapFree: 96 kB\n"}
    paths = meminfo | {name.replace("__", "/"): text for name, text in texts.items()}
    monkeypatch.setattr(host_memory, "_text", lambda path: paths.get(path, ""))


def test_memory_that_can_be_had_is_the_least_of_host_and_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files(monkeypatch)
    assert host_memory.available_bytes() == 4096 * 1024
    at = "/sys/fs/cgroup/a"
    paths = {
        "/proc/self/cgroup": "0::/a/b\n", f"{at}/b/memory.max": "max\n",
        f"{at}/b/memory.current": "70\n", f"{at}/memory.max": "1000\n",
        f"{at}/memory.current": "900\n", f"{at}/memory.stat": "anon 300\ninactive_file 250\n",
        f"{at}/b/memory.events": "oom 3\noom_kill 2\n",
    }  # fmt: skip
    monkeypatch.setattr("os.path.exists", lambda path: path in paths)
    files(monkeypatch, **paths)
    assert host_memory.available_bytes() == 350
    assert host_memory.oom_kills() == 2


def test_the_kernels_kills_are_those_of_the_host_where_no_group_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files(monkeypatch, **{"/proc/vmstat": "pgfault 9\noom_kill 5\n"})
    assert host_memory.oom_kills() == 5
    files(monkeypatch, **{"/proc/meminfo": ""})
    assert host_memory.available_bytes() is None


def test_a_host_that_runs_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_work", lambda *_: torch.empty(1 << 50, dtype=torch.uint8))
    (failed,) = of(told(ranks=1), "failed")
    assert failed["error"] == "OutOfMemoryError"
    assert "can't allocate memory: you tried to allocate 1125899906842624 bytes" in failed["text"]
    assert failed["text"].endswith("iB free)")
    assert memory.exhausted(MemoryError()).startswith("MemoryError (this host has ")
    assert memory.exhausted(RuntimeError("shapes do not match")) == ""


def test_a_rank_that_the_kernel_ended_for_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([3, 4])
    monkeypatch.setattr(ranks, "oom_kills", lambda: next(counts))
    (died,) = ranks.Launch(1, lambda _: os.kill(os.getpid(), signal.SIGKILL), silent_s=30).lines()
    assert (died["status"], died["oom_kills"]) == (-9, 1)


def test_a_folder_that_is_too_small_is_told_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, plan = chosen("cpu-tiny"), Plan(device="cpu", preset="cpu-tiny", ranks=2)
    size = room.needed(plan, shape)
    assert 15e6 < size < 25e6
    assert room.needed(replace(plan, resume=False), shape) < size
    assert room.needed(replace(plan, hosts=["a", "b"]), shape) < 1e6  # no folder that both see
    for free, said in ((size, ""), (size - 4096, f"and {tmp_path} has ")):
        there = SimpleNamespace(f_bavail=free // 4096 + (free == size), f_frsize=4096)
        monkeypatch.setattr(os, "statvfs", lambda _, there=there: there)
        found = room.reason(replace(plan, folder=str(tmp_path)), shape, [])
        assert said in found and bool(found) == bool(said)
    assert found.endswith("iB free: --folder DIR on another file system")


def test_our_own_folder_has_no_name_in_what_is_told() -> None:
    lines: list[dict[str, Any]] = []
    tell = harness._without("/scratch/.preflight-train-ab12", lines.append)
    tell({"kind": "failed", "rank": 1, "text": "/scratch/.preflight-train-ab12/checkpoints: gone"})
    assert lines == [{"kind": "failed", "rank": 1, "text": "/scratch/.../checkpoints: gone"}]
