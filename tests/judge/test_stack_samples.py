"""Every sample of a report of an environment is judged as its source says."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result, Status
from tests.conftest import sample

#: Sample -> its probe, and what is not well in it: check and subject -> status.
SAMPLES: dict[str, tuple[str, dict[tuple[str, str], str]]] = {
    "torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt": ("collect-env", {
        ("versions.image.mixed", "node-07"): "WARN", ("versions.toolkit.torch", "node-07"): "WARN",
    }),
    "torch_collect_env/sglang_env_h20_x8_driver535_cu129.txt": ("sglang-env", {
        ("versions.cuda.compat", "node-07"): "WARN",
    }),
    "torch_collect_env/rtx3090_x3_torch1.14_nightly_cuda_mismatch.txt": ("collect-env", {
        ("versions.toolkit.torch", "node-07"): "WARN",
        ("versions.packages.torch", "torchvision"): "WARN",
    }),
    "torch_collect_env/rtx4080_torch2.1_conda_short.txt": ("collect-env", {}),
    "ds_report/deepspeed_0.5.4_no_cuda_runtime.txt": ("ds-report", {
        ("versions.torch.finds_gpu", "node-07"): "FAIL",
        ("versions.deepspeed.build", "node-07"): "WARN",
    }),
    "ds_report/deepspeed_0.7.7_polaris_all_prebuilt_ok.txt": ("ds-report", {}),
    "ds_report/deepspeed_0.3.7_no_hip_line.txt": ("ds-report", {}),
}  # fmt: skip


def _judged(probe: str, text: str) -> list[Result]:
    raws = [Raw("node-07", probe, (), 0, text, source="report.txt")]
    checks = [check for check in load(("versions",)).checks if check.rule in ("stack", "known-bad")]
    return list(examine("node-07", raws, checks).results)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_judged_as_its_source_says(name: str) -> None:
    probe, wanted = SAMPLES[name]
    found = _judged(probe, sample(name))
    off = {
        (one.check, one.subject): one.status.value
        for one in found
        if one.status in (Status.WARN, Status.FAIL, Status.ERROR)
    }
    assert off == wanted
    assert any(one.status is Status.PASS for one in found)


def test_what_is_mixed_is_named_piece_by_piece() -> None:
    probe, _ = SAMPLES["torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt"]
    found = _judged(
        probe, sample("torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt")
    )
    one: Any = next(one for one in found if one.check == "versions.image.mixed")
    for piece in ("CUDA_VERSION=12.2.2.009", "NCCL 2.21.5 (NCCL_VERSION=2.19.3)", "torch 2.5.1"):
        assert piece in one.measured
    assert one.evidence
