"""A sosreport as one host: known members only, bounded, no link followed."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from preflight.collect import examine
from preflight.errors import UsageError
from preflight.judge.load import DOMAINS, load
from preflight.model import Raw, Status
from preflight.transports import sosreport
from preflight.transports.recorded import open_inputs
from tests.conftest import sample

LOST = sample("kernel_log/xid79_then_sxid20034_fatal.log")
FILES = {
    "sos_commands/host/hostname": "gpu-07.example.com\n",
    "sos_commands/kernel/dmesg": LOST,
    "var/log/messages": LOST,
    "sos_commands/nvidia/nvidia-smi_-q": sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"),
    "sos_commands/pci/lspci_-nnvv": sample("lspci/a10_nn.txt"),
    "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 900 kB\n",
    "sos_commands/logs/journalctl_--disk-usage": "Archived journals take up 1.0G.\n",
    "etc/shadow": "root:secret\n",
}


def archive(path: Path, mode: str, files: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, f"w:{mode}") as tar:  # type: ignore[call-overload]
        for name, text in (FILES if files is None else files).items():
            info = tarfile.TarInfo(f"sosreport-gpu-07-2025/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("sosreport-gpu-07-2025/sos_commands/kernel/dmesg_-T")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return path


def folder(path: Path) -> Path:
    for name, text in FILES.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (path / "sos_commands/kernel/dmesg_-T").symlink_to("/etc/passwd")
    return path


def hosts(path: Path) -> dict[str, list[Raw]]:
    return dict(open_inputs([str(path)], io.BytesIO()).hosts())


@pytest.mark.parametrize("form", ["", "gz", "xz", "folder"])
def test_one_host_with_its_name_and_each_fault_once(tmp_path: Path, form: str) -> None:
    made = folder(tmp_path / "sos") if form == "folder" else None
    path = made or archive(tmp_path / f"sos.tar{'.' if form else ''}{form}", form)
    ((name, raws),) = hosts(path).items()
    assert name == "gpu-07"
    probes = {"kernel-log", "kernel-log#2", "nvidia-smi-q", "meminfo", "lspci"}
    assert {raw.probe for raw in raws} == probes
    assert not any("secret" in str(raw.stdout) for raw in raws)
    (lost,) = [
        one for one in examine(name, raws, load(DOMAINS).checks).results
        if one.check == "gpu.xid.79"
    ]  # fmt: skip
    assert (lost.status, lost.measured) == (Status.FAIL, 1)
    assert lost.evidence[0].source.endswith(("dmesg", "messages"))


def test_a_name_of_the_users_choice_counts(tmp_path: Path) -> None:
    path = archive(tmp_path / "sos.tar.gz", "gz")
    assert list(dict(open_inputs([f"node-1={path}"], io.BytesIO()).hosts())) == ["node-1"]


def test_what_is_cut_is_told_and_the_rest_judged(tmp_path: Path) -> None:
    path = archive(tmp_path / "sos.tar", "")
    path.write_bytes(path.read_bytes()[:-40_000])
    found = open_inputs([str(path)], io.BytesIO())
    assert list(dict(found.hosts())) == ["gpu-07"]
    assert "cut short" in found.bad()[0][1]


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sosreport, "MEMBER_BYTES", 3000)
    found = open_inputs([str(archive(tmp_path / "sos.tar.xz", "xz"))], io.BytesIO())
    assert any("too large" in why for _, why in found.bad())
    monkeypatch.setattr(sosreport, "ARCHIVE_BYTES", 100)
    bad: list[tuple[str, str]] = []
    sosreport.members(tmp_path / "sos.tar.xz", bad)
    assert "too large when unpacked" in bad[0][1]


def test_another_archive_is_none(tmp_path: Path) -> None:
    path = archive(tmp_path / "other.tar", "", {"a/b.txt": "x"})
    assert sosreport.members(path, []) == []


BOX = {
    "sos_commands/kernel/dmesg": LOST,
    "sos_commands/ipmitool/ipmitool_-I_usb_sensor_list": (
        "FAN1             | 300.000    | RPM        | nr    | 420.000   | 560.000   | 700.000   "
        "| 25200.000 | 25300.000 | 25400.000 \n"
    ),
    "sos_commands/ipmitool/ipmitool_sel_list_-v": "SEL Record ID          : 0001\n",
    "sos_commands/ipmitool/ipmitool_sel_list": "   1 | 03/04/2026 | 11:00:00 | Memory #2 | x | A\n",
    "sos_commands/ipmitool/ipmitool_sel_elist": (
        "   1 | 03/04/2026 | 11:00:00 | Memory #0x02 | Uncorrectable ECC | Asserted\n"
    ),
    "sos_commands/hardware/dmidecode": (
        "Handle 0x0020, DMI type 17, 92 bytes\nMemory Device\n\tSize: 64 GB\n\tLocator: A1\n"
    ),
    "sos_commands/kernel/lsmod": "Module                  Size  Used by\nnvidia 56 2\n",
    "proc/driver/nvidia/version": (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 24 22:55:29 UTC 2024\n"
    ),
    "sos_commands/nvidia/systemctl_status_nvidia-fabricmanager": (
        "\u25cf nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
        "     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled)\n"
        "     Active: failed (Result: exit-code) since Wed 2026-03-04 09:12:13 UTC; 2h ago\n\n"
        "Mar 04 09:12:13 node-12 systemd[1]: Failed to start NVIDIA fabric manager service.\n"
    ),
    "sos_commands/nvidia/systemctl_status_nvidia-persistenced": (
        "\u25cf nvidia-persistenced.service - NVIDIA Persistence Daemon\n"
        "     Loaded: loaded (/lib/systemd/system/nvidia-persistenced.service; enabled)\n"
        "     Active: active (running) since Wed 2026-03-04 09:12:13 UTC; 2h ago\n"
    ),
}


def test_the_box_services_and_modules_are_read(tmp_path: Path) -> None:
    found = open_inputs([str(archive(tmp_path / "sos.tar.xz", "xz", BOX))], io.BytesIO())
    ((name, raws),) = found.hosts()
    assert found.bad() == []
    probes = {"kernel-log", "ipmi-sdr", "ipmi-sel", "dmidecode", "driver-module", "services"}
    assert {raw.probe for raw in raws} == probes
    told = {
        one.check for one in examine(name, raws, load(DOMAINS).checks).results
        if one.status in (Status.FAIL, Status.WARN)
    }  # fmt: skip
    assert {"chassis.sensor", "chassis.sel.memory_uncorrected", "fabric.services"} <= told
    (module,) = [str(raw.stdout) for raw in raws if raw.probe == "driver-module"]
    assert "Used by" in module and "NVRM version" in module


@pytest.mark.parametrize("form", ["", "gz", "xz", "bz2"])
def test_from_standard_input_as_from_a_file(tmp_path: Path, form: str) -> None:
    path = archive(tmp_path / "sos.tar", form)
    found = dict(open_inputs(["-"], io.BytesIO(path.read_bytes())).hosts())
    assert {raw.probe for raw in found["gpu-07"]} == {raw.probe for raw in hosts(path)["gpu-07"]}


def test_another_archive_on_standard_input_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = archive(tmp_path / "other.tar", "gz", {"a/b.txt": "x"})
    with pytest.raises(UsageError, match="tar archive"):
        open_inputs(["-"], io.BytesIO(path.read_bytes()))
