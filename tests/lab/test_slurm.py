"""Nodes of a real Slurm: what they answer, and what becomes of those that do not."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from preflight.errors import UsageError
from preflight.faults import CONNECTION
from preflight.model import Command, Raw
from preflight.transports.local import Local
from preflight.transports.progress import Progress
from preflight.transports.slurm.fleet import Slurm
from tests.lab.slurm import NODES, Cluster, slurm

pytestmark = pytest.mark.lab

NAME = Command("name", ("sh", "-c", "echo $SLURMD_NODENAME"))
ALL = ("-N", "4")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm(tmp_path_factory.mktemp("slurm") / "lab") as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _here(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the cluster's environment; afterwards it is whole again, and nobody is left at work."""
    for name in os.environ:
        if "SLURM" in name:
            monkeypatch.delenv(name)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    yield
    cluster.mend()


def _told(transport: Slurm, *commands: Command) -> dict[str, list[Raw]]:
    found: dict[str, list[Raw]] = {}
    for host, raws in transport.run(commands):
        assert host not in found
        found[host] = raws
    return found


def _fault(raws: list[Raw]) -> str:
    """The name of what broke the host off; empty where nothing did."""
    missing = raws[-1].missing
    return missing.fault if missing and raws[-1].probe == CONNECTION else ""


def _text(raws: list[Raw]) -> str:
    missing = raws[-1].missing
    return missing.text if missing else ""


def test_all_nodes_answer_each_for_itself() -> None:
    seen: list[Progress] = []
    commands = (NAME, Command("rc", ("sh", "-c", "echo err >&2; exit 9")))
    told = _told(Slurm((), ALL, progress=seen.append), *commands)
    assert sorted(told) == list(NODES)
    for node, (name, rc) in told.items():
        assert (name.host, name.stdout, name.rc) == (node, f"{node}\n", 0)
        assert (rc.stderr, rc.rc, rc.missing) == ("err\n", 9, None)
    assert seen[-1].hosts == 4


def test_each_node_has_tools_of_its_own(cluster: Cluster) -> None:
    for node in NODES:
        cluster.tool(node, "nvidia-smi", f"echo GPUs of {node}")
    told = _told(Slurm(("n2", "n3")), Command("smi", ("nvidia-smi",)))
    assert {node: raws[0].stdout for node, raws in told.items()} == {
        "n2": "GPUs of n2\n", "n3": "GPUs of n3\n",
    }  # fmt: skip


def test_nodes_that_are_down_drained_or_unknown_are_named_and_the_others_asked(
    cluster: Cluster,
) -> None:
    cluster.command("scontrol", "update", "nodename=n1", "state=drain", "reason=bad | fan, row 3")
    cluster.command("scontrol", "update", "nodename=n2", "state=down", "reason=no power")
    began_s = time.monotonic()
    told = _told(Slurm(("n1", "n2", "n3", "n9")), NAME)
    assert time.monotonic() - began_s < 5
    faults = {node: _fault(raws) for node, raws in told.items()}
    assert faults == {"n1": "node-drained", "n2": "node-down", "n3": "", "n9": "node-unknown"}
    assert "bad | fan, row 3" in _text(told["n1"])
    assert "no power" in _text(told["n2"])
    assert all(raw.missing for raw in told["n1"])
    assert told["n3"][0].stdout == "n3\n"


def test_a_node_that_dies_during_the_run_costs_the_others_nothing(cluster: Cluster) -> None:
    commands = (NAME, Command("long", ("sh", "-c", "sleep 8; echo $SLURMD_NODENAME is done")))
    killing = threading.Timer(2, cluster.kill, ("n2",))
    killing.start()
    told = _told(Slurm((), ALL, deadline_s=40), *commands)
    assert _fault(told.pop("n2")) == "node-failed"
    assert sorted(told) == ["n1", "n3", "n4"]
    for node, (name, long) in told.items():
        assert (name.stdout, long.stdout) == (f"{node}\n", f"{node} is done\n")


