"""The launchers of this machine: which there is, and the command that it takes over hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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

    @contextmanager
    def argv(
        self, slots: Mapping[str, int | str], words: Sequence[str], plan: Mapping[str, Any]
    ) -> Iterator[tuple[str, ...]]:
        """The command line, for as long as what it refers to is there."""

    def ended(self, plan: Mapping[str, Any]) -> None:
        """Clear away what a launcher that was ended has left behind."""


class Mpirun(Struct, frozen=True):
    """By mpirun; it reaches hosts by ssh, or as it is set up to."""

    program: str
    kind: str

    @contextmanager
    def argv(
        self, slots: Mapping[str, int | str], words: Sequence[str], plan: Mapping[str, Any]
    ) -> Iterator[tuple[str, ...]]:
        """mpirun with its own variables before it, and those of NCCL passed on."""
        interface = plan.get("interface", "")
        own = launchers.environment(os.environ, interface, root=os.geteuid() == 0)
        passed = environment(os.environ, interface)
        passed |= {one: os.environ[one] for one in launchers.PASSED_ON if one in os.environ}
        line = launchers.mpirun(self.kind, self.program, slots, passed, words)
        yield with_environment(own, line)

    def ended(self, plan: Mapping[str, Any]) -> None:
        """It ends what it has started by itself."""


class Srun(Struct, frozen=True):
    """By srun, in the job that we are in or in one of its own."""

    mpi: str
    args: tuple[str, ...]

    @contextmanager
    def argv(
        self, slots: Mapping[str, int | str], words: Sequence[str], plan: Mapping[str, Any]
    ) -> Iterator[tuple[str, ...]]:
        """srun without the variables that are options for other steps, and with those of NCCL."""
        ours = of_srun(os.environ)
        unset = [word for name in os.environ if name not in ours for word in ("-u", name)]
        variables = environment(os.environ, plan.get("interface", ""))
        job = ours.get("SLURM_JOB_ID", "")
        args = without_nodes(self.args) if slots else self.args
        line = launchers.srun(self.mpi, ("--label", *args), job, _named(plan), slots, words)
        known = {host: count for host, count in slots.items() if isinstance(count, int)}
        with _host_file(launchers.host_lines(known)) as path:
            variables |= {"SLURM_HOSTFILE": path} if path else {}
            told = with_environment(variables, line)
            yield (told[0], *unset, *told[1:])

    def ended(self, plan: Mapping[str, Any]) -> None:
        """A job of its own goes on without it; a step of ours ends with srun."""
        if not os.environ.get("SLURM_JOB_ID"):
            cancel([f"--name={_named(plan)}"])


def _named(plan: Mapping[str, Any]) -> str:
    return f"preflight-{plan.get('job') or 'nccl-tests'}"


@contextmanager
def _host_file(text: str) -> Iterator[str]:
    """The path of a file with that text while it is needed; "" without any."""
    if not text:
        yield ""
        return
    with tempfile.NamedTemporaryFile("w", prefix="preflight-hosts-") as file:
        file.write(text)
        file.flush()
        yield file.name


def launcher_of(*, slurm: bool, slurm_args: Sequence[str] = ()) -> Launcher:
    """The one of this machine. UsageError where there is none that can be used."""
    if slurm:
        return Srun(launchers.mpi_type(_said("srun", "--mpi=list")), tuple(slurm_args))
    program = shutil.which("mpirun") or shutil.which("mpiexec")
    if program is None:
        raise UsageError(
            "nccl-tests over several hosts is started by mpirun, and there is none in PATH",
            _GET_MPI,
        )
    return Mpirun(program, launchers.kind_of(_said(program, "--version")))


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
