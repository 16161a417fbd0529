"""How long nvidia-smi took, and what is loaded beside the driver."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result
from tests.conftest import sample
from tests.written import MODULES

H100 = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")


def _judge(*raws: Raw) -> dict[str, Result]:
    found = examine("node-07", raws, load(("gpu",)).checks).results
    return {one.check: one for one in found}


def _timed(text: str, seconds: float, argv: tuple[str, ...] = ("nvidia-smi",)) -> Result:
    raw = Raw("node-07", "nvidia-smi-q", argv, 0, text, elapsed_s=seconds)
    return _judge(raw)["gpu.driver.answer_time"]


def test_the_limit_grows_with_the_gpus_and_shows_its_arithmetic() -> None:
    eight = _timed(H100, 9.1)
    assert (eight.status.value, eight.measured, eight.unit) == ("WARN", 9.1, "s")
    assert eight.expected == "at most 9 (5 s + 8 x 0.5 s for each GPU)"
    assert _timed(H100, 8.9).status.value == "PASS"
    one = sample("nvidia_smi_q/titan_v_560.35_workstation.txt")
    assert "5 s + 1 x 0.5 s" in _timed(one, 60.0).expected


def test_a_paste_does_not_tell_how_long_it_took() -> None:
    assert _timed(H100, 60.0, ()).status.value == "SKIP"


def test_without_persistence_mode_every_call_is_slow_by_design() -> None:
    off = H100.replace(
        "Persistence Mode                      : Enabled",
        "Persistence Mode                      : Disabled",
    )
    assert off != H100
    slow = _timed(off, 25.0)
    assert (slow.status.value, slow.measured) == ("SKIP", 25.0)
    assert "without persistence mode" in slow.reason


def _beside(modules: str, pci: str = "") -> dict[str, Result]:
    raws = [
        Raw("node-07", "driver-module", ("sh",), 0, modules),
        Raw("x", "nvidia-smi-q", (), 0, H100),
    ]
    return _judge(*raws, *([Raw("node-07", "pci", ("sh",), 0, pci)] if pci else []))


def test_an_old_card_that_draws_the_console_is_left_to_nouveau() -> None:
    both = MODULES.replace("nvidia_uvm", "nouveau 1 1 - Live 0x0\nnvidia_uvm", 1)
    driven = "".join(f"0000:{n:02x}:00.0 0x030200 0x10de 0x2330 nvidia\n" for n in range(16, 24))
    old = "0000:04:00.0 0x030000 0x10de 0x128b nouveau\n"
    assert _beside(both, driven + "end\n")["gpu.driver.nouveau"].status.value == "WARN"
    assert _beside(both, driven + old + "end\n")["gpu.driver.nouveau"].status.value == "SKIP"


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        (("nvidia-modprobe: no", "nvidia-modprobe: yes"), "PASS"),
        (("nvidia-modprobe: no", "nvidia-modprobe: no"), "WARN"),
    ],
)
def test_uvm_that_is_not_loaded_yet(edit: tuple[str, str], status: str) -> None:
    text = "".join(
        f"{line}\n" for line in MODULES.splitlines() if not line.startswith("nvidia_uvm")
    )
    assert _beside(text.replace(*edit))["gpu.driver.uvm"].status.value == status
