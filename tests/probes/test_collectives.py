"""Logs of benchmarks as launchers, versions and accidents leave them."""

from __future__ import annotations

import pytest

from preflight.errors import ParseError
from preflight.facts.collectives import Collective, RdmaTest
from preflight.model import Missing
from preflight.probes.collectives.all_reduce_bench import all_reduce_bench
from preflight.probes.collectives.labels import labelled
from preflight.probes.collectives.nccl_tests import nccl_tests
from preflight.probes.collectives.perftest import perftest
from preflight.probes.collectives.tables import locate
from preflight.probes.collectives.troubles import trouble_of
from preflight.recognise import recognise
from tests import collective_text as text
from tests.collective_text import GIB
from tests.conftest import sample_bytes

ALONE = text.nccl_tests(hosts=1, gpus=1)


def one(log: str) -> Collective:
    [run] = nccl_tests(log).runs
    return run


def test_a_whole_run() -> None:
    run = one(text.nccl_tests(370.0, hosts=2))
    assert (run.ranks, run.host_count, run.ranks_per_host) == (16, 2, 8)
    assert run.hosts == ("node-01", "node-02")
    assert (run.ended, run.together, run.wrong, run.trouble) == (True, True, 0, "")
    assert run.at_bytes == 8 * GIB
    assert run.busbw_gbps == pytest.approx(370.0, rel=0.01)


LABELS = [
    "0: ", " 0: ", "[1,0]<stdout>:", "[default0]:", "[rank0]: ", "[0] ", "node-01: ",
    "node[01-02]: ",
    "[prterun-node-01-4711@1,0]<stdout>: ", "[pod/nccl-launcher-xyz/main] ", "launcher-1  | ",
    "2026-11-30T18:00:01.123456Z ", "2026-11-30T18:00:01.123456Z stdout F ",
    "[pod/launcher/main] 2026-11-30T18:00:01.123456Z [1,0]<stdout>:",
    "(Test pid=1234, ip=192.0.2.2) ", "(pid=1234) ", "Nov 30 18:00:01 node-01 mpirun[123]: ",
]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_what_a_launcher_puts_before_a_line_is_taken_off(label: str) -> None:
    log = text.nccl_tests(label=label)
    run = one(log)
    assert (run.ranks, run.ended, len(run.rows)) == (8, True, 6)
    assert {raw.probe for raw in recognise(log.encode(), "x.txt")} == {"nccl-tests"}


def test_processes_that_ran_each_by_itself_into_each_other() -> None:
    """Without MPI four processes measure four times the same GPU, which sends nothing."""
    lines = ALONE.splitlines()
    mixed = "".join(f"{line}\n" for line in lines for _ in range(4))
    run = one(mixed)
    assert run.together is False
    assert run.trouble == "4 processes, each by itself"
    assert isinstance(run.busbw_gbps, Missing)


def test_processes_that_ran_each_by_itself_one_after_the_other() -> None:
    run = one(ALONE * 3)
    assert (run.together, run.trouble) == (False, "3 processes, each by itself")


def test_one_gpu_by_itself_is_no_fault_and_no_measurement() -> None:
    run = one(ALONE)
    assert isinstance(run.together, Missing)
    assert run.together.kind == "not-applicable"
    assert isinstance(run.busbw_gbps, Missing)


def test_several_runs_in_one_file() -> None:
    log = text.nccl_tests(100.0) + "next\n" + text.nccl_tests(200.0, hosts=2) + ALONE
    runs = nccl_tests(log).runs
    assert [run.name for run in runs] == ["all_reduce", "all_reduce, run 2", "nccl-tests"]
    assert [run.ranks for run in runs] == [8, 16, 1]
    assert [run.ended for run in runs] == [True, True, True]


def test_runs_that_broke_off_are_runs_of_their_own() -> None:
    log = text.nccl_tests(100.0, ends=False) + text.nccl_tests(200.0)
    assert [run.ended for run in nccl_tests(log).runs] == [True, True]
    log = text.nccl_tests(100.0, ends=False, most=64 * GIB) + text.nccl_tests(200.0)
    first, second = nccl_tests(log).runs
    assert isinstance(first.ended, Missing)
    assert first.ended.kind == "unreadable"
    assert "8 GiB of 64 GiB" in first.ended.text
    assert second.ended is True


