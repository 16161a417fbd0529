"""Limits of a shell, of what limits.conf gives, of services, of a process."""

from __future__ import annotations

import mmap
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from preflight.assemble.host import assemble
from preflight.errors import ParseError
from preflight.facts.system import UNLIMITED, NodeShare
from preflight.model import Missing, Raw
from preflight.probes.limits.limits import amount, limits
from preflight.probes.limits.limits_conf import limits_conf
from preflight.probes.limits.process import process
from preflight.probes.limits.service_limits import service_limits
from tests.binding_text import BOUND
from tests.cli.command import with_tool
from tests.conftest import require
from tests.probes.test_setup import asked, write
from tests.system_text import LIMITS, LIMITS_CONF, PROCESS, SERVICE_LIMITS

_CONF = "/etc/security/limits.conf"
_USER = "#!/bin/sh\ncase $1 in -un) echo ann ;; -Gn) echo staff gpu ;; *) echo 1000 ;; esac\n"
_ROOT = "#!/bin/sh\ncase $1 in -un) echo root ;; -Gn) echo root ;; *) echo 0 ;; esac\n"


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("unlimited", 1, UNLIMITED), ("infinity", 1024, UNLIMITED), ("-1", 1, UNLIMITED),
        ("18446744073709551615", 1, UNLIMITED), ("64", 1024, 65536), ("0", 1, 0),
    ],
)  # fmt: skip
def test_an_amount(text: str, unit: int, value: object) -> None:
    assert amount(text, unit) == value


@pytest.mark.parametrize("text", ["", "many", "1e6", "-5", "12 "])
def test_what_is_no_amount(text: str) -> None:
    assert isinstance(amount(text), Missing)


def test_the_limits_of_a_shell() -> None:
    found = {one.name: (one.soft, one.hard) for one in limits(LIMITS)}
    assert found == {
        "nofile (shell)": (1048576, 1048576),
        "memlock (shell)": (UNLIMITED, UNLIMITED),
        "nproc (shell)": (4126046, 4126046),
        "stack (shell)": (8388608, UNLIMITED),
    }


def test_locked_memory_is_not_limited_for_who_may_lock_it() -> None:
    root = LIMITS.replace("CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff")
    docker = LIMITS.replace("CapEff:\t0000000000000000", "CapEff:\t00000000a80425fb")
    for text, lifted in ((LIMITS, False), (root, True), (docker, False)):
        (found,) = (one for one in limits(text) if one.resource == "memlock")
        assert found.lifted is lifted
    (unknown,) = (one for one in limits(LIMITS.replace("CapEff", "Cap")) if one.lifted is not False)
    assert isinstance(unknown.lifted, Missing)


def test_the_limits_of_this_shell_are_those_of_python() -> None:
    done = subprocess.run(limits.probe.command.argv, capture_output=True, text=True)  # type: ignore[attr-defined]
    found = {one.resource: (one.soft, one.hard) for one in limits(done.stdout)}
    for name, number in (
        ("nofile", resource.RLIMIT_NOFILE), ("memlock", resource.RLIMIT_MEMLOCK),
        ("nproc", resource.RLIMIT_NPROC), ("stack", resource.RLIMIT_STACK),
    ):  # fmt: skip
        told = [UNLIMITED if n == resource.RLIM_INFINITY else n for n in resource.getrlimit(number)]
        assert found[name] == tuple(told)


def test_a_row_that_is_missing_is_told() -> None:
    with pytest.raises(ParseError, match="memlock"):
        limits(LIMITS.replace("Max locked memory", "Max lock"))


def _configured(root: Path, conf: str, *, who: str = _USER, **others: str) -> dict[str, object]:
    files = {_CONF: conf, "bin/id": who, "/proc/sys/fs/nr_open": "1048576\n",
             "/proc/self/limits": LIMITS.removesuffix("end\n")}  # fmt: skip
    files |= {f"/etc/security/limits.d/{name}.conf": text for name, text in others.items()}
    write(root, files)
    (root / "bin/id").chmod(0o755)
    found = limits_conf(asked(limits_conf, root, "/etc/", "/proc/"))
    if isinstance(found, Missing):
        return {}
    return {one.name: one.configured for one in found}


