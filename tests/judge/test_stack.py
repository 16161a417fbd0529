"""What is said of a software stack: what a healthy host says, what is mixed, what is not known."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.software.stack import stack_of
from preflight.errors import UsageError
from preflight.facts.gpu import Driver
from preflight.facts.host import Host
from preflight.facts.setup import Package, Software
from preflight.facts.stack import DeepSpeedOp, EnvReport, EnvVar
from preflight.facts.stack_pieces import Pin, PythonEnv, TorchBuild, Twice
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.judge.stack.compat import code_fit, cuda_of_driver, driver_fit
from preflight.judge.stack.known_bad import known_bad_checks
from preflight.judge.stack.pairs import meets_pin
from preflight.judge.stack.tables import cuda_table, is_between_releases, torch_release
from preflight.judge.versions import at_least, is_of, release
from preflight.model import NOT_IN_INPUT, Known, Missing, Result, Status

_ROW = {
    "id": "versions.known_bad.x", "title": "t", "status": "WARN", "when": {"nccl": "==2.1"},
    "confidence": "documented", "source": "s", "why": "w", "fix": ["f"], "action": "watch",
    "runbook": "cuda-versions",
}  # fmt: skip


def judged(python: Known[PythonEnv] = NOT_IN_INPUT, **facts: Any) -> dict[str, Result]:
    """The first result of each check on a host with these facts."""
    bare = Host("node-07", **facts)
    checks = [one for one in load(("versions",)).checks if one.rule in ("stack", "known-bad")]
    found: dict[str, Result] = {}
    for one in judge(Host("node-07", **facts, stack=stack_of(bare, python)), checks):
        found.setdefault(one.check, one)
    return found


def environment(torch: TorchBuild, *packages: str, twice: tuple[Twice, ...] = ()) -> PythonEnv:
    names = (each.split("==") for each in packages)
    listed = tuple(Package(name, version, 1, "packages") for name, version in names)
    return PythonEnv(listed, torch, twice, probe="packages")


def wheel(cuda: str = "12.4", version: str = "2.5.1+cu124", nccl: str = "wheel") -> TorchBuild:
    return TorchBuild(version, cuda, "none", nccl, "/opt/torch", 2, "packages")


def report(**fields: Any) -> EnvReport:
    return EnvReport(**fields, probe="collect-env")


GPUS = ("NVIDIA H100 80GB HBM3",) * 8
HEALTHY = environment(
    wheel(), "torch==2.5.1+cu124", "torchvision==0.20.1+cu124", "torchaudio==2.5.1+cu124",
    "triton==3.1.0", "nvidia-nccl-cu12==2.21.5", "nvidia-cudnn-cu12==9.1.0.70", "numpy==2.1.2",
    "flash-attn==2.7.4", "nvidia-ml-py==12.560.30",
)  # fmt: skip


def test_a_healthy_host_hears_nothing() -> None:
    software = (Software("nccl", "2.21.5"), Software("nvcc", "12.4.131"))
    found = judged(
        HEALTHY, software=software, driver=Driver("answers", version="550.90.12", cuda="12.4"),
        env_reports=(report(gpus=GPUS),),
    )  # fmt: skip
    off = {name: one for name, one in found.items() if one.status not in (Status.PASS, Status.SKIP)}
    assert not off
    assert sum(one.status is Status.PASS for one in found.values()) >= 15


@pytest.mark.parametrize("kind", ["no-tool", "exited", "denied", "timeout"])
def test_a_python_that_does_not_answer_is_no_pass(kind: Any) -> None:
    found = judged(Missing(kind, "python3: it did not start"))
    wanted = Status.SKIP if kind == "no-tool" else Status.ERROR
    for name in ("versions.torch.twice", "versions.packages.torch", "versions.packages.one_cuda"):
        assert found[name].status is wanted
    assert Status.PASS not in {one.status for one in found.values()}


def test_a_python_without_torch_names_the_option_that_chooses_another() -> None:
    none = PythonEnv((Package("numpy", "1.26.4"),), Missing("not-applicable", "--python"), ())
    found = judged(none, driver=Driver("answers", version="550.90.12", cuda="12.4"))
    assert found["versions.cuda.driver"].status is Status.SKIP
    assert found["versions.cuda.driver"].reason == "--python"


def test_another_vendor_is_no_fault_of_its_torch() -> None:
    rocm = environment(TorchBuild("2.5.1+rocm6.2", "none", "6.2", NOT_IN_INPUT), "torch==2.5.1")
    absent = Missing("not-applicable", "no NVIDIA GPU on PCI; there is AMD")
    found = judged(rocm, driver=absent, gpus=absent)
    assert {one.status for one in found.values()} <= {Status.PASS, Status.SKIP}
    beside = judged(rocm, env_reports=(report(gpus=GPUS),))["versions.torch.cuda"]
    assert (beside.status, beside.reason) == (Status.FAIL, "it is built for ROCm 6.2")


PRELOADED = (Software("nccl", "2.18.3"), Software("nccl-preload", "2.19.3"))


@pytest.mark.parametrize(("how", "software", "loaded"), [
    ("wheel", (Software("nccl", "2.18.3"),), "2.21.5"),
    ("wheel", (Software("nccl-path", "2.18.3"),), "2.21.5"),  # DT_RPATH comes first
    ("wheel", PRELOADED, "2.19.3"),
    ("runpath", (Software("nccl", "2.18.3"),), "2.21.5"),  # DT_RUNPATH comes before ldconfig's
    ("runpath", (Software("nccl-path", "2.18.3"),), "2.18.3"),
    ("loader", (Software("nccl", "2.18.3"),), "2.18.3"),
    ("loader", (Software("nccl", "2.18.3"), Software("nccl-path", "2.20.5")), "2.20.5"),
    (NOT_IN_INPUT, (Software("nccl", "2.18.3"),), "2.21.5"),
])  # fmt: skip
def test_which_nccl_is_loaded(how: Any, software: tuple[Software, ...], loaded: str) -> None:
    python = environment(wheel(nccl=how), "torch==2.5.1+cu124", "nvidia-nccl-cu12==2.21.5")
    one = judged(python, software=software)["versions.nccl.loaded"]
    assert one.measured == loaded
    assert (one.status is Status.PASS) is (loaded == "2.21.5")


@pytest.mark.parametrize(("on_path", "status"), [
    ({"8": "8.9.7"}, "SKIP"),  # torch asks for libcudnn.so.9
    ({"8": "8.9.7", "9": "9.1.0"}, "PASS"), ({"8": "8.9.7", "9": "9.5.1"}, "WARN"),
])  # fmt: skip
def test_a_cudnn_of_another_first_number_is_never_loaded(
    on_path: dict[str, str], status: str
) -> None:
    software = tuple(Software(f"cudnn-{at}-path", version) for at, version in on_path.items())
    one = judged(HEALTHY, software=software)["versions.cudnn.path"]
    assert one.status.value == status


def test_a_nccl_for_another_cuda_is_not_torch_s_own() -> None:
    python = environment(wheel(), "torch==2.5.1+cu124", "nvidia-nccl-cu11==2.21.5")
    one = judged(python)["versions.nccl.loaded"]
    assert (one.status, one.reason) == (
        Status.WARN, "it was built for CUDA 11, torch for 12.4",
    )  # fmt: skip


def test_a_nccl_of_unknown_version_that_comes_first_is_not_passed_over() -> None:
    python = environment(wheel(nccl="loader"), "torch==2.5.1+cu124", "nvidia-nccl-cu12==2.21.5")
    unread = Software("nccl-path", Missing("unreadable", "no version in its name"))
    found = judged(python, software=(unread, Software("nccl", "2.21.5")))
    assert found["versions.nccl.loaded"].status is Status.ERROR


def test_a_nccl_inside_torch_has_no_version_of_its_own() -> None:
    python = environment(wheel(nccl="static"), "torch==2.5.1+cu124")
    one = judged(python, software=(Software("nccl", "2.18.3"),))["versions.nccl.loaded"]
    assert (one.status, one.reason) == (Status.SKIP, "NCCL is inside torch's own library")


@pytest.mark.parametrize(("packages", "status"), [
    ("torch==2.5.1 nvidia-cuda-runtime-cu12==12.4.127", "PASS"),
    ("torch==2.9.0 nvidia-cuda-runtime==13.0.48", "FAIL"),
    ("torch==2.5.1+cu121", "PASS"), ("torch==2.5.1", "SKIP"),
    ("jax==0.4.35 nvidia-cuda-runtime-cu12==12.4.127", "SKIP"),  # of another framework
])  # fmt: skip
def test_a_list_of_packages_tells_the_cuda_of_torch(packages: str, status: str) -> None:
    names = (each.split("==") for each in packages.split())
    listed = tuple(Package(name, version, 1, "pip-freeze") for name, version in names)
    found = judged(env_reports=(report(packages=listed, driver="550.90.12"),))
    assert found["versions.cuda.driver"].status.value == status


def test_an_image_of_cuda_alone_says_nothing_of_torch() -> None:
    """nvidia/cuda images set CUDA_VERSION and NCCL_VERSION, whatever pip installs later."""
    variables = (EnvVar("CUDA_VERSION", "12.2.2"), EnvVar("NCCL_VERSION", "2.19.3-1"))
    found = judged(env_reports=(report(torch="2.5.1+cu124", environment=variables),))
    assert found["versions.image.mixed"].status is Status.SKIP


def test_the_image_s_own_torch_has_the_image_s_list() -> None:
    variables = (
        EnvVar("PYTORCH_VERSION", "2.1.0a0+32f93b1"),
        EnvVar("TORCH_CUDA_ARCH_LIST", "5.2 6.0 7.0 8.0 8.6 9.0+PTX"),
    )
    told = {"torch_cuda": "12.2", "driver": "550.90.12", "environment": variables}
    own = report(torch="2.1.0a0+32f93b1", gpus=GPUS, **told)
    found = judged(env_reports=(own,))
    assert found["versions.torch.gpu"].status is Status.PASS
    assert found["versions.image.mixed"].status is Status.PASS
    newer = judged(env_reports=(report(torch="2.1.0a0+32f93b1", gpus=("NVIDIA B200",), **told),))
    assert newer["versions.torch.gpu"].status is Status.FAIL  # before 12.8 there is no compiler


def test_deepspeed_with_compiled_operations_fails_where_it_does_not_fit() -> None:
    told = {"torch": "1.8.1+cu111", "torch_cuda": "11.1", "deepspeed_torch": "1.9",
            "deepspeed_cuda": "10.2"}  # fmt: skip
    for installed, status in ((True, Status.FAIL), (False, Status.WARN)):
        ops = (DeepSpeedOp("cpu_adam", installed, True),)
        one = judged(env_reports=(report(**told, deepspeed_ops=ops),))["versions.deepspeed.build"]
        assert one.status is status


@pytest.mark.parametrize(("package", "status"), [
    ("torchvision==0.20.1", "PASS"), ("torchvision==0.2.0", "WARN"),
    ("torchvision==0.20.1+cpu", "WARN"), ("torchvision==0.20.0a0+git1", "PASS"),
    ("flash-attn==2.7.4+cu12torch2.5cxx11abifalse", "PASS"),
    ("flash-attn==2.7.4+cu12torch2.4cxx11abifalse", "WARN"),
    ("flash-attn==2.7.4+cu118torch2.5cxx11abifalse", "WARN"),
    ("torch-scatter==2.1.2+pt25cu124", "PASS"), ("torch-scatter==2.1.2+pt24cu124", "WARN"),
    ("triton==3.2.0", "WARN"), ("torchaudio==2.5.1+cu118", "WARN"),
])  # fmt: skip
def test_what_is_built_for_a_torch(package: str, status: str) -> None:
    found = judged(environment(wheel(), "torch==2.5.1+cu124", package))
    one = found["versions.packages.torch"]
    assert one.status.value == status, one


@pytest.mark.parametrize(("version", "exact", "meets"), [
    ("2.5.1+cu124", "2.5.1", True), ("2.5.1", "2.5.1+cu124", False), ("2.5.1", "2.5", False),
    ("2.5.0", "2.5", True), ("2.5.1", "2.5.*", True), ("2.50.1", "2.5.*", False),
    ("2.5.1rc1", "2.5.1", False), ("9.1.0.70", "9.1.0.70", True), ("a", "b", False),
])  # fmt: skip
def test_an_exact_version_is_met_as_pip_meets_it(version: str, exact: str, meets: bool) -> None:
    assert meets_pin(version, exact) is meets


def test_what_tells_no_torch_is_no_pass() -> None:
    found = judged(environment(wheel(), "torch==2.5.1+cu124", "numpy==2.1.2"))
    assert found["versions.packages.torch"].status is Status.SKIP
    listed = (Package("torchvision", Missing("unreadable", "no version")),)
    one = judged(PythonEnv(listed, wheel()))["versions.packages.torch"]
    assert (one.subject, one.status) == ("torchvision", Status.ERROR)


def test_either_of_two_pins_will_do() -> None:
    """A wheel may ask for one version on each platform."""
    pins = tuple(Pin("torch", "triton", version) for version in ("3.1.0", "3.1.1"))
    for installed, status in (("3.1.1", "PASS"), ("3.2.0", "WARN")):
        python = environment(wheel(), "torch==2.5.1+cu124", f"triton=={installed}")
        one = judged(replace(python, pins=pins))["versions.packages.pins"]
        assert (one.subject, one.status.value) == ("triton", status)


def test_versions_are_compared_as_numbers() -> None:
    assert is_of("2.10.1+cu128", "2.10")
    assert not is_of("2.10.1", "2.1")
    assert at_least("535.161.08", "535.54.03")
    assert not at_least("450.51.06", "450.80.02")
    assert release("2.1.0a0+32f93b1") == (2, 1, 0)
    assert release("abc") == ()
    assert torch_release("2.10.0a0+git1") is None
    assert is_between_releases("1.14.0.dev20221202+cu117")
    assert not is_between_releases("2.5.1+cu124")


def test_a_driver_newer_than_the_table_is_judged_by_what_it_says() -> None:
    assert cuda_of_driver("620.10", "13.9") == "13.9"
    assert driver_fit("620.10", "13.9", told="13.9").state == "own"
    assert driver_fit("620.10", "13.0").state == "own"
    assert driver_fit("620.10", "13.9").state == "newer"
    assert driver_fit("620.10", "13.9", told="13.5").state == "minor"
    last = cuda_table().releases[-1]  # of a branch that is there: what is more is of a package
    assert driver_fit(last.driver, "13.9", told="13.9").state == "forward"
    assert driver_fit("200.10", "12.4").state == "too-old"
    assert driver_fit("535.54.03", "12.4", told="12.4").state == "forward"


def test_code_for_one_gpu_only_and_text_for_all() -> None:
    assert code_fit(["sm_90a"], "9.0") == "code"
    assert code_fit(["sm_100a"], "10.3") == "none"
    assert code_fit(["sm_100f"], "10.3") == "code"
    assert code_fit(["compute_90"], "12.0") == "ptx"
    assert code_fit(["8.6"], "8.0") == "none"
    assert code_fit(["nonsense", ""], "9.0") == "none"


@pytest.mark.parametrize("edit", [
    {"when": {"nccl": "newest"}}, {"status": "BAD"}, {"confidence": "rumour"}, {"when": None},
    {"unknown": 1},
])  # fmt: skip
def test_a_row_that_cannot_be_read_is_told_with_its_place(edit: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"known_bad\.yaml:row 1"):
        known_bad_checks([_ROW | edit], "checks/data/known_bad.yaml")
    assert len(known_bad_checks([_ROW], "checks/data/known_bad.yaml")) == 1