def test_a_failure_keeps_what_was_measured_and_the_ranks_that_tell_it() -> None:
    log = text.nccl_tests(ends=False, label="0: ", most=64 * GIB)
    log += "3: node-01: Test NCCL failure common.cu:303 'unhandled system error / '\n"
    log += "3:  .. node-01 pid 7003: Test failure common.cu:401\n"
    log += "5: node-01: Test NCCL failure common.cu:303 'remote process exited'\n"
    run = one(log)
    assert run.ended is False
    assert run.trouble.startswith("node-01: Test NCCL failure common.cu:303 'unhandled system")
    assert run.trouble_ranks == (3, 5)
    assert (len(run.rows), run.at_bytes) == (6, 8 * GIB)


def test_a_fabric_manager_that_is_not_up() -> None:
    log = "node-01: Test CUDA failure common.cu:1022 'system not yet initialized'\n"
    [raw] = recognise(log.encode(), "x.txt")
    assert raw.probe == "nccl-tests"
    run = one(log)
    assert (run.ended, run.rows) == (False, ())
    assert "system not yet initialized" in run.trouble


def test_a_time_out_names_its_rank() -> None:
    log = text.nccl_tests(ends=False, label="0: ", most=64 * GIB)
    log += (
        "6: [rank6]:[E101 12:00:00.000000000 ProcessGroupNCCL.cpp:607] [Rank 6] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)\n"
    )
    run = one(log)
    assert (run.ended, run.trouble_ranks, len(run.rows)) == (False, (6,), 6)


@pytest.mark.parametrize(
    "log",
    [
        "./all_reduce_perf: error while loading shared libraries: libmpi.so.40: cannot open\n",
        "bash: line 1: /opt/nccl-tests/build/all_reduce_perf: No such file or directory\n",
    ],
)
def test_a_test_that_never_ran(log: str) -> None:
    assert [raw.probe for raw in recognise(log.encode(), "x.txt")] == ["nccl-tests"]
    run = one(log)
    assert isinstance(run.ended, Missing)
    assert run.ended.kind == "exited"


def test_ranks_that_are_not_alike_on_all_hosts() -> None:
    lines = text.nccl_tests(hosts=2).splitlines(keepends=True)
    run = one("".join(line for line in lines if "Rank 15" not in line))
    assert (run.ranks_per_host, run.even, run.trouble) == (7, False, "node-01 8, node-02 7")


def test_wrong_results_are_summed() -> None:
    assert one(text.nccl_tests(wrong="3")).wrong == 3
    cut = one(text.nccl_tests(wrong="3", ends=False))
    assert cut.wrong == 3 * 2 * 6
    assert isinstance(one(text.nccl_tests(wrong="N/A")).wrong, Missing)


def test_evidence_is_the_line_that_shows_it() -> None:
    lines = text.nccl_tests().splitlines()
    for field, words in {
        "busbw_gbps": "8589934592 ", "wrong": "# Out of bounds", "reaches_own_limit": "# Avg bus",
        "even": "# nThread",
    }.items():  # fmt: skip
        assert lines[locate(text.nccl_tests(), 1, field) - 1].strip().startswith(words)
    broken = text.nccl_tests(ends=False) + "node-01: Test NCCL failure common.cu:3 'x'\n"
    assert "Test NCCL" in broken.splitlines()[locate(broken, 1, "ended") - 1]


def test_a_line_that_is_cut_is_left_out() -> None:
    log = text.nccl_tests(ends=False)
    run = one(log[:-40])
    assert len(run.rows) == 5


def test_a_pasted_table_between_other_lines() -> None:
    log = f"$ mpirun -np 8 ./build/all_reduce_perf -b 8\n{text.nccl_tests()}$ ls\nall_reduce_perf\n"
    [raw] = recognise(log.encode(), "x.txt")
    assert one(str(raw.stdout)).ended is True
    quoted = "".join(f"> {line}\n" for line in text.nccl_tests().splitlines())
    [raw] = recognise(quoted.encode(), "x.txt")
    assert one(str(raw.stdout)).ranks == 8


def test_all_reduce_bench_tells_a_table() -> None:
    [raw] = recognise(f"$ cat bench.txt\n{text.BENCH}".encode(), "x.txt")
    assert raw.probe == "all-reduce-bench"
    [run] = all_reduce_bench(str(raw.stdout)).runs
    assert (run.ranks, run.product, run.busbw_gbps) == (8, "NVIDIA H200", 482.30)
    assert isinstance(run.host_count, Missing)


