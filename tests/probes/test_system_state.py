"""Shared memory, disks, processes, clock, processors, memory: asked of this machine and of trees of
our own, held against what Python reads by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from preflight.assemble.host import assemble
from preflight.errors import ParseError
from preflight.facts.system import Clock, Disk
from preflight.model import Missing, Raw
from preflight.probes.state.clock import clock
from preflight.probes.state.cpu_state import cpu_state
from preflight.probes.state.disks import disks
from preflight.probes.state.memory_state import memory_state
from preflight.probes.state.processes import processes
from preflight.probes.state.shared_memory import shared_memory
from preflight.probes.system import meminfo
from tests.cli.command import with_tool
from tests.conftest import require
from tests.probes.test_pci_robust import damaged
from tests.probes.test_setup import asked, write
from tests.system_text import CLOCK, CPU_STATE, DISKS, MEMORY_STATE, STUCK, SYSTEM

PARSERS: dict[str, Callable[[str], Any]] = {
    "shared-memory": shared_memory, "disks": disks, "processes": processes, "clock": clock,
    "cpu-state": cpu_state, "memory-state": memory_state,
}  # fmt: skip


def here(parse: Callable[[str], Any], **env: str) -> str:
    """What the question prints on this machine."""
    argv = parse.probe.command.argv  # type: ignore[attr-defined]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **env})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def near(value: object, wanted: float, share: float = 0.02) -> bool:
    return isinstance(value, (int, float)) and abs(value - wanted) <= share * wanted + 1e-6


def test_shared_memory_of_this_machine() -> None:
    require("/dev/shm", os.path.ismount("/dev/shm"))
    found, wanted = shared_memory(here(shared_memory)), shutil.disk_usage("/dev/shm")
    assert not isinstance(found, Missing)
    assert found.size_bytes == wanted.total
    assert near(found.free_bytes, wanted.free)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("none\nend\n", "unreadable"), ("/dev/sda1 10 5 5 50% /\nend\n", "not-applicable")],
)
def test_no_shared_memory_of_its_own(text: str, kind: str) -> None:
    found = shared_memory(text)
    assert isinstance(found, Missing)
    assert found.kind == kind


def _disks(text: str) -> dict[str, Disk]:
    found = disks(text)
    assert not isinstance(found, Missing)
    return {one.name: one for one in found}


def test_disks_of_this_machine() -> None:
    found, wanted, inodes = _disks(here(disks))["/"], shutil.disk_usage("/"), os.statvfs("/")
    assert found.size_bytes == wanted.total
    assert near(found.free_bytes, wanted.free)
    assert near(found.used_percent, 100 * wanted.used / (wanted.used + wanted.free))
    assert found.read_only is bool(inodes.f_flag & os.ST_RDONLY)
    if inodes.f_files:
        used = inodes.f_files - inodes.f_ffree
        assert near(found.inodes_used_percent, 100 * used / (used + inodes.f_ffree), 0.05)


def test_shares_are_not_touched_and_what_does_not_matter_is_left_out(tmp_path: Path) -> None:
    root = write(tmp_path, {
        "/proc/mounts": "/dev/sda2 / ext4 rw,relatime 0 0\nsrv:/h /home nfs4 rw 0 0\n"
        "/dev/sdb1 /data/set\\040one xfs ro,noatime 0 0\n/dev/sda2 /etc/hosts ext4 rw 0 0\n"
        "overlay /var/lib/docker/overlay2/9f/merged overlay ro 0 0\n"
        "/dev/sdc1 /media xfs rw 0 0\ntmpfs /tmp tmpfs rw,size=1k 0 0\nproc /proc proc rw 0 0\n",
        "/etc/fstab": "# /tmp\nUUID=1 / ext4 errors=remount-ro 0 1\n"
        "//srv/x /x cifs password=s3cret 0 0\n"
        "UUID=2 /data/set\\040one xfs defaults,noatime 0 0\n",
    })  # fmt: skip
    # Each line of df as GNU and busybox print it: a device without inodes has dashes.
    df = 'shift 2; for p in "$@"; do echo "/dev/x 1000 400 600 40% $p"; done; echo "$@" >>{0}/asked'
    with_tool(root / "bin", "df", df.replace("{0}", str(root)))
    found = _disks(asked(disks, root, "/proc/mounts", "/etc/fstab"))
    assert list(found) == ["/", "/data/set one", "/tmp"]
    assert "s3cret" not in str(found)
    assert (root / "asked").read_text() == "/ /data/set one /tmp\n" * 2
    one = found["/data/set one"]
    assert (one.read_only, one.writable_by_fstab, one.used_percent) == (True, True, 40.0)
    assert (found["/"].read_only, found["/"].writable_by_fstab) == (False, True)
    assert isinstance(found["/tmp"].writable_by_fstab, Missing)


_IMAGES = """\
mount overlay ro composefs /
mount xfs ro /dev/vda3 /usr
space
composefs 7604 7604 0 100% /
/dev/vda3 400000 400000 0 100% /usr
inodes
composefs 0 0 0 - /
/dev/vda3 900 900 0 100% /usr
end
"""


def test_an_image_that_is_mounted_read_only_is_full_by_design() -> None:
    for one in _disks(_IMAGES).values():
        for value in (one.used_percent, one.free_bytes, one.inodes_used_percent):
            assert isinstance(value, Missing) and value.kind == "not-applicable"
        assert isinstance(one.size_bytes, int)
    broken = _disks(f"fstab rw /usr\n{_IMAGES}")["/usr"]
    assert (broken.used_percent, broken.free_bytes) == (100.0, 0)


def test_what_fstab_says_of_another_kind_is_not_of_the_image_above_it(tmp_path: Path) -> None:
    fstab = "UUID=1 / btrfs subvol=root 0 0\nUUID=2 /srv ext4,xfs noatime 0 0\nUUID=3 /data auto\n"
    mounts = "composefs / overlay ro,lowerdir=x 0 0\n/dev/a /srv xfs ro 0 0\n/dev/b /data ext4 ro\n"
    root = write(tmp_path, {"/proc/mounts": mounts, "/etc/fstab": fstab})
    with_tool(root / "bin", "df", "shift 2; for p; do echo /dev/x 1000 1000 0 100% $p; done")
    found = _disks(asked(disks, root, "/proc/mounts", "/etc/fstab"))
    assert isinstance(found["/"].writable_by_fstab, Missing)
    assert (found["/srv"].writable_by_fstab, found["/data"].writable_by_fstab) == (True, True)


def test_a_device_in_several_places_is_told_once() -> None:
    again = DISKS.replace("fstab rw /tmp", "mount ext4 rw /dev/nvme0n1p2 /var\nfstab rw /tmp")
    assert list(_disks(again)) == ["/", "/raid", "/tmp"]


def test_kinds_without_inodes_and_a_df_that_says_nothing() -> None:
    found = _disks(DISKS.replace("1500000000   10000 1499990000   1%", "0 0 0 -"))
    assert isinstance(found["/raid"].inodes_used_percent, Missing)
    assert found["/raid"].inodes_used_percent.kind == "not-applicable"
    found = _disks(DISKS[: DISKS.index("space")] + "end\n")
    assert isinstance(found["/"].used_percent, Missing)
    assert found["/"].used_percent.kind == "unreadable"


def test_processes_of_this_machine() -> None:
    found = processes(here(processes))
    assert isinstance(found.count, int)
    assert abs(found.count - len(psutil.pids())) < 40
    limits = [int(Path(f"/proc/sys/kernel/{n}").read_text()) for n in ("pid_max", "threads-max")]
    assert found.threads_limit == min(limits)
    zombies = sum(one.info["status"] == "zombie" for one in psutil.process_iter(["status"]))
    assert isinstance(found.zombies, int)
    assert abs(found.zombies - zombies) < 40


def test_a_zombie_is_counted() -> None:
    before = processes(here(processes)).zombies
    children = [subprocess.Popen(["true"]) for _ in range(60)]
    try:
        for child in children:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        after = processes(here(processes)).zombies
    finally:
        for child in children:
            child.wait()
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after - before > 30


def test_a_process_that_waited_all_the_time_is_stuck() -> None:
    assert processes(STUCK).stuck == ("python3 (x) (4711) in rpc_wait_bit_killable",)


@pytest.mark.parametrize(
    "edit",
    [
        ("after 4711 voluntary_ctxt_switches: 80", "after 4711 voluntary_ctxt_switches: 81"),
        (STUCK[STUCK.index("again") :], "again\nend\n"),
        ("0 -1 4194304", "0 -1 69238880"),  # a thread of the kernel
    ],
)
def test_who_was_awake_or_is_gone_or_of_the_kernel_is_not(edit: tuple[str, str]) -> None:
    assert processes(STUCK.replace(*edit)).stuck == ()


def _clock(text: str) -> Clock:
    return clock(f"{text}end\n")


def test_chrony() -> None:
    found = clock(CLOCK)
    assert (found.keeper, found.synchronised, found.offset_s) == ("chronyd", True, 0.000004151)
    assert found.source == "A9FEA97B (169.254.169.123)"
    lost = clock(CLOCK.replace("Normal", "Not synchronised"))
    assert lost.synchronised is False
    silent = _clock("keeper chronyd\nbegin chronyc\n506 Cannot talk to daemon\n")
    assert isinstance(silent.synchronised, Missing)
    assert silent.synchronised.kind == "unreadable"
    assert isinstance(silent.offset_s, Missing)
    assert "506" in silent.offset_s.text


_PEERS = """\
     remote           refid      st t when poll reach   delay   offset  jitter
