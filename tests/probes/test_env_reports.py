"""Reports of an environment: each sample and each layout tells what stands in it, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.errors import ParseError
from preflight.facts.stack import EnvReport
from preflight.model import Missing
from preflight.pasted import cleaned
from preflight.probes.env_reports.collect_env import collect_env
from preflight.probes.env_reports.ds_report import ds_report
from preflight.probes.env_reports.launchers import hf_env, lightning_env
from preflight.probes.env_reports.listed import conda_list, pip_freeze, pip_list
from preflight.probes.env_reports.sglang_env import sglang_env
from preflight.probes.env_reports.told import built_with, flag, of_build, of_conda_build, version
from tests import software_text as texts
from tests.conftest import sample

READERS = {
    "collect-env": collect_env, "sglang-env": sglang_env, "ds-report": ds_report,
    "hf-env": hf_env, "lightning-env": lightning_env, "pip-freeze": pip_freeze,
    "pip-list": pip_list, "conda-list": conda_list,
}  # fmt: skip
H100, H20 = "NVIDIA H100 80GB HBM3", "NVIDIA H20"
VLLM = "torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt"
SGLANG = "torch_collect_env/sglang_env_h20_x8_driver535_cu129.txt"
NIGHTLY = "torch_collect_env/rtx3090_x3_torch1.14_nightly_cuda_mismatch.txt"
SHORT = "torch_collect_env/rtx4080_torch2.1_conda_short.txt"


def told(report: EnvReport) -> dict[str, Any]:
    """The fields that the report tells."""
    apart = ("packages", "nodes", "environment", "deepspeed_ops", "lines", "line", "probe")
    fields = {name: getattr(report, name) for name in report.__struct_fields__ if name not in apart}
    return {name: value for name, value in fields.items() if not isinstance(value, Missing)}


def packages(report: EnvReport) -> dict[str, Any]:
    return {one.name: one.version for one in report.packages}


def why_not(report: EnvReport, field: str) -> str:
    missing = getattr(report, field)
    assert isinstance(missing, Missing)
    return missing.text


def test_a_long_report_of_a_virtual_machine() -> None:
    report = collect_env(sample(VLLM))
    assert told(report) == {
        "torch": "2.5.1+cu124", "torch_cuda": "12.4", "torch_hip": "none", "cuda_available": True,
        "toolkit": "12.2.140", "driver": "550.90.12", "cudnn": "8.9.5", "nccl": "2.21.5",
        "gpus": (H100,) * 8, "python": "3.10.12", "libc": "glibc-2.35",
        "os": "Ubuntu 22.04.3 LTS (x86_64)", "kernel": "6.8.0-47-generic", "hypervisor": "KVM",
    }  # fmt: skip
    assert len(report.packages) == 27
    environment = {one.name: (one.value, one.of) for one in report.environment}
    assert environment["NCCL_VERSION"] == ("2.19.3", "report")
    assert environment["CUDA_VERSION"] == ("12.2.2.009", "report")
    assert environment["PYTORCH_VERSION"] == ("2.1.0a0+32f93b1", "report")
    assert environment["TORCH_CUDA_ARCH_LIST"][0].endswith("9.0+PTX")


@pytest.mark.parametrize("name", [VLLM, SGLANG, NIGHTLY, SHORT])
def test_each_field_names_the_line_that_shows_it(name: str) -> None:
    text = sample(name)
    report = sglang_env(text) if name == SGLANG else collect_env(text)
    lines = text.split("\n")
    for field, line in report.lines.items():
        value = getattr(report, field)
        shown = lines[line - 1]
        if field in ("torch", "driver", "toolkit", "python", "kernel", "os", "libc"):
            assert value in shown, field
        assert shown.strip(), field
    for package in report.packages:
        assert str(package.version) in lines[package.line - 1]
    for variable in report.environment:
        assert lines[variable.line - 1] == f"{variable.name}={variable.value}"


def test_the_cuda_of_the_build_and_that_of_nvcc_are_two() -> None:
    report = collect_env(sample(NIGHTLY))
    assert (report.torch_cuda, report.toolkit) == ("11.7", "11.6.124")
    assert report.cudnn == "8.4.1"
    assert report.gpus == ("NVIDIA GeForce RTX 3090",) * 3
    assert packages(report)["torchvision"] == "0.15.0.dev20221203+cpu"


def test_a_short_report() -> None:
    report = collect_env(sample(SHORT))
    assert (report.torch, report.torch_cuda, report.toolkit) == ("2.1.0", "12.1", "12.3.107")
    assert report.gpus == ("NVIDIA GeForce RTX 4080",)
    assert isinstance(report.cudnn, Missing)
    assert isinstance(report.torch_hip, Missing)
    assert packages(report)["torch"] == "2.1.0"
    assert packages(report)["pytorch-cuda"] == "12.1"


def test_another_layout() -> None:
    report = sglang_env(sample(SGLANG))
    assert told(report) == {
        "torch": "2.11.0+cu129", "torch_cuda": "12.9", "torch_hip": "none", "cuda_available": True,
        "toolkit": "12.9.86", "driver": "535.161.08", "gpus": (H20,) * 8,
        "capabilities": ("9.0",) * 8, "python": "3.12.3", "open_files": 1048576,
    }  # fmt: skip
    found = packages(report)
    assert found["sglang"] == "0.0.0.dev1+ge55646ff8"
    assert found["flashinfer-python"] == "0.6.8.post1"
    assert not found.keys() & {"vllm", "litellm", "nic0", "x"}


def test_several_kinds_of_gpus_and_no_nvcc() -> None:
    report = sglang_env(texts.SGLANG_VM)
    kind = "NVIDIA A100-SXM4-80GB"
    assert report.gpus == (kind, kind, "NVIDIA A100-SXM4-40GB", kind)
    assert report.hypervisor == "KVM"
    assert why_not(report, "toolkit") == "the report says: Not Available"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "deepspeed_0.5.4_no_cuda_runtime",
            {"torch": "1.8.1+cu111", "torch_cuda": "11.1", "torch_hip": "none", "toolkit": "11.1",
             "deepspeed": "0.5.4", "deepspeed_torch": "1.9", "deepspeed_cuda": "10.2",
             "cuda_runtime_found": False},
        ),
        (
            "deepspeed_0.7.7_polaris_all_prebuilt_ok",
            {"torch": "1.12.0a0+git664058f", "torch_cuda": "11.6", "torch_hip": "none",
             "toolkit": "11.6", "deepspeed": "0.7.7+bbe030c5", "deepspeed_torch": "1.12",
             "deepspeed_cuda": "11.6"},
        ),
        (
            "deepspeed_0.3.7_no_hip_line",
            {"torch": "1.6.0+cu101", "torch_cuda": "10.1", "torch_hip": "none", "toolkit": "10.1",
             "deepspeed": "0.3.7+ff58fa7", "deepspeed_torch": "1.6", "deepspeed_cuda": "10.1"},
        ),
    ],
)  # fmt: skip
def test_reports_of_deepspeed(name: str, expected: dict[str, Any]) -> None:
    report = ds_report(sample(f"ds_report/{name}.txt"))
    assert told(report) == expected
    built = {op.name for op in report.deepspeed_ops if op.installed is True}
    every = {op.name for op in report.deepspeed_ops}
    assert all(op.compatible is True for op in report.deepspeed_ops)
    assert built == {
        "deepspeed_0.5.4_no_cuda_runtime": set(),
        "deepspeed_0.7.7_polaris_all_prebuilt_ok": every,
        "deepspeed_0.3.7_no_hip_line": {"cpu_adam", "sparse_attn"},
    }[name]  # fmt: skip
    assert len(every) >= 7


def test_a_report_of_deepspeed_with_warnings_between_its_lines() -> None:
    report = ds_report(cleaned(texts.DS_REPORT))  # without colours, as recognition hands it over
    assert (report.torch, report.torch_cuda, report.deepspeed) == ("2.5.1+cu124", "12.4", "0.16.2")
    assert "compiled with torch 0.0" in why_not(report, "deepspeed_torch")
    assert "[FAIL] cannot find CUDA_HOME" in why_not(report, "toolkit")
    assert why_not(report, "cuda_runtime_found") == "not in the input"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            texts.COLLECT_ENV_OLD,
            {"torch": "0.4.0", "torch_cuda": "9.0.176", "cuda_available": True, "cudnn": "7.0.5",
             "toolkit": "9.0.176", "driver": "384.111", "gpus": ("GeForce GTX 1080 Ti",) * 2,
             "python": "3.6", "os": "Ubuntu 16.04.4 LTS"},
        ),
        (
            texts.COLLECT_ENV_CPU,
            {"torch": "2.9.0+cpu", "torch_cuda": "none", "torch_hip": "none",
             "cuda_available": False, "python": "3.11.7", "libc": "glibc-2.36",
             "os": "Debian GNU/Linux 12 (bookworm) (x86_64)",
             "kernel": "3.10.0-1160.el7.x86_64", "hypervisor": "none"},
        ),
        (
            texts.COLLECT_ENV_ROCM,
            {"torch": "2.3.0+rocm6.0", "torch_cuda": "none", "torch_hip": "6.0.32830-d62f6a171",
             "cuda_available": True, "python": "3.10.14", "os": "Ubuntu 22.04.4 LTS (x86_64)"},
        ),
        (
            texts.COLLECT_ENV_NO_TORCH,
            {"toolkit": "12.4.131", "driver": "550.54.15", "gpus": ("NVIDIA A100-SXM4-40GB",),
             "python": "3.10.14", "os": "Ubuntu 22.04.4 LTS (x86_64)"},
        ),
        (
            texts.COLLECT_ENV_VLLM,
            {"torch": "2.7.0+cu126", "torch_cuda": "12.6", "torch_hip": "none",
             "cuda_available": True, "toolkit": "12.8.93", "driver": "570.133.20",
             "nccl": "2.26.2", "gpus": (H100, H100), "python": "3.12.10", "libc": "glibc-2.35",
             "os": "Ubuntu 22.04.5 LTS (x86_64)", "kernel": "5.15.0-1086-aws",
             "hypervisor": "KVM"},
        ),
    ],
    ids=["0.4", "cpu", "rocm", "no torch", "vllm 2025"],
)  # fmt: skip
def test_layouts_of_other_versions(text: str, expected: dict[str, Any]) -> None:
    assert told(collect_env(text)) == expected


def test_what_could_not_be_collected_is_no_version() -> None:
    report = collect_env(texts.COLLECT_ENV_NO_TORCH)
    assert why_not(report, "torch") == "the report says: N/A"
    assert why_not(report, "cudnn") == "several cuDNN are found: 8.9.7, 9.1.0"
    assert isinstance(report.torch_cuda, Missing)
    assert report.packages == ()
    assert why_not(collect_env(texts.COLLECT_ENV_CPU), "driver") == "the report says: No CUDA"


def test_a_list_of_gpus_that_is_cut_is_no_number_of_gpus() -> None:
    text = sample(VLLM)
    first, last = text.index("GPU 0: "), text.index("GPU 7: ")
    for cut in (text[:last], text[:last].rstrip(), text[: first - 9] + text[first + 29 :]):
        report = collect_env(cut)
        assert why_not(report, "gpus") == "the list of GPUs is cut short in the report"
        assert report.torch == "2.5.1+cu124"
    assert isinstance(sglang_env(sample(SGLANG).replace("GPU 0,1,2", "GPU 1,2")).gpus, Missing)


def test_secrets_of_a_report_are_not_kept() -> None:
    names = {one.name for one in collect_env(texts.COLLECT_ENV_VLLM).environment}
    assert names == {
        "NVIDIA_VISIBLE_DEVICES", "CUDA_VERSION", "LD_LIBRARY_PATH", "NCCL_CUMEM_ENABLE",
        "PYTORCH_NVML_BASED_CUDA_CHECK", "TORCHINDUCTOR_COMPILE_THREADS",
    }  # fmt: skip


def test_a_report_of_deepspeed_on_another_vendors_gpus() -> None:
    report = ds_report(texts.DS_REPORT_ROCM)
    assert (report.torch_cuda, report.torch_hip) == ("none", "6.0.32830-d62f6a171")
    assert report.deepspeed_torch == "2.3"
    assert "hip 0.0" in why_not(report, "deepspeed_cuda")
    assert [op.name for op in report.deepspeed_ops] == ["deepspeed_not_implemented", "async_io"]
    alone = texts.DS_REPORT_ROCM.replace("torch 2.3, hip 0.0", "torch 2.3")
    assert ds_report(alone).deepspeed_torch == "2.3"


def test_reports_of_training_libraries() -> None:
    report = hf_env(texts.TRANSFORMERS_ENV)
    assert told(report) == {
        "torch": "2.3.0+cu121", "torch_cuda": "12.1", "torch_hip": "none", "cuda_available": True,
        "python": "3.10.12", "kernel": "5.15.0-1061-aws",
    }  # fmt: skip
    assert packages(report) == {
        "transformers": "4.41.2", "huggingface-hub": "0.23.2", "safetensors": "0.4.3",
        "torch": "2.3.0+cu121",
    }  # fmt: skip
    report = hf_env(texts.ACCELERATE_ENV)
    assert (report.torch, report.torch_cuda, report.python) == ("2.7.0+cu126", "12.6", "3.11.12")
    assert why_not(report, "cuda_available") == "not in the input"
    assert packages(report)["accelerate"] == "1.7.0"


def test_a_report_of_lightning() -> None:
    report = lightning_env(texts.LIGHTNING_ENV)
    assert told(report) == {
        "torch": "2.3.0", "torch_cuda": "12.1", "cuda_available": True, "nccl": "2.20.5",
        "gpus": ("NVIDIA A100-SXM4-40GB",) * 2, "python": "3.10.14",
        "kernel": "5.15.0-105-generic",
    }  # fmt: skip
    assert packages(report)["lightning"] == "2.2.4"


def test_pip_freeze_in_all_its_forms() -> None:
    report = pip_freeze(texts.PIP_FREEZE)
    assert {k: v for k, v in packages(report).items() if isinstance(v, str)} == {
        "accelerate": "0.30.1", "apex": "0.1", "nvidia-nccl-cu12": "2.20.5",
        "flash-attn": "2.5.8+cu122torch2.3cxx11abiFALSE", "torch": "2.3.0+cu121",
        "ruamel-yaml": "0.18.6", "triton": "2.3.0",
    }  # fmt: skip
    unknown = {k for k, v in packages(report).items() if isinstance(v, Missing)}
    assert unknown == {"megatron-core", "numpy"}
    assert "secret" not in repr(report)
    assert (report.torch_cuda, report.nccl) == ("12.1", "2.20.5")


@pytest.mark.parametrize("text", texts.LISTS)
def test_pip_lists(text: str) -> None:
    report = pip_list(text)
    assert len(report.packages) in (3, 5)
    assert isinstance(report.torch, str)
    lines = text.split("\n")
    for one in report.packages:
        assert str(one.version) in lines[one.line - 1]


@pytest.mark.parametrize(
    ("text", "torch", "cuda"),
    [
        (texts.CONDA_LIST, "2.1.0", "12.1"),
        (texts.CONDA_LIST_JSON, "2.6.0", "12.6"),
        (texts.CONDA_LIST_EXPORT, "2.6.0", "none"),
        (texts.MAMBA_LIST, "2.5.1", "11.8"),
    ],
)
def test_conda_lists(text: str, torch: str, cuda: str) -> None:
    report = conda_list(text)
    assert (report.torch, report.torch_cuda) == (torch, cuda)
    assert packages(report)["torch"] == torch


def test_torch_of_pip_over_that_of_conda_is_of_no_known_version() -> None:
    report = conda_list(f"{texts.CONDA_LIST}torch    2.5.1    pypi_0    pypi\n")
    assert why_not(report, "torch") == "several are installed over each other: 2.1.0, 2.5.1"
    assert isinstance(report.torch_cuda, Missing)


def test_a_list_in_json_that_is_cut_is_not_taken_for_whole() -> None:
    for read, text in ((pip_list, texts.PIP_LIST_JSON), (conda_list, texts.CONDA_LIST_JSON)):
        with pytest.raises(ParseError, match=r"cut short: no closing `\]`"):
            read(text[: text.rindex("]")])
    assert len(pip_list(texts.PIP_LIST_JSON + "[notice] a new release\n").packages) == 3


@pytest.mark.parametrize("probe", READERS)
@pytest.mark.parametrize(
    "text", ["", "\n", "hello world\n", "[]", "[" * 5000, "a: b\n", "\u0661=2"]
)
def test_what_is_none_is_refused(probe: str, text: str) -> None:
    with pytest.raises(ParseError, match=r"expected (?:lines|headings)|cut short"):
        READERS[probe](text)


@pytest.mark.parametrize(
    ("build", "cuda", "hip"),
    [
        ("2.5.1+cu124", "12.4", "none"), ("1.10.0+cu92", "9.2", "none"),
        ("2.9.0+cu130", "13.0", "none"), ("2.1.0a0+git123.cu118", "11.8", "none"),
        ("2.4.0+rocm6.2.4", "none", "6.2.4"), ("2.4.0+cpu", "none", "none"),
        ("2.1.0a0+32f93b1", None, None), ("2.5.1", None, None), ("2.5+cu12abc", None, None),
    ],
)  # fmt: skip
def test_the_platform_in_a_version(build: str, cuda: str | None, hip: str | None) -> None:
    found = {name: value for name, (value, _) in of_build(build, 7).items()}
    assert (found.get("torch_cuda"), found.get("torch_hip")) == (cuda, hip)


@pytest.mark.parametrize(
    ("build", "cuda"),
    [
        ("py3.9_cuda12.1_cudnn8.9.2_0", "12.1"), ("py36_cuda9.0.176_cudnn7.0.5_1", "9.0"),
        ("cuda126_mkl_py312_h30b5a27_300", "12.6"), ("cuda112py39h_1", "11.2"),
        ("cpu_generic_py312_h6a7998d_0", "none"), ("py3.10_cpu_0", "none"), ("h_0", None),
    ],
)  # fmt: skip
def test_the_platform_in_a_build_of_conda(build: str, cuda: str | None) -> None:
    assert of_conda_build(build, 1).get("torch_cuda", (None,))[0] == cuda


def test_words_in_place_of_values() -> None:
    for text in ("", "N/A", "Could not collect", "None", "Module Not Found", "No CUDA"):
        assert isinstance(version(text), Missing)
        assert isinstance(flag(text), Missing)
    assert (flag("Yes"), flag("False"), built_with("None")) == (True, False, "none")
    assert isinstance(version("latest"), Missing)
    assert version("version 3.25.0") == "3.25.0"