@pytest.mark.parametrize(
    ("name", "ranks", "busbw_gbits"),
    [("a100_x8_4nodes", 32, 40.5), ("v100_x4_1node", 4, 999), ("v100_x4_4nodes", 16, 84.6)],
)
def test_all_reduce_bench_of_the_first_form_within_a_log(
    name: str, ranks: int, busbw_gbits: float
) -> None:
    raws = recognise(sample_bytes(f"nccl_debug/{name}_omnipath.log"), "x.log")
    (raw,) = [one for one in raws if one.probe == "all-reduce-bench"]
    [run] = all_reduce_bench(str(raw.stdout)).runs
    assert (run.ranks, run.at_bytes) == (ranks, 4_000_000_000)
    assert isinstance(run.busbw_gbps, float)
    assert 8 * run.busbw_gbps == pytest.approx(busbw_gbits, abs=0.3)


def test_all_reduce_bench_of_one_payload() -> None:
    log = (
        "The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 4 ranks):\n"
        " algbw: 225.533 GBps (1804.3 Gbps)\n busbw: 338.299 GBps (2706.4 Gbps)\n"
    )
    [raw] = recognise(log.encode(), "x.txt")
    [run] = all_reduce_bench(str(raw.stdout)).runs
    assert (run.ranks, run.busbw_gbps, run.at_bytes) == (4, 338.299, 4_000_000_000)


def rdma(log: str) -> RdmaTest:
    [test] = perftest(log).tests
    return test


@pytest.mark.parametrize(
    ("unit", "average", "gbits"),
    [("Gb/sec", 392.0, 392.0), ("MB/sec", 46730.0, 392.0), ("MiB/sec", 46730.0, 392.0)],
)
def test_units_of_perftest(unit: str, average: float, gbits: float) -> None:
    """Its MB are 2^20 bytes."""
    found = rdma(text.perftest(average, unit=unit)).average_gbits
    assert found == pytest.approx(gbits, rel=0.001)


def test_latency_is_told_at_the_smallest_size() -> None:
    test = rdma(text.LATENCY)
    assert (test.kind, test.typical_us, test.p99_us) == ("latency", 1.07, 1.31)
    assert isinstance(test.average_gbits, Missing)


def test_several_tests_and_small_sizes() -> None:
    tests = perftest(text.perftest() + text.perftest(190.0, device="mlx5_1", size=4096)).tests
    assert [test.name for test in tests] == ["mlx5_0 write bandwidth", "mlx5_1 write bandwidth"]
    assert isinstance(tests[1].average_gbits, Missing)
    assert tests[1].average_gbits.kind == "not-asked"


def test_a_server_that_is_not_there() -> None:
    log = " Couldn't connect to node-02:18515\n"
    [raw] = recognise(log.encode(), "x.txt")
    assert raw.probe == "perftest"
    test = rdma(log)
    assert (test.ended, test.trouble) == (False, "Couldn't connect to node-02:18515")


@pytest.mark.parametrize("read", [nccl_tests, all_reduce_bench, perftest])
def test_what_is_none_of_it_is_refused(read: object) -> None:
    for log in ("", "#\n", "hello\n# size\n", "|  |\n"):
        with pytest.raises(ParseError):
            read(log)  # type: ignore[operator]


def test_text_cut_anywhere_gives_an_answer_or_a_reason() -> None:
    for whole, read in (
        (text.nccl_tests(), nccl_tests), (text.BENCH, all_reduce_bench),
        (text.perftest(), perftest), (text.LATENCY, perftest),
    ):  # fmt: skip
        for end in range(0, len(whole), 7):
            try:
                read(whole[:end])
            except ParseError:
                continue


def lines_of(cut: int) -> str:
    """A table that ends in the row of so many cells, without the lines that close it."""
    lines = text.nccl_tests().split("\n")
    rows = [at for at, line in enumerate(lines) if line.strip()[:1].isdigit()]
    last = lines[rows[-1]].split()[:cut]
    return "\n".join([*lines[: rows[-1]], " ".join(last)])


