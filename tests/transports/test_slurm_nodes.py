"""What Slurm says of nodes; lines in the form that Slurm 22.05 gives them."""

from __future__ import annotations

import pytest

from preflight.transports.slurm.fleet import environment
from preflight.transports.slurm.nodes import NodeState, endings, not_asked, read_states, refused

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
        "gpu03": "node-drained", "gpu04": "node-down", "gpu05": "node-down", "gpu08": "node-down",
        "gpu09": "node-drained", "gpu10": "node-down", "gpu11": "node-down",
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
        (["srun: Requested node is busy"], "srun failed: Requested node is busy", "srun --help"),
        ([], "srun failed: it said nothing", "srun --help"),
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
        "SRUN_CPUS_PER_TASK": "4", "SLURM_HOSTFILE": "/y",
    })  # fmt: skip
    assert set(told) == {"SLURM_JOB_ID", "SLURM_CONF", "PATH", "SLURM_JOB_NODELIST"}