def test_what_is_configured_counts_for_this_user_only(tmp_path: Path) -> None:
    conf = (
        "# * soft nofile 1\n*  soft  nofile  4096\n*\thard\tnofile\t8192 # comment\n"
        "bob - memlock unlimited\n@gpu - memlock 64\n@other - stack 1\n  ann soft nproc 500\n"
        "*:5 soft stack 9\n%gpu - maxlogins 3\n"
    )
    assert _configured(tmp_path, conf) == {
        "nofile soft": 4096, "nofile hard": 8192, "memlock soft": 65536, "memlock hard": 65536,
        "nproc soft": 500,
    }  # fmt: skip


def test_the_nearest_line_counts_and_of_these_the_last(tmp_path: Path) -> None:
    found = _configured(
        tmp_path, "ann soft nofile 10\n* soft nofile 20\n@gpu soft nofile 30\n* soft nproc 1\n",
        a="* soft nproc 2\n", b="* soft nproc 3\n",
    )  # fmt: skip
    assert found == {"nofile soft": 10, "nproc soft": 3}


def test_lines_for_all_are_not_for_root(tmp_path: Path) -> None:
    conf = "* - nofile 10\n@root - nofile 11\nroot hard nofile unlimited\n"
    assert _configured(tmp_path, conf, who=_ROOT) == {"nofile hard": 1048576}


def test_no_name_of_a_user_is_told(tmp_path: Path) -> None:
    _configured(tmp_path, "ann soft nofile 10\nbob soft nofile 20\n@gpu soft nproc 3\n")
    text = asked(limits_conf, tmp_path, "/etc/", "/proc/")
    assert "ann" not in text
    assert "bob" not in text
    assert "gpu" not in text


@pytest.mark.parametrize("conf", ["", "# nothing\n", "* soft core 0\n", "* soft nofile many\n"])
def test_a_configuration_that_says_nothing(tmp_path: Path, conf: str) -> None:
    assert _configured(tmp_path, conf) == {}


def test_a_job_of_slurm_is_no_login() -> None:
    found = limits_conf(LIMITS_CONF.replace("conf ", "job\nconf ", 1))
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


def test_services_that_start_jobs() -> None:
    host = assemble("h", [
        Raw("h", "limits", ("sh",), 0, LIMITS),
        Raw("h", "service-limits", ("sh",), 0, SERVICE_LIMITS),
    ]).host  # fmt: skip
    assert not isinstance(host.job_services, Missing)
    (slurmd,) = host.job_services
    assert (slurmd.name, slurmd.nofile, slurmd.memlock) == ("slurmd.service", 131072, UNLIMITED)
    assert not isinstance(host.limits, Missing)
    assert [one.name for one in host.limits][-1] == "stack (slurmd.service)"
    assert len(host.limits) == 9
    assert (host.limits[4].name, host.limits[4].soft, host.limits[4].hard) == (
        "nofile (systemd's default)", 1024, 524288,
    )  # fmt: skip


def test_a_container_runtime_starts_jobs_only_for_the_kubelet() -> None:
    block = "Id={}.service\nActiveState=active\nLimitNOFILE=524288\nLimitNOFILESoft=1024\n\n"
    alone = service_limits(block.format("containerd") + "end\n")
    beside = service_limits(block.format("containerd") + block.format("kubelet") + "end\n")
    assert not isinstance(alone, Missing)
    assert not isinstance(beside, Missing)
    assert [one.for_jobs for one in alone] == [False]
    assert [(one.of, one.for_jobs) for one in beside] == [
        ("containerd.service", True), ("kubelet.service", False),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["k3s", "k3s-agent", "rke2-server", "rke2-agent"])
