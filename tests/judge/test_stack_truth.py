"""What a stack is said to be where a piece of it lies, is broken, or is of somebody else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.assemble.software.stack import stack_of
from preflight.facts.gpu import Driver
from preflight.facts.host import Host
from preflight.facts.setup import Package, Software
from preflight.facts.stack import EnvVar
from preflight.facts.stack_pieces import PythonEnv, TorchBuild
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.judge.stack.compat import driver_fit, driver_knows
from preflight.model import NOT_IN_INPUT, Missing, Raw, Status
from preflight.probes.stack.packages import packages
from tests.judge.test_stack import GPUS, HEALTHY, environment, judged, report, wheel

PASS, WARN, FAIL, SKIP, ERROR = Status.PASS, Status.WARN, Status.FAIL, Status.SKIP, Status.ERROR
CUDA_13 = environment(wheel("13.0", "2.9.1+cu130"), "torch==2.9.1+cu130")


def of_driver(version: str, cuda: str) -> Driver:
    return Driver("answers", version=version, cuda=cuda)


@pytest.mark.parametrize(("libcuda", "driver", "status", "told"), [
    ("550.54.14", "570.172.08", FAIL, "older than the loaded driver 570.172.08 (error 803)"),
    ("570.26", "570.172.08", FAIL, "error 803"),
    ("570.172.08", "570.172.08", PASS, ""),
    ("580.65.06", "570.172.08", PASS, ""),
    ("580.65.06", "545.23.08", FAIL, "branch 545"),
    ("580.65.06", "535.54.03", PASS, ""),
])  # fmt: skip
def test_a_libcuda_before_the_driver_s_own(
    libcuda: str, driver: str, status: Status, told: str
) -> None:
    """torch's CUDA is older than that of each driver: what counts is the library that is loaded."""
    python = environment(wheel("12.1", "2.5.1+cu121"), "torch==2.5.1+cu121")
    found = judged(
        python, driver=of_driver(driver, "12.8"), env_reports=(report(gpus=GPUS),),
        software=(Software("compat-driver", libcuda, probe="software"),),
    )["versions.cuda.driver"]  # fmt: skip
    assert (found.status, told in found.reason) == (status, True)


def test_a_libcuda_of_unknown_version_is_no_pass() -> None:
    unread = Software("compat-driver", Missing("unreadable", "no version"), probe="software")
    found = judged(HEALTHY, driver=of_driver("550.90.12", "12.4"), software=(unread,))
    assert found["versions.cuda.driver"].status is SKIP
    found = judged(CUDA_13, driver=of_driver("550.90.12", "12.4"), software=(unread,))
    assert found["versions.cuda.driver"].status is ERROR


def test_the_package_of_an_image_counts_only_where_it_is_needed() -> None:
    variables = (EnvVar("LD_LIBRARY_PATH", "/usr/local/cuda/compat/lib:/usr/local/nvidia/lib"),
                 EnvVar("CUDA_DRIVER_VERSION", "550.54.14"))  # fmt: skip
    told = report(torch="2.5.1", torch_cuda="12.4", driver="570.172.08", gpus=GPUS,
                  environment=variables)  # fmt: skip
    assert judged(env_reports=(told,))["versions.cuda.driver"].status is PASS


def test_a_torch_that_has_found_a_gpu_runs() -> None:
    """A container of NVIDIA's: CUDA 13 on driver 570, by the image's own libcuda."""
    told = report(torch="2.9.1+cu130", torch_cuda="13.0", driver="570.172.08", gpus=GPUS,
                  cuda_available=True)  # fmt: skip
    found = judged(env_reports=(told,))
    assert found["versions.cuda.driver"].status is PASS
    assert found["versions.cuda.compat"].status is WARN
    assert "forward compatibility" in found["versions.cuda.compat"].reason
    silent = report(torch="2.9.1+cu130", torch_cuda="13.0", driver="570.172.08", gpus=GPUS)
    assert judged(env_reports=(silent,))["versions.cuda.driver"].status is FAIL


