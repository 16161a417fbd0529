"""How many GPUs there are and should be, on metal, in a container, in a job."""

from __future__ import annotations

import pytest

from bench.inputs import BUSES
from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result, Status
from tests.conftest import sample

_ONE = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")


def _smi(count: int, attached: int | None = None) -> str:
    from bench.inputs import gpus_like

    head, *gpus = gpus_like(_ONE).split("<gpu id=")
    told = str(count if attached is None else attached)
    kept = "".join(f"<gpu id={gpu}" for gpu in gpus[:count])
    text = head.replace("<attached_gpus>8", f"<attached_gpus>{told}") + kept
    return text if count == len(gpus) else f"{text}</nvidia_smi_log>\n"


def _pci(**drivers: int) -> str:
    lines, buses = [], iter([*BUSES, "F0"])
    for driver, count in drivers.items():
        for _ in range(count):
            name = "" if driver == "none" else driver.replace("_", "-")
            lines.append(f"0000:{next(buses).lower()}:00.0 0x030200 0x10de 0x20b2 {name}")
    return "\n".join([*lines, "end"]) + "\n"


def _identity(container: str = "", nodes: int = 0, **allocation: str) -> str:
    lines = ["hostname n"]
    lines += ["container_file /.dockerenv"] if container else []
    lines += [f"device_node /dev/nvidia{n}" for n in range(nodes)]
    lines += [f"allocation {name} {value}" for name, value in allocation.items()]
    return "\n".join(lines) + "\n"


def _count(check: str, **answers: str | Raw) -> Result:
    raws = [
        answer if isinstance(answer, Raw) else Raw("n", probe.replace("_", "-"), ("x",), 0, answer)
        for probe, answer in answers.items()
    ]
    checks = [one for one in load(("gpu",)).checks if one.id == check]
    (found,) = examine("n", raws, checks).results
    return found


@pytest.mark.parametrize(
    ("pci", "listed", "identity", "status", "expected"),
    [
        (_pci(nvidia=8), 8, _identity(), "PASS", "8"),
        (_pci(nvidia=8), 7, _identity(), "FAIL", "8"),
        (_pci(nouveau=8), 6, _identity(), "FAIL", "8"),
        (_pci(nvidia=8, nouveau=1), 8, _identity(), "PASS", "8"),  # a card for the console
        (_pci(nvidia=6, none=2), 6, _identity(), "FAIL", "8"),
        (_pci(nvidia=4, vfio_pci=4), 4, _identity(), "PASS", "4"),
        # containers: a list, a CDI runtime that leaves it to the device nodes, MIG slices
        (_pci(nvidia=8), 4, _identity("docker", 4), "PASS", "4"),
        (_pci(nvidia=8), 3, _identity("docker", 4), "FAIL", "4|8"),
        (_pci(nvidia=8), 4, _identity("docker", 4, NVIDIA_VISIBLE_DEVICES="void"), "PASS", "4"),
        (_pci(nvidia=8), 4, _identity("docker", 4, NVIDIA_VISIBLE_DEVICES="0,1,2,3"), "PASS", "4"),
        (
            _pci(nvidia=8),
            1,
            _identity("docker", 1, NVIDIA_VISIBLE_DEVICES="MIG-a,MIG-b"),
            "SKIP",
            "",
        ),
        (_pci(nvidia=8), 1, _identity("docker", 1, NVIDIA_VISIBLE_DEVICES="0:0,0:1"), "PASS", "1"),
        (_pci(nvidia=8), 4, _identity("docker", 0), "SKIP", ""),
        # jobs: granted, hidden without a word, and granted but not hidden
        (_pci(nvidia=8), 4, _identity(SLURM_JOB_GPUS="0-3"), "PASS", "4"),
        (_pci(nvidia=8), 1, _identity(SLURM_STEP_GPUS="2", SLURM_JOB_GPUS="0-3"), "PASS", "1"),
        (_pci(nvidia=8), 4, _identity(SLURM_JOB_ID="4711"), "SKIP", ""),
        (_pci(nvidia=8), 7, _identity(SLURM_JOB_GPUS="0-3"), "FAIL", "8"),
        # WSL: the driver works and PCI shows nothing
        (_pci(), 1, _identity(), "SKIP", ""),
    ],
)
def test_gpu_count(pci: str, listed: int, identity: str, status: str, expected: str) -> None:
    found = _count("gpu.count", identity=identity, pci=pci, nvidia_smi=_smi(listed))
    assert (found.status.value, found.reason if status == "SKIP" else "") == (status, found.reason)
    assert not expected or found.expected.partition(" (")[0] in expected.split("|")


def test_an_allocation_that_is_not_known_is_no_reason_to_fail() -> None:
    late = Raw("n", "identity", ("sh",), 124, elapsed_s=10)
    found = _count("gpu.count", identity=late, pci=_pci(nvidia=8), nvidia_smi=_smi(4))
    assert found.status is Status.ERROR


def test_a_list_that_pci_contradicts_fails_though_its_head_says_otherwise() -> None:
    found = _count("gpu.count", identity=_identity(), pci=_pci(nvidia=8), nvidia_smi=_smi(7, 8))
    assert (found.status, found.measured) == (Status.FAIL, 7)
    assert (
        found.expected == f"8 (on PCI, and nvidia-smi does not list 0000:{BUSES[7].lower()}:00.0)"
    )


def test_gpus_that_nobody_asked_about_are_unknown() -> None:
    found = _count("gpu.ecc.enabled", identity=_identity(), pci=_pci(nvidia=8))
    assert found.status is Status.ERROR
    assert "no answer of nvidia-smi" in found.reason