==============================================================================
+10.0.0.2        .GPS.            1 u   33   64  377    0.215   -0.312   0.021
*10.0.0.1        .PPS.            1 u   12   64  377    0.180  -61.250   0.011
"""


def test_ntpd() -> None:
    found = _clock(f"keeper ntpd\nbegin ntpq\n{_PEERS}")
    assert (found.synchronised, found.offset_s, found.source) == (True, 0.06125, "10.0.0.1")
    none = _clock(f"keeper ntpd\nbegin ntpq\n{_PEERS.replace('*', ' ')}")
    assert none.synchronised is False


def test_a_service_that_follows_its_own_clock_is_not_synchronised() -> None:
    local = CLOCK.replace("A9FEA97B (169.254.169.123)", "7F7F0101 ()")
    peers = _PEERS.replace("*", " ")
    peers += "*127.127.1.0     .LOCL.  10 l   5   64  377  0.000  0.000  0.000\n"
    assert local != CLOCK
    for found in (clock(local), _clock(f"keeper ntpd\nbegin ntpq\n{peers}")):
        assert (found.synchronised, found.source) == (False, "its own clock")
        assert isinstance(found.offset_s, Missing) and found.offset_s.kind == "not-applicable"


@pytest.mark.parametrize(
    "text",
    [
        "keeper chronyd\nbegin chronyc\n506 Cannot talk to daemon\n",
        "keeper systemd-timesyn\nbegin timesync\nFailed to query server: Access denied\n",
        "keeper ntpd\nbegin ntpq\nntpq: read: Connection refused\n",
    ],
)
def test_a_service_that_answers_nobody_and_keeps_the_time(text: str) -> None:
    found = _clock(f"{text}begin timedatectl\nNTPSynchronized=yes\n")
    assert found.synchronised is True
    assert isinstance(found.offset_s, Missing) and found.offset_s.kind == "not-applicable"
    assert text.split("\n")[2] in found.offset_s.text
    lost = _clock(f"{text}begin timedatectl\nNTPSynchronized=no\n")
    assert lost.synchronised is False


def test_systemd() -> None:
    text = "keeper systemd-timesyn\nbegin timesync\n       Server: 10.0.0.1 (ntp.example)\n"
    found = _clock(f"{text}       Offset: -1.250ms\nbegin timedatectl\nNTPSynchronized=yes\n")
    assert (found.keeper, found.synchronised) == ("systemd-timesyncd", True)
    assert (found.offset_s, found.source) == (0.00125, "10.0.0.1 (ntp.example)")
    early = _clock(f"{text}begin timedatectl\nSystem clock synchronized: no\n")
    assert early.synchronised is False
    silent = _clock("keeper systemd-timesyn\nbegin timesync\nFailed to connect to bus\n").offset_s
    assert isinstance(silent, Missing)
    assert silent.kind == "exited"
    assert isinstance(early.offset_s, Missing)


def test_who_keeps_the_clock_without_a_word_is_not_wrong() -> None:
    found = _clock("keeper phc2sys\nkeeper ptp4l\nbegin timedatectl\nNTPSynchronized=no\n")
    assert found.keeper == "phc2sys, ptp4l"
    assert isinstance(found.synchronised, Missing)
    assert found.synchronised.kind == "not-applicable"


def test_nobody_keeps_the_clock() -> None:
    found = _clock("begin timedatectl\nNTPSynchronized=no\n")
    assert found.keeper == "none"
    assert isinstance(found.synchronised, Missing)
    assert found.synchronised.kind == "not-applicable"


def test_a_service_that_is_hidden_or_unknown_is_not_none() -> None:
    hidden = _clock("hidden\n").keeper
    assert isinstance(hidden, Missing)
    assert hidden.kind == "denied"
    assert _clock("begin timedatectl\nNTPSynchronized=yes\n").keeper == "a service of another name"


def test_the_tool_of_the_daemon_that_runs_is_asked(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/71/comm": "chronyd\n", "/proc/72/comm": "python3\n"})
    with_tool(
        tmp_path / "bin", "chronyc", "cat <<E\n" + CLOCK.partition("begin chronyc\n")[2] + "E"
    )
    found = clock(asked(clock, tmp_path, "/proc/", "/run/"))
    assert (found.keeper, found.synchronised) == ("chronyd", True)


def test_processors_of_this_machine() -> None:
    require("/sys/devices/system/cpu", Path("/sys/devices/system/cpu/online").exists())
    found = cpu_state(here(cpu_state))
    assert found.online == os.sysconf("SC_NPROCESSORS_ONLN")
    assert isinstance(found.load_5min, float)
    assert abs(found.load_5min - os.getloadavg()[1]) < 1
    times = psutil.cpu_times()
    share = 100 * times.steal / sum(times[:8])
    assert isinstance(found.steal_percent, float)
    assert abs(found.steal_percent - share) < 0.5


def test_processors() -> None:
    found = cpu_state(CPU_STATE)
    assert (found.present, found.online, found.offline, found.smt) == (4, 4, 0, "on")
    assert (found.deepest_idle, found.deepest_idle_us) == ("C1E", 4)
    assert (found.frequency_limit_mhz, found.frequency_can_mhz, found.capped) == (3800, 3800, 0)
    assert (found.throttle_events, found.load_per_cpu) == (2, 0.1)
    assert near(found.throttled_percent, 100 * 0.014 / 864000)


def test_siblings_that_are_off_are_not_missed() -> None:
    off = CPU_STATE.replace("online:0-3", "online:0-1").replace("control:on", "control:off")
    assert cpu_state(off).offline == 0
    assert cpu_state(off.replace("control:off", "control:on")).offline == 2


def test_a_processor_that_is_capped() -> None:
    found = cpu_state(
        CPU_STATE.replace(
            "cpu1/cpufreq/scaling_max_freq:3800", "cpu1/cpufreq/scaling_max_freq:1900"
        )
    )
    assert (found.frequency_limit_mhz, found.capped) == (1900, 1)


def test_a_virtual_machine_has_no_frequencies() -> None:
    lines = [line for line in CPU_STATE.splitlines() if "cpufreq" not in line]
    found = cpu_state("\n".join([line for line in lines if "throttle" not in line]))
    for value in (found.capped, found.frequency_can_mhz, found.throttled_percent):
        assert isinstance(value, Missing)
        assert value.kind == "not-applicable"


def test_memory_of_this_machine() -> None:
    found, wanted = memory_state(here(memory_state)), psutil.swap_memory()
    page = os.sysconf("SC_PAGE_SIZE")
    assert near(found.swapped_in_pages, wanted.sin / page)
    assert near(found.swapped_out_pages, wanted.sout / page)
    memory = meminfo(Path("/proc/meminfo").read_text())
    assert memory.total_bytes == psutil.virtual_memory().total
    assert memory.swap_total_bytes == wanted.total
    assert near(memory.swap_used_bytes, wanted.used)


def test_free_blocks_by_node() -> None:
    found = memory_state(MEMORY_STATE).nodes
    assert not isinstance(found, Missing)
    assert {one.name: one.large_blocks for one in found} == {
        "node0": 1 + 1 + 3 + 464 + 251 + 3494, "node1": 64 + 51 + 494,
    }  # fmt: skip
    gpu = "Node 2, zone  Movable" + 11 * "      0"
    assert memory_state(MEMORY_STATE.replace("end", f"{gpu}\nend")).nodes == found
    none = memory_state("pswpin 1\nend\n")
    assert isinstance(none.nodes, Missing)
    assert isinstance(none.oom_kills, Missing)


def test_what_meminfo_tells_of_swap_huge_pages_and_promises() -> None:
    text = (
        "MemTotal: 1000 kB\nSwapTotal: 500 kB\nSwapFree: 400 kB\nCommitLimit: 800 kB\n"
        "Committed_AS: 200 kB\nHugePages_Total: 30\nHugePages_Free: 20\nHugePages_Rsvd: 5\n"
        "Hugepagesize: 10 kB\n"
    )
    found = meminfo(text)
    assert (found.swap_used_bytes, found.commit_percent) == (102400, 25.0)
    assert (found.hugepages_unused_bytes, found.hugepages_unused_percent) == (153600, 15.0)
    assert isinstance(meminfo("MemTotal: 1000 kB\n").hugepages_unused_bytes, Missing)


@pytest.mark.parametrize("name", list(PARSERS))
def test_what_is_cut_short_or_something_else(name: str) -> None:
    whole = SYSTEM[name]
    for text in ("", "\n", "hello\n", whole.removesuffix("end\n"), whole[: len(whole) // 2]):
        with pytest.raises(ParseError):
            PARSERS[name](text)


@pytest.mark.parametrize("name", list(SYSTEM))
def test_damaged_text_is_read_or_refused(name: str) -> None:
    for seed in range(60):
        raw = Raw("h", name, ("sh",), 0, damaged(SYSTEM[name], seed))
        assemble("h", [raw])


@pytest.mark.parametrize("name", list(PARSERS))
def test_line_ends_of_windows_change_nothing(name: str) -> None:
    assert PARSERS[name](SYSTEM[name].replace("\n", "\r\n")) == PARSERS[name](SYSTEM[name])


@pytest.mark.parametrize("name", ["limits", "limits-conf", "service-limits", "cgroup", *PARSERS])
def test_busybox_alone_answers_too(name: str, tmp_path: Path) -> None:
    busybox = shutil.which("busybox") or ""
    require("busybox", bool(busybox))
    for tool in subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split():
        (tmp_path / tool).symlink_to(busybox)
    from preflight.assemble.sources import probe_of

    probe = probe_of(name)
    assert probe is not None
    argv = [str(tmp_path / "sh"), *probe.command.argv[1:]]
    done = subprocess.run(argv, capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    whole = probe.parse(done.stdout)
    if name in ("limits", "cgroup", "shared-memory", "disks", "processes", "cpu-state"):
        assert not isinstance(whole, Missing)
