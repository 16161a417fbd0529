"""The benchmarks of training: what they compute, and a rehearsal of them without a GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.table import Row
from bench.turns import PROCESSOR, WARM, ratio, taken
from tests.conftest import require, sample

ROOT = Path(__file__).resolve().parents[2]


def test_the_turns_are_fair() -> None:
    """Each has one turn in each round, no place in the round is always the same one's."""
    order: list[str] = []
    turns = {name: lambda name=name: order.append(name) for name in ("ours", "plain")}
    found = taken(turns, 40, lambda: None)
    assert len(found) == 40
    assert all({"ours", "plain", "ours" + PROCESSOR} <= set(one) for one in found)
    rounds = [order[at : at + 2] for at in range(0, len(order), 2)]
    assert len(rounds) == 40 + WARM
    assert all(sorted(one) == ["ours", "plain"] for one in rounds)
    assert 10 < sum(one[0] == "ours" for one in rounds) < 35


def test_a_small_difference_is_seen_below_large_noise() -> None:
    """What disturbs a round disturbs both: 3 % show where rounds scatter by a factor of two."""
    draw = random.Random(3)
    noise = [(draw.uniform(1, 2), draw.gauss(1, 0.02), draw.gauss(1, 0.02)) for _ in range(300)]
    found = [{"ours": 1.03 * both * one, "plain": both * other} for both, one, other in noise]
    told = ratio(found, "ours", "plain")
    assert told.low < 1.03 < told.high
    assert told.low > 1.02
    assert told.percent().startswith("+3.") or told.percent().startswith("+2.")


def ran(*asked: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, "-m", "bench.gpu", *asked],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_without_a_gpu_nothing_is_measured() -> None:
    done = ran("--only", "single")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "GPU" in done.stderr or "torch" in done.stderr


def test_the_gpu_test_needs_nothing_but_torch() -> None:
    require("torch", importlib.util.find_spec("torch") is not None)
    text = (
        "import sys, bench.gpu, bench.gpu_stress, bench.training\n"
        "import preflight.payload.training.harness\n"
        "print({'msgspec', 'yaml', 'typer', 'rich'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout == "set()\n"


def test_the_gpu_test_in_rehearsal(tmp_path: Path) -> None:
    require("torch", importlib.util.find_spec("torch") is not None)
    figures = tmp_path / "figures.json"
    done = ran("--device", "cpu", "--only", "single,hashes,fp16", "--json", str(figures))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["what"]: row for row in json.loads(figures.read_text())["rows"]}
    assert rows["losses, gradients, parameters of four trials"]["reached"] == "1 different"
    assert rows["resumed, its first loss apart"]["reached"] == "0"
    assert rows["resumed, samples"]["reached"] == "the same"
    assert rows["fp16, lowest scale of the loss"]["met"]
    assert all(what in done.stdout for what in rows)


def test_the_four_loops_do_the_same_work(tmp_path: Path) -> None:
    """How fast is another matter: other tests run beside."""
    require("torch", importlib.util.find_spec("torch") is not None)
    figures = tmp_path / "figures.json"
    ran("--device", "cpu", "--only", "overhead", "--json", str(figures))
    rows = {row["what"]: row for row in json.loads(figures.read_text())["rows"]}
    assert rows["cpu-tiny, 1 x cpu: losses of the four apart"]["reached"] == "0.0e+00"
    assert "cpu-tiny, 1 x cpu: speed beside a plain loop" in rows


def test_what_the_device_drew_is_told_where_it_was_sampled() -> None:
    from bench import gpu

    assert gpu.power([{"kind": "device", "power_w": None, "sm_clock_mhz": 1980}]) == []
    told = [{"kind": "device", "power_w": 500.0 + 100 * at, "sm_clock_mhz": 1900} for at in (0, 1)]
    (row,) = gpu.power(told)
    assert row.reached == "550 W, 1900 MHz"


def test_stress_of_a_device_is_held_against_what_it_can_do() -> None:
    from bench import gpu_stress

    lines = [json.loads(one) for one in sample("stress/cpu_x1.jsonl").splitlines()]
    lines.append({"kind": "memory", "name": "copy", "bytes": 1, "bytes_per_s": {"median": 4.2e12}})
    best = gpu_stress.Best(512, 0.5e12)
    rows = gpu_stress.shown(lines, 8.0, best, "NVIDIA H200, 570.86")
    assert {row.what for row in rows if not row.met} == {"stress, memory: copy, of 4800 GB/s"}
    assert [row.reached for row in rows if row.what.endswith("4800 GB/s")][-1] == "87.5 %"
    broken = [{**one, "errors": 3} if one.get("kind") == "pattern" else one for one in lines]
    wrong = [row for row in gpu_stress.shown(broken, 8.0, best, "") if not row.met]
    assert [row.reached for row in wrong] == ["15"]
    slow = gpu_stress.shown(lines, 91.0, gpu_stress.Best(512, 9e12), "")
    assert [row.what.split(",")[0] for row in slow if not row.met] == [
        "stress of one device",
        "stress",
    ]


def test_a_part_that_fails_is_a_missed_target() -> None:
    from bench import gpu

    def broken(_: gpu.Bench) -> list[Row]:
        raise RuntimeError("rank 0 died")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(gpu.PARTS, "single", broken)
        (row,) = gpu.tried("single", gpu.Bench("cpu"))
    assert "rank 0 died" in row.what
    assert not row.met
