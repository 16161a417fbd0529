"""What an estimate concludes, and what it says of options and numbers that it lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command import preflight

BIG = ("estimate", "--params", "70e9", "--tokens", "2e12", "--gpus", "64", "--mfu", "40")
H100 = ("--gpu", "NVIDIA H100 80GB HBM3")


def _told(*more: str, rc: int = 0) -> dict[str, Any]:
    ran = preflight(*BIG, *more, "--format", "json")
    assert ran.rc == rc, ran.out + ran.err
    report: dict[str, Any] = json.loads(ran.out)
    report["found"] = {one["finding"]: one for one in report["findings"]}
    report["tables"] = {one["table"]: one for one in report["measurements"]}
    return report


def test_a_state_that_no_gpu_of_the_run_holds_fails_and_names_what_to_change() -> None:
    found = _told(*H100, "--sharding", "ddp", rc=1)["found"]["estimate.memory"]
    assert found["status"] == "FAIL"
    assert "1.12 TB a GPU, of 85.9 GB" in found["subject"]
    assert found["fix"] == ["--sharding fsdp: at least 17.5 GB a GPU"]
    few = _told(*H100, "--gpus", "8", rc=1)["found"]["estimate.memory"]
    assert "--sharding fsdp on 14 GPUs at least" in few["fix"]
    assert _told(*H100, "--gpus", "14")["found"]["estimate.memory"]["status"] == "PASS"


def test_the_tokens_of_a_pass_are_held_against_the_memory_too() -> None:
    shape = ("--layers", "80", "--width", "8192", "--tokens-per-gpu")
    found = _told(*H100, *shape, "65536", rc=1)["found"]["estimate.memory"]
    [fewer] = [one for one in found["fix"] if one.startswith("--tokens-per-gpu")]
    assert _told(*H100, *shape, fewer.split()[1])["found"]["estimate.memory"]["status"] == "PASS"


@pytest.mark.parametrize("name", ["NVIDIA GH200 480GB", "NVIDIA H200"])
def test_a_name_that_tells_no_memory_of_the_gpu_is_held_against_nothing(name: str) -> None:
    told = _told("--gpu", name, "--sharding", "ddp")
    assert "estimate.memory" not in told["found"]
    lacking = [row["for"] for row in told["tables"]["estimate: not in it"]["rows"]]
    assert "whether the state fits on a GPU" in lacking


def test_what_is_not_known_is_no_zero_and_an_option_without_use_is_named() -> None:
    told = _told(*H100, "--stall", "30s", "--price", "2")
    assert "idle_gpu_hours_likely" not in told["tables"]["estimate: time"]["numbers"]
    bill = [row["part"] for row in told["tables"]["estimate: bill"]["rows"]]
    assert bill == ["GPU-hours", "all of these"]
    time = told["found"]["estimate.time"]["subject"]
    assert "not in it: saving, waiting, failures" in time
    lacking = told["tables"]["estimate: not in it"]["rows"]
    [row] = [one for one in lacking if "--stall (not used)" in one["for"]]
    assert "--interval" in row["needs"]
    used = _told(*H100, "--stall", "30s", "--interval", "1h", "--price", "2")
    assert used["tables"]["estimate: time"]["numbers"]["idle_gpu_hours_likely"] > 0
    assert "not used" not in json.dumps(used["tables"]["estimate: not in it"])


@pytest.mark.parametrize(
    "option",
    [("--restart", "5m"), ("--accumulation", "4"), ("--keep", "5"), ("--transfers", "3"),
     ("--length", "8192"), ("--layers", "80"), ("--tokens-per-gpu", "8192")],
)  # fmt: skip
def test_an_option_that_changes_nothing_is_told(option: tuple[str, str]) -> None:
    rows = _told(*H100, *option)["tables"]["estimate: not in it"]["rows"]
    assert any(f"{option[0]} (not used)" in row["for"] for row in rows)


def test_failures_without_a_restart_say_so() -> None:
    told = _told(*H100, "--mtbf", "2d", "--interval", "1h")["tables"]["estimate: time"]
    [row] = [one for one in told["rows"] if one["part"] == "failures"]
    assert "without restarts" in row["how"]


def test_a_stated_mfu_lacks_nothing_of_communication() -> None:
    rows = _told(*H100)["tables"]["estimate: not in it"]["rows"]
    assert not [row for row in rows if "communication of" in row["for"]]


def test_a_stated_mfu_that_sending_rules_out_warns() -> None:
    """6 x 70e9 B at 1 GB/s take 420 s of a pass, whose 8192 tokens compute for 8.7 s."""
    sending = (*H100, "--busbw", "1", "--tokens-per-gpu")
    found = _told(*sending, "8192")["found"]["estimate.communication"]
    assert found["status"] == "WARN"
    assert f"{420 / (6 * 70e9 * 8192 / (0.4 * 989.4e12)):.1f} times" in found["subject"]
    assert "estimate.communication" not in _told(*sending, "400000")["found"]


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090", "AMD Instinct MI300X"])
def test_the_peak_of_a_gpu_that_has_no_known_one_can_be_stated(name: str) -> None:
    [fix] = _told("--gpu", name, rc=3)["found"]["estimate.time"]["fix"]
    assert "--peak" in fix
    numbers = _told("--gpu", name, "--peak", "165")["tables"]["estimate: time"]["numbers"]
    assert numbers["compute_s_likely"] == pytest.approx(6 * 70e9 * 2e12 / (64 * 0.4 * 165e12))
    assert preflight(*BIG, "--peak", "nan").rc == 2
