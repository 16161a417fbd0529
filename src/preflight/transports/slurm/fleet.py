"""The nodes of a Slurm allocation, asked under one srun with the same script as any other host."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from preflight import nodesets
from preflight.errors import UsageError
from preflight.faults import CONNECTION
from preflight.model import Command, Missing, Raw
from preflight.transports.conversation import Conversation, new_mark
from preflight.transports.progress import Progress
from preflight.transports.slurm.arguments import hold
from preflight.transports.slurm.nodes import not_asked
from preflight.transports.slurm.plan import Plan
from preflight.transports.slurm.step import Step
from preflight.transports.slurm.tools import node_states, said_by

#: Variables that srun takes options from (srun(1), INPUT ENVIRONMENT VARIABLES) and that would
#: change how many tasks there are, what they see of the node, or how their output comes back.
_NOT_OURS = frozenset(
    f"SLURM_{name}"
    for name in (
        "NTASKS", "NPROCS", "NTASKS_PER_NODE", "NTASKS_PER_CORE", "NTASKS_PER_SOCKET", "STEP_ID",
        "NTASKS_PER_TRES", "NTASKS_PER_GPU", "GPUS_PER_TASK", "TRES_PER_TASK", "CPUS_PER_TASK",
        "GPU_BIND", "CPU_BIND", "MEM_BIND", "TRES_BIND", "DISTRIBUTION", "HOSTFILE", "ARBITRARY",
        "EXACT", "EXCLUSIVE", "OVERCOMMIT", "LABELIO", "UNBUFFEREDIO", "STDINMODE", "STDOUTMODE",
        "STDERRMODE", "WAIT", "KILL_BAD_EXIT", "NO_KILL", "IMMEDIATE", "DEBUG", "MPI_TYPE",
        "MULTI_PROG", "TIMELIMIT", "WORKING_DIR", "NNODES", "NUM_NODES", "HET_SIZE",
        # What `#SBATCH --export=NONE` leaves: the tasks would have no PATH.
        "EXPORT_ENV",
    )
)  # fmt: skip
_NOT_OURS_EITHER = ("SRUN_", "SLURM_STEP_", "SLURM_TASKS_PER_NODE")


class Slurm(Struct):
    """The transport to the nodes of an allocation, or of one that srun gets with `args`.

    `hosts` are the nodes wanted; empty: all of the allocation, or as many as `args` ask for.
    `deadline_s` bounds the wait for the allocation, and then each host.
    """

    hosts: tuple[str, ...]
    args: tuple[str, ...] = ()
    deadline_s: float = 60.0
    sudo: bool = False
    progress: Callable[[Progress], None] = lambda _: None
    interrupted: threading.Event = field(default_factory=threading.Event)

    def wanted(self) -> tuple[str, ...]:
        """The nodes to be asked, as far as they are known before srun has them: none where they are
        srun's choice. Raises UsageError where there is no way to any."""
        _, job_nodes = self._allocation(os.environ)
        return tuple(dict.fromkeys(self.hosts or job_nodes))

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        """Each host with its answers, as it is done. What broke the asking of a host off stands in
        a last Raw of the probe `connection`.

        Once `interrupted` is set it yields what came so far of all that were not done, and ends;
        on KeyboardInterrupt it does the same, then raises.
        Raises UsageError where Slurm gives no nodes, or none in time.
        """
        job, job_nodes = self._allocation(os.environ)
        wanted = self.wanted()
        left_out = not_asked(wanted, node_states(), job, job_nodes)
        for host, missing in left_out.items():
            yield host, unasked(host, commands, missing)
        asked = tuple(host for host in wanted if host not in left_out)
        if asked or not wanted:
            yield from self._asked(asked, commands, job, len(left_out))

    def _asked(
        self, nodes: tuple[str, ...], commands: Sequence[Command], job: str, done: int
    ) -> Iterator[tuple[str, list[Raw]]]:
        """These nodes, or whichever srun gets. Where one cannot be launched on, srun ends the
        others too, whatever it is told: they are asked again without it."""
        heard = done > 0
        while True:
            mark = new_mark()
            step = Step(
                Plan(
                    self._argv(nodes, job, mark), environment(os.environ), nodes, commands, mark,
                    self.sudo, self.deadline_s, job, heard, self.interrupted,
                ),
                partial(self._tell, done),
            )  # fmt: skip
            yield from step.run()
            nodes, done, heard = step.again, done + len(step.done), True
            if not nodes:
                return

    def _tell(self, before: int, step: Step) -> None:
        self.progress(_progress(step, before))

    def _allocation(self, environ: Mapping[str, str]) -> tuple[str, list[str]]:
        """The job that we are in and its nodes. Raises UsageError where there is no way to any."""
        if not shutil.which("srun"):
            raise UsageError(
                "--slurm needs srun, and there is none in PATH",
                "run it on a login node of the cluster; or --hosts 'node[01-04]' for SSH",
            )
        job = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID") or ""
        hold(self.args, job, bool(self.hosts))
        if not (job or self.args or self.hosts):
            raise UsageError(
                "--slurm, but this is no Slurm allocation (SLURM_JOB_ID is not set)",
                "salloc -N 4, then again; or --slurm-args '-p PARTITION -N 4'; in a job that runs: "
                "SLURM_JOB_ID=JOB before the command",
            )
        return job, _nodes_of(job, environ) if job else []

    def shown(self) -> str:
        """The srun that `run` begins with, to be typed; the job's name is another each time."""
        job, _ = self._allocation(os.environ)
        return shlex.join(self._argv(self.wanted(), job, "preflight"))

    def _argv(self, nodes: Sequence[str], job: str, mark: str) -> list[str]:
        """srun, one task on each node. Ours come last: of an option given twice the last holds."""
        argv = ["srun", *self.args, "--label", "--no-kill", "--wait=0", "--kill-on-bad-exit=0"]
        argv += ["--mpi=none", "--chdir=/", "--ntasks-per-node=1", f"--job-name={mark}"]
        if nodes:
            argv += [f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}"]
            argv += [f"--nodelist={','.join(nodes)}"]
        if job:
            argv += ["--overlap"]
        return [*argv, "/bin/sh", "-s"]