def test_pods_descend_from_a_distribution_that_has_its_own_containerd(name: str) -> None:
    """And not from the one that Docker uses beside it."""
    block = "Id={}.service\nActiveState=active\nLimitNOFILE=1048576\nLimitNOFILESoft=1048576\n\n"
    found = service_limits(block.format("containerd") + block.format(name) + "end\n")
    assert not isinstance(found, Missing)
    assert [(one.of, one.for_jobs) for one in found] == [
        ("containerd.service", False), (f"{name}.service", True),
    ]  # fmt: skip
    assert f"{name}.service" in service_limits.probe.command.argv[2]  # type: ignore[attr-defined]


def test_an_old_systemd_tells_one_limit() -> None:
    found = service_limits("Id=slurmd.service\nActiveState=active\nLimitNOFILE=4096\nend\n")
    assert not isinstance(found, Missing)
    assert found[0].hard == 4096
    assert isinstance(found[0].soft, Missing)


def test_systemctl_is_asked(tmp_path: Path) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    with_tool(tmp_path / "bin", "systemctl", 'echo "$*" >>asked; echo Id=slurmd.service\n'
              "echo ActiveState=active; echo LimitNOFILE=9; echo LimitNOFILESoft=8")  # fmt: skip
    found = service_limits(asked(service_limits, tmp_path, "/run/"))
    assert not isinstance(found, Missing)
    assert (found[0].name, found[0].soft, found[0].hard) == ("nofile (slurmd.service)", 8, 9)
    manager, services = (tmp_path / "asked").read_text().splitlines()
    assert "DefaultLimitMEMLOCKSoft" in manager
    assert services.startswith("show --no-pager -p Id,LoadState,ActiveState,LimitNOFILE,")
    with_tool(tmp_path / "bin", "systemctl", "echo no bus >/dev/null; exit 1")
    failed = service_limits(asked(service_limits, tmp_path, "/run/"))
    assert isinstance(failed, Missing)
    assert failed.kind == "exited"


def test_without_systemd_or_its_answer() -> None:
    none, failed = service_limits("none\nend\n"), service_limits("failed 1\nend\n")
    assert isinstance(none, Missing)
    assert none.kind == "not-applicable"
    assert isinstance(failed, Missing)
    assert failed.kind == "exited"


def _of(*pids: object) -> str:
    argv = [*process.probe.command.argv, *map(str, pids)]  # type: ignore[attr-defined]
    return subprocess.run(argv, capture_output=True, text=True).stdout


def test_a_process_of_this_machine() -> None:
    this = Path(__file__)
    with this.open(encoding="utf-8"), this.open(encoding="utf-8"):
        files = len([*Path("/proc/self/fd").iterdir()]) - 1  # without that of the listing
        (found,) = process(_of(os.getpid()))
    assert found.name == f"pid {os.getpid()}"
    # A child that is being made holds a pipe here for a moment.
    assert isinstance(found.open_files, int)
    assert files <= found.open_files <= files + 8
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    (nofile,) = (one for one in found.limits if one.resource == "nofile")
    assert nofile.soft == soft
    assert isinstance(found.open_files_percent, float)
    assert abs(found.open_files_percent - 100 * found.open_files / soft) < 1e-9
    assert found.threads == len([*Path("/proc/self/task").iterdir()])


def test_a_process_that_is_gone_or_of_somebody_else() -> None:
    gone, denied = process(_of(2**22 + 9)), process("process 1\ndenied\nfiles denied\nend\n")
    assert isinstance(gone[0].open_files_percent, Missing)
    assert gone[0].open_files_percent.kind == "unreadable"
    assert isinstance(denied[0].open_files_percent, Missing)
    assert denied[0].open_files_percent.kind == "denied"


def test_a_zombie_has_ended() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (found,) = process(_of(child.pid))
    for value in (found.open_files_percent, found.nofile, found.memlock, found.nccl):
        assert isinstance(value, Missing) and value.kind == "unreadable"
        assert "has ended (zombie)" in value.text
    (alive,) = process(PROCESS.replace("Name:", "State:\tZ (zombie)\nName:"))
    assert isinstance(alive.nofile, Missing) and "others of it still run" in alive.nofile.text


