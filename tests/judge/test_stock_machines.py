"""What sound machines say that nobody has tuned: no failure, and no warning that is not worth a
minute."""

from __future__ import annotations

import re

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Status
from tests.setup_text import NICS
from tests.system_text import SHARED_MEMORY, SYSTEM

_IDENTITY = "hostname h\ndate 2026-01-02T03:04:05Z\nuptime 864000.0 1\nuid 1000\n"
_CONTAINER = _IDENTITY + "container_file /.dockerenv\n"
_PCI = "0000:1b:00.0 0x030200 0x10de 0x2330 nvidia\nend\n"
_MEMINFO = (
    "MemTotal: 2113481236 kB\nMemAvailable: 2013481236 kB\nSwapTotal: 8388604 kB\n"
    "SwapFree: 8388604 kB\nCommitLimit: 1056740618 kB\nCommitted_AS: 10567406 kB\n"
    "HugePages_Total: 0\nHugePages_Free: 0\nHugePages_Rsvd: 0\nHugepagesize: 2048 kB\n"
)
_NODE = {
    **SYSTEM, "identity": _IDENTITY, "pci": _PCI, "meminfo": _MEMINFO, "nics": "end\n",
    "sysctls": "vm/overcommit_memory:0\nend\n", "limits-conf": "",
}  # fmt: skip


def _limits(soft: int, hard: int, memlock: int) -> dict[str, str]:
    """The same of the shell and of what limits.conf does not change."""
    text = re.sub(r"(open files +)\d+ +\d+", rf"\g<1>{soft}  {hard}", SYSTEM["limits"])
    text = re.sub(r"(locked memory +)\S+ +\S+", rf"\g<1>{memlock}  {memlock}", text)
    return {"limits": text, "limits-conf": text.replace("end\n", "nr_open 1048576\nend\n")}


_UBUNTU = _NODE | _limits(1024, 1048576, 8 << 20)
_RHEL = _NODE | _limits(1024, 524288, 8 << 20)
_SMALL = SHARED_MEMORY.replace("1056740616  1048576 1055692040", "65536 0 65536")
_DOCKER = _NODE | _limits(1048576, 1048576, 8 << 20) | {
    "identity": _CONTAINER, "shared-memory": _SMALL, "service-limits": "none\nend\n",
    "clock": "end\n",
}  # fmt: skip
_VM = {
    name: text for name, text in _UBUNTU.items() if name not in ("service-limits", "cgroup")
} | {
    "cpu-state": "present:0-7\nonline:0-7\nsmt/control:notsupported\n"
    "/proc/loadavg:0.1 0.1 0.1 1/9 9\n/proc/uptime:9.0 9.0\n"
    "/proc/stat:cpu  1000 2 300 90000 40 0 50 90 0 0\nend\n",
    "cgroup": "group v2 all /user.slice\n/sys/fs/cgroup/user.slice/memory.max:max\n"
    "/sys/fs/cgroup/user.slice/pids.max:85000\n/sys/fs/cgroup/user.slice/pids.current:40\n"
    "Cpus_allowed_list:\t0-7\nend\n",
    "service-limits": "Id=ssh.service\nActiveState=active\nLimitNOFILE=524288\nend\n",
}  # fmt: skip

#: An image-based system: the image is as large as what is in it, and nobody writes to it.
_IMAGE = _UBUNTU | {
    "disks": "mount overlay ro composefs /\nmount ext4 ro /dev/vda3 /usr\n"
    "mount xfs rw /dev/vda4 /var\nfstab rw /var\nspace\n"
    "composefs 7604 7604 0 100% /\n/dev/vda3 400000 400000 0 100% /usr\n"
    "/dev/vda4 90000000 10000000 80000000 12% /var\ninodes\ncomposefs 0 0 0 - /\n"
    "/dev/vda3 900 900 0 100% /usr\n/dev/vda4 900 9 891 1% /var\nend\n"
}  # fmt: skip

NOFILE, MEMLOCK, SHM = "system.limits.nofile", "system.limits.memlock", "system.shm.size"
CASES: dict[str, tuple[dict[str, str], set[str], set[str]]] = {
    # (answers, what warns, what fails)
    "a node set up for training": (_NODE | _limits(1048576, 1048576, 1 << 40), set(), set()),
    "a login of Ubuntu": (_UBUNTU, {NOFILE}, set()),
    "a login of Flatcar or CoreOS": (_IMAGE, {NOFILE}, set()),
    "a login of RHEL": (_RHEL, {NOFILE}, set()),
    "a login with RDMA adapters": (_UBUNTU | {"nics": NICS}, {NOFILE, MEMLOCK}, set()),
    "a virtual machine of a cloud": (_VM, {NOFILE}, set()),
    "docker run --gpus all": (
        _DOCKER | {"identity": f"{_CONTAINER}device_node /dev/nvidia0\n"}, set(), {SHM}
    ),
    "docker run": (_DOCKER, {SHM}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_sound_machine_is_not_accused(name: str) -> None:
    answers, warns, fails = CASES[name]
    raws = [Raw("h", probe, ("sh",), 0, text) for probe, text in answers.items() if text]
    checks = [one for one in load(("system",)).checks if ".sysctl." not in one.id]
    results = examine("h", raws, checks).results
    by_status = {
        status: {one.check for one in results if one.status is status} for status in Status
    }
    assert by_status[Status.WARN] == warns
    assert by_status[Status.FAIL] == fails
    assert by_status[Status.ERROR] == set()
    assert len(by_status[Status.PASS]) >= 10


@pytest.mark.parametrize(
    ("driver", "preference", "status"),
    [
        ("intel_pstate", "performance", Status.PASS),
        ("amd-pstate-epp", "performance", Status.PASS),
        ("intel_pstate", "balance_performance", Status.WARN),
        ("intel_cpufreq", "performance", Status.WARN),
        ("acpi-cpufreq", "", Status.WARN),
    ],
)
def test_a_governor_that_follows_the_preference_is_what_that_says(
    driver: str, preference: str, status: Status
) -> None:
    text = f"cpu.governor powersave\ncpu.driver {driver}\n"
    text += f"cpu.preference {preference}\nend\n" if preference else "end\n"
    checks = [one for one in load(("parameters",)).checks if one.id == "system.sysctl.governor"]
    raws = [Raw("h", "sysctls", ("sh",), 0, text), Raw("h", "identity", ("sh",), 0, _IDENTITY)]
    [found] = examine("h", raws, checks).results
    assert found.status is status


@pytest.mark.parametrize(
    ("driver", "status"),
    [("acpi-cpufreq", Status.WARN), ("amd-pstate-epp", Status.WARN), ("cppc_cpufreq", Status.SKIP)],
)
def test_a_switch_of_arm_processors_that_is_off_by_default_accuses_nobody(
    driver: str, status: Status
) -> None:
    text = f"cpu.governor performance\ncpu.driver {driver}\ncpu.boost 0\nend\n"
    checks = [one for one in load(("parameters",)).checks if one.id == "system.sysctl.boost"]
    raws = [Raw("h", "sysctls", ("sh",), 0, text), Raw("h", "identity", ("sh",), 0, _IDENTITY)]
    [found] = examine("h", raws, checks).results
    assert found.status is status