@pytest.mark.parametrize("cut", range(4, 13))
def test_the_last_row_counts_only_if_it_is_whole(cut: int) -> None:
    whole = one(text.nccl_tests())
    run = one(lines_of(cut))
    assert run.rows == whole.rows[:-1]
    assert run.wrong == 0
    assert isinstance(run.ended, Missing)
    assert run.ended.kind == "unreadable"


@pytest.mark.parametrize("cut", range(4, 13))
def test_a_first_row_that_is_cut_tells_nothing(cut: int) -> None:
    lines = text.nccl_tests().split("\n")
    at = next(at for at, line in enumerate(lines) if line.strip()[:1].isdigit())
    run = one("\n".join([*lines[:at], " ".join(lines[at].split()[:cut])]))
    assert run.rows == ()


@pytest.mark.parametrize("time", ["-43256.04", "-", "4..6"])
def test_a_row_whose_times_are_none_is_said(time: str) -> None:
    lines = text.nccl_tests().split("\n")
    at = [at for at, line in enumerate(lines) if line.strip()[:1].isdigit()][-1]
    cells = lines[at].split()
    lines[at] = " ".join([*cells[:5], time, *cells[6:]])
    ended = one("\n".join(lines)).ended
    assert isinstance(ended, Missing)
    assert f"line {at + 1} " in ended.text


def test_evidence_of_wrong_results_without_their_sum_is_the_row() -> None:
    log = text.nccl_tests(wrong="3").split("# Out of bounds")[0]
    run = one(log)
    line = locate(log, run.line, "wrong")
    assert log.split("\n")[line - 1].split()[8] == "3"