@pytest.mark.parametrize("cuda", ["12.8", "12.8.90", "12.8.0.038"])
def test_the_last_numbers_of_a_cuda_are_none_of_the_driver_s(cuda: str) -> None:
    assert driver_fit("570.172.08", cuda, told="12.8").state == "own"


def test_the_runtime_s_package_tells_torch_s_cuda() -> None:
    python = environment(
        TorchBuild("2.7.1", NOT_IN_INPUT, "none", "wheel"), "torch==2.7.1",
        "nvidia-cuda-runtime-cu12==12.8.90",
    )  # fmt: skip
    found = judged(python, driver=of_driver("570.172.08", "12.8"))
    assert found["versions.cuda.compat"].status is PASS


@pytest.mark.parametrize("odd", ["", "unknown", "?", "foo()", "12", "v12.4", "12.4.", "cu124", ".",
                                 "None", "12.4 if True else None", "-1", "1e5", "٣.٤"])  # fmt: skip
@pytest.mark.parametrize("piece", ["torch", "torch_cuda", "driver", "toolkit", "nccl", "cudnn",
                                   "deepspeed_torch", "deepspeed_cuda"])  # fmt: skip
def test_no_odd_version_ends_the_command(piece: str, odd: str) -> None:
    usual = {"torch": "2.5.1+cu124", "torch_cuda": "12.4", "driver": "550.54.14",
             "toolkit": "12.4.131", "deepspeed_torch": "2.5", "deepspeed_cuda": "12.4"}  # fmt: skip
    told = report(**{**usual, piece: odd}, gpus=GPUS, packages=(Package("flash-attn", odd),))
    found = judged(env_reports=(told,))
    if odd in ("unknown", "?", "foo()") and piece == "driver":
        assert found["versions.cuda.driver"].status is ERROR
    assert judged(environment(TorchBuild(odd, odd, odd, odd), f"torch=={odd}", f"triton=={odd}"))


PROBED = "python 3.10.12 /opt/bin/python3\ntorch path /opt/torch\ntorch version {}\ntorch cuda {}\n"


@pytest.mark.parametrize("odd", ["?", "foo()", "unknown", "12.4 if True else None", ""])
def test_only_a_literal_version_counts(odd: str) -> None:
    found = packages(f"{PROBED.format('2.5.1', odd)}package torch 2.5.1\nend\n")
    assert isinstance(found.torch, TorchBuild)
    assert isinstance(found.torch.cuda, Missing)
    assert judged(found, driver=of_driver("550.54.14", "12.4"))["versions.cuda.driver"].status is (
        ERROR
    )


def _asked(argv: str, rc: int, stdout: str = "", stderr: str = "") -> Any:
    raws = [Raw("node-07", "packages", (argv, "-c", "..."), rc, stdout, stderr)]
    return assemble("node-07", raws).host.stack


def test_no_python_is_a_skip_and_none_by_the_user_s_name_an_error() -> None:
    default, named = _asked("python3", 127), _asked("nosuch", 127)
    assert (default.packages.kind, named.packages.kind) == ("no-tool", "exited")
    assert "--python nosuch" in named.packages.text
    assert named.torch.kind == "exited"


def test_a_python_by_the_user_s_name_has_torch_where_there_are_gpus() -> None:
    bare = PythonEnv((), Missing("not-applicable", "torch is not installed for /opt/python"))
    named = PythonEnv((), bare.torch, named=True)
    seen = {"env_reports": (report(gpus=GPUS),)}
    assert judged(bare, **seen)["versions.torch.cuda"].status is SKIP
    assert judged(named, **seen)["versions.torch.cuda"].status is ERROR
    assert judged(named)["versions.torch.cuda"].status is SKIP  # a login node
    told = "python 3.10.12 /opt/bin/python3\ntorch none\nend\n"
    assert _asked("/opt/bin/python3", 0, told).python_named
    assert not _asked("python3", 0, told).python_named


