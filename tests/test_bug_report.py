"""nvidia-bug-report.log: sections of many tools, in the form of nvidia-bug-report.sh."""

from __future__ import annotations

import gzip

from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.model import HostReport, Raw, Status
from preflight.recognise import recognise
from tests.conftest import sample

RULE = "_" * 44
HEAD = """
Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics
driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com)
or by sending email to 'linux-bugs@nvidia.com'.

nvidia-bug-report.sh Version: 31831145

Date: Tue Feb 25 10:00:00 UTC 2025
uname: Linux gpu-07 5.15.0 #1 SMP x86_64 GNU/Linux
command line flags:
"""
LS = "*** ls: -r--r--r-- 1 root root 0 2025-02-25 10:00:00.0 +0000"


def journal(day: int, lines: list[str]) -> str:
    told = (line.partition("] ")[2] for line in lines)
    return "".join(f"Feb {day} 09:00:{at:02} gpu-07 kernel: {one}\n" for at, one in enumerate(told))


def report(dmesg: str, before: str = "") -> str:
    """The sections in the script's order."""
    now = journal(25, [line for line in dmesg.splitlines() if "NVRM" in line or "nvidia-" in line])
    nvlink = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n\t Link 0: 26.562 GB/s\n"
    sections = (
        HEAD,
        f"\n*** /etc/issue\n{LS} /etc/issue\nUbuntu 22.04 \\n \\l\n",
        "\n*** /var/log/nvidia-installer.log does not exist\n",
        "\njournalctl -b -0 _COMM=Xorg\n\n-- No entries --\n",
        f"\n/usr/bin/lspci -nn\n\n{sample('lspci/a10_nn.txt')}",
        "\nScanning kernel log files for NVIDIA kernel messages:\n\n  journalctl -b -0:\n"
        f"{now}{before}",
        f"\ndmesg:\n\n{dmesg}",
        f"\n*** /proc/meminfo\n{LS} /proc/meminfo\nMemTotal:       2113513184 kB\n",
        f"\n*** /proc/driver/nvidia/./version\n{LS} /proc/driver/nvidia/./version\n"
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Mon Apr  8 2024\n",
        f"\n/usr/bin/nvidia-smi --query\n\n"
        f"{sample('nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt')}"
        f"\n/usr/bin/nvidia-smi nvlink --status\n\n{nvlink}",
        "\nEnd of NVIDIA bug report log file.\n",
    )
    return "".join(f"{RULE}\n{section}\n" for section in sections)


def judged(text: str) -> HostReport:
    raws = recognise(gzip.compress(text.encode()), "nvidia-bug-report.log.gz")
    named = [Raw("h", raw.probe, stdout=raw.stdout, source=raw.source, line_offset=raw.line_offset)
             for raw in raws]  # fmt: skip
    return examine("h", named, load(DOMAINS).checks)


LOST = "kernel_log/xid79_then_sxid20034_fatal.log"


def test_each_section_is_read_by_its_own_reader_and_no_other() -> None:
    text = report(sample(LOST))
    found = {raw.probe: str(raw.stdout) for raw in recognise(text.encode(), "x")}
    assert {"kernel-log", "nvidia-smi-q"} <= set(found)
    assert "Product Name" not in found["kernel-log"]
    assert "MemTotal" not in found["kernel-log"]
    assert "NVRM" not in found["nvidia-smi-q"]
    assert "Link 0: 26" not in found["nvidia-smi-q"]


def test_what_journal_and_dmesg_both_tell_is_told_once() -> None:
    report_ = judged(report(sample(LOST)))
    (lost,) = [one for one in report_.results if one.check == "gpu.xid.79"]
    assert (lost.status, lost.measured) == (Status.FAIL, 1)
    brake = [one for one in report_.results if one.check == "gpu.throttle.power_brake"]
    assert [one.status for one in brake] == [Status.FAIL] * 8


def test_evidence_points_into_the_report() -> None:
    text = report(sample(LOST))
    for one in judged(text).results:
        for evidence in one.evidence:
            assert evidence.line is not None
            told = evidence.text.rpartition(" / ")[2]
            assert told[:40] in text.split("\n")[evidence.line - 1].strip().replace("\t", " ")


def test_what_an_earlier_boot_told_is_over() -> None:
    quiet = "[    0.000000] Linux version 5.15.0\n[   12.000000] NVRM: loading NVIDIA UNIX x86\n"
    lost = [line for line in sample(LOST).splitlines() if ": 79," in line]
    before = f"\n  journalctl -b -1:\n{journal(24, lost)}"
    (found,) = [one for one in judged(report(quiet, before)).results if one.check == "gpu.xid.79"]
    assert found.status is Status.WARN
    assert "before the last boot" in found.reason


def test_one_that_lacks_its_last_line_is_undetermined_and_what_it_holds_is_judged() -> None:
    text = report(sample(LOST))
    assert statuses(text)["gpu.bug_report"] is Status.PASS
    cut = statuses(text[: text.index("*** /proc/meminfo")])
    assert cut["gpu.bug_report"] is Status.ERROR
    assert cut["gpu.xid.79"] is Status.FAIL


def statuses(text: str) -> dict[str, Status]:
    return {one.check: one.status for one in judged(text).results}


def test_half_a_packed_file_is_not_said_to_be_too_long() -> None:
    packed = gzip.compress(sample("lspci/a10_nn.txt").encode() * 9)
    (raw,) = recognise(packed[: len(packed) - 40], "x.gz")
    (found, *_) = examine("h", [raw], load(["gpu"]).checks).results
    assert found.status is Status.ERROR
    assert "ends early: it is cut short or damaged" in found.reason
