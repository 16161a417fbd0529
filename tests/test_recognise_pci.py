"""lspci, the driver's modules and services in a paste: with prompts, with other tools, by mail."""

from __future__ import annotations

import pytest

from preflight.model import Raw
from preflight.probes.driver_module import driver_module
from preflight.probes.pci.lspci import lspci
from preflight.probes.services import services
from preflight.recognise import recognise
from tests.conftest import sample
from tests.lspci_text import server

PLAIN = sample("lspci/a10_nn.txt")
DEVICES = sample("lspci/xe9680_h100_x8_cx7_vvv_devices.txt")
XID = sample("kernel_log/xid79_then_sxid20034_fatal.log")
SMI = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
LSMOD = "Module          Size  Used by\nnvidia_uvm   1523712  0\nnvidia 56717312  2 nvidia_uvm\n"
SHOWN = (
    "NRestarts=0\nId=nvidia-fabricmanager.service\nLoadState=loaded\nActiveState=failed\n"
    "SubState=failed\nUnitFileState=enabled\n"
)
VERSION = "Fabric Manager version is : 535.129.03\n"


def _found(text: str) -> dict[str, Raw]:
    return {raw.probe: raw for raw in recognise(text.encode(), "x.txt")}


@pytest.mark.parametrize("text", [PLAIN, DEVICES, server()], ids=["-nn", "-vvv", "-Dvvvnn"])
@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text,
        lambda text: f"root@node-07:~# lspci -vvv\n{text}root@node-07:~# exit\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
        lambda text: f"Hello, one of our nodes is slow. This is it:\n\n{text}",
    ],
    ids=["as it is", "prompt", "CRLF", "indented", "mail", "letter"],
)  # fmt: skip
def test_it_reads_the_same_however_it_was_pasted(text: str, changed) -> None:  # type: ignore[no-untyped-def]
    (raw,) = _found(changed(text)).values()
    assert raw.probe == "lspci"
    pasted, own = lspci(str(raw.stdout)).devices, lspci(text).devices
    assert [each.name for each in pasted] == [each.name for each in own]
    assert [each.width for each in pasted] == [each.width for each in own]


def test_among_other_tools() -> None:
    text = (
        f"$ lspci -vvv\n{DEVICES}$ lspci -tv\n-[0000:00]-+-00.0  Intel Corporation Device 3258\n"
        f"$ nvidia-smi -q\n{SMI}$ dmesg\n{XID}$ cat /proc/driver/nvidia/version\n{NVRM}"
        f"$ lsmod | grep nv\n{LSMOD}$ nv-fabricmanager --version\n{VERSION}"
        f"$ systemctl show nvidia-fabricmanager\n{SHOWN}"
    )
    found = _found(text)
    assert set(found) == {
        "lspci", "lspci-tree", "nvidia-smi-q", "kernel-log", "driver-module", "services",
    }  # fmt: skip
    assert lspci(str(found["lspci"].stdout)).devices == tuple(lspci(DEVICES).devices)
    module = driver_module(str(found["driver-module"].stdout))
    assert (module.version, module.uvm) == ("535.129.03", "loaded")
    told = services(str(found["services"].stdout))
    assert isinstance(told.units, tuple)
    assert (told.fabric_manager_version, told.units[0].active) == ("535.129.03", "failed")


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        (NVRM, "driver-module"),
        (LSMOD, "driver-module"),
        (VERSION, "services"),
        (SHOWN, "services"),
        ("● nvidia-fabricmanager.service - NVIDIA fabric manager service\n", "services"),
        ("× nvidia-imex.service\n     Active: failed (Result: signal)\n", "services"),
        ("Unit nvidia-fabricmanager.service could not be found.\n", "services"),
        ("01:00.0 0302: 10de:20f1 (rev a1)\n", "lspci"),
        ("10000:e1:00.0 Non-Volatile memory controller: Intel Corporation Device\n", "lspci"),
        ('01:00.0 "3D controller" "NVIDIA Corporation" "GH100" -ra1 "" ""\n', "lspci"),
        ('0000:01:00.0 "0302" "10de" "2330" -ra1 "" ""\n', "lspci"),
        ("Slot:\t01:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\n", "lspci"),
        ("-[0000:00]-+-00.0  Intel Corporation Device 3258\n", "lspci-tree"),
        ("-+-[0000:80]-+-00.0\n \\-[0000:00]-+-00.0\n             \\-1f.0\n", "lspci-tree"),
        ("-[00]-+-00.0\n      \\-1f.0\n", "lspci-tree"),
    ],
)
def test_one_answer_alone(text: str, probe: str) -> None:
    assert set(_found(text)) == {probe}


def test_kernel_messages_on_the_console_do_not_end_it() -> None:
    xid = "[  812.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n".replace(
        "812.1", "812.123456"
    )
    half = server().index("0000:17:01.0")
    found = _found(server()[:half] + xid + server()[half:])
    assert len(lspci(str(found["lspci"].stdout)).devices) == 7


@pytest.mark.parametrize("length", [60_000, 200_000])
def test_what_follows_without_a_prompt_keeps_its_lines(length: int) -> None:
    xml = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
    for probe, text in (("nvidia-smi-q", SMI), ("nvidia-smi", xml)):
        cut = text[:length]
        found = _found(server() + cut)
        assert str(found[probe].stdout).strip() == cut.strip()
        assert len(lspci(str(found["lspci"].stdout)).devices) == 7