def test_the_last_line_of_python_s_error_is_told() -> None:
    stderr = 'Traceback (most recent call last):\n  File "<string>", line 1\nSyntaxError: invalid\n'
    assert "SyntaxError: invalid" in _asked("python3", 1, "", stderr).packages.text


def test_a_torch_without_its_version_is_broken() -> None:
    found = packages("python 3.10.12 /p\ntorch path /opt/torch\npackage torch 2.5.1\nend\n")
    assert judged(found)["versions.torch.whole"].status is FAIL
    assert judged(HEALTHY)["versions.torch.whole"].status is PASS


def test_metadata_of_another_version_is_told_and_does_not_count() -> None:
    text = f"{PROBED.format('2.9.1+cu130', '13.0')}place /opt/site\npackage torch 2.5.1\nend\n"
    found = packages(text)
    assert [one.version for one in found.packages if one.name == "torch"] == ["2.9.1+cu130"]
    one = judged(found)["versions.torch.twice"]
    assert (one.status, "2.5.1 in the metadata in /opt/site" in str(one.measured)) == (WARN, True)
    alike = packages(text.replace("torch 2.5.1", "torch 2.9.1"))
    assert judged(alike)["versions.torch.twice"].status is PASS


@pytest.mark.parametrize(("path", "status"), [("2.18.3", ERROR), ("2.21.5", PASS)])
def test_where_torch_does_not_tell_its_way_another_nccl_may_be_loaded(
    path: str, status: Status
) -> None:
    unread = Missing("unreadable", "libtorch_cuda.so does not tell its libraries")
    python = environment(wheel(nccl=unread), "torch==2.5.1", "nvidia-nccl-cu12==2.21.5")  # type: ignore[arg-type]
    found = judged(python, software=(Software("nccl-path", path),))
    assert found["versions.nccl.loaded"].status is status


def test_a_preloaded_file_that_is_not_there_is_named() -> None:
    absent = Missing("not-applicable", "LD_PRELOAD names /opt/libnccl.so: no such file")
    one = judged(HEALTHY, software=(Software("nccl-preload", absent),))["versions.nccl.loaded"]
    assert (one.status, one.measured, one.reason) == (WARN, "2.21.5", absent.text)


@pytest.mark.parametrize(("version", "hip", "gpus", "status", "told"), [
    ("2.5.1+rocm6.2", "6.2", ("AMD Instinct MI300X",), SKIP, "AMD"),
    ("2.10.0+xpu", "none", GPUS, FAIL, "Intel"),
    ("2.5.1+cpu", "none", GPUS, FAIL, "CPU only"),
])  # fmt: skip
def test_a_torch_for_another_maker(
    version: str, hip: str, gpus: tuple[str, ...], status: Status, told: str
) -> None:
    seen = report(torch=version, torch_cuda="none", torch_hip=hip, gpus=gpus)
    one = judged(env_reports=(seen,))["versions.torch.cuda"]
    assert (one.status, told in one.reason) == (status, True)


@pytest.mark.parametrize(("driver", "gpus", "status"), [
    ("550.90.12", GPUS, PASS), ("550.90.12", GPUS[:1], PASS), ("535.54.03", GPUS, WARN),
    ("550.90.12", ("NVIDIA A100-SXM4-80GB",) * 4, WARN),
])  # fmt: skip
def test_two_reports_of_one_host_agree(driver: str, gpus: tuple[str, ...], status: Status) -> None:
    both = (report(driver="550.90.12", gpus=GPUS), report(driver=driver, gpus=gpus))
    (check,) = [one for one in load(("versions",)).checks if one.id == "versions.inputs.agree"]
    host = Host("node-07", env_reports=both, driver=of_driver("550.90.12", "12.4"))
    (one,) = judge(host, [check])
    assert one.status is status


def test_one_report_alone_agrees_with_nobody() -> None:
    told = report(driver="550.90.12", gpus=GPUS)
    assert judged(env_reports=(told,))["versions.inputs.agree"].status is SKIP


