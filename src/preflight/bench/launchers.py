"""How one program is started on several hosts, a rank for each GPU: Open MPI's mpirun, that of
MPICH and Intel (Hydra), and srun. Pure: words in, command lines out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from preflight.errors import UsageError

OPEN_MPI, HYDRA = "Open MPI", "Hydra"
#: What `mpirun --version` says; prterun is Open MPI's from version 5 on.
_KINDS = (
    (re.compile(r"Open MPI|OpenRTE|prterun|PRRTE", re.IGNORECASE), OPEN_MPI),
    (re.compile(r"HYDRA|Intel\(R\) MPI|MPICH", re.IGNORECASE), HYDRA),
)
#: A question of ssh's that nobody answers must not hold up the start.
_SSH = "-o BatchMode=yes -o ConnectTimeout=10"
#: Of mpirun itself: how it reaches hosts, in Open MPI up to 4, from 5 on, and in Hydra.
_REACHES = {
    "OMPI_MCA_plm_rsh_args": _SSH, "PRTE_MCA_plm_ssh_args": _SSH,
    "HYDRA_LAUNCHER_EXTRA_ARGS": _SSH,
}  # fmt: skip
#: Through which interface its own messages and those of MPI go.
_INTERFACES = (
    "OMPI_MCA_oob_tcp_if_include", "OMPI_MCA_btl_tcp_if_include", "PRTE_MCA_prte_if_include",
    "HYDRA_IFACE",
)  # fmt: skip
#: Open MPI refuses to be started by root unless told twice.
_AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM")  # fmt: skip
#: What libraries are found by is passed on too.
PASSED_ON = ("LD_LIBRARY_PATH",)
#: Types of `srun --mpi`, best first: nccl-tests needs one that its MPI speaks.
_TYPES = ("pmix", "pmix_v5", "pmix_v4", "pmix_v3", "pmix_v2", "pmix_v1", "pmi2")
_LISTED = re.compile(r"\b(pmix(?:_v\d)?|pmi2|cray_shasta)\b")


def kind_of(version: str) -> str:
    """Whose mpirun says this with --version. UsageError where nobody's that is known."""
    found = next((kind for pattern, kind in _KINDS if pattern.search(version)), "")
    if not found:
        said = next(iter(version.strip().splitlines()), "nothing")[:80]
        raise UsageError(
            f"`mpirun --version` says {said!r}: neither Open MPI nor Hydra (MPICH, Intel MPI)",
            "put one of them first in PATH, the one that nccl-tests was built with; or --slurm",
        )
    return found


def environment(kind: str, of: Mapping[str, str], interface: str, *, root: bool) -> dict[str, str]:
    """Variables of mpirun itself; what the user has set stands."""
    wanted = dict(_REACHES)
    wanted |= dict.fromkeys(_INTERFACES, interface) if interface else {}
    wanted |= dict.fromkeys(_AS_ROOT, "1") if root else {}
    mine = [name for name in wanted if name.startswith("HYDRA_") == (kind == HYDRA)]
    return {name: wanted[name] for name in mine if name not in of}


def mpirun(
    kind: str, program: str, slots: Mapping[str, int | str], variables: Mapping[str, str],
    argv: Sequence[str],
) -> tuple[str, ...]:  # fmt: skip
    """`slots`: ranks of each host. By its full path Open MPI takes the same folder on each host."""
    pairs = sorted(variables.items())
    if kind == OPEN_MPI:
        # Bound to single cores the threads of NCCL that serve the network have no room.
        words = ["-np", _total(slots), "-H", _with_slots(slots), "--map-by", "slot",
                 "--bind-to", "none"]  # fmt: skip
        given = [word for name, text in pairs for word in ("-x", f"{name}={text}")]
    else:
        words = ["-np", _total(slots), *_of_hydra(slots)]
        given = [word for name, text in pairs for word in ("-genv", name, text)]
    return (program, *words, *given, *argv)


def _total(slots: Mapping[str, int | str]) -> str:
    counts = list(slots.values())
    known = [one for one in counts if isinstance(one, int)]
    return str(sum(known)) if len(known) == len(counts) else "RANKS"


def _with_slots(slots: Mapping[str, int | str]) -> str:
    return ",".join(f"{host}:{count}" for host, count in slots.items())


def _of_hydra(slots: Mapping[str, int | str]) -> list[str]:
    if len(set(slots.values())) == 1:
        return ["-ppn", str(next(iter(slots.values()))), "-hosts", ",".join(slots)]
    return ["-hosts", _with_slots(slots)]


def mpi_type(listed: str) -> str:
    """Of what `srun --mpi=list` lists. UsageError where none of it starts ranks of an MPI."""
    there = set(_LISTED.findall(listed))
    found = next((one for one in _TYPES if one in there), "")
    if not found:
        raise UsageError(
            f"`srun --mpi=list` offers {', '.join(sorted(there)) or 'no type of PMI'}, and the "
            "ranks of nccl-tests find each other by PMIx or PMI-2",
            "Slurm with PMIx; or by mpirun: --hosts 'node[01-04]' in place of --slurm",
        )
    return found


def srun(
    mpi: str, args: Sequence[str], job: str, name: str, slots: Mapping[str, int | str],
    argv: Sequence[str],
) -> tuple[str, ...]:  # fmt: skip
    """srun of a step, or outside of a job of a job of its own; its environment is the ranks'.

    Ours come last: of an option given twice the last holds. There may be fewer processors than
    GPUs where an allocation states none.
    """
    words = [f"--mpi={mpi}", f"--nodes={len(slots)}", f"--ntasks={_total(slots)}", *_placed(slots)]
    words += ["--kill-on-bad-exit=1", "--overcommit", f"--job-name={name}"]
    words += ["--overlap"] if job else []
    return ("srun", *args, *words, *argv)


def _placed(slots: Mapping[str, int | str]) -> list[str]:
    """As many ranks on each node; where they differ a name for each rank."""
    counts = set(slots.values())
    if len(counts) == 1:
        return [f"--ntasks-per-node={counts.pop()}", f"--nodelist={','.join(slots)}"]
    each = [host for host, count in slots.items() for _ in range(int(count))]
    return ["--distribution=arbitrary", f"--nodelist={','.join(each)}"]
