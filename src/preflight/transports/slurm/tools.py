"""Slurm's own tools, asked about nodes and jobs; each bounded in time."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence

from preflight.errors import UsageError
from preflight.faults import fault
from preflight.model import Missing
from preflight.transports.slurm.nodes import SINFO, NodeState, is_down, read_states, told_of
from preflight.transports.slurm.queue import Job, read_job, squeue
from preflight.transports.slurm.words import refused

#: How long a tool may take to answer; they wait up to 10 s for a slurmctld themselves.
_TOOL_S = 20.0


def said_by(argv: Sequence[str]) -> str:
    """What one of Slurm's tools prints. Raises UsageError where it fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TOOL_S, check=False,
            start_new_session=True,  # Ctrl-C is for us
        )  # fmt: skip
    except OSError as error:
        raise refused(argv[0], [f"it cannot be run: {error.strerror}"]) from None
    except subprocess.TimeoutExpired:
        raise refused(argv[0], [f"unable to contact slurm controller in {_TOOL_S:g} s"]) from None
    if done.returncode != 0:
        raise refused(argv[0], done.stderr.decode(errors="replace").splitlines())
    return done.stdout.decode(errors="replace")


def node_states() -> dict[str, NodeState]:
    """How Slurm sees its nodes now. Raises UsageError where it does not tell."""
    return read_states(said_by(SINFO))


def fallen() -> dict[str, Missing]:
    """The nodes that are down, or that do not respond to Slurm; none where it tells nothing."""
    with contextlib.suppress(UsageError):
        return {
            node: fault("node-failed", told_of(one))
            for node, one in node_states().items() if is_down(one)
        }  # fmt: skip
    return {}


def job_named(name: str) -> Job:
    """The job of that name in the queue; an empty one where Slurm tells of none."""
    with contextlib.suppress(UsageError):
        return read_job(said_by(squeue(name)))
    return Job()


def cancel(what: Sequence[str]) -> None:
    """End a job or a step; nothing is told of how that went."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(["scancel", *what], capture_output=True, timeout=10, check=False)
