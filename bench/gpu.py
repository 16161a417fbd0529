"""What training and stress do on one GPU, against what they must do: `make gpu-test`.

    python -m bench.gpu [--only single,compile,...] [--json FILE] [--device cpu]

It needs this folder and a Python with torch, and no network. With `--device cpu` it is a rehearsal:
the same runs of a small model, without what only a GPU has. docs/measured/README.md says how the
figures are kept.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench.table import Row, show

#: Dense bf16 in 1e12 operations a second, without sparsity, by a part of the device's name: the
#: data sheets of NVIDIA (H200, H100, A100; L40S; B200 from the HGX sheet, halved for dense).
PEAK_TFLOPS = {"H200": 989.4, "H100 PCIe": 756.0, "H100": 989.4, "A100": 311.9, "L40S": 362.0,
               "B200": 2250.0}  # fmt: skip
MFU_PERCENT = 40.0
#: The presets by device: the one that all fits, and the large one.
PRESETS = {"cuda": ("gpu-small", "gpu-1b"), "cpu": ("cpu-tiny", "cpu-tiny")}
SMALL_CPU = {"layers": 1, "width": 64, "hidden": 128, "length": 64, "batch": 4}
_WARM = 5
_BAD = ("cannot", "failed", "died", "silent", "interrupted")

Lines = list[dict[str, Any]]


class Bench:
    """Runs of the harness on one device; the first one is kept, for others to be held against."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.small, self.large = PRESETS[device]
        self.first: Lines = []

    def run(self, preset: str = "", **asked: Any) -> Lines:
        """One run's lines. Raises RuntimeError where it did not come to its end."""
        from preflight.payload.training.harness import harness
        from preflight.payload.training.plan import Plan

        small = SMALL_CPU if self.device == "cpu" else {}
        changes = {**small, **asked.pop("changes", {})}
        lines: Lines = []
        began = time.monotonic()
        plan = Plan(preset=preset or self.small, device=self.device, ranks=1, sharding="single",
                    changes=changes, silent_s=120.0, **asked)  # fmt: skip
        harness(plan, lines.append)
        bad = [one for one in lines if one["kind"] in _BAD]
        if bad:
            raise RuntimeError("; ".join(str(one.get("text") or one) for one in bad))
        return [*lines, {"kind": "wall", "seconds": time.monotonic() - began}]


def single(bench: Bench) -> list[Row]:
    """The whole run: trained, killed, resumed."""
    bench.first = lines = bench.run()
    wall = lines[-1]["seconds"]
    before, after = steps(lines, "whole"), steps(lines, "resumed")
    at = after[0]["step"]
    apart = abs(after[0]["loss"] - before[at]["loss"]) / before[at]["loss"]
    end = abs(after[-1]["loss"] - before[-1]["loss"]) / before[-1]["loss"]
    same = all(one["samples"] == before[one["step"]]["samples"] for one in after)
    resumed = next(one for one in lines if one["kind"] == "resumed" and one["launch"] == "resumed")
    membership = proof(lines, "membership")
    odd = sum(membership[key] for key in ("missing", "foreign", "repeated"))
    return [
        at_most("whole, killed and resumed", wall, 60.0, "s"),
        *learned(lines),
        at_most("gradients of k x 1 and 1 x k apart", proof(lines, "accumulation")["gradient"],
                5e-2, ""),
        at_most("gradients of fused and written-out attention apart",
                proof(lines, "attention")["gradient"], 5e-2, ""),
        at_most("parameters not once in the optimizer", odd, 0, ""),
        at_most("resumed, its first loss apart", apart, 1e-5, ""),
        Row("resumed, its last loss apart", f"{end:.1e}", "shown", True),
        Row("resumed, samples", "the same" if same else "others", "the same", same),
        at_most("resumed, time to go on", resumed["elapsed_s"], 30.0, "s"),
    ]  # fmt: skip


def hashes(bench: Bench) -> list[Row]:
    """Trials from one seed in deterministic mode: two in each of two processes."""
    # Of the same number of steps: the synthetic tokens depend on it.
    told = [proof(lines, "repeated")["hashes"] for lines in (bench.first or bench.run(),
            bench.run(resume=False))]  # fmt: skip
    different = len({tuple(one) for both in told for one in both})
    what = "losses, gradients, parameters of four trials"
    return [Row(what, f"{different} different", "1 different", different == 1)]