def test_a_report_of_a_login_node_is_no_failure() -> None:
    untold = Missing("not-in-input", "the report says: Could not collect")
    told = report(torch="2.5.1+cu124", torch_cuda="12.4", cuda_available=False, driver=untold)
    one = judged(env_reports=(told,))["versions.torch.finds_gpu"]
    assert (one.status, "login node" in one.reason) == (WARN, True)


def test_two_packages_in_different_places_do_not_overwrite_each_other() -> None:
    names = ("nvidia-nccl-cu11", "nvidia-nccl-cu12")
    for places, status in ((("/a", "/b"), PASS), (("/a", "/a"), WARN), (("", ""), WARN)):
        listed = tuple(
            Package(name, "2.21.5", 1, "packages", place)
            for name, place in zip(names, places, strict=True)
        )
        found = judged(PythonEnv(listed, wheel()))
        assert found["versions.packages.one_cuda"].status is status


def test_the_first_driver_of_a_gpu_is_not_that_of_its_generation() -> None:
    assert driver_knows("450.80.02", "ampere", "8.6")
    assert not driver_knows("455.45.01", "ampere", "8.6")
    assert not driver_knows("450.80.02", "ampere", "8.0")
    assert driver_knows("570.124.06", "blackwell", "10.3")
    assert driver_knows("396.26", "turing", "7.5")


def test_a_card_of_unknown_form_is_not_taken_for_a_desktop_s() -> None:
    libcuda = (Software("compat-driver", "550.54.14", probe="software"),)
    for gpu, status in (("NVIDIA X900", PASS), ("NVIDIA GeForce RTX 3090", FAIL)):
        found = judged(HEALTHY, driver=of_driver("470.57.02", "12.4"), software=libcuda,
                       env_reports=(report(gpus=(gpu,)),))  # fmt: skip
        assert found["versions.cuda.driver"].status is status


def test_a_gpu_newer_than_the_table_is_no_pass_of_the_toolkit() -> None:
    told = report(toolkit="12.4.131", gpus=("NVIDIA X900",), capabilities=("14.0",))
    found = judged(env_reports=(told,))
    assert found["versions.toolkit.gpu"].status is SKIP
    assert "cuda_compat.yaml" in found["versions.toolkit.gpu"].reason


@pytest.mark.parametrize(("product", "capability"), [
    ("GRID P4-1Q", "6.1"), ("NVIDIA A40-48Q", "8.6"), ("NVIDIA A100-1-5C", "8.0"),
    ("GRID A100D-80C", "8.0"), ("NVIDIA L40S-48Q", "8.9"), ("NVIDIA H100-80C", "9.0"),
    ("GRID V100X-16Q", "7.0"), ("GRID T4-16Q", "7.5"),
])  # fmt: skip
def test_code_runs_on_a_part_of_a_card_as_on_the_card(product: str, capability: str) -> None:
    told = report(torch="2.5.1+cu124", torch_cuda="12.4", driver="550.54.14", gpus=(product,))
    stack = stack_of(Host("node-07", env_reports=(told,)), NOT_IN_INPUT)
    assert not isinstance(stack.gpus, Missing)
    assert stack.gpus[0].capability == capability
    unknown = report(gpus=("NVIDIA Z900-8Q",))
    found = stack_of(Host("node-07", env_reports=(unknown,)), NOT_IN_INPUT).gpus
    assert not isinstance(found, Missing)
    assert isinstance(found[0].capability, Missing)


def test_a_host_without_python_is_not_judged_by_it() -> None:
    """Nobody named an interpreter: what needs one is left out, all of it."""
    raws = [Raw("node-07", "packages", ("python3", "-c", "..."), 127)]
    checks = [one for one in load(("versions",)).checks if "stack" in one.fact]
    found = judge(assemble("node-07", raws).host, checks)
    assert {one.status for one in found} == {SKIP}
    named = [replace(raws[0], argv=("nosuch", "-c", "..."))]
    off = [one for one in judge(assemble("node-07", named).host, checks) if one.status is ERROR]
    assert len(off) > 10
    assert len({one.reason for one in off}) == 1
