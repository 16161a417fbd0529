"""Control groups of both versions: trees of our own, and real ones where they may be made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.facts.system import UNLIMITED, Cgroup
from preflight.model import Missing
from preflight.probes.state.cgroup import cgroup, locate
from tests.conftest import require
from tests.probes.test_setup import asked, write
from tests.system_text import CGROUP

_V2 = "30 23 0:26 {root} {at} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
_V1 = "31 23 0:{number} {root} {at}/{name} rw - cgroup cgroup rw,{name}\n"


def told(text: str) -> Cgroup:
    found = cgroup(text)
    assert not isinstance(found, Missing)
    return found


def _ask(root: Path, own: str, mounts: str, files: dict[str, str]) -> Cgroup:
    at = f"{root}/sys/fs/cgroup"
    files = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    files |= {"/proc/self/cgroup": own, "/proc/self/mountinfo": mounts.replace("{at}", at),
              "/proc/self/status": "Cpus_allowed_list:\t0-7,12\n"}  # fmt: skip
    return told(asked(cgroup, write(root, files), "/proc/", "/sys/fs/"))


def test_the_tightest_of_all_groups_counts() -> None:
    found = told(CGROUP)
    assert (found.version, found.path) == ("v2", "/kubepods.slice/pod7.slice/cri:9f")
    assert (found.cpus_allowed, found.quota_cores, found.cores) == (192, 64, 64)
    assert (found.periods, found.throttled_s) == (90000, 4.2)
    assert found.memory_limit_bytes == 64 << 30
    assert found.memory_used_bytes == (32 - 4 - 8) << 30
    assert found.memory_used_percent == 31.25
    assert (found.oom_kills, found.pids_limit, found.pids, found.pids_refused) == (0, 16384, 902, 0)


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("cores", "cri:9f/cpu.max:6400000 100000"), ("throttled_percent", "nr_throttled 310"),
        ("memory_limit_bytes", "pod7.slice/memory.max:68719476736"),
        ("memory_used_percent", "pod7.slice/memory.current:34359738368"),
        ("oom_kills", "cri:9f/memory.events:oom_kill 0"),
        ("pids_refused", "pod7.slice/pids.events:max 0"),
        ("version", "group v2 all /kubepods.slice/pod7.slice/cri:9f"),
    ],
)  # fmt: skip
def test_the_line_of_the_group_that_counts_is_shown(field: str, shown: str) -> None:
    assert CGROUP.split("\n")[locate(CGROUP, 1, field) - 1].endswith(shown)


def test_version_2_on_a_host(tmp_path: Path) -> None:
    found = _ask(tmp_path, "0::/user.slice/s 1.scope\n", _V2.replace("{root}", "/"), {
        "cpu.stat": "usage_usec 9\n",
        "user.slice/cpu.max": "150000 100000\n",
        "user.slice/cpu.stat": "nr_periods 10\nnr_throttled 5\nthrottled_usec 1000000\n",
        "user.slice/memory.max": "1000000\n", "user.slice/memory.current": "900000\n",
        "user.slice/memory.stat": "anon 5\nactive_file 100000\ninactive_file 300000\n",
        "user.slice/s 1.scope/memory.max": "max\n",
        "user.slice/s 1.scope/memory.events": "low 0\nmax 2\noom 1\noom_kill 1\n",
        "user.slice/s 1.scope/pids.max": "100\n", "user.slice/s 1.scope/pids.current": "25\n",
        "user.slice/s 1.scope/pids.events": "max 3\n",
    })  # fmt: skip
    assert found == Cgroup(
        "v2", "/user.slice/s 1.scope", 9, 1.5, 1.5, 10, 50.0, 1.0, 1000000, 500000, 50.0, 1, 100,
        25, 25.0, 3, probe="cgroup",
    )  # fmt: skip


def test_a_container_whose_root_is_a_group_of_the_host(tmp_path: Path) -> None:
    files = {"memory.max": "5000\n", "memory.current": "1000\n", "memory.stat": "anon 1\n",
             "cpu.max": "max 100000\n"}  # fmt: skip
    for own, root in (("0::/\n", "/"), ("0::/docker/9f\n", "/docker/9f")):
        found = _ask(tmp_path, own, _V2.replace("{root}", root), files)
        assert (found.memory_limit_bytes, found.memory_used_percent) == (5000, 20.0)
        assert (found.quota_cores, found.cores) == (UNLIMITED, 9)


@pytest.mark.parametrize(("own", "root"), [("0::/../x\n", "/"), ("0::/\n", "/../..")])
def test_a_group_that_is_outside_of_what_is_mounted(tmp_path: Path, own: str, root: str) -> None:
    files = {"memory.max": "max\n", "cpu.max": "max 100000\n", "pids.max": "max\n"}
    found = _ask(tmp_path, own, _V2.replace("{root}", root), files)
    for value in (found.quota_cores, found.memory_limit_bytes, found.pids_limit):
        assert isinstance(value, Missing)
        assert value.kind == "unreadable"


def test_version_1(tmp_path: Path) -> None:
    mounts = "".join(
        _V1.replace("{root}", "/").replace("{number}", str(at)).replace("{name}", name)
        for at, name in enumerate(("cpu,cpuacct", "memory", "pids"))
    )
    own = "4:memory:/job/1\n3:cpu,cpuacct:/job/1\n2:pids:/\n1:name=systemd:/x\n"
    found = _ask(tmp_path, own, mounts, {
        "cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        "cpu,cpuacct/job/1/cpu.cfs_quota_us": "50000\n",
        "cpu,cpuacct/job/1/cpu.cfs_period_us": "100000\n",
        "cpu,cpuacct/job/1/cpu.stat": "nr_periods 8\nnr_throttled 2\nthrottled_time 500000000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/job/memory.limit_in_bytes": "8000\n", "memory/job/memory.usage_in_bytes": "7000\n",
        "memory/job/memory.stat": "total_active_file 1000\ntotal_inactive_file 2000\n",
        "memory/job/1/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/job/1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        "pids/cgroup.procs": "1\n",
    })  # fmt: skip
    assert (found.version, found.path) == ("v1", "/job/1")
    assert (found.quota_cores, found.throttled_percent, found.throttled_s) == (0.5, 25.0, 0.5)
    assert (found.memory_limit_bytes, found.memory_used_bytes, found.oom_kills) == (8000, 4000, 2)
    assert found.pids_limit == UNLIMITED


def test_what_is_not_mounted_is_not_known(tmp_path: Path) -> None:
    found = _ask(tmp_path, "0::/x\n", "23 1 0:1 / / rw - ext4 /dev/vda rw\n", {})
    assert found.cpus_allowed == 9
    for value in (found.quota_cores, found.cores, found.memory_limit_bytes, found.pids_used_percent,
                  found.oom_kills):  # fmt: skip
        assert isinstance(value, Missing)
        assert value.kind == "unreadable"


def test_a_kernel_without_control_groups(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/self/status": "Cpus_allowed_list:\t0\n"})
    found = cgroup(asked(cgroup, tmp_path, "/proc/", "/sys/fs/"))
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


@pytest.mark.parametrize("text", ["", "end\n", "hello\nend\n", CGROUP.removesuffix("end\n")])
def test_what_is_cut_short_or_something_else(text: str) -> None:
    with pytest.raises(ParseError):
        cgroup(text)


def _in_group(name: str, limits: dict[str, str]) -> Cgroup:
    """The answer of a shell in new groups of version 1 with these limits."""
    top = Path("/sys/fs/cgroup")
    made = {top / file.split("/")[0] / name for file in limits}
    try:
        for group in made:
            group.mkdir()
        for file, value in limits.items():
            controller, _, leaf = file.partition("/")
            (top / controller / name / leaf).write_text(value)
        join = "".join(f"echo $$ >{group}/cgroup.procs && " for group in sorted(made))
        argv = ["sh", "-c", f'{join} exec "$@"', "sh", *cgroup.probe.command.argv]  # type: ignore[attr-defined]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return told(done.stdout)
    finally:
        for group in made:
            group.rmdir()


@pytest.mark.lab
def test_real_groups_of_version_1() -> None:
    top = Path("/sys/fs/cgroup")
    mine = os.geteuid() == 0 and all(
        (top / name / "cgroup.procs").exists() and os.access(top / name, os.W_OK)
        for name in ("cpu", "memory", "pids")
    )
    if not mine:
        pytest.skip("needs root and control groups of version 1")
    found = _in_group(f"preflight-{os.getpid()}", {
        "cpu/cpu.cfs_quota_us": "150000", "memory/memory.limit_in_bytes": str(256 << 20),
        "pids/pids.max": "77",
    })  # fmt: skip
    assert (found.quota_cores, found.cores) == (1.5, min(1.5, len(os.sched_getaffinity(0))))
    assert found.memory_limit_bytes == 256 << 20
    assert isinstance(found.memory_used_bytes, int)
    assert 0 < found.memory_used_bytes < 64 << 20
    assert (found.pids_limit, found.oom_kills, found.pids_refused) == (77, 0, 0)
    assert isinstance(found.pids, int)
    assert 1 <= found.pids < 10


@pytest.mark.lab
def test_a_namespace_that_hides_the_own_group_is_no_pass() -> None:
    mine = os.geteuid() == 0 and Path("/sys/fs/cgroup/memory/cgroup.procs").exists()
    if not mine:
        pytest.skip("needs root and control groups of version 1")
    group = Path(f"/sys/fs/cgroup/memory/preflight-ns-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(256 << 20))
        script = f'echo $$ >{group}/cgroup.procs && exec unshare -C "$@"'
        argv = ["sh", "-c", script, "sh", *cgroup.probe.command.argv]  # type: ignore[attr-defined]
        done = subprocess.run(argv, capture_output=True, text=True)
        found = told(done.stdout)
    finally:
        group.rmdir()
    assert isinstance(found.memory_limit_bytes, Missing)
    assert found.memory_limit_bytes.kind == "unreadable"


def test_this_machine() -> None:
    require("/proc", Path("/proc/self/cgroup").exists())
    done = subprocess.run(cgroup.probe.command.argv, capture_output=True, text=True)  # type: ignore[attr-defined]
    found = told(done.stdout)
    assert found.cpus_allowed == len(os.sched_getaffinity(0))