def test_a_node_that_died_is_called_so_at_the_deadline(cluster: Cluster) -> None:
    hang = Command("hang", ("sh", "-c", "[ $SLURMD_NODENAME = n2 ] && exec sleep 979; echo done"))
    threading.Timer(1, cluster.kill, ("n2",)).start()
    told = _told(Slurm((), ALL, deadline_s=18), NAME, hang)
    assert (told["n2"][0].stdout, _fault(told["n2"])) == ("n2\n", "node-failed")
    assert "does not respond" in _text(told["n2"]) or "Node failure" in _text(told["n2"])
    assert all(told[node][1].stdout == "done\n" for node in ("n1", "n3", "n4"))


def test_a_task_that_is_killed_costs_the_others_nothing(cluster: Cluster) -> None:
    commands = (NAME, Command("long", ("sh", "-c", "sleep 3; echo $SLURMD_NODENAME is done")))

    def kill() -> None:
        for pid in cluster.tasks("n3"):
            psutil.Process(pid).kill()

    threading.Timer(1, kill).start()
    told = _told(Slurm((), ALL), *commands)
    assert _fault(told["n3"]) == "died"
    assert "Killed" in _text(told["n3"])
    assert told["n3"][0].stdout == "n3\n"  # what it had said is kept
    assert all(told[node][1].stdout == f"{node} is done\n" for node in ("n1", "n2", "n4"))


