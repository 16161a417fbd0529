"""Outputs that tell of mounts, disks and their health are known for what they are, alone and beside
others in one paste."""

from __future__ import annotations

import pytest

from preflight.errors import UsageError
from preflight.recognise import recognise
from tests import storage_text as text
from tests.conftest import sample

DMESG = "[    1.000000] md/raid1:md1: active with 2 out of 2 mirrors\n"


def probes(data: str) -> dict[str, str]:
    return {raw.probe: str(raw.stdout) for raw in recognise(data.encode(), "paste.txt")}


@pytest.mark.parametrize("name", text.RECORDED)
def test_each_is_known_by_itself(name: str) -> None:
    told = text.RECORDED[name]
    assert probes(told) == {name: told}


@pytest.mark.parametrize("told", [text.NVME_LOG_TEXT, text.SMARTCTL_NVME, text.SMARTCTL_SATA])
def test_health_in_every_form(told: str) -> None:
    assert probes(told) == {"smart": told}


def test_proc_mounts_is_a_list_of_mounts() -> None:
    assert set(probes("proc /proc proc rw,nosuid 0 0\n/dev/md0 /raid xfs rw,noatime 0 0\n")) == {
        "mount"
    }


def test_each_is_found_in_a_ticket_that_has_all() -> None:
    prompt = "root@node-07:~# "
    ticket = DMESG + "".join(
        f"{prompt}{typed}\n{text.RECORDED[name]}"
        for name, typed in {
            "mountinfo": "cat /proc/self/mountinfo", "mount": "mount", "nfsstat-m": "nfsstat -m",
            "mdstat": "cat /proc/mdstat", "lsblk": "lsblk -J",
            "smart": "nvme smart-log -o json /dev/nvme0", "quotas": "quota -w -p",
        }.items()
    )  # fmt: skip
    found = probes(ticket)
    assert set(found) == {"kernel-log", *text.RECORDED}
    for name, told in text.RECORDED.items():
        assert found[name].strip() == told.strip()


def test_logs_of_two_disks_are_one_answer_and_two_lists_are_refused() -> None:
    both = f"{text.SMARTCTL_NVME}\n{text.SMARTCTL_SATA}"
    assert set(probes(both)) == {"smart"}
    with pytest.raises(UsageError, match="holds 2 reports of lsblk"):
        recognise(f"{text.LSBLK}\n{text.LSBLK}".encode(), "paste.txt")


def test_a_log_of_the_kernel_that_names_mounts_stays_a_log() -> None:
    line = "[    5.0] EXT4-fs (sda1): mounted filesystem on / type ext4 (rw,relatime)\n"
    assert set(probes(line.replace("5.0", "5.000000"))) == {"kernel-log"}


def test_a_report_of_a_gpu_beside_it_is_whole() -> None:
    report = sample("nvidia_smi_q/titan_v_560.35_workstation.txt")
    found = probes(f"{text.MDSTAT}\n{report}")
    assert set(found) == {"mdstat", "nvidia-smi-q"}
    assert found["nvidia-smi-q"].strip() == report.strip()