@pytest.mark.parametrize(
    "said",
    [
        " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81",
        " Failed to complete run_iter_bw function successfully",
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_perftest_that_died_after_its_rows_did_not_end(said: str, *, last: bool) -> None:
    log = text.perftest().rstrip("\n").split("\n")
    rows = [at for at, line in enumerate(log) if line.strip()[:1].isdigit()]
    log.insert(len(log) if last else rows[-1], said)
    [test] = perftest("\n".join(log)).tests
    assert test.ended is False
    assert test.trouble == said.split("\n")[0].strip()


def test_perftest_that_went_on_after_a_warning_came_to_its_end() -> None:
    log = text.perftest().split("\n")
    rows = [at for at, line in enumerate(log) if line.strip()[:1].isdigit()]
    log.insert(rows[0], " Unable to read the frequency of the processor")
    [test] = perftest("\n".join(log)).tests
    assert test.ended is True


@pytest.mark.parametrize("label", LABELS[5:])
def test_labels_of_perftest(label: str) -> None:
    log = "".join(f"{label}{line}\n" for line in text.perftest().splitlines())
    [raw] = recognise(log.encode(), "x.txt")
    assert raw.probe == "perftest"
    [test] = perftest(str(raw.stdout)).tests
    assert test.rows
    assert test.ended is True


@pytest.mark.parametrize("log", [text.nccl_tests(), text.perftest()])
def test_a_table_behind_unknown_words_is_said_and_not_passed(log: str) -> None:
    beside = "node-01:1:1 [0] NCCL INFO Bootstrap : Using eth0\n"
    told = beside + "".join(f"<<some thing>> {line}\n" for line in log.splitlines())
    raws = {raw.probe: raw for raw in recognise(told.encode(), "x.txt")}
    [probe] = {"nccl-tests", "perftest"} & set(raws)
    read = nccl_tests if probe == "nccl-tests" else perftest
    with pytest.raises(ParseError, match="behind '<<some thing>> "):
        read(str(raws[probe].stdout))


def test_the_rank_is_that_of_the_label_alone() -> None:
    labels = {"[3] ": 3, "[prterun-n-4@1,5]<stdout>: ": 5, "Nov 30 18:00:01 a mpirun[123]: ": -1}
    for label, rank in labels.items():
        assert [line.rank for line in labelled(f"{label}# nThread 1")] == [rank]


def test_a_line_of_a_rank_that_is_lost_is_no_lost_gpu() -> None:
    lines = text.nccl_tests(hosts=2).splitlines(keepends=True)
    run = one("".join(line for line in lines if "Rank  3" not in line))
    assert (run.ranks, run.host_count, run.trouble) == (16, 2, "")
    assert isinstance(run.even, Missing)
    assert "Rank 3" in run.even.text


def test_two_runs_in_each_other_are_not_judged_by_the_better() -> None:
    runs = [text.nccl_tests(busbw, hosts=2).splitlines() for busbw in (370.0, 50.0)]
    run = one("".join(f"{line}\n" for pair in zip(*runs, strict=True) for line in pair))
    for told in (run.ended, run.busbw_gbps):
        assert isinstance(told, Missing)
        assert "two runs" in told.text


def test_a_run_is_looked_into_from_its_own_line_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a thousand runs is not read a thousand times."""
    told = text.nccl_tests(370.0)
    lines = told.count("\n")
    many = told * 200
    read = 0

    def counted(line: str) -> object:
        nonlocal read
        read += 1
        return trouble_of(line)

    monkeypatch.setattr("preflight.probes.collectives.tables.trouble_of", counted)
    for run in range(200):
        assert run * lines < locate(many, run * lines + 1, "ended") <= (run + 1) * lines
    assert read <= 200 * lines


@pytest.mark.parametrize(
    "said",
    [
        "node-01: Test CUDA failure common.cu:1101 'an illegal memory access was encountered'",
        "mpirun noticed that process rank 3 with PID 0 on node-01 exited on signal 9 (Killed).",
        "srun: error: node-01: task 3: Exited with exit code 1",
        "srun: error: node-01: task 3: Bus error (core dumped)",
        "Aborted (core dumped)",
        "[node-01:1234] Signal: Segmentation fault (11)",
        "mpirun: abort is already in progress...hit ctrl-c again to forcibly terminate",
    ],
)
@pytest.mark.parametrize("closed", [True, False])
def test_what_falls_after_a_whole_table_did_not_end(said: str, *, closed: bool) -> None:
    log = text.nccl_tests(ends=closed) + f"{said}\n"
    [raw] = recognise(log.encode(), "x.txt")
    run = one(str(raw.stdout))
    assert (run.ended, len(run.rows)) == (False, 6)
    assert said.endswith(run.trouble)
    line = locate(log, run.line, "ended")
    assert log.split("\n")[line - 1] == said


def test_a_status_after_a_limit_that_was_missed_is_no_trouble_of_its_own() -> None:
    log = text.nccl_tests(wrong="3") + "srun: error: node-01: task 3: Exited with exit code 1\n"
    assert one(log).ended is True
    fallen = log.replace("Exited with exit code 1", "Segmentation fault (core dumped)")
    assert one(fallen).ended is False


def test_a_launch_that_fails_after_a_table_is_another_run() -> None:
    log = text.nccl_tests() + "execvp error on file all_gather_perf (No such file or directory)\n"
    first, second = nccl_tests(log).runs
    assert first.ended is True
    assert isinstance(second.ended, Missing)
    assert second.rows == ()


def test_the_slower_side_is_what_a_job_waits_for() -> None:
    lines = text.nccl_tests(370.0).split("\n")
    slow = text.nccl_tests(200.0).split("\n")
    both = [
        " ".join([*line.split()[:9], *other.split()[9:]]) if line.strip()[:1].isdigit() else line
        for line, other in zip(lines, slow, strict=True)
    ]
    run, slower = one("\n".join(both)), one("\n".join(slow))
    assert (run.busbw_gbps, run.small_us) == (slower.busbw_gbps, slower.small_us)


@pytest.mark.parametrize(
    ("most", "rough", "kind"),
    [(1 << 24, False, "not-asked"), (1 << 27, True, "not-applicable"), (GIB, False, "")],
)
def test_below_1_gb_it_is_judged_roughly(most: int, kind: str, *, rough: bool) -> None:
    run = one(text.nccl_tests(sizes=(8, 1 << 20, most)))
    assert isinstance(run.rough_gbps, float) == rough
    assert (run.busbw_gbps.kind if isinstance(run.busbw_gbps, Missing) else "") == kind


def test_an_end_of_perftest_that_failed_is_told_of_the_test() -> None:
    """Server and client in one text, and only the second of them died."""
    [raw] = recognise(sample_bytes("perftest/ib_write_bw_hdr200_8M_loopback.log"), "x.txt")
    test = rdma(f"{raw.stdout!s}\nCompletion with error at client\n Failed status 12: wr_id 0\n")
    assert (test.ended, test.trouble) == (False, "Completion with error at client")