@pytest.mark.parametrize("rc", [9, 14, 15, 255])
def test_a_whole_report_is_judged_beside_the_exit_status(rc: int) -> None:
    answer = Raw("n", "nvidia-smi", ("nvidia-smi",), rc, _smi(8))
    given: dict[str, str | Raw] = {"identity": _identity(), "pci": _pci(nvidia=8)}
    assert _count("gpu.count", **given, nvidia_smi=answer).status is Status.PASS
    status = _count("gpu.driver.exit", **given, nvidia_smi=answer)
    assert (status.status, status.measured) == (Status.FAIL, rc)


@pytest.mark.parametrize("rc", [139, -9])
def test_an_exit_status_that_the_answer_does_not_explain_is_not_ignored(rc: int) -> None:
    answer = Raw("n", "nvidia-smi", ("nvidia-smi",), rc, _smi(8))
    found = _count("gpu.ecc.enabled", identity=_identity(), pci=_pci(nvidia=8), nvidia_smi=answer)
    assert found.status is Status.ERROR
    assert f"exited with {rc}" in found.reason


def test_gpus_that_were_handed_to_virtual_machines_are_said_to_be() -> None:
    found = _count("gpu.present", identity=_identity(), pci=_pci(vfio_pci=8))
    assert found.status is Status.SKIP
    assert "8 NVIDIA GPUs handed to virtual machines" in found.reason


@pytest.mark.parametrize(
    "answer",
    [
        Raw("n", "nvidia-smi", ("nvidia-smi",), 139, _smi(8)[:4000]),
        Raw("n", "nvidia-smi", ("nvidia-smi",), 0, ""),
        Raw("n", "nvidia-smi", ("nvidia-smi",), 0, "garbage"),
        Raw("n", "nvidia-smi", ("nvidia-smi",), 0, _smi(8)[:3000]),
        Raw("n", "nvidia-smi", ("nvidia-smi",), None, _smi(8)),
        Raw("n", "nvidia-smi", ("nvidia-smi",), 143, _smi(8)),
    ],
)
def test_a_broken_nvidia_smi_is_not_a_machine_without_gpus(answer: Raw) -> None:
    found = _count("gpu.ecc.enabled", identity=_identity(), pci=_pci(), nvidia_smi=answer)
    assert found.status is Status.ERROR


@pytest.mark.parametrize(
    ("cpu", "status"),
    [
        ("CPU(s): 8\nFlags: fpu hypervisor\n", "SKIP"),
        ("CPU(s): 8\nFlags: fpu\n", "FAIL"),
        ("CPU(s): 8\n", "SKIP"),  # other processors have no such flag: the GPU driver knows
    ],
)
def test_a_guest_is_told_by_the_processor_or_by_the_gpu_driver(cpu: str, status: str) -> None:
    text = _smi(1).replace("<current_link_width>16x", "<current_link_width>8x")
    if "Flags" not in cpu:
        text = text.replace("<virtualization_mode>None", "<virtualization_mode>Pass-Through")
    checks = [one for one in load(("pcie",)).checks if one.id == "pcie.width"]
    raws = [Raw("n", "nvidia-smi", stdout=text), Raw("n", "lscpu", stdout=cpu)]
    (found,) = examine("n", raws, checks).results
    assert found.status.value == status


def test_a_failing_question_of_a_site_has_no_number() -> None:
    from preflight.assemble.host import assemble

    raw = Raw("n", "site.x", ("df",), 1, "usage 5%", "df: no such file")
    answer = assemble("n", [raw]).host.site["site.x"]
    assert getattr(answer, "rc") == 1  # noqa: B009
    assert "no such file" in getattr(getattr(answer, "number"), "text")  # noqa: B009


LOADER = "nvidia-smi: error while loading shared libraries: libnvidia-ml.so.1: cannot open shared"


@pytest.mark.parametrize(
    ("rc", "stdout", "stderr"),
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the driver.", ""),
        (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", ""),
        (127, "", LOADER),
        (6, "No devices were found", ""),
    ],
)
def test_an_installed_nvidia_smi_that_fails_without_a_gpu_on_pci_is_worth_a_warning(
    rc: int, stdout: str, stderr: str
) -> None:
    answer = Raw("n", "nvidia-smi", ("nvidia-smi",), rc, stdout, stderr)
    found = _count("gpu.driver.orphan", identity=_identity(), pci=_pci(), nvidia_smi=answer)
    assert (found.status, found.measured) == (Status.WARN, stdout or stderr)
    assert any("--set gpu.count=N" in step for step in found.fix)


def test_without_nvidia_smi_and_without_a_gpu_nothing_is_wrong() -> None:
    answer = Raw("n", "nvidia-smi", ("nvidia-smi",), 127, "", "timeout: failed to run command")
    found = _count("gpu.driver.orphan", identity=_identity(), pci=_pci(), nvidia_smi=answer)
    assert found.status is Status.SKIP


def test_a_tool_that_cannot_be_loaded_is_installed() -> None:
    answer = Raw("n", "nvidia-smi", ("nvidia-smi",), 127, "", LOADER)
    found = _count(
        "gpu.driver.running", identity=_identity(), pci=_pci(nvidia=1), nvidia_smi=answer
    )
    assert (found.status, found.measured) == (Status.FAIL, "not-running")


def test_an_answer_that_breaks_off_is_no_lost_gpu() -> None:
    whole = _smi(8)
    cut = whole[: whole.index("<gpu id=", whole.index("</gpu>")) + 200]
    found = _count("gpu.count", identity=_identity(), pci=_pci(nvidia=8), nvidia_smi=cut)
    assert (found.status, found.measured) == (Status.ERROR, None)
    assert "cut short" in found.reason
