"""What Slurm says of nodes; lines in the form that Slurm 22.05 gives them."""

from __future__ import annotations

import pytest

from preflight.errors import UsageError
from preflight.transports.slurm.arguments import hold, options_of, without_nodes
from preflight.transports.slurm.fleet import environment
from preflight.transports.slurm.nodes import NodeState, not_asked, read_states
from preflight.transports.slurm.queue import Job, read_job
from preflight.transports.slurm.words import Told, endings, refused

#: sinfo -h -a -N -o '%N|%T|%E': a node is named once for each of its partitions.
SINFO = """\
gpu01|idle|none
gpu01|idle|none
gpu02|mixed|none
gpu03|drained|bad | fan, row 3
gpu04|draining*|Kill task failed
gpu05|down*|Not responding
gpu06|idle~|none
gpu07|allocated|none
gpu08|inval|Low CPUs
gpu09|draining|disk
gpu10|allocated*|none
gpu11|down|Node unexpectedly rebooted
"""


def test_states_are_read_with_their_marks_and_reasons() -> None:
    states = read_states(SINFO)
    assert len(states) == 11
    assert states["gpu03"] == NodeState("drained", True, "bad | fan, row 3")
    assert states["gpu05"] == NodeState("down", False, "Not responding")
    assert states["gpu06"] == NodeState("idle", True, "")


def _faults(job: str, ours: list[str]) -> dict[str, str]:
    nodes = [f"gpu{number:02}" for number in range(1, 13)]
    return {
        node: one.fault for node, one in not_asked(nodes, read_states(SINFO), job, ours).items()
    }


def test_outside_an_allocation_only_nodes_that_take_jobs_are_asked() -> None:
    assert _faults("", []) == {
        "gpu03": "node-drained", "gpu04": "node-unreached", "gpu05": "node-down",
        "gpu08": "node-down", "gpu09": "node-drained", "gpu10": "node-unreached",
        "gpu11": "node-down",
        "gpu12": "node-unknown",
    }  # fmt: skip


def test_inside_an_allocation_its_draining_nodes_are_asked_and_no_others() -> None:
    faults = _faults("7", ["gpu02", "gpu05", "gpu09"])
    assert "gpu02" not in faults
    assert "gpu09" not in faults
    assert (faults["gpu05"], faults["gpu01"], faults["gpu12"]) == (
        "node-down", "node-elsewhere", "node-unknown",
    )  # fmt: skip


def test_the_reason_is_told() -> None:
    told = not_asked(["gpu03", "gpu05", "gpu01"], read_states(SINFO), "7", ["gpu03", "gpu05"])
    assert told["gpu03"].text == "its state is drained; reason: bad | fan, row 3"
    assert told["gpu05"].text == "its state is down, it does not respond; reason: Not responding"
    assert told["gpu01"].text == "job 7 has gpu[03,05]"


@pytest.mark.parametrize(
    ("line", "nodes", "fault"),
    [
        ("srun: error: n2: task 1: Killed", ["n2"], "died"),
        ("srun: error: n[2-4]: tasks 1-3: Exited with exit code 2", ["n2", "n3", "n4"], "died"),
        ("srun: error: n[2,4]: tasks 1,3: Terminated", ["n2", "n4"], "died"),
        ("srun: error: Node failure on n3", ["n3"], "node-failed"),
        ("srun: Job step aborted", [], ""),
        ("srun: Force Terminated StepId=15.0", [], ""),
        ("srun: error: Application launch failed: Communication connection failure", [], ""),
        ("srun: job 18 queued and waiting for resources", [], ""),
    ],
)  # fmt: skip
def test_what_srun_says_of_nodes(line: str, nodes: list[str], fault: str) -> None:
    found = list(endings(line))
    assert [one.node for one in found] == nodes
    assert {one.missing.fault for one in found} == ({fault} if fault else set())
    assert not any(one.relaunch for one in found)


def test_a_failed_launch_ends_the_others_too() -> None:
    line = (
        "srun: error: Task launch for StepId=18.0 failed on node n2: "
        "Communication connection failure"
    )
    (ended,) = endings(line)
    assert (ended.node, ended.relaunch, ended.missing.fault) == ("n2", True, "node-failed")