def compiled(bench: Bench) -> list[Row]:
    """The compiled step beside the plain one."""
    eager = bench.first or bench.run(resume=False)
    lines = bench.run(resume=False, compiled=True, changes={"steps": 40})
    faster = step_s(eager) / step_s(lines)
    return [
        at_most("gradients of compiled and eager step apart", proof(lines, "compile")["gradient"],
                5e-2, ""),
        Row("compiled, speed beside eager", f"{faster:.2f} x", "shown", True),
    ]  # fmt: skip


def fp16(bench: Bench) -> list[Row]:
    """Half precision with a scaled loss: it settles, and the model learns."""
    lines = bench.run(resume=False, changes={"precision": "fp16"})
    told = steps(lines, "whole")
    skipped = sum(one["skipped"] for one in told)
    lowest = min(one["scale"] for one in told)
    return [
        at_most("fp16, steps that the scaler skipped", skipped, 10, ""),
        Row("fp16, lowest scale of the loss", f"{lowest:.0f}", ">= 1", lowest >= 1),
        *learned(lines, "fp16, "),
    ]


def mfu(bench: Bench) -> list[Row]:
    """The large preset, compiled: how much of the device it uses."""
    lines = bench.run(bench.large, resume=False, compiled=True, changes={"steps": 40})
    begin = next(one for one in lines if one["kind"] == "begin")
    shape = begin["shape"]
    rate = shape["batch"] * shape["length"] * shape["accumulation"] / step_s(lines)
    name, peak = peak_of()
    used = 100 * rate * begin["flops_per_token"] / (peak * 1e12) if peak else math.nan
    memory = next(one for one in lines if one["kind"] == "memory")
    told = [Row(f"{bench.large}, compiled: tokens/s", f"{rate:,.0f}", "shown", True)]
    told += [Row(f"{bench.large}, compiled: {part}", f"{percent:.1f} %", "shown", True)
             for part, percent in shares(lines).items() if percent >= 0.05]  # fmt: skip
    if peak:
        what = f"{bench.large}, compiled: MFU of {peak:.0f} TFLOP/s ({name})"
        told.append(Row(what, f"{used:.1f} %", f">= {MFU_PERCENT:.0f} %", used >= MFU_PERCENT))
    elif bench.device == "cuda":
        told.append(Row(f"MFU: no peak is known of {name}", "", f">= {MFU_PERCENT:.0f} %", False))
    told += power(lines)
    if "peak_bytes" in memory:
        told.append(
            Row("memory at the peak", f"{memory['peak_bytes'] / 1e9:.1f} GB", "shown", True)
        )
    return told


def power(lines: Lines) -> list[Row]:
    """What the device drew beside the steps, where NVML's Python module is there to ask."""
    sampled = [one for one in lines if one["kind"] == "device" and one["power_w"] is not None]
    if not sampled:
        return []
    watts = fmean(one["power_w"] for one in sampled)
    clock = fmean(one["sm_clock_mhz"] or math.nan for one in sampled)
    return [Row("power and SM clock beside it", f"{watts:.0f} W, {clock:.0f} MHz", "shown", True)]


def overhead(bench: Bench) -> list[Row]:
    """The loop beside itself unwatched, and beside a plain one."""
    from bench import training

    gpu = bench.device == "cuda"
    asked = training.Asked(
        bench.small, bench.device, rounds=30 if gpu else 6, turn=10 if gpu else 1,
        changes=(("batch", 16),) if gpu else (),
    )  # fmt: skip
    return training.rows(asked)


def stress(bench: Bench) -> list[Row]:
    """Every test that `gpu-health --stress` has for one device."""
    from bench import gpu_stress

    return gpu_stress.rows(bench.device, device_line())


PARTS: dict[str, Callable[[Bench], list[Row]]] = {
    "single": single, "hashes": hashes, "compile": compiled, "fp16": fp16, "mfu": mfu,
    "overhead": overhead, "stress": stress,
}  # fmt: skip


