"""Who needs a fabric manager, and what is wrong with one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result
from preflight.recognise import recognise
from tests.conftest import sample
from tests.probes.test_services import STATUS
from tests.written import NVSWITCH, SERVICES

H100 = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
LSCPU = "Architecture: x86_64\nCPU(s): 8\nFlags: fpu {}\n"
PCI = NVSWITCH + "0000:1b:00.0 0x030200 0x10de 0x2330 nvidia\nend\n"
NO_SWITCH = "0000:1b:00.0 0x030200 0x10de 0x2330 nvidia\nend\n"
DOWN = (
    re.sub("daemon .*\n", "", SERVICES).replace("=active", "=inactive").replace("=running", "=dead")
)


def _judge(
    services: str = SERVICES, pci: str = PCI, smi: str = H100, lscpu: str = LSCPU.format("x"),
    **others: str,
) -> dict[str, Result]:  # fmt: skip
    texts = {"services": services, "pci": pci, "nvidia-smi-q": smi, "lscpu": lscpu, **others}
    raws = [Raw("node-07", probe, (probe,), 0, text) for probe, text in texts.items()]
    found = examine("node-07", raws, load(("fabric", "gpu")).checks).results
    return {
        one.check: one
        for one in found
        if one.check.startswith("fabric.manager.") or one.status.value in ("FAIL", "WARN")
    }


def _statuses(found: dict[str, Result]) -> set[str]:
    return {one.status.value for check, one in found.items() if check.startswith("fabric.")}


def test_sound() -> None:
    assert _statuses(_judge()) == {"PASS"}


def test_a_fabric_manager_that_is_down_for_20_days_fails_though_every_gpu_looks_healthy() -> None:
    """A cluster once ran 20 days with the fabric manager down because per-GPU health looked fine
    (NVIDIA/NVSentinel, pull request 891)."""
    found = _judge(DOWN)
    assert not [check for check in found if check.startswith("gpu.fabric.")]
    running = found["fabric.manager.running"]
    assert (running.status.value, running.action.value) == ("FAIL", "restart-service")
    assert running.runbook == "fabric-not-ready"
    assert running.evidence[0].text == "ActiveState=inactive"


@pytest.mark.parametrize(
    ("active", "sub"),
    [("failed", "failed"), ("inactive", "dead"), ("activating", "auto-restart"),
     ("active", "exited"), ("deactivating", "stop-sigterm")],
)  # fmt: skip
def test_states_in_which_it_does_not_run(active: str, sub: str) -> None:
    text = DOWN.replace("ActiveState=inactive", f"ActiveState={active}", 1)
    text = text.replace("SubState=dead", f"SubState={sub}", 1)
    assert _judge(text)["fabric.manager.running"].status.value == "FAIL"


def test_not_installed_where_it_is_needed() -> None:
    text = "nv-fabricmanager: none\nsystemd: yes\nNRestarts=0\nId=nvidia-fabricmanager.service\n"
    text += "LoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\nend\n"
    found = _judge(text)
    assert found["fabric.manager.running"].status.value == "FAIL"
    assert found["fabric.manager.version"].status.value == "SKIP"


def test_in_the_drivers_container_it_runs_without_a_unit() -> None:
    text = "daemon nv-fabricmanage\nnv-fabricmanager: none\nsystemd: yes\nNRestarts=0\n"
    text += "Id=nvidia-fabricmanager.service\nLoadState=not-found\nActiveState=inactive\n"
    text += "SubState=dead\nUnitFileState=\nend\n"
    found = _judge(text)
    assert found["fabric.manager.running"].status.value == "PASS"
    assert "in a container" in found["fabric.manager.enabled"].reason
    assert _statuses(found) == {"PASS", "SKIP"}


@pytest.mark.parametrize("version", ["535.161.07", "535.161", "535.161.08.1", "550.54.15"])
def test_another_version_than_the_drivers(version: str) -> None:
    found = _judge(SERVICES.replace("535.161.08", version))["fabric.manager.version"]
    assert (found.status.value, found.measured, found.expected) == ("FAIL", version, "535.161.08")
    assert found.evidence[0].text == f"Fabric Manager version is : {version}"


@pytest.mark.parametrize(("restarts", "status"), [(0, "PASS"), (1, "WARN"), (17, "WARN")])
def test_restarts(restarts: int, status: str) -> None:
    found = _judge(SERVICES.replace("NRestarts=0", f"NRestarts={restarts}"))
    assert found["fabric.manager.restarts"].status.value == status


@pytest.mark.parametrize(
    ("state", "status"), [("enabled", "PASS"), ("disabled", "WARN"), ("masked", "WARN")]
)
def test_at_boot(state: str, status: str) -> None:
    found = _judge(SERVICES.replace("UnitFileState=enabled", f"UnitFileState={state}"))
    assert found["fabric.manager.enabled"].status.value == status


@pytest.mark.parametrize(
    ("product", "pci"),
    [
        ("NVIDIA H100 PCIe", NO_SWITCH),
        ("NVIDIA H100 NVL", NO_SWITCH),
        ("NVIDIA GH200 480GB", NO_SWITCH),
        ("NVIDIA GB200", NO_SWITCH),
        ("NVIDIA GeForce RTX 4090", NO_SWITCH),
        ("NVIDIA H100 80GB HBM3", NVSWITCH.replace("nvidia-nvswitch", "vfio-pci") + "end\n"),
    ],
)
def test_where_it_is_not_needed(product: str, pci: str) -> None:
    smi = H100.replace("NVIDIA H100 80GB HBM3", product)
    lscpu = LSCPU.format("hypervisor") if "HBM3" in product else LSCPU.format("x")
    found = _judge(
        DOWN, pci, smi.replace("None", "Pass-Through") if "HBM3" in product else smi, lscpu
    )
    assert _statuses(found) == {"SKIP"}


def test_where_the_switches_are_not_on_pci_the_model_tells() -> None:
    assert _judge(DOWN, NO_SWITCH)["fabric.manager.running"].status.value == "FAIL"


def test_a_virtual_machine_that_was_given_the_switches_needs_one() -> None:
    found = _judge(DOWN, PCI, lscpu=LSCPU.format("hypervisor"))
    assert found["fabric.manager.running"].status.value == "FAIL"


def test_without_systemd_it_is_skipped_unless_it_is_seen_to_run() -> None:
    none = "nv-fabricmanager: none\nsystemd: no\nend\n"
    assert _judge(none)["fabric.manager.running"].status.value == "SKIP"
    seen = _judge(f"daemon nv-fabricmanage\n{none}")["fabric.manager.running"]
    assert seen.status.value == "PASS"


def test_in_a_container_it_belongs_to_the_host() -> None:
    found = _judge(DOWN, identity="hostname node-07\ncontainer_file /.dockerenv\n")
    assert _statuses(found) == {"SKIP"}


def test_where_the_gpus_are_not_known_nothing_passes() -> None:
    raws = [Raw("node-07", "services", ("sh",), 0, DOWN), Raw("node-07", "nvidia-smi", ("x",), 127)]
    results = examine("node-07", raws, load(("fabric",)).checks).results
    statuses = {one.status.value for one in results if one.check.startswith("fabric.manager.")}
    assert statuses == {"ERROR"}


def test_systemctl_status_beside_nvidia_smi_in_one_paste(tmp_path: Path) -> None:
    paste = tmp_path / "paste.txt"
    status = STATUS.format(active="failed (Result: exit-code)")
    paste.write_text(f"$ nvidia-smi -q\n{H100}$ systemctl status nvidia-fabricmanager\n{status}")
    raws = recognise(paste.read_bytes(), "paste.txt")
    found = {one.check: one for one in examine("x", raws, load(("fabric",)).checks).results}
    running = found["fabric.manager.running"]
    assert running.status.value == "FAIL"
    assert running.evidence[0].text.startswith("Active: failed (Result: exit-code)")