@pytest.mark.parametrize(
    ("said", "what", "hint"),
    [
        (
            ["srun: error: invalid partition specified: nope",
             "srun: error: Unable to allocate resources: Invalid partition name specified"],
            "srun failed: invalid partition specified: nope; Unable to allocate resources: "
            "Invalid partition name specified",
            "sinfo -s",
        ),
        (["srun: Requested node is busy"], "srun failed: Requested node is busy", "sinfo -s"),
        ([], "srun failed: it said nothing", "srun -N 1 hostname"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_slurms_words(said: list[str], what: str, hint: str) -> None:
    error = refused("srun", said)
    assert error.what == what
    assert hint in error.hint


def test_options_of_other_steps_do_not_reach_ours() -> None:
    told = environment({
        "SLURM_JOB_ID": "7", "SLURM_CONF": "/x", "PATH": "/bin", "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_NTASKS_PER_NODE": "8", "SLURM_GPUS_PER_TASK": "1", "SLURM_UNBUFFEREDIO": "1",
        "SRUN_CPUS_PER_TASK": "4", "SLURM_HOSTFILE": "/y", "SLURM_EXPORT_ENV": "NONE",
    })  # fmt: skip
    assert set(told) == {"SLURM_JOB_ID", "SLURM_CONF", "PATH", "SLURM_JOB_NODELIST"}


@pytest.mark.parametrize("task", ["1-3", "[1-3]"])
def test_which_task_was_a_nodes_is_told(task: str) -> None:
    found = endings(f"srun: error: n[2-4]: tasks {task}: Exited with exit code 2")
    assert [(one.node, one.task) for one in found] == [("n2", 1), ("n3", 2), ("n4", 3)]


def test_a_failed_prolog_is_of_its_node_and_ends_the_others_too() -> None:
    told = Told()
    told.hear(
        "srun: Prolog failure on node n2\nsrun: error: Nodes n[1-4] are still not ready\n"
        "srun: error: Something is wrong with the boot of the nodes.\n", 5.0,
    )  # fmt: skip
    (ended,) = told.due(6.0)
    assert (ended.node, ended.relaunch, ended.missing.fault) == ("n2", True, "node-failed")
    assert ended.missing.text == "srun says: Prolog failure on node n2"
    assert (told.relaunch, told.nodes) == (True, ("n1", "n2", "n3", "n4"))


def test_an_end_is_due_only_after_a_moment() -> None:
    told = Told()
    told.hear("srun: error: Node failure on n3\n", 5.0)
    assert list(told.due(5.1)) == []
    assert told.named() == ["n3"]
    assert [one.node for one in told.due(6.0)] == ["n3"]
    assert told.named() == []


def test_who_ended_a_step_is_read_from_its_daemon() -> None:
    told = Told()
    told.hear_step("x\nslurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-29 ***\n")
    told.hear("srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n", 1.0)
    assert (told.over, told.relaunch) == (True, False)
    assert told.cancelled == "STEP 1.0 ON n1 CANCELLED AT 2026-11-29"


@pytest.mark.parametrize(
    ("text", "job", "never"),
    [
        ("7|PENDING||Resources\n", Job("7", "PENDING", "Resources"), False),
        ("7|PENDING||(Priority)\n", Job("7", "PENDING", "Priority"), False),
        ("7|PENDING||PartitionTimeLimit\n", Job("7", "PENDING", "PartitionTimeLimit"), True),
        ("7|PENDING||PartitionDown\n", Job("7", "PENDING", "PartitionDown"), True),
        ("7|PENDING||PartitionConfig\n", Job("7", "PENDING", "PartitionConfig"), True),
        ("7|PENDING||PartitionNodeLimit\n", Job("7", "PENDING", "PartitionNodeLimit"), True),
        ("7|PENDING||QOSMaxNodePerJobLimit", Job("7", "PENDING", "QOSMaxNodePerJobLimit"), True),
        ("7|PENDING||QOSMaxJobsPerUserLimit", Job("7", "PENDING", "QOSMaxJobsPerUserLimit"), False),
        ("7|PENDING||InvalidQOS", Job("7", "PENDING", "InvalidQOS"), True),
        ("7|PENDING||ReqNodeNotAvail, UnavailableNodes:n2",
         Job("7", "PENDING", "ReqNodeNotAvail, UnavailableNodes:n2"), True),
        ("7|PENDING||ReqNodeNotAvail, May be reserved for other job",
         Job("7", "PENDING", "ReqNodeNotAvail, May be reserved for other job"), False),
        ("6|FAILED|n9|None\n7|RUNNING|n[1-2]|None\n", Job("7", "RUNNING", "None", ("n1", "n2")),
         False),
        ("", Job(), False),
        ("slurm is odd\n", Job(), False),
    ],
)  # fmt: skip
def test_what_the_queue_says_of_our_job(text: str, job: Job, never: bool) -> None:
    assert read_job(text) == job
    assert bool(job.never) is never
    assert bool(job.waits) is (job.state == "PENDING")


def test_options_are_told_from_their_values() -> None:
    words = ["-N", "4", "-pgpu", "--nodes=4", "-J", "-o", "-vQ", "--partition", "gpu"]
    told = ["-N", "-p", "--nodes", "-J", "-v", "-Q", "--partition"]
    assert list(options_of(words)) == told


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "foo.%t"], ["-ofoo.%t"], ["--output=foo"], ["--outp", "foo"], ["-e", "x"], ["-i0"],
        ["-l"], ["-u"], ["-vl"], ["-n", "8"], ["--ntasks=8"], ["--ntasks-per-node=8"],
        ["--multi-prog"], ["--pty"], ["-N", "4", "--error", "x"], ["--ntasks-per-gpu=1"],
    ],
)  # fmt: skip
def test_arguments_that_change_how_output_comes_back_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="how their output comes back") as raised:
        hold(words, "", False)
    assert "leave it out" in raised.value.hint


@pytest.mark.parametrize(
    "words", [["-w", "n1"], ["-N4"], ["-p", "all"], ["-xn1"], ["--nodelist=n1"], ["--qos=x"]]
)
def test_inside_an_allocation_arguments_that_choose_nodes_are_refused(words: list[str]) -> None:
    hold(words, "", False)
    with pytest.raises(UsageError, match="inside job 7") as raised:
        hold(words, "7", False)
    assert "--hosts 'node[01-02]' narrows" in raised.value.hint


def test_nodes_are_named_once() -> None:
    with pytest.raises(UsageError, match="-w chooses nodes, and --hosts names them"):
        hold(["-p", "gpu", "-w", "n1"], "", True)
    hold(["-p", "gpu", "--exclusive", "--no-kill", "-t", "5", "-c", "2", "-A", "a"], "", True)
    hold(["--exclusive", "--gres=gpu:1", "-t", "5"], "7", True)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("-p", "gpu", "-N", "2"), ("-p", "gpu")),
        (("-N2", "--partition=gpu"), ("--partition=gpu",)),
        (("--nodes=2", "--nodelist", "n[1-2]", "-t", "5"), ("-t", "5")),
        (("--exclusive", "-x", "n3"), ("--exclusive",)),
        ((), ()),
    ],
)
def test_where_nodes_are_named_nothing_else_chooses_them(
    words: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    assert without_nodes(words) == kept
    hold(kept, "", named=True)