def _nodes_of(job: str, environ: Mapping[str, str]) -> list[str]:
    """The nodes of the job that we are in. Raises UsageError where it has none."""
    listed = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST") or ""
    if not listed:
        with contextlib.suppress(UsageError):
            listed = said_by(("squeue", "-h", "-j", job, "-o", "%N")).strip()
    if not listed:
        node_states()  # raises, with a better word for it, where Slurm does not answer at all
        raise UsageError(
            f"SLURM_JOB_ID is {job}, and Slurm has no nodes for that job: it is over, or waits",
            "unset SLURM_JOB_ID; then salloc -N 4, and again",
        )
    return nodesets.expand(listed)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What srun gets of ours: without the variables that are options for other steps than this."""
    return {
        name: value
        for name, value in environ.items()
        if name not in _NOT_OURS and not name.startswith(_NOT_OURS_EITHER)
    }


def unasked(host: str, commands: Sequence[Command], missing: Missing) -> list[Raw]:
    """The answers of a host to which nothing was put."""
    raws = Conversation(host, commands).cut(missing, time.monotonic())
    return [*raws, Raw(host, CONNECTION, rc=None, missing=missing)]


def _progress(step: Step, before: int) -> Progress:
    """`before`: hosts that were done before this srun."""
    hosts, done = before + len(step.nodes), before + len(step.done)
    talk = step.slowest
    if talk is None:
        return Progress(hosts, done)
    taken_s = time.monotonic() - step.launched_s
    return Progress(hosts, done, talk.host, talk.waits_for, taken_s, talk.latest)
