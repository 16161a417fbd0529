"""Recorded limits, parameters, NUMA nodes, variables: samples, layouts, this machine's own."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path
from shutil import which

import pytest

from preflight.env_names import is_felt
from preflight.errors import ParseError
from preflight.facts.system import Limit
from preflight.model import Missing
from preflight.probes.limits.ulimit import prlimit, proc_limits, ulimit, ulimit_hard
from preflight.probes.numactl import numactl
from preflight.probes.parameters.sysctl_text import sysctl
from preflight.probes.parameters.sysctls import sysctls
from preflight.probes.stack.env_text import env
from preflight.recognise import recognise
from tests import software_text as texts
from tests.conftest import sample

KIND = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK,
        "nproc": resource.RLIMIT_NPROC, "stack": resource.RLIMIT_STACK}  # fmt: skip


def soft(limits: tuple[Limit, ...]) -> dict[str, object]:
    return {limit.resource: limit.soft for limit in limits}


def hard(limits: tuple[Limit, ...]) -> dict[str, object]:
    return {limit.resource: limit.hard for limit in limits}


def test_the_sample_of_limits() -> None:
    limits = ulimit(sample("sysinfo/ulimit_a_memlock_64k_nofile_10240.txt"))
    assert soft(limits) == {
        "memlock": 65536, "nofile": 10240, "stack": 10485760, "nproc": 1031511,
    }  # fmt: skip
    assert all(isinstance(limit.hard, Missing) for limit in limits)
    assert {limit.name for limit in limits} >= {"nofile (shell)", "memlock (shell)"}


@pytest.mark.parametrize("shell", texts.SHELLS)
def test_every_shell_tells_the_same(shell: str) -> None:
    expected = {"memlock": 65536 << 10, "nofile": 1024, "stack": 8192 << 10, "nproc": 2061422}
    assert soft(ulimit(texts.SHELLS[shell])) == expected
    assert hard(ulimit_hard(texts.SHELLS[shell])) == expected
    unlimited = texts.SHELLS[shell].replace(" 65536", " unlimited")
    assert soft(ulimit(unlimited))["memlock"] == "unlimited"


def test_limits_of_a_process() -> None:
    both = {"memlock": 65536 << 10, "nproc": 2061422}
    for limits in (proc_limits(texts.PROC_LIMITS), prlimit(texts.PRLIMIT)):
        assert soft(limits) == {**both, "nofile": 1024, "stack": 8192 << 10}
        assert hard(limits) == {**both, "nofile": 1048576, "stack": "unlimited"}


def test_a_paste_that_lost_its_columns() -> None:
    for text, read in ((texts.PROC_LIMITS, proc_limits), (texts.PRLIMIT, prlimit)):
        for columns in (re.sub(" {2,}", " ", text), re.sub(" {2,}", "\t", text)):
            assert soft(read(columns)) == soft(read(text))
            assert hard(read(columns)) == hard(read(text))


def test_an_amount_of_memory_without_a_unit_is_not_known() -> None:
    limits = {one.resource: one.soft for one in ulimit("stack  8192\nnofiles  1024\n")}
    assert limits["nofile"] == 1024
    assert isinstance(limits["stack"], Missing)


def test_a_number_that_stands_for_no_limit() -> None:
    text = texts.PROC_LIMITS.replace("67108864            ", "18446744073709551615")
    assert soft(proc_limits(text))["memlock"] == "unlimited"


def own(kind: int, which_one: int) -> object:
    value = resource.getrlimit(kind)[which_one]
    return "unlimited" if value == resource.RLIM_INFINITY else value


@pytest.mark.parametrize(
    ("argv", "probe"),
    [
        (["bash", "-c", "ulimit -a"], "ulimit"), (["dash", "-c", "ulimit -a"], "ulimit"),
        (["zsh", "-fc", "ulimit -a"], "ulimit"), (["fish", "-c", "ulimit -a"], "ulimit"),
        (["cat", "/proc/self/limits"], "proc-limits"), (["prlimit"], "prlimit"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_limits_of_this_process(argv: list[str], probe: str) -> None:
    if not which(argv[0]):
        pytest.skip(f"{argv[0]} is not here")
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    [raw] = recognise(text.encode(), "x.txt")
    assert raw.probe == probe
    read = {"ulimit": ulimit, "proc-limits": proc_limits, "prlimit": prlimit}[probe]
    limits = read(str(raw.stdout))
    assert soft(limits) == {name: own(kind, 0) for name, kind in KIND.items()}
    if probe != "ulimit":
        assert hard(limits) == {name: own(kind, 1) for name, kind in KIND.items()}


@pytest.mark.parametrize("name", ["sysctl_a_centos7.7.txt", "sysctl_a_ubuntu18.04.txt"])
def test_samples_of_parameters(name: str) -> None:
    found = {one.name: one for one in sysctl(sample(f"sysinfo/{name}"))}
    assert found["net.ipv4.tcp_rmem"].value in ("4096 87380 6291456", "4096 131072 6291456")
    assert found["vm.swappiness"].value in ("30", "60")
    assert found["net.ipv4.ip_local_reserved_ports"].value == "none"
    assert (found["vm.swappiness"].of_host, found["net.core.rmem_max"].of_host) == (True, False)
    assert not {"fs.dentry-state", "dev.cdrom.info", "kernel.random.uuid"} & found.keys()
    lines = sample(f"sysinfo/{name}").split("\n")
    assert all(lines[one.line - 1].startswith(f"{one.name} = ") for one in found.values())


def test_parameters_are_read_as_a_host_tells_them() -> None:
    """The same values by `sysctl -a` and by the question that a live host is asked."""
    if not which("sysctl") or not Path("/proc/sys/vm").is_dir():
        pytest.skip("no sysctl here")
    done = subprocess.run(["sysctl", "-a"], capture_output=True, text=True, check=False)
    argv = sysctls.probe.command.argv  # type: ignore[attr-defined]
    asked = subprocess.run(argv, capture_output=True, text=True, check=True)
    live = {one.name: (one.value, one.of_host) for one in sysctls(asked.stdout)}
    recorded = {one.name: (one.value, one.of_host) for one in sysctl(done.stdout)}
    assert len(recorded) > 20
    assert {name: live.get(name) for name in recorded} == recorded


def test_parameters_in_a_paste() -> None:
    found = {one.name: one.value for one in sysctl(texts.SYSCTL)}
    assert found == {
        "fs.nr_open": "1048576", "kernel.numa_balancing": "1", "vm.swappiness": "60",
        "net.core.default_qdisc": "fq_codel", "net.core.somaxconn": "4096",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
    }  # fmt: skip
    with pytest.raises(ParseError, match="none of these parameters"):
        sysctl("kernel.hostname = node-07\n")


@pytest.mark.parametrize(
    ("pattern", "with_what"),
    [
        (" = ", "="), ("(?m)^(\\w+)\\.", r"\1/"), ("(?m)^net.core.", "net/core/"),
        ("(?m)^(\\w+)\\.(\\w+)\\.?([\\w.]*) ?= ?", r"/proc/sys/\1/\2/\3:"),
    ],
)  # fmt: skip
def test_parameters_in_other_words(pattern: str, with_what: str) -> None:
    told = re.sub(pattern, with_what, texts.SYSCTL).replace("/:", ":")
    [raw] = recognise(told.encode(), "x.txt")
    assert raw.probe == "sysctl"
    expected = {one.name: one.value for one in sysctl(texts.SYSCTL)}
    assert {one.name: one.value for one in sysctl(told)} == expected


def test_one_parameter_of_two_values_is_none() -> None:
    with pytest.raises(ParseError, match="default_qdisc stands here as fq and as pfifo"):
        sysctl("net.core.default_qdisc = fq\nnet.core.default_qdisc = pfifo\n")


def test_samples_of_numa_nodes() -> None:
    [node] = numactl(sample("sysinfo/numactl_H_1node_gcp.txt"))
    assert (node.name, node.cpus, node.total_bytes, node.free_bytes) == (
        "node0", 8, 32116 << 20, 13798 << 20,
    )  # fmt: skip
    assert node.free_percent == pytest.approx(42.96, abs=0.01)
    assert node.distances == (10,)
    first, second = numactl(sample("sysinfo/numactl_H_2node_60cpu_gcp.txt"))
    assert (first.cpus, second.cpus, second.distances) == (30, 30, (20, 10))


def test_a_node_without_processors_and_one_without_free_memory() -> None:
    _, full, of_gpu = numactl(texts.NUMACTL)
    assert (full.free_bytes, full.free_percent) == (0, 0.0)
    assert (of_gpu.cpus, of_gpu.distances) == (0, (80, 80, 10))


def test_nodes_that_are_cut_off_are_missed() -> None:
    cut = texts.NUMACTL[: texts.NUMACTL.index("node 2")]
    with pytest.raises(ParseError, match="cut short: 2 of 3 nodes"):
        numactl(cut)


def test_variables_and_no_secret() -> None:
    found = {one.name: one.value for one in env(texts.ENV)}
    assert found == {
        "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0,mlx5_1", "CUDA_VISIBLE_DEVICES": "0,1",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
    }  # fmt: skip
    exported = "declare -x NCCL_DEBUG=\"WARN\"\nexport OMP_NUM_THREADS='8'\n"
    assert {one.name: one.value for one in env(exported)} == {
        "NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "8",
    }  # fmt: skip
    [one] = env("HTTP_PROXY=x\nNVIDIA_PROXY=http://me:secret@proxy:3128\n")
    assert one.value == "***"
    [one] = env("HTTP_PROXY=x\nNCCL_DEBUG_FILE=http://me:secret@proxy:3128\n")
    assert one.value == "http://***@proxy:3128"


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_API_KEY",
        "TORCH_TOKEN",
        "CUDA_SECRET",
        "PYTHON_PASSWORD",
        "NCCL_AUTH",
        "HF_TOKEN",
        "OMP_PASSPHRASE",
        "NCCL_Password",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert not is_felt(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "LD_PRELOAD"])
def test_names_of_no_secrets(name: str) -> None:
    assert is_felt(name)


@pytest.mark.parametrize("read", [ulimit, ulimit_hard, proc_limits, prlimit, sysctl, numactl, env])
@pytest.mark.parametrize("text", ["", "\n", "hello world\n", "open files: 3", " " * 5000])
def test_what_is_none_is_refused(read, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParseError, match=r"expected lines"):
        read(text)


@pytest.mark.parametrize(
    ("line", "kind"),
    [("net.core.somaxconn = abc", "unreadable"), ("vm.swappiness =", "unreadable"),
     ("net.ipv4.tcp_rmem = 4096 131072 lots", "unreadable"),
     ("net.core.default_qdisc = fq", "not-applicable"),
     ("net.ipv4.ip_local_port_range = 32768\t60999", "not-applicable")],
)  # fmt: skip
def test_what_should_be_a_number_and_is_none_is_unreadable(line: str, kind: str) -> None:
    (found,) = sysctl(f"{line}\n")
    assert isinstance(found.number, Missing)
    assert found.number.kind == kind