def test_the_limits_of_a_process_that_was_given_its_own() -> None:
    shell = "ulimit -n 512; ulimit -s 4096; echo set; exec sleep 60"
    with subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline() == b"set\n"
        (found,) = process(_of(child.pid))
        child.kill()
    assert (found.nofile, found.stack) == (512, 4 << 20)
    assert isinstance(found.memlock_lifted, bool)


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("libnccl.so.2", b"\0NCCL version 2.19.3+cuda12.3\0", "2.19.3"),
        ("libnccl.so.2.21.5", b"\0", "2.21.5"),
    ],
)
def test_the_nccl_that_a_process_has_loaded(
    tmp_path: Path, name: str, text: bytes, version: str
) -> None:
    library = tmp_path / name
    library.write_bytes(text)
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        (found,) = process(_of(os.getpid()))
    assert found.nccl == version


def test_a_process_without_nccl() -> None:
    (found,) = process(_of(os.getpid()))
    assert isinstance(found.nccl, Missing) and found.nccl.kind == "not-applicable"


def test_where_a_process_of_this_machine_may_run(tmp_path: Path) -> None:
    require("taskset", shutil.which("taskset") is not None)
    with subprocess.Popen(["taskset", "-c", "0", "sleep", "60"]) as child:
        told = {}
        for _ in range(100):  # until the child is sleep
            (found,) = process(_of(child.pid))
            told = {"command": found.command, "cpus": found.cpus_allowed}
            if found.command == "sleep":
                break
            time.sleep(0.02)
        child.kill()
    assert told == {"command": "sleep", "cpus": "0"}
    assert isinstance(found.mems_allowed, str)


def test_the_memory_of_this_process_by_node() -> None:
    if not Path("/proc/self/numa_maps").exists():
        pytest.skip("this kernel does not count memory by NUMA node")
    with mmap.mmap(-1, 256 << 20) as held:
        for at in range(0, len(held), 4096):
            held[at] = 1
        (found,) = process(_of(os.getpid()))
    assert found.memory_policy == "default"
    assert not isinstance(found.memory, Missing)
    assert 256 << 20 <= sum(one.held_bytes for one in found.memory) < 2 << 30


def test_what_a_process_holds_of_nodes_and_gpus() -> None:
    (found,) = process(f"minor 0 0000:19:00.0\nminor 1 0000:3b:00.0\n{BOUND}")
    assert (found.cpus_allowed, found.mems_allowed) == ("0-47", "0-1")
    assert found.memory == (NodeShare(0, 32 << 30), NodeShare(1, 1 << 30))
    assert found.gpus_open == ("0000:19:00.0",)
    (unnamed,) = process(BOUND)
    assert isinstance(unnamed.gpus_open, Missing)
    (slow,) = process(BOUND.replace("nodes end", "nodes rc 124"))
    assert isinstance(slow.memory, Missing) and slow.memory.kind == "timeout"
    (old,) = process(BOUND.replace("nodes end", "nodes none"))
    assert isinstance(old.memory, Missing) and old.memory.kind == "not-applicable"
    (denied,) = process("process 1\ndenied\nName:\tinit\nfiles denied\nnodes rc 1\nend\n")
    assert isinstance(denied.memory, Missing) and denied.memory.kind == "denied"


def test_a_process_without_limit_is_far_from_it() -> None:
    row = "Max open files            "
    found = process(PROCESS.replace(f"{row}1048576", f"{row}unlimited"))
    assert (found[0].open_files, found[0].open_files_percent) == (1512, 0.0)


@pytest.mark.parametrize("parse", [limits, limits_conf, process, service_limits])
def test_what_is_cut_short_or_something_else(parse: object) -> None:
    for text in ("", "\n", "hello\n", "hello\nend\n", LIMITS.removesuffix("end\n")):
        with pytest.raises(ParseError):
            parse(text)  # type: ignore[operator]