def steps(lines: Lines, launch: str) -> Lines:
    """The steps of one launch, in their order."""
    return [one for one in lines if one["kind"] == "step" and one["launch"] == launch]


def proof(lines: Lines, name: str) -> dict[str, Any]:
    found = (one for one in lines if one["kind"] == "proof" and one["name"] == name)
    return next(found)


def step_s(lines: Lines) -> float:
    """The median step, the first ones apart."""
    return float(median(sum(one["seconds"].values()) for one in steps(lines, "whole")[_WARM:]))


def shares(lines: Lines) -> dict[str, float]:
    """Percent of all steps by part, the first ones apart."""
    told = steps(lines, "whole")[_WARM:]
    total = sum(sum(one["seconds"].values()) for one in told)
    return {part: 100 * sum(one["seconds"][part] for one in told) / total
            for part in told[0]["seconds"]}  # fmt: skip


def learned(lines: Lines, what: str = "") -> list[Row]:
    """How far the loss came on its way from chance to the floor."""
    begin = next(one for one in lines if one["kind"] == "begin")
    chance, floor = math.log(begin["shape"]["vocabulary"]), begin["floor_nats"]
    losses = [one["loss"] for one in steps(lines, "whole")]
    last = fmean(losses[-max(1, len(losses) // 10) :])
    way = 100 * (chance - last) / (chance - floor)
    off = abs(losses[0] - chance)
    least = 90.0 if begin["plan"]["device"] == "cuda" else 10.0  # the rehearsal is too small
    return [
        at_most(f"{what}loss at step 0 from ln(vocabulary)", off, 0.5, ""),
        Row(f"{what}loss {losses[0]:.2f} -> {last:.2f}, of the way to the floor", f"{way:.0f} %",
            f">= {least:.0f} %", way >= least),
    ]  # fmt: skip


def at_most(what: str, found: float, limit: float, unit: str) -> Row:
    """A row whose target is an upper bound."""
    shown = f"{found:.1f}" if unit else f"{found:.3g}"
    return Row(what, f"{shown} {unit}".rstrip(), f"<= {limit:g} {unit}".rstrip(), found <= limit)


def peak_of() -> tuple[str, float]:
    """The device's name and its peak; 0 where none is known."""
    name = device_line().split(",")[0]
    return name, next((peak for part, peak in PEAK_TFLOPS.items() if part in name), 0.0)


def device_line() -> str:
    """Name, driver and power limit as nvidia-smi has them. Torch is not asked: the ranks are
    forked from this process, and CUDA must not be started in it."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,power.limit", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.split("\n")[0].strip()


def lacking(device: str) -> str:
    """Why nothing can be measured here; "" where it can."""
    try:
        import torch
    except ImportError as error:
        return f"{sys.executable} has no torch ({error})"
    if device == "cuda" and not torch.cuda.device_count():
        built = torch.version.cuda or "none"
        return f"torch {torch.__version__} (CUDA: {built}) finds no GPU on this machine"
    return ""


def tried(name: str, bench: Bench) -> list[Row]:
    """The rows of a part; one that tells why where there are none."""
    began = time.monotonic()
    try:
        found = PARTS[name](bench)
    except Exception as error:  # noqa: BLE001 - the other parts are still measured
        found = [Row(f"{name}: {type(error).__name__}: {error}"[:200], "", "", False)]
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """0: all targets are met; 1: one is missed; 3: nothing could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu")
    parser.add_argument("--device", choices=tuple(PRESETS), default="cuda")
    parser.add_argument("--only", default="", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list(PARTS)
    if set(names) - set(PARTS):
        parser.error(f"--only: expected some of {', '.join(PARTS)}, got {asked.only}")
    reason = lacking(asked.device)
    if reason:
        print(f"error: {reason}: nothing is measured", file=sys.stderr)
        return 3
    import torch

    warnings.filterwarnings("ignore")  # of torch, about itself
    bench = Bench(asked.device)
    rows = [row for name in names for row in tried(name, bench)]
    title = f"Training and stress on one {device_line() or asked.device}, torch {torch.__version__}"
    if asked.json:
        told = {"title": title, "rows": [row._asdict() for row in rows]}
        asked.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return show(title, rows)


if __name__ == "__main__":
    sys.exit(main())