def test_a_node_whose_slurmd_is_gone_unnoticed_does_not_end_the_others(cluster: Cluster) -> None:
    cluster.kill("n4")
    assert cluster.state("n4") == "idle"
    told = _told(Slurm(NODES, deadline_s=40), NAME)
    assert _fault(told["n4"]) == "node-failed"
    assert all(told[node][0].stdout == f"{node}\n" for node in ("n1", "n2", "n3"))


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_byte_for_byte_those_of_this_machine(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(_nasty(random.Random(seed)))
    slowly = (
        "import sys,time;d=open(sys.argv[1],'rb').read();s=sys.stdout.buffer\n"
        "for i in range(0,len(d),len(d)//7):s.write(d[i:i+len(d)//7]);s.flush();time.sleep(.02)"
    )
    commands = (
        Command("cat", ("cat", str(file))),
        Command("err", ("sh", "-c", f"cat {file} >&2")),
        Command("slow", (sys.executable, "-c", slowly, str(file))),
        Command("no-end", ("printf", "no end")),
        Command("empty", ("true",)),
    )
    here = [(raw.stdout, raw.stderr) for raw in Local("here").run(commands)]
    for raws in _told(Slurm((), ALL), *commands).values():
        assert [(raw.stdout, raw.stderr) for raw in raws] == here


def _nasty(source: random.Random) -> bytes:
    """Lines around the sizes at which srun cuts, labels in them, bytes of all kinds, no end."""
    sizes = [0, 1, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 100_000]
    lines = [b"0: ", b" 3: x", b"srun: error: n2: task 1: Killed", b"\r", b"\x00", b"\xff\xfe"]
    lines += [bytes(source.choices(range(256), k=size)).replace(b"\n", b"!") for size in sizes]
    lines += [b"x" * size for size in sizes]
    source.shuffle(lines)
    return b"\n".join(lines)


def test_a_script_larger_than_any_pipe_reaches_all_nodes_whole() -> None:
    text = "".join(f"{number} of many lines\n" for number in range(40_000))
    big = Command("big", ("cksum",), stdin=text)
    (here,) = Local("here").run([big])
    for raws in _told(Slurm((), ALL), big, NAME).values():
        assert (raws[0].stdout, raws[1].rc) == (here.stdout, 0)


def test_a_caller_that_is_slow_costs_no_host_its_time() -> None:
    told = []
    for host, raws in Slurm((), ALL, deadline_s=3).run((Command("x", ("sleep", "1")), NAME)):
        time.sleep(2)
        told.append((host, raws[1].stdout))
    assert sorted(told) == [(node, f"{node}\n") for node in NODES]


def test_answers_that_wait_for_a_slow_caller_are_byte_for_byte_too() -> None:
    """Where the tasks end before all is read, srun parts lines where nobody could tell."""
    first = Command("first", ("sh", "-c", "[ $SLURMD_NODENAME = n1 ] || seq 1 200000"))
    (here,) = Local("here").run([Command("seq", ("seq", "1", "200000"))])
    for host, raws in Slurm((), ALL).run((first,)):
        time.sleep(2)
        assert raws[0].stdout == ("" if host == "n1" else here.stdout)


def test_a_large_answer_is_capped_and_the_next_still_comes() -> None:
    flood = Command("flood", ("sh", "-c", "yes x | head -c 400000"), max_bytes=1000)
    for raws in _told(Slurm((), ALL), flood, NAME).values():
        assert (len(raws[0].stdout), raws[0].truncated, raws[1].rc) == (1000, True, 0)


def test_at_the_deadline_what_hangs_is_cut_and_nothing_runs_on(cluster: Cluster) -> None:
    hang = "[ $SLURMD_NODENAME = n1 ] && exec sleep 983; echo done"
    began_s = time.monotonic()
    told = _told(Slurm((), ALL, deadline_s=3), NAME, Command("hang", ("sh", "-c", hang)), NAME)
    assert time.monotonic() - began_s < 12
    name, hung, never = told["n1"]
    assert (name.stdout, hung.rc, never.rc) == ("n1\n", None, None)
    assert hung.missing
    assert (hung.missing.kind, hung.missing.fault) == ("timeout", "")
    assert hung.missing.text.startswith("the host's limit of 3 s was reached")
    assert all(told[node][1].stdout == "done\n" for node in ("n2", "n3", "n4"))
    _nothing_is_left(cluster, "983")


def _nothing_is_left(cluster: Cluster, word: str, limit_s: float = 6) -> None:
    def gone() -> bool:
        # A bare number stands in many a command of others.
        return not any(f"sleep {word}" in " ".join(_cmdline(one)) for one in psutil.process_iter())

    cluster.wait(
        gone, f"`sleep {word}` to be gone", limit_s,
    )  # fmt: skip
    cluster.wait(lambda: not cluster.command("squeue", "-h").strip(), "an empty queue", limit_s)


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_interrupted_what_came_is_told_and_nothing_runs_on(cluster: Cluster) -> None:
    hang = Command("hang", ("sh", "-c", "[ $SLURMD_NODENAME = n1 ] || exec sleep 981"))
    told: dict[str, list[Raw]] = {}
    threading.Timer(2, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        for host, raws in Slurm((), ALL).run((NAME, hang)):
            told.setdefault(host, raws)
    assert {node: _fault(raws) for node, raws in told.items()} == {
        "n1": "", "n2": "interrupted", "n3": "interrupted", "n4": "interrupted",
    }  # fmt: skip
    assert all(raws[0].stdout == f"{node}\n" for node, raws in told.items())
    _nothing_is_left(cluster, "981")


def test_where_the_caller_hears_the_interrupt_itself_it_ends_with_what_came(
    cluster: Cluster,
) -> None:
    hang = Command("hang", ("sh", "-c", "[ $SLURMD_NODENAME = n1 ] || exec sleep 978"))
    transport = Slurm((), ALL)
    threading.Timer(2, transport.interrupted.set).start()
    began_s = time.monotonic()
    told = _told(transport, NAME, hang)
    assert time.monotonic() - began_s < 8
    assert {node: _fault(raws) for node, raws in told.items()} == {
        "n1": "", "n2": "interrupted", "n3": "interrupted", "n4": "interrupted",
    }  # fmt: skip
    _nothing_is_left(cluster, "978")


def test_interrupted_work_is_told_to_end_and_removes_what_it_made(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = f"trap 'rm {tmp_path}/$SLURMD_NODENAME; exit' TERM; >{tmp_path}/$SLURMD_NODENAME\n"
    work = Command("work", ("sh", "-c", f"{script}while :; do sleep 0.1; done"))
    transport = Slurm((), ("-N", "2"))

    def interrupt_all() -> None:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.1)
        transport.interrupted.set()

    threading.Thread(target=interrupt_all, daemon=True).start()
    told = _told(transport, work)
    assert {_fault(raws) for raws in told.values()} == {"interrupted"}
    assert list(tmp_path.iterdir()) == []


ASK = """\
import sys
from preflight.model import Command
from preflight.transports.slurm.fleet import Slurm
from tests.lab.test_slurm import NAME, _fault
for host, raws in Slurm(tuple(sys.argv[1:])).run((NAME,)):
    print(host, _fault(raws) or raws[0].stdout.strip())
"""


def test_inside_an_allocation_its_nodes_are_asked(cluster: Cluster) -> None:
    salloc = ("salloc", "-Q", "-N", "3", "-w", "n1,n2,n4", "--ntasks-per-node=4")
    told = cluster.command(*salloc, sys.executable, "-c", ASK)
    assert sorted(told.splitlines()) == ["n1 n1", "n2 n2", "n4 n4"]


def test_inside_an_allocation_a_node_that_died_does_not_end_the_others(cluster: Cluster) -> None:
    salloc = ("salloc", "-Q", "-N", "4", "--no-kill", "sh", "-c")
    wait = f"while [ ! -e {cluster.base}/killed ]; do sleep 0.1; done"
    ask = f"{wait}; exec {sys.executable} -c '{ASK}'"

    def kill() -> None:
        cluster.wait(lambda: cluster.state("n3") in ("mixed", "allocated"), "the allocation")
        cluster.kill("n3")
        (cluster.base / "killed").touch()

    threading.Timer(0, kill).start()
    told = cluster.command(*salloc, ask, timeout_s=60)
    assert sorted(told.splitlines()) == ["n1 n1", "n2 n2", "n3 node-failed", "n4 n4"]


def test_inside_an_allocation_a_node_of_another_is_told_and_a_draining_one_asked(
    cluster: Cluster,
) -> None:
    drain = 'scontrol update nodename=n2 state=drain reason=x; exec "$@"'
    salloc = ("salloc", "-Q", "-N", "2", "-w", "n1,n2", "sh", "-c", drain, "sh")
    told = cluster.command(*salloc, sys.executable, "-c", ASK, "n2", "n3")
    assert sorted(told.splitlines()) == ["n2 n2", "n3 node-elsewhere"]


def test_in_a_batch_script_beside_a_step_that_has_all_cpus(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = tmp_path / "job"
    out = tmp_path / "out"
    script.write_text(
        f"#!/bin/sh\n#SBATCH -N 2 -w n1,n3 --ntasks-per-node=4 -o {out}\n"
        f"srun sleep 4 & sleep 1\n{sys.executable} -c '{ASK}'\nwait\n"
    )
    cluster.command("sbatch", str(script))
    cluster.wait(lambda: not cluster.command("squeue", "-h").strip(), "the job's end")
    assert sorted(out.read_text().splitlines()) == ["n1 n1", "n3 n3"]


def test_an_allocation_that_is_not_granted_in_time_is_told_with_slurms_reason(
    cluster: Cluster,
) -> None:
    cluster.command("sbatch", "-N4", "--exclusive", "-o/dev/null", "--wrap", "exec sleep 60")
    cluster.wait(lambda: cluster.state("n1") == "allocated", "n1 to be busy")
    with pytest.raises(UsageError, match=r"no nodes within 2 s: job \d+ waits \(Resources\)"):
        _told(Slurm((), ALL, deadline_s=2), NAME)
    assert cluster.command("squeue", "-h", "-t", "PENDING").strip() == ""


@pytest.mark.parametrize(
    ("args", "said", "hint"),
    [
        (("-p", "nope"), "invalid partition specified: nope", "sinfo -s"),
        (("-w", "n77"), "Invalid node name specified", "sinfo -N -l"),
        (("--nonsense",), "unrecognized option '--nonsense'", "srun --help"),
    ],
)
def test_what_srun_refuses_is_told_in_its_own_words(
    args: tuple[str, ...], said: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        _told(Slurm((), args), NAME)
    assert hint in raised.value.hint


def test_what_is_known_before_srun_has_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Slurm(("n2", "n1", "n2")).wanted() == ("n2", "n1")
    assert Slurm((), ALL).wanted() == ()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    assert Slurm(()).wanted() == ("n1", "n2", "n3")


def test_without_an_allocation_or_arguments_it_says_what_to_type() -> None:
    with pytest.raises(UsageError, match="SLURM_JOB_ID is not set") as raised:
        _told(Slurm(()), NAME)
    assert "salloc -N 4" in raised.value.hint


def test_without_srun_it_says_where_to_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs srun, and there is none in PATH"):
        _told(Slurm((), ALL), NAME)


def test_without_a_controller_it_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = (cluster.base / "slurm.conf").read_text()
    other = tmp_path / "slurm.conf"
    lines = [
        "SlurmctldPort=1" if line.startswith("SlurmctldPort") else line
        for line in conf.splitlines()
    ]
    other.write_text("\n".join([*lines, "MessageTimeout=2", ""]))
    monkeypatch.setenv("SLURM_CONF", str(other))
    with pytest.raises(UsageError, match="Unable to contact slurm controller") as raised:
        _told(Slurm((), ALL), NAME)
    assert "scontrol ping" in raised.value.hint


def test_a_dead_node_is_named_where_srun_chose_it_and_the_others_asked(cluster: Cluster) -> None:
    cluster.kill("n4")
    told = _told(Slurm((), ALL, deadline_s=40), NAME)
    assert {node: _fault(raws) for node, raws in told.items()} == {
        "n1": "", "n2": "", "n3": "", "n4": "node-failed",
    }  # fmt: skip
    assert all(told[node][0].stdout == f"{node}\n" for node in ("n1", "n2", "n3"))


def test_where_all_that_srun_chose_are_dead_each_is_named(cluster: Cluster) -> None:
    for node in NODES:
        cluster.kill(node)
    told = _told(Slurm((), ALL, deadline_s=40), NAME)
    assert {node: _fault(raws) for node, raws in told.items()} == dict.fromkeys(
        NODES, "node-failed"
    )


def test_where_all_hang_before_they_speak_each_is_named(cluster: Cluster) -> None:
    prolog = cluster.base / "task-prolog"
    ours = prolog.read_text()
    prolog.write_text("#!/bin/sh\nexec sleep 975\n")
    try:
        told = _told(Slurm((), ALL, deadline_s=4), NAME)
    finally:
        prolog.write_text(ours)
    assert {node: _fault(raws) for node, raws in told.items()} == dict.fromkeys(NODES, "silent")
    _nothing_is_left(cluster, "975", 30)  # a prolog is not the task: Slurm takes longer to end it


def test_nodes_for_which_the_job_is_queued_are_not_called_silent(cluster: Cluster) -> None:
    cluster.command("scontrol", "update", "nodename=n4", "state=drain", "reason=fan")
    cluster.command("sbatch", "-wn1", "--exclusive", "-o/dev/null", "--wrap", "exec sleep 60")
    cluster.wait(lambda: cluster.state("n1") == "allocated", "n1 to be busy")
    told = _told(Slurm(("n1", "n2", "n4"), deadline_s=3), NAME)
    assert {node: _fault(raws) for node, raws in told.items()} == {
        "n1": "node-busy", "n2": "node-busy", "n4": "node-drained",
    }  # fmt: skip
    assert "waits (" in _text(told["n2"])


def test_an_executable_that_is_not_there_is_told_in_slurms_words(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = Slurm._argv

    def broken(self: Slurm, *args: Any) -> list[str]:
        return [*argv(self, *args)[:-2], "/nowhere/sh", "-s"]

    monkeypatch.setattr(Slurm, "_argv", broken)
    told = _told(Slurm(("n1", "n2")), NAME)
    for node in ("n1", "n2"):
        assert _fault(told[node]) == "no-task"
        assert "execve(): /nowhere/sh: No such file or directory" in _text(told[node])


def test_what_a_batch_job_exports_does_not_matter(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.tool("n1", "whoareyou", "echo I am n1")
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")
    told = _told(Slurm(("n1",)), Command("tool", ("whoareyou",)), Command("env", ("env",)))
    assert told["n1"][0].stdout == "I am n1\n"
    assert f"SLURM_CONF={cluster.base}" in str(told["n1"][1].stdout)


def test_a_stopped_slurmd_is_named_and_the_others_asked_again(cluster: Cluster) -> None:
    daemon = cluster.processes["n2"]
    daemon.send_signal(signal.SIGSTOP)
    long = Command("long", ("sh", "-c", "sleep 20; echo done"))
    try:
        told = _told(Slurm((), ALL, deadline_s=50), NAME, long)
    finally:
        daemon.send_signal(signal.SIGCONT)
    assert {node: _fault(raws) for node, raws in told.items()} == {
        "n1": "", "n2": "node-failed", "n3": "", "n4": "",
    }  # fmt: skip
    del told["n2"]
    assert {raws[1].stdout for raws in told.values()} == {"done\n"}


@pytest.mark.parametrize("what", ["", ".0"])
def test_a_job_that_is_cancelled_is_told_as_that(cluster: Cluster, what: str) -> None:
    def cancel() -> None:
        job = cluster.command("squeue", "-h", "-o", "%i").split()[0]
        cluster.command("scancel", job + what)

    threading.Timer(2, cancel).start()
    sleeps = Command("hang", ("sh", "-c", "[ $SLURMD_NODENAME = n1 ] || exec sleep 974"))
    told = _told(Slurm((), ALL), NAME, sleeps)
    assert {node: _fault(raws) for node, raws in told.items()} == {
        "n1": "", "n2": "step-ended", "n3": "step-ended", "n4": "step-ended",
    }  # fmt: skip
    assert "CANCELLED AT" in _text(told["n2"])
    name, hang, _ = told["n2"]
    # 137: its shell saw it killed, and could still tell.
    assert (name.stdout, hang.rc) in (("n2\n", None), ("n2\n", 137))
    assert hang.missing or hang.rc
    _nothing_is_left(cluster, "974")


@pytest.mark.parametrize(
    ("change", "back", "reason", "hint"),
    [
        ("state=down", "state=up", "PartitionDown", "sinfo -s"),
        ("maxtime=1", "maxtime=infinite", "PartitionTimeLimit", "-t 00:10:00"),
        ("maxnodes=2", "maxnodes=unlimited", "PartitionNodeLimit", "how many nodes"),
    ],
)
def test_a_job_that_can_never_start_is_told_at_once(
    cluster: Cluster, change: str, back: str, reason: str, hint: str
) -> None:
    cluster.command("scontrol", "update", "partitionname=all", change)
    began_s = time.monotonic()
    try:
        with pytest.raises(UsageError, match=reason) as raised:
            _told(Slurm((), (*ALL, "-t", "20"), deadline_s=30), NAME)
    finally:
        cluster.command("scontrol", "update", "partitionname=all", back)
    assert time.monotonic() - began_s < 20
    assert hint in raised.value.hint


def test_in_an_allocation_of_which_the_job_is_over_it_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77777")
    with pytest.raises(UsageError, match="no nodes for that job: it is over") as raised:
        _told(Slurm(()), NAME)
    assert raised.value.hint.startswith("unset SLURM_JOB_ID")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    with pytest.raises(UsageError, match="Invalid job id specified") as raised:
        _told(Slurm(()), NAME)
    assert "unset SLURM_JOB_ID" in raised.value.hint


def test_from_a_folder_that_was_deleted_it_asks_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert _told(Slurm(("n1",)), NAME)["n1"][0].stdout == "n1\n"
    finally:
        monkeypatch.chdir(tmp_path)


def test_what_is_shown_is_what_is_run() -> None:
    shown = Slurm(("n1", "n2"), ("-p", "all")).shown()
    assert shown.startswith("srun -p all --label --no-kill ")
    assert shown.endswith(" --nodes=2 --ntasks=2 --nodelist=n1,n2 /bin/sh -s")
    done = subprocess.run(shlex.split(shown), input="echo ok", capture_output=True, text=True)
    assert sorted(done.stdout.splitlines()) == ["0: ok", "1: ok"]


@pytest.mark.parametrize("rc", [137, 143])
def test_what_a_signal_ended_is_an_answer_where_slurm_ended_nothing(rc: int) -> None:
    told = _told(Slurm((), ALL), Command("own", ("sh", "-c", f"exit {rc}")), NAME)
    assert {node: (own.rc, name.stdout) for node, (own, name) in told.items()} == {
        node: (rc, f"{node}\n") for node in NODES
    }
