"""PCI as sysfs shows it: which port a bridge is, what its link does, and what is not told."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice
from preflight.model import Missing
from preflight.probes.pci.tree import pci_tree
from tests.probes.test_setup import asked, write
from tests.topology_hosts import GPUS, NICS, machine, sysfs, write_sysfs

TOLD = "0x0c 0 32.0 16 32.0 16 - - identity 12 - x"


def line(path: str, head: str = "0x060400 0x1000 0xc030", told: str = TOLD) -> str:
    return f"{head} {told} /sys/devices/{path}\n"


def devices(text: str) -> dict[str, PciDevice]:
    return {each.name: each for each in pci_tree(f"{text}end").devices}


def _kind(value: object) -> str:
    assert isinstance(value, Missing), value
    return value.kind


def test_a_gpu_in_full() -> None:
    gpu = devices(sysfs(machine()).removesuffix("end"))[GPUS[0]]
    assert gpu == PciDevice(
        "0000:19:00.0",
        gpu.line,
        "pci-tree",
        class_id="0x0302",
        class_name="3D controller",
        vendor_id="0x10de",
        device_id="0x2330",
        product="10de:2330",
        revision="a1",
        port="Endpoint",
        speed_max_gtps=32.0,
        width_max=16,
        speed_gtps=32.0,
        width=16,
        link_line=gpu.line,
        link_probe="pci-tree",
        driver="nvidia",
        numa_node=0,
        iommu_group=12,
        iommu_type="identity",
        way=("pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:01.0"),
    )
    assert sysfs(machine()).split("\n")[gpu.line - 1].endswith("/0000:19:00.0")


def test_ports_by_turns_from_the_root() -> None:
    way = ["pci0000:15", *(f"0000:{bus:02x}:00.0" for bus in range(0x15, 0x1A))]
    found = devices("".join(line("/".join(way[:end])) for end in range(2, len(way) + 1)))
    assert [each.port for each in found.values()] == [
        "Root Port", "Upstream Port", "Downstream Port", "Upstream Port", "Downstream Port",
    ]  # fmt: skip


def test_behind_a_volume_management_device_ports_are_counted_anew() -> None:
    way = "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0"
    nvme = "0x010802 0x144d 0xa80a"
    found = devices(line(way) + line(f"{way}/10000:01:00.0", nvme))
    assert found["10000:00:02.0"].port == "Root Port"
    assert found["10000:01:00.0"].way == tuple(way.split("/"))


def test_a_hypervisor_puts_a_root_below_its_own_bus() -> None:
    guest = "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001/pci0001:00/0001:00:00.0"
    gpu = devices(line(guest, "0x030200 0x10de 0x20b5"))["0001:00:00.0"]
    assert gpu.way == ("pci0001:00",)


def test_conventional_pci_has_no_link() -> None:
    bridge = "pci0000:00/0000:00:1e.0"
    told = "0x0c -1 - - - - - - - - - -"
    found = devices(
        line(bridge, told=told) + line(f"{bridge}/0000:01:00.0", "0x030000 0x1a03 0x2000", told)
    )
    for one in found.values():
        for value in (one.width, one.speed_gtps, one.width_max, one.port, one.numa_node):
            assert _kind(value) == "not-applicable"
        assert _kind(one.iommu_type) == "not-applicable"
    assert found["0000:01:00.0"].driver == ""


@pytest.mark.parametrize(
    ("link", "kinds"),
    [
        # Nothing below the port: no lanes, and a speed that means nothing.
        ("2.5 0 32.0 16", ("not-applicable", "not-applicable")),
        ("Unknown 0 32.0 16", ("not-applicable", "not-applicable")),
        ("Unknown 16 32.0 16", ("", "unreadable")),
        # Asleep: the kernel may not read it.
        ("- - 32.0 16", ("not-applicable", "not-applicable")),
    ],
)
def test_a_link_that_is_not_there_or_not_told(link: str, kinds: tuple[str, str]) -> None:
    one = devices(line("pci0000:00/0000:00:01.0", told=TOLD.replace("32.0 16 32.0 16", link)))
    (port,) = one.values()
    for value, kind in zip((port.width, port.speed_gtps), kinds, strict=True):
        assert (_kind(value) if kind else value) == (kind or 16)
    assert (port.width_max, port.speed_max_gtps) == (16, 32.0)


def test_what_answers_nothing_but_ones() -> None:
    told = TOLD.replace("32.0 16 32.0 16", "Unknown 63 32.0 16")
    (gpu,) = devices(line("pci0000:00/0000:00:01.0", "0x030200 0x10de 0x2330", told)).values()
    assert gpu.answers is False
    assert _kind(gpu.width_max) == _kind(gpu.port) == "not-applicable"


def test_an_old_kernel_does_not_tell_how_a_group_is_translated() -> None:
    (one,) = devices(line("pci0000:00/0000:00:01.0", told=TOLD.replace("identity", "-"))).values()
    assert (one.iommu_group, _kind(one.iommu_type)) == (12, "not-applicable")


@pytest.mark.parametrize("tools", ["", "busybox", "dash"])
def test_it_is_asked_of_sysfs(tmp_path: Path, tools: str) -> None:
    root = write_sysfs(tmp_path, machine())
    made = root / "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0"
    write(made / "0000:1a:00.2", {"class": "0x020700\n", "vendor": "0x15b3\n"})
    (made / "0000:1a:00.2/physfn").symlink_to(made / "0000:1a:00.0")
    (root / "sys/bus/pci/devices/0000:1a:00.2").symlink_to(made / "0000:1a:00.2")
    write(root / "sys/devices/pci0000:00/0000:00:1f.0", {"class": "0x060100\n"})
    (root / "sys/bus/pci/devices/0000:00:1f.0").symlink_to(
        root / "sys/devices/pci0000:00/0000:00:1f.0"
    )
    if tools:
        shell = subprocess.run(["which", tools], capture_output=True, text=True).stdout.strip()
        if not shell:
            pytest.skip(f"{tools} is not installed")
        (root / "bin").mkdir()
        (root / "bin/sh").symlink_to(shell)
    text = asked(pci_tree, root, "/sys/bus/pci").replace(str(root), "")
    with pytest.raises(ParseError):  # a file that every function has is not there
        pci_tree(text)
    for name, value in (("device", "0x101e"), ("revision", "0x00"), ("numa_node", "0")):
        write(made / "0000:1a:00.2", {name: f"{value}\n"})
    text = asked(pci_tree, root, "/sys/bus/pci").replace(str(root), "")
    lines = [line for line in text.split("\n") if not line.endswith("1a:00.2")]
    assert "\n".join(lines) == sysfs(machine())
    (virtual,) = [one for one in pci_tree(text).devices if one.virtual]
    assert virtual.name == "0000:1a:00.2"


def test_a_host_with_many_functions_is_asked_in_little_time(tmp_path: Path) -> None:
    root = write_sysfs(tmp_path, machine())
    own = root / "sys/bus/pci/devices"
    for at in range(230):  # and the rest of 300
        folder = root / f"sys/devices/pci0000:f0/0000:f0:{at // 8:02x}.{at % 8}"
        write(folder, {"class": "0x088000\n", "vendor": "0x8086\n"})
        (own / folder.name).symlink_to(folder)
    started = time.process_time(), time.monotonic()
    asked(pci_tree, root, "/sys/bus/pci")
    assert time.monotonic() - started[1] < 1.0


def test_this_machine_is_read() -> None:
    folder = Path("/sys/bus/pci/devices")
    if not folder.is_dir() or not any(folder.iterdir()):
        pytest.skip("this machine has no PCI")
    *argv, script = pci_tree.probe.command.argv  # type: ignore[attr-defined]
    done = subprocess.run([*argv, script], capture_output=True, text=True, check=True)
    for one in pci_tree(done.stdout).devices:
        assert (folder / one.name).exists()


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", "hello\nend", sysfs(machine()).removesuffix("end"),
     line("pci0000:00/0000:00:01.0").replace("0x060400", "0x0604") + "end"],
)  # fmt: skip
def test_what_is_cut_short_or_something_else(text: str) -> None:
    with pytest.raises(ParseError):
        pci_tree(text)


@given(st.integers(0, 4000), st.text("0123456789abcdefx:./- \n", max_size=12))
def test_any_change_is_read_or_refused(at: int, put: str) -> None:
    whole = sysfs(machine())
    changed = whole[:at] + put + whole[at + len(put) :]
    try:
        found = pci_tree(changed).devices
    except ParseError:
        return
    assert all(each.name and each.line for each in found)


def test_adapters_are_in_it() -> None:
    found = devices(sysfs(machine()).removesuffix("end"))
    assert set(NICS) <= set(found)
