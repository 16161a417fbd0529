"""Checks that hold a GPU against what its model is by design, and leave alone what it is not."""

from __future__ import annotations

import re

import pytest

from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.model import Raw, Result, Status
from tests.conftest import sample

CHECKS = load(DOMAINS).checks
V100 = sample("nvidia_smi_table/v100_pcie_x4_410.48.txt")
BRAKE = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
A100 = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
A10G = sample("nvidia_smi_xml/a10g_515.105.xml")


def judged(check: str, probe: str, text: str) -> list[Result]:
    raws = [Raw("node-07", probe, stdout=text)]
    return [one for one in examine("node-07", raws, CHECKS).results if one.check == check]


def test_the_power_limit_of_the_model_stands_in_for_the_cards_default() -> None:
    capped = V100.replace("55W / 250W", "55W / 200W")
    first, second, *_ = judged("gpu.power.limit", "nvidia-smi-table", capped)
    assert (first.status, first.measured, first.unit) == (Status.WARN, 200, "W")
    assert first.expected == "at least 250 (Tesla V100-PCIE... by design)"
    assert second.status is Status.PASS
    # A card that tells its default is held against that.
    found = judged("gpu.power.limit", "nvidia-smi", A100.replace("SXM4-80GB", "PCIE-40GB"))
    assert [(one.status, "the card's default" in one.expected) for one in found] == [
        (Status.PASS, True)
    ]


def test_no_promise_no_judgement() -> None:
    text = V100.replace("Tesla V100-PCIE...", "NVIDIA Z9000      ")
    assert {one.status for one in judged("gpu.power.limit", "nvidia-smi-table", text)} == {
        Status.SKIP
    }


@pytest.mark.parametrize("product", ["NVIDIA H100 80GB HBM3", "NVIDIA Z9000"])
def test_a_failed_remap_fails_also_on_a_model_that_is_not_known(product: str) -> None:
    text = BRAKE.replace("NVIDIA H100 80GB HBM3", product)
    text = re.sub(r"(Remapping Failure Occurred +: )No", r"\1Yes", text)
    found = judged("gpu.remap.failure", "nvidia-smi-q", text)
    assert [one.status for one in found] == [Status.FAIL] * 8


def test_what_belongs_to_another_generation_is_skipped_and_says_so() -> None:
    (retired,) = judged("gpu.retired.pending", "nvidia-smi", A100)
    assert retired.status is Status.SKIP
    assert "design.repairs" in retired.reason
    first, *_ = judged("gpu.remap.failure", "nvidia-smi-table", V100)
    assert (first.status, "design.repairs" in first.reason) == (Status.SKIP, True)


def test_a_slot_that_can_do_less_than_the_card() -> None:
    narrow = BRAKE.replace("Max                       : 16x", "Max                       : 8x", 1)
    narrow = narrow.replace("Current                   : 16x", "Current                   : 8x", 1)
    assert narrow != BRAKE
    slot = judged("pcie.width.slot", "nvidia-smi-q", narrow)
    assert [one.status for one in slot] == [Status.WARN, *[Status.PASS] * 7]
    # By itself the link is as wide as card and slot can both do.
    assert {one.status for one in judged("pcie.width", "nvidia-smi-q", narrow)} == {Status.PASS}


def test_a_cloud_shows_the_slot_as_it_likes() -> None:
    for check in ("pcie.width", "pcie.width.slot", "pcie.gen.slot"):
        assert [one.status for one in judged(check, "nvidia-smi", A10G)] == [Status.SKIP]
