"""The command line of a binary of nccl-tests, and its environment."""

from __future__ import annotations

from preflight.bench.nccl_tests import BINARIES, TYPES, arguments, environment, without_mpi
from preflight.cli import benches


def test_every_collective_and_type_of_the_options_has_its_own() -> None:
    assert tuple(BINARIES) == benches.COLLECTIVES
    assert tuple(TYPES) == benches.DTYPES


def test_what_was_asked_for_is_passed_on_and_results_are_proved() -> None:
    plan = {"begin_bytes": 1024, "end_bytes": 4096, "factor": 4, "dtype": "float16"}
    assert arguments("/nt/reduce_perf", plan, 8) == (
        "/nt/reduce_perf", "-b", "1024", "-e", "4096", "-f", "4", "-d", "half", "-c", "1",
        "-g", "8",
    )  # fmt: skip


def test_one_bound_alone_never_lies_beyond_the_other() -> None:
    for plan in ({"begin_bytes": 1 << 34}, {"end_bytes": 4}):
        words = arguments("x", plan, 1)
        assert int(words[words.index("-b") + 1]) <= int(words[words.index("-e") + 1])


def test_nccl_tells_its_ways_unless_the_user_has_chosen() -> None:
    told = environment({"NCCL_IB_HCA": "mlx5", "PATH": "/bin", "NCCL_DEBUG_FILE": "/tmp/x"},
                       {"interface": "ib0", "nics": ""})  # fmt: skip
    assert told == {
        "NCCL_IB_HCA": "mlx5", "NCCL_SOCKET_IFNAME": "ib0", "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH",
    }  # fmt: skip
    assert environment({"NCCL_DEBUG": "WARN"}, {}) == {"NCCL_DEBUG": "WARN"}
    assert environment({"NCCL_IB_HCA": "mlx5"}, {"nics": "^mlx5_4"})["NCCL_IB_HCA"] == "^mlx5_4"


def test_a_build_without_mpi_is_told_with_how_to_build_it() -> None:
    what, hint = without_mpi(["/nt/build/all_reduce_perf", "/nt/build/reduce_perf"], ["a", "a"])
    assert "all_reduce_perf (a) and 1 more: built without MPI" in what
    assert hint.startswith("cd /nt && make clean && make MPI=1 MPI_HOME=/")
