"""Reports of micro-train: each injected fault is the first cause, and a sound run has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.diagnosis.test_samples_diagnosed import found_in, told

#: Recorded run -> what is found first.
TABLE = {
    "injected_slow_rank": "FAIL straggler rank 1",
    "injected_slow_loader": "FAIL data-wait",
    "injected_kill": "FAIL crash rank 1",
    "injected_stop": "FAIL hang rank 1",
    "injected_nan": "FAIL not-training",
    "injected_corrupt_checkpoint": "PASS healthy",
    "injected_flip_weight": "PASS healthy",
    "cpu_ddp_x2": "PASS healthy",
    "cpu_fsdp_x2": "PASS healthy",
    "cpu_single_fp16": "PASS healthy",
}


@pytest.mark.parametrize("name", TABLE)
def test_a_run_of_micro_train_is_judged_by_its_report(tmp_path: Path, name: str) -> None:
    report = tmp_path / "train.json"
    recorded = str(SAMPLES / "micro_train" / f"{name}.jsonl")
    preflight("micro-train", "--from", recorded, "--save", str(report))
    assert told(found_in(report))[0] == TABLE[name]


def test_a_report_without_a_run_says_what_would_have_one(tmp_path: Path) -> None:
    report = tmp_path / "other.json"
    preflight("gpu-health", "--from", str(SAMPLES / "dmon" / "one_gpu_7000mhz_ramp_up.txt"),
              "--save", str(report))  # fmt: skip
    (found,) = found_in(report)
    assert found.text.startswith("INCOMPLETE") and "micro-train" in found.fix[0]
