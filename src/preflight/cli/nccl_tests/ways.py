"""The launchers of this machine: which there is, and the command that it takes over hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from preflight.bench import launchers
from preflight.bench.nccl_tests import environment, with_environment
from preflight.errors import UsageError
from preflight.transports.slurm.arguments import without_nodes
from preflight.transports.slurm.fleet import environment as of_srun
from preflight.transports.slurm.tools import cancel

_ASKS_S = 30
_GET_MPI = (
    "apt install openmpi-bin, or `module load` the one that nccl-tests was built with; under "
    "Slurm: --slurm"
)


class Launcher(Protocol):
    """A way to start one program on several hosts."""

    def argv(
        self, slots: Mapping[str, int | str], words: Sequence[str], plan: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """The command line. `slots`: ranks of each host."""

    def ended(self, plan: Mapping[str, Any]) -> None:
        """Clear away what a launcher that was ended has left behind."""


class Mpirun(Struct, frozen=True):
    """By mpirun; it reaches hosts by ssh, or as it is set up to."""

    program: str
    kind: str

    def argv(
        self, slots: Mapping[str, int | str], words: Sequence[str], plan: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """mpirun with its own variables before it, and those of NCCL passed on."""
        interface = plan.get("interface", "")
        own = launchers.environment(self.kind, os.environ, interface, root=os.geteuid() == 0)
        passed = environment(os.environ, plan)
        passed |= {one: os.environ[one] for one in launchers.PASSED_ON if one in os.environ}
        line = launchers.mpirun(self.kind, self.program, slots, passed, words)
        return with_environment(own, line)

    def ended(self, plan: Mapping[str, Any]) -> None:
        """It ends what it has started by itself."""


class Srun(Struct, frozen=True):
    """By srun, in the job that we are in or in one of its own."""

    mpi: str
    args: tuple[str, ...]

    def argv(
        self, slots: Mapping[str, int | str], words: Sequence[str], plan: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """srun without the variables that are options for other steps, and with those of NCCL."""
        ours = of_srun(os.environ)
        unset = [f"--unset={name}" for name in os.environ if name not in ours]
        variables = environment(os.environ, plan)
        job = ours.get("SLURM_JOB_ID", "")
        args = ("--label", *without_nodes(self.args))
        line = launchers.srun(self.mpi, args, job, _named(plan), slots, words)
        first, *rest = with_environment(variables, line)
        return (first, *unset, *rest)

    def ended(self, plan: Mapping[str, Any]) -> None:
        """A job of its own goes on without it; a step of ours ends with srun."""
        if not os.environ.get("SLURM_JOB_ID"):
            cancel([f"--name={_named(plan)}"])


def _named(plan: Mapping[str, Any]) -> str:
    return f"preflight-{plan.get('job') or 'nccl-tests'}"


def launcher_of(*, slurm: bool, slurm_args: Sequence[str] = ()) -> Launcher:
    """The one of this machine. UsageError where there is none that can be used."""
    if slurm:
        return Srun(_mpi_type(slurm_args), tuple(slurm_args))
    program = shutil.which("mpirun") or shutil.which("mpiexec")
    if program is None:
        raise UsageError(
            "nccl-tests over several hosts is started by mpirun, and there is none in PATH",
            _GET_MPI,
        )
    return Mpirun(program, launchers.kind_of(_said(program, "--version")))


def _mpi_type(slurm_args: Sequence[str]) -> str:
    """What the user has chosen, as srun takes it, else the best of those that srun has."""
    told = [word.removeprefix("--mpi=") for word in slurm_args if word.startswith("--mpi=")]
    chosen = (told or [os.environ.get("SLURM_MPI_TYPE", "")])[-1]
    return chosen or launchers.mpi_type(_said("srun", "--mpi=list"))


def _said(*argv: str) -> str:
    """What it prints, on either stream. UsageError where it cannot be run, or says nothing."""
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_ASKS_S, check=False,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        why = error.strerror
    except subprocess.TimeoutExpired:
        why = f"it did not end within {_ASKS_S} s"
    else:
        said = (done.stdout + done.stderr).decode(errors="replace")
        if said.strip():
            return said
        why = f"it said nothing, and ended with {done.returncode}"
    hint = "which srun; scontrol ping" if argv[0] == "srun" else _GET_MPI
    raise UsageError(f"`{' '.join(argv)}`: {why}", hint)
