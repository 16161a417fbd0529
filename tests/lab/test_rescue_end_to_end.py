"""A run is made to diverge, and its newest checkpoint from before is damaged; the commands of the
plan, typed as they stand, bring it back, and the loss goes on falling."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean

from tests.cli.command import preflight

_SPOILED, _UNTIL = 180, 220


def train(folder: Path, log: Path, *more: str) -> list[dict[str, float]]:
    """The job, from where `latest` says to the end."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.lab.long_run", str(folder), str(_UNTIL),
         str(log), *more], check=True, timeout=120,
    )  # fmt: skip
    return [json.loads(line) for line in log.read_text().splitlines()]


def plan(log: Path, saves: Path) -> tuple[str, list[str]]:
    """What is chosen, and the steps, without their numbers."""
    ran = preflight("divergence-rescue", str(log), "--checkpoints", str(saves), "--format", "json")
    assert ran.rc == 1, ran.err
    told = json.loads(ran.out)["findings"]
    (found,) = [one for one in told if one["finding"] == "rescue"]
    return found["subject"], [re.sub(r"^\d+\. ", "", one) for one in found["fix"]]


def shell(steps: list[str], beginning: str) -> None:
    """The commands of a step: what stands behind the colon that ends its words."""
    (step,) = [one for one in steps if one.startswith(beginning)]
    command = re.sub(r" \(or --execute \w+\)$", "", step)
    command = command[re.search(r": (?=mkdir |echo )", command).end() :]  # type: ignore[union-attr]
    subprocess.run(["sh", "-ec", command], check=True)


def test_a_run_that_diverged_is_brought_back(tmp_path: Path) -> None:
    folder, log, saves = tmp_path / "run", tmp_path / "train.log", tmp_path / "run" / "ck"
    diverged = train(folder, log, "--spoil", str(_SPOILED))
    assert mean(one["loss"] for one in diverged[-10:]) > 2 * diverged[_SPOILED - 1]["loss"]
    # That which would be taken: the newest that is old enough.
    victim = next((saves / "step-00000060").glob("*.distcp"))
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 0x10
    victim.write_bytes(data)

    chosen, steps = plan(log, saves)
    assert chosen == str(saves / "step-00000030")
    for beginning in ("keep the evidence", "move away", "let latest name it"):
        shell(steps, beginning)
    assert (saves / "latest").read_text() == "step-00000030"
    assert [path.name for path in saves.glob("step-*")] == ["step-00000030"]
    assert (saves / "evidence" / "train.log").read_bytes() == log.read_bytes()

    rate = next(float(one.split()[-1]) for one in steps if one.startswith("change one thing"))
    peak = max(one["lr"] for one in diverged[: _SPOILED - 10])
    assert 0.85 * peak < rate < 0.95 * peak
    again = tmp_path / "again.log"
    rescued = train(folder, again, "--rate", str(rate / peak))
    assert rescued[0]["step"] == 31
    assert abs(rescued[0]["loss"] - diverged[30]["loss"]) < 0.15
    assert mean(one["loss"] for one in rescued[-10:]) < diverged[_SPOILED - 1]["loss"] + 0.05
    assert preflight("divergence-rescue", str(again)).rc == 0
