"""A live host with GPUs on PCI whose lspci, systemctl and nv-fabricmanager are ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.inputs import BUSES, gpus_like
from tests.cli.command import Ran, preflight, replaying, with_tool
from tests.conftest import sample
from tests.lab.pci import machine_with_gpus
from tests.lspci_text import function, server

H100 = (
    gpus_like(sample("nvidia_smi_xml/rtx3060_570.124.xml"))
    .replace("NVIDIA GeForce RTX 3060", "NVIDIA H100 80GB HBM3")
    .replace("link_gen>4<", "link_gen>5<")
)
#: A machine that was booted with systemd, as the directory in /run shows.
BOOTED = 'mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; exec "$@"'
UNIT = """\
NRestarts=0
Result=success
Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState={active}
SubState={sub}
UnitFileState=enabled
"""
DRIVER = re.search(r"<driver_version>(.*?)<", H100)


def _lspci(uplink: str = "32 16") -> str:
    name = "3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)"
    others = "".join(
        function(f"0000:{bus.lower()}:00.0", name, "Endpoint", "32 16", "32 16", driver="nvidia")
        for bus in BUSES[1:]
    )
    first = BUSES[0].lower()
    below = server(uplink=uplink).replace("0000:19:00.0", f"0000:{first}:00.0")
    below = below.replace("secondary=19, subordinate=19", f"secondary={first}, subordinate={first}")
    return below + others


def _host(
    base: Path, *, lspci: str, active: str = "active", sub: str = "running", version: str = ""
) -> str:
    """A PATH with the tools of a sound machine, except for what is given."""
    assert DRIVER is not None
    (base / "lspci.txt").write_text(lspci)
    (base / "unit.txt").write_text(UNIT.format(active=active, sub=sub))
    tools = base / "bin"
    said = f"Fabric Manager version is : {version or DRIVER[1]}"
    replaying(tools, H100)
    with_tool(tools, "lspci", f"cat {base}/lspci.txt")
    with_tool(tools, "systemctl", f"cat {base}/unit.txt")
    with_tool(tools, "lscpu", "printf 'CPU(s): 8\\nFlags: fpu\\n'")
    return with_tool(tools, "nv-fabricmanager", f"echo '{said}'")


def _health(base: Path, path: str) -> tuple[Ran, dict[str, list[dict[str, Any]]]]:
    under = [*machine_with_gpus(base, 8), "sh", "-c", BOOTED, "sh"]
    ran = preflight("gpu-health", "--format", "json", under=under, PATH=path)
    found: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads(ran.out)["hosts"][0]["results"]:
        found.setdefault(one["check"], []).append(one)
    return ran, found


def _bad(found: dict[str, list[dict[str, Any]]]) -> set[str]:
    return {
        f"{one['status']} {one['check']} {one['subject']}"
        for results in found.values()
        for one in results
        if one["status"] in ("FAIL", "WARN") and not one["check"].startswith(("kernel.", "gpu.xid"))
    }


@pytest.mark.lab
def test_a_sound_machine(tmp_path: Path) -> None:
    _, found = _health(tmp_path, _host(tmp_path, lspci=_lspci()))
    assert not [
        each
        for each in _bad(found)
        if "pcie." in each or "fabric.manager" in each or "driver" in each
    ]
    for check in (
        "pcie.path.rate", "pcie.width", "pcie.device.answers", "gpu.driver.answer_time",
        "fabric.manager.running", "fabric.manager.version",
    ):  # fmt: skip
        assert found[check][0]["status"] == "PASS", found[check][0]


@pytest.mark.lab
def test_a_switch_whose_uplink_lost_half_its_lanes(tmp_path: Path) -> None:
    ran, found = _health(tmp_path, _host(tmp_path, lspci=_lspci("32 8")))
    assert ran.rc == 1
    assert "FAIL pcie.path.rate gpu0" in _bad(found)
    assert "Width x8 (downgraded)" in found["pcie.path.rate"][0]["evidence"][0]["text"]


@pytest.mark.lab
def test_a_fabric_manager_that_is_down_and_one_of_another_version(tmp_path: Path) -> None:
    path = _host(tmp_path, lspci=_lspci(), active="failed", sub="failed", version="535.129.03")
    ran, found = _health(tmp_path, path)
    assert ran.rc == 1
    bad = " ".join(_bad(found))
    assert "FAIL fabric.manager.running" in bad
    assert "FAIL fabric.manager.version" in bad
    assert not [each for each in _bad(found) if "gpu.fabric" in each]


@pytest.mark.lab
def test_an_lspci_that_hangs_costs_its_limit_and_no_other_answer(tmp_path: Path) -> None:
    path = _host(tmp_path, lspci="")
    with_tool(tmp_path / "bin", "lspci", "exec sleep 600")
    under = [*machine_with_gpus(tmp_path, 8), "sh", "-c", BOOTED, "sh"]
    options = ("gpu-health", "--format", "json", "--host-timeout", "12s")
    ran = preflight(*options, under=under, PATH=path)
    found = {one["check"]: one for one in json.loads(ran.out)["hosts"][0]["results"]}
    assert found["pcie.path.rate"]["status"] == "ERROR"
    assert "did not end within" in found["pcie.path.rate"]["reason"]
    assert found["gpu.answers"]["status"] == "PASS"
