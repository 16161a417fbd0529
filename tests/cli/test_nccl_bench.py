"""`preflight nccl-bench` as a user runs it: on what benchmarks printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import collective_text as text
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.nccl_lines import Job, on_sockets

IBSTAT = str(SAMPLES / "infiniband" / "ibstat_h100_12hca_active.txt")


def write(folder: Path, name: str, told: str) -> str:
    path = folder / name
    path.write_text(told, encoding="utf-8")
    return str(path)


def flat(told: str) -> str:
    return " ".join(told.split())


def test_a_sound_run_passes_and_shows_its_table_and_arithmetic(tmp_path: Path) -> None:
    ran = preflight("nccl-bench", "--from", write(tmp_path, "a.log", text.nccl_tests(370.0)))
    assert ran.rc == 0
    assert "all_reduce: 8 ranks on 1 host, NVIDIA H100 80GB HBM3" in ran.out
    assert "18 NVLinks x 26.562 GB/s x 78% of a ring; 483 with NVLS" in flat(ran.out)
    assert "excellent" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_a_slow_run_fails_and_the_line_is_shown(tmp_path: Path) -> None:
    ran = preflight("nccl-bench", "--from", write(tmp_path, "a.log", text.nccl_tests(200.0)))
    assert ran.rc == 1
    assert "FAIL collectives.busbw all_reduce 200 GB/s, expected at least 26" in flat(ran.out)
    assert "8589934592" in ran.out


def test_between_hosts_it_is_held_against_the_adapters_that_ibstat_tells(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(200.0, hosts=4))
    alone = preflight("nccl-bench", "--from", log)
    assert alone.rc == 3
    assert "which adapters carry it is not in the input: add `ibstat`" in flat(alone.out)
    beside = preflight("nccl-bench", "--from", log, "--from", IBSTAT)
    assert beside.rc == 1
    assert "collectives.busbw" in beside.out.split("\n\n")[1]


def test_bandwidth_that_is_held_against_nothing_is_undetermined_with_what_supplies_it(
    tmp_path: Path,
) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(370.0, hosts=2))
    ran = preflight("nccl-bench", "--from", log)
    assert ran.rc == 3
    block = flat(ran.out).partition("all_reduce: 16 ranks")[0]
    assert "ERROR collectives.busbw all_reduce INCOMPLETE: held against nothing" in block
    assert "ibstat > ibstat.txt" in block and "--set collectives.busbw.warn=N" in block
    assert "do:" in preflight("nccl-bench", "--from", log, "--format", "junit").out
    assert "**Do:**" in preflight("nccl-bench", "--from", log, "--format", "markdown").out
    assert preflight("nccl-bench", "--from", log, "--from", IBSTAT).rc == 0
    # Where it is not the question it is left out.
    assert "collectives.busbw" in preflight("run", "--from", log, "-v").out
    assert preflight("run", "--from", log).rc == 0
    rdma = write(tmp_path, "b.log", text.perftest(392.0))
    ran = preflight("nccl-bench", "--from", rdma)
    assert ran.rc == 3 and "--set rdma.bandwidth.warn=N" in flat(ran.out)
    assert preflight("nccl-bench", "--from", rdma, "--from", IBSTAT).rc == 0


def test_sizes_that_tell_no_bandwidth_are_told_in_the_last_line(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(370.0, sizes=(8, 1 << 26)))
    ran = preflight("nccl-bench", "--from", log)
    last = flat(ran.out.strip().rpartition("\n\n")[2])
    assert "; bandwidth was shown, not judged: the largest size is 64 MiB" in last
    sound = preflight("nccl-bench", "--from", write(tmp_path, "b.log", text.nccl_tests(370.0)))
    assert "not judged" not in flat(sound.out.strip().rpartition("\n\n")[2])


def test_words_follow_the_thresholds_in_force(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(370.0))
    for stated, status in (("fail=500", "FAIL"), ("warn=500", "WARN")):
        ran = preflight("nccl-bench", "--from", log, "--set", f"collectives.busbw.{stated}")
        assert "excellent" not in ran.out
        assert f"; {status}, expected at least 500" in flat(ran.out)
    unbound = write(tmp_path, "b.log", text.nccl_tests(300.0, hosts=4))
    ran = preflight("nccl-bench", "--from", unbound, "--set", "collectives.busbw.warn=250")
    assert ran.rc == 0 and "held against nothing" not in ran.out
    assert "PASS, expected at least 250" in flat(ran.out)


def test_what_is_enough_may_be_stated(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(300.0, hosts=4))
    for least, rc in ((310, 1), (250, 0)):
        stated = (f"collectives.busbw.fail={least}", f"collectives.busbw.warn={least + 10}")
        words = [word for one in stated for word in ("--set", one)]
        assert preflight("nccl-bench", "--from", log, *words).rc == rc


def test_one_threshold_may_be_stated_by_itself(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(300.0, hosts=4))
    for stated, status in (("warn=310", "WARN"), ("fail=310", "FAIL")):
        ran = preflight("nccl-bench", "--from", log, "--set", f"collectives.busbw.{stated}")
        assert f"{status} collectives.busbw all_reduce 300 GB/s, expected at least 310" in flat(
            ran.out
        )
    assert preflight("nccl-bench", "--from", log, "--set", "collectives.busbw.warn=250").rc == 0


def test_lines_of_nccl_in_the_same_file_are_judged(tmp_path: Path) -> None:
    """A fast enough number over the wrong way does not pass."""
    log = write(tmp_path, "a.log", on_sockets([0, 1]).text() + text.nccl_tests(370.0, hosts=2))
    ran = preflight("nccl-bench", "--from", log, "--from", IBSTAT)
    assert "nccl.network" in ran.out and "PASS:" not in ran.out
    sound = write(tmp_path, "b.log", Job().text() + text.nccl_tests(370.0, hosts=2))
    assert "FAIL" not in preflight("nccl-bench", "--from", sound).out


def test_two_versions_over_one_table_are_of_one_job(tmp_path: Path) -> None:
    """Without INFO lines the first rank of each run announces its own."""
    said = "NCCL version 2.23.4+cuda12.6\nNCCL version 2.19.3+cuda12.2\n"
    head, ends, rest = text.nccl_tests(370.0).partition("#\n#       size")
    ran = preflight("nccl-bench", "--from", write(tmp_path, "a.log", head + said + ends + rest))
    assert ran.rc == 1 and "FAIL nccl.versions" in flat(ran.out)
    assert "2.19.3" in ran.out
    first, second = (f"{one}\n{text.nccl_tests(370.0)}" for one in said.splitlines())
    ran = preflight("nccl-bench", "--from", write(tmp_path, "b.log", first + second))
    assert ran.rc == 0  # two runs, each with its own
    ran = preflight("nccl-bench", "--from", write(tmp_path, "c.log", first))
    assert ran.rc == 0


def test_files_add_up(tmp_path: Path) -> None:
    files = [write(tmp_path, f"{at}.log", text.nccl_tests(busbw))
             for at, busbw in enumerate((370.0, 200.0))]  # fmt: skip
    words = [word for file in files for word in ("--from", file)]
    ran = preflight("nccl-bench", *words, "--format", "json")
    found = json.loads(ran.out)["hosts"][0]["results"]
    speed = {one["subject"]: one["status"] for one in found if one["check"] == "collectives.busbw"}
    assert speed == {"all_reduce": "PASS", "all_reduce, run 2": "FAIL"}


def test_rdma_is_held_against_its_port(tmp_path: Path) -> None:
    slow = write(tmp_path, "a.log", text.perftest(200.0))
    ran = preflight("nccl-bench", "--from", slow, "--from", IBSTAT)
    assert ran.rc == 1
    assert "400 Gb/s x 99.4% of data at MTU 4096" in flat(ran.out)
    small = write(tmp_path, "b.log", text.perftest(368.0, link="Ethernet", mtu=1024))
    ran = preflight("nccl-bench", "--from", small, "--from", IBSTAT)
    assert (ran.rc, "rdma.mtu" in ran.out, "WARN" in ran.out) == (0, True, True)


def test_the_whole_checklist_judges_such_a_file(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(200.0))
    assert "FAIL   collectives.busbw" in preflight("run", "--from", log).out


def test_hosts_are_stand_ins_where_that_is_asked_for(tmp_path: Path) -> None:
    told = text.nccl_tests(hosts=2, ends=False, most=1 << 40)
    told += "node-02: Test NCCL failure common.cu:303 'remote process exited'\n"
    log = write(tmp_path, "a.log", told.replace("node-0", "saturn"))
    kept = tmp_path / "kept.capture.gz"
    ran = preflight("nccl-bench", "--from", log, "--redact", "--save", str(kept))
    assert ran.rc == 1
    assert "Test NCCL failure" in ran.out and "saturn" not in ran.out
    again = preflight("nccl-bench", "--from", str(kept))
    assert "saturn" not in again.out and "16 ranks on 2 hosts" in again.out


def test_adapters_without_link_lower_no_bound_and_are_named(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(275.0, hosts=2))
    lost = str(SAMPLES / "infiniband" / "ibstat_h100_2x400_down.txt")
    for ibstat in (IBSTAT, lost):
        ran = preflight("nccl-bench", "--from", log, "--from", ibstat)
        assert "WARN collectives.busbw all_reduce 275 GB/s" in flat(ran.out)
        named = "without link: mlx5_11, mlx5_5 of 8 adapters" in flat(ran.out)
        assert named == (ibstat == lost)


def test_a_figure_that_the_adapters_cannot_carry_is_not_judged(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", text.nccl_tests(275.0, hosts=2))
    ran = preflight("nccl-bench", "--from", log, "--from", IBSTAT, "--nics", "=mlx5_0")
    assert ran.rc == 3
    assert "2.9 times the most that could be" in flat(ran.out)
    assert "excellent" not in ran.out


def test_what_the_user_leaves_out_is_no_odd_adapter(tmp_path: Path) -> None:
    log = write(tmp_path, "a.log", Job().text() + text.nccl_tests(470.0, hosts=2))
    words = ("--from", log, "--from", IBSTAT, "--nics")
    odd = flat(preflight("nccl-bench", *words, "^mlx5_4").out).partition("nccl.adapters.odd")[2]
    assert "mlx5_1, mlx5_2, mlx5_7, expected none" in odd
    ran = preflight("nccl-bench", *words, "^mlx5_1,mlx5_2,mlx5_7,mlx5_8", "--only", "network.*")
    assert ran.rc == 0 and "WARN" not in ran.out


def test_what_lacks_says_what_to_type(tmp_path: Path) -> None:
    told = text.nccl_tests(300.0)
    table = "".join(line for line in told.splitlines(keepends=True) if "Rank" not in line)
    ran = preflight("nccl-bench", "--from", write(tmp_path, "a.log", table))
    assert "held against nothing" in flat(ran.out)
    assert "tee FILE" in flat(ran.out)
    slots = str(SAMPLES / "nccl_tests" / "mpirun_not_enough_slots.log")
    assert "-H node-01:8,node-02:8" in flat(preflight("nccl-bench", "--from", slots).out)


@pytest.mark.parametrize(
    "words",
    [
        ("--duration", "1m"), ("--pairwise",), ("--nccl-tests", "/opt"), ("-b", "8"), ("-e", "1G"),
        ("--collective", "all_reduce"), ("--interface", "eth0"), ("--wire", "tcp"),
        ("--repeats", "5"), ("--sweep", "NCCL_ALGO=Ring"),
    ],
)  # fmt: skip
def test_how_to_measure_is_refused_beside_a_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = preflight("nccl-bench", "--from", write(tmp_path, "a.log", text.nccl_tests()), *words)
    assert ran.rc == 2
    assert ran.out == ""
    assert "leave out --" in ran.err


def test_an_interface_without_a_name_is_refused() -> None:
    ran = preflight("nccl-bench", "--interface", "")
    assert (ran.rc, ran.out) == (2, "")
    assert "--interface" in ran.err
