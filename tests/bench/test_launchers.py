"""What is typed for several hosts: by Open MPI, by Hydra, by srun."""

from __future__ import annotations

import pytest

from preflight.bench import launchers
from preflight.bench.launchers import HYDRA, OPEN_MPI
from preflight.errors import UsageError

BINARY = ("/opt/nt/all_reduce_perf", "-g", "1")
EVEN, UNEVEN = {"a": 8, "b": 8}, {"a": 8, "b": 6}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/", OPEN_MPI),
        ("mpirun (Open MPI) 5.0.3", OPEN_MPI),
        ("prterun (PRRTE) 3.0.5", OPEN_MPI),
        ("HYDRA build details:\n    Version:    4.0.2\n", HYDRA),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307", HYDRA),
    ],
)
def test_whose_mpirun_it_is(version: str, kind: str) -> None:
    assert launchers.kind_of(version) == kind


def test_one_that_is_nobodys_is_refused() -> None:
    with pytest.raises(UsageError, match=r"says 'jsrun 10\.3': neither Open MPI nor Hydra"):
        launchers.kind_of("jsrun 10.3\n")


def test_a_rank_for_each_gpu_by_open_mpi() -> None:
    line = launchers.mpirun(OPEN_MPI, "/usr/bin/mpirun", UNEVEN, {"NCCL_X": "a b"}, BINARY)
    assert line[:4] == ("/usr/bin/mpirun", "-np", "14", "-H")
    assert line[4] == "a:8,b:6"
    assert line[line.index("-x") : line.index("-x") + 2] == ("-x", "NCCL_X=a b")
    assert line[-3:] == BINARY


def test_a_rank_for_each_gpu_by_hydra() -> None:
    line = launchers.mpirun(HYDRA, "mpiexec", EVEN, {"NCCL_X": "1"}, BINARY)
    told = " ".join(line)
    assert told == f"mpiexec -np 16 -ppn 8 -hosts a,b -genv NCCL_X 1 {' '.join(BINARY)}"
    assert "-hosts a:8,b:6" in " ".join(launchers.mpirun(HYDRA, "mpiexec", UNEVEN, {}, BINARY))


def test_a_rank_for_each_gpu_by_srun() -> None:
    told = " ".join(launchers.srun("pmix", ("-p", "gpu"), "", "name", EVEN, BINARY))
    assert told.startswith("srun -p gpu --mpi=pmix --nodes=2 --ntasks=16 --ntasks-per-node=8 ")
    assert "--nodelist=a,b" in told and "--overlap" not in told
    assert "--overlap" in launchers.srun("pmix", (), "4711", "name", EVEN, BINARY)
    uneven = launchers.srun("pmix", (), "", "name", {"a": 2, "b": 1}, BINARY)
    assert {"--ntasks=3", "--distribution=arbitrary", "--nodelist=a,a,b"} <= set(uneven)


@pytest.mark.parametrize(
    ("listed", "chosen"),
    [
        ("MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions "
         "available: pmix_v4", "pmix"),
        ("srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: openmpi", "pmi2"),
        ("srun: MPI types are...\nsrun: pmix_v3", "pmix_v3"),
    ],
)  # fmt: skip
def test_the_type_of_pmi_is_one_that_srun_has(listed: str, chosen: str) -> None:
    assert launchers.mpi_type(listed) == chosen


def test_without_any_it_is_refused() -> None:
    with pytest.raises(UsageError, match="no type of PMI"):
        launchers.mpi_type("MPI plugin types are...\n\tnone\n")


def test_nobody_is_asked_for_a_password_and_what_the_user_set_stands() -> None:
    ours = launchers.environment(OPEN_MPI, {}, "ib0", root=True)
    assert "BatchMode=yes" in ours["OMPI_MCA_plm_rsh_args"]
    assert ours["OMPI_MCA_btl_tcp_if_include"] == "ib0"
    assert ours["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    assert not any(name.startswith("HYDRA") for name in ours)
    theirs = {"OMPI_MCA_plm_rsh_args": "-p 2222"}
    assert "OMPI_MCA_plm_rsh_args" not in launchers.environment(OPEN_MPI, theirs, "", root=False)
    assert set(launchers.environment(HYDRA, {}, "", root=True)) == {"HYDRA_LAUNCHER_EXTRA_ARGS"}
