"""The variables of a shell and of a process, as the question asked of real shells tells them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.facts.stack import Environment, EnvVar
from preflight.model import Missing
from preflight.probes.stack.environment import environment
from tests.setup_text import ENVIRONMENT

ASK = environment.probe.command.argv[2]  # type: ignore[attr-defined]
SHELLS = [["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]]


def ask(
    variables: dict[str, str], arguments: Sequence[str] = (), shell: Sequence[str] = ("sh",)
) -> Environment | Missing:
    done = subprocess.run(
        [*shell, "-c", ASK, *(["sh", *arguments] if arguments else [])],
        capture_output=True, text=True, timeout=20, check=True,
        env={"PATH": os.environ["PATH"], **variables},
    )  # fmt: skip
    return environment(done.stdout)


def told(found: Environment | Missing) -> dict[str, str]:
    assert isinstance(found, Environment)
    return {one.name: one.value for one in found.variables}


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_each_shell_tells_the_variables_of_the_families_and_no_others(shell: list[str]) -> None:
    if not shutil.which(shell[0]):
        pytest.skip(f"{shell[0]} is not installed")
    variables = {
        "NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "", "LD_PRELOAD_X": "no",
        "OMP_NUM_THREADS": " 8 ", "XNCCL_DEBUG": "no", "HOME": "/nonexistent",
    }  # fmt: skip
    assert told(ask(variables, shell=shell)) == {
        "CUDA_VISIBLE_DEVICES": "", "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "8",
    }  # fmt: skip


def test_values_of_several_lines_are_one_line_and_quotes_stay() -> None:
    value = "a\nend\nvar NCCL_X=1 '\"$(id)`id`\\"
    assert told(ask({"NCCL_NET": value})) == {"NCCL_NET": value.replace("\n", " ")}


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_API_KEY",
        "TORCH_TOKEN",
        "NVIDIA_SECRET_X",
        "CUDA_PASSWORD",
        "DS_CREDENTIALS",
        "DS_AUTHTOKEN",
        "OMP_PASSPHRASE",
        "NCCL_Password",
        "NCCL_PW",
        "CUDA_ACCESS_KEYS",
    ],
)
def test_what_looks_like_a_secret_never_leaves_the_host(name: str) -> None:
    found = ask({name: "hunter2", "NCCL_IB_PKEY": "3", "TOKENIZERS_PARALLELISM": "false"})
    assert told(found) == {"NCCL_IB_PKEY": "3", "TOKENIZERS_PARALLELISM": "false"}


def test_a_password_in_an_address_is_masked() -> None:
    found = ask({"NCCL_DEBUG_FILE": "http://me:hunter2@proxy:3128/x"})
    assert told(found) == {"NCCL_DEBUG_FILE": "http://***@proxy:3128/x"}


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_value_of_a_name_that_nobody_knows_stays_on_the_host(shell: list[str]) -> None:
    if not shutil.which(shell[0]):
        pytest.skip(f"{shell[0]} is not installed")
    names = ("NCCL_JWT", "NCCL_PAT", "OMPI_MCA_TKN", "TORCH_WANDB", "NVIDIA_Login", "DS_COOKIE")
    done = subprocess.run(
        [*shell, "-c", ASK], capture_output=True, text=True, timeout=20, check=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **dict.fromkeys(names, "hunter2")},
    )  # fmt: skip
    assert "hunter2" not in done.stdout
    assert told(environment(done.stdout)) == dict.fromkeys(names, "***")


def test_a_recording_that_holds_more_tells_no_more() -> None:
    text = ENVIRONMENT.replace("var NCCL_DEBUG=WARN", "var NCCL_JWT=hunter2\nvar OMP_KEY=hunter2")
    assert told(environment(text))["NCCL_JWT"] == "***"
    assert "OMP_KEY" not in told(environment(text))


def test_nccls_own_file_is_read(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("# a remark\nNCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME==eth0\n")
    found = ask({"HOME": str(tmp_path)})
    assert isinstance(found, Environment)
    file = str(tmp_path / ".nccl.conf")
    mine = [(one.name, one.value) for one in found.variables if one.of == file]
    assert mine == [("NCCL_DEBUG", "WARN"), ("NCCL_SOCKET_IFNAME", "=eth0")]
    other = tmp_path / "other.conf"
    other.write_text("NCCL_DEBUG=TRACE\n")
    found = ask({"HOME": str(tmp_path), "NCCL_CONF_FILE": str(other)})
    assert isinstance(found, Environment)
    assert {one.of for one in found.variables} >= {"shell", str(other)}
    assert file not in {one.of for one in found.variables}


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    here = tmp_path / "topo.xml"
    here.touch()
    found = ask({"NCCL_TOPO_FILE": "/nonexistent/a b.xml", "NCCL_GRAPH_FILE": str(here)})
    assert isinstance(found, Environment)
    assert found.targets.unreadable == ("NCCL_TOPO_FILE",)


def test_interfaces_are_those_of_the_kernel() -> None:
    found = ask({})
    assert isinstance(found, Environment)
    names = sorted(each.name for each in Path("/sys/class/net").iterdir())
    assert found.targets.netdevs == tuple(names)


@pytest.fixture
def process() -> Iterator[int]:
    """A process with an environment of its own."""
    variables = {"NCCL_DEBUG": "IN\nFO", "NCCL_ALGO": "Ring", "HF_TOKEN": "hunter2"}
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables,
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.communicate(b"\n", timeout=20)


def test_a_process_is_asked_in_place_of_the_shell(process: int) -> None:
    found = ask({"NCCL_DEBUG": "WARN"}, [str(process)])
    assert isinstance(found, Environment)
    assert [(one.of, one.name, one.value) for one in found.variables] == [
        (f"pid {process}", "NCCL_ALGO", "Ring"), (f"pid {process}", "NCCL_DEBUG", "IN FO"),
    ]  # fmt: skip
    assert isinstance(found.targets.unreadable, Missing)  # nobody looks for a process's files


def test_a_process_that_is_not_there_leaves_it_unknown(process: int) -> None:
    found = ask({}, [str(process), "99999999"])
    assert found == Missing("unreadable", "pid 99999999: there is no such process")


def test_a_process_of_somebody_else_is_denied() -> None:
    found = environment("of pid 7\ndenied\nnetdevs\nadapters\nend\n")
    assert isinstance(found, Missing)
    assert (found.kind, found.text.partition(":")[0]) == ("denied", "pid 7")


def test_adapters_and_their_links_are_read() -> None:
    found = environment(ENVIRONMENT)
    assert isinstance(found, Environment)
    assert found.targets.adapters == ("mlx5_0", "mlx5_1")
    assert found.targets.link_layers == ("InfiniBand",)
    assert found.variables[0] == EnvVar("CUDA_VISIBLE_DEVICES", "0,1", "shell", 2, "environment")


def test_without_sysfs_the_devices_are_unknown() -> None:
    found = environment("of shell\nvar NCCL_DEBUG=WARN\nend\n")
    assert isinstance(found, Environment)
    assert isinstance(found.targets.netdevs, Missing)
    assert isinstance(found.targets.adapters, Missing)


def test_what_is_cut_short_is_no_answer() -> None:
    for cut in range(len(ENVIRONMENT) - 1):
        with pytest.raises(ParseError):
            environment(ENVIRONMENT[:cut])


@pytest.mark.parametrize(
    "line",
    ["var", "var =", "var 7=1", "nonsense", "adapter", "netdev", "unreadable", "\x00", "var Ä=1"],
)
def test_odd_lines_are_passed_over(line: str) -> None:
    found = environment(ENVIRONMENT.replace("netdevs\n", f"{line}\nnetdevs\n"))
    assert isinstance(found, Environment)
    assert len(found.variables) == 3


def test_a_zombie_shows_no_environment_and_is_told() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        found = ask({}, [str(child.pid)])
    assert isinstance(found, Missing)
    assert (found.kind, found.text) == (
        "unreadable", f"pid {child.pid}: it has ended (zombie)",
    )  # fmt: skip
