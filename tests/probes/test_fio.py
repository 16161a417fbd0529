"""fio's JSON in all the forms that it has had, and what each job was asked to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.errors import ParseError, UsageError
from preflight.facts.fio import FioJob, FioRun, FioSide
from preflight.facts.host import Host
from preflight.model import Missing, Raw
from preflight.probes.fio.report import fio
from preflight.recognise import recognise
from tests.fio_text import NONE, job, report, side, synced


def read(text: str) -> FioRun:
    [run] = fio(text).runs
    return run


def one_job(text: str) -> FioJob:
    [found] = read(text).jobs
    return found


def one_side(text: str) -> FioSide:
    [found] = read(text).sides
    return found


def host_of(*texts: str, memory: str = "") -> Host:
    raws = [Raw("x", f"fio#{at}" if at > 1 else "fio", stdout=one)
            for at, one in enumerate(texts, 1)]  # fmt: skip
    if memory:
        raws.append(Raw("x", "meminfo", stdout=memory))
    return assemble("x", raws).host


def test_warnings_around_it_and_jobs_that_ran_together() -> None:
    text = report(job("a"), job("b", read=side(10000.0)))
    text = f"fio: this machine is slow\nnote: both iodepth >= 1\n{text}\nDisk stats\n"
    run = read(text)
    [total] = run.totals
    lines = text.split("\n")
    assert ['"a"' in lines[run.jobs[0].line - 1], '"b"' in lines[run.jobs[1].line - 1]] == [
        True
    ] * 2
    assert total.iops == 30000.0
    assert total.bandwidth_mbps == pytest.approx(30000 * 4096 / 1e6)
    assert total.in_flight == 64
    assert total.name == "a and 1 beside it, read"
    [first, _] = read(report(job("a"), job("b", groupid=1))).totals
    assert first.iops == 20000.0


def test_of_reports_of_one_run_the_last_counts() -> None:
    def at(seconds: int, iops: float) -> str:
        moved = side(iops, io_bytes=int(iops * 4096 * seconds), runtime=seconds * 1000)
        row = job(elapsed=seconds, eta=10 - seconds, read=moved)
        return report(row, at_ms=1_700_000_000_000 + 1000 * seconds)

    text = at(2, 10.0) + at(6, 20.0) + at(10, 30.0)
    assert one_side(text).iops == 30.0
    assert one_side(text).line == text[: text.rindex('"jobname"')].count("\n") + 1
    # Ended within the last: the one before counts, and no job came to its end.
    cut = read(text[:-200])
    assert [one.iops for one in cut.sides] == [20.0]
    assert cut.cut
    assert isinstance(cut.jobs[0].ended, Missing)
    # Another run of the same jobs, half a minute later.
    again = report(job(elapsed=10), at_ms=1_700_000_040_000)
    assert [one.sides[0].iops for one in fio(text + again).runs] == [30.0, 20000.0]
    names = [one.name for one in host_of(text + again).fio_jobs]  # type: ignore[union-attr]
    assert names == ["rand-read", "rand-read, run 2"]


def test_two_files_are_two_runs_and_each_shows_its_own_lines() -> None:
    jobs = host_of(report(), report()).fio_jobs
    assert isinstance(jobs, tuple)
    assert [(one.name, one.probe) for one in jobs] == [
        ("rand-read", "fio"), ("rand-read, run 2", "fio#2"),
    ]  # fmt: skip


def test_a_report_that_is_cut_tells_the_jobs_that_are_whole() -> None:
    text = report(job("a"), job("b"))
    run = read(text[: text.index('"usr_cpu"', text.index('"b"'))])
    assert [one.name for one in run.jobs] == ["a"]
    assert isinstance(run.jobs[0].ended, Missing)
    assert run.jobs[0].ended.kind == "unreadable"


def test_client_and_server() -> None:
    rows = [job("x", hostname="n1"), job("x", hostname="n2"),
            job("All clients", read=side(40000.0), **{"job options": None})]  # fmt: skip
    run = read(report(jobs=[], client_stats=rows))
    assert [one.name for one in run.jobs] == ["x on n1", "x on n2", "All clients"]
    [total] = run.totals
    assert total.iops == 40000.0


@pytest.mark.parametrize(
    ("row", "ended", "words"),
    [
        (job(error=28), False, "error 28: No space left on device"),
        (job(error=5), False, "error 5: Input/output error"),
        (job(eta=40), "exited", "before this job came to its own end"),
        (job(options={"time_based": "1", "runtime": "30"}), "exited", "before this job came"),
        (job(read=NONE), "exited", "moved nothing"),
    ],
)
def test_how_a_job_ended(row: dict[str, Any], ended: object, words: str) -> None:
    found = one_job(report(row))
    told = found.ended.kind if isinstance(found.ended, Missing) else found.ended
    said = found.ended.text if isinstance(found.ended, Missing) else found.trouble
    assert told == ended
    assert words in said


def test_what_fio_says_of_an_error_is_told() -> None:
    said = "fio: io_u error on file /data/x: No space left on device: write offset=0, buflen=4096\n"
    assert "/data/x: No space" in one_job(said + report(job(error=28))).trouble
    found = one_job("fio: failed parsing directory=/none\nfio: job x dropped\n")
    assert (found.ended, found.trouble) == (False, "failed parsing directory=/none")


def test_fio_cannot_always_tell_what_time_is_left() -> None:
    text = report(job(eta=2147483647, options={"time_based": "1", "runtime": "10s"}))
    assert one_job(text).ended is True
    assert isinstance(one_job(f"fio: terminating on signal 2\n{text}").ended, Missing)
    assert one_job(f"fio: terminating on signal 2\n{report()}").ended is True


@pytest.mark.parametrize("text", ["", "{", "hello", '{"fio version', "[1]"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="expected the JSON of fio"):
        fio(text)


def test_numbers_that_are_none() -> None:
    text = report().replace('"mean" : 150000.0', '"mean" : -nan')
    assert isinstance(one_side(text).latency.mean_us, Missing)
    assert one_side(text).latency.p99_us == 300.0
    assert isinstance(one_side(report(job(read={**side(), "iops": "x"}))).iops, Missing)


def test_percentiles_of_the_whole_time_and_none() -> None:
    latency = side()["clat_ns"]
    of_all = side(clat_ns={"mean": 1e5, "max": 2e5}, lat_ns=latency)
    assert one_side(report(job(read=of_all))).latency.p99_us == 300.0
    none = one_side(report(job(read=side(clat_ns={"mean": 1e5, "max": 2e5}))))
    assert isinstance(none.latency.p99_us, Missing)
    assert none.latency.mean_us == 100.0


def test_fio_2_counts_in_kib_and_microseconds() -> None:
    latency = {"min": 9, "max": 900, "mean": 150.5, "percentile": {"99.000000": 300}}
    told = {"io_bytes": 800000, "bw": 80000, "iops": 20000.2, "runtime": 10000, "clat": latency}
    found = one_side(report(job(read=told), version="fio-2.2.10"))
    assert found.bandwidth_mbps == 80000 * 1024 / 1e6
    assert found.done_bytes == 800000 * 1024
    assert (found.latency.mean_us, found.latency.p99_us) == (150.5, 300.0)
    assert found.off_percent == 0.0


def test_syncs_have_a_latency() -> None:
    [found] = read(report(synced())).syncs
    assert (found.name, found.latency.p99_us) == ("log sync", 900.0)


@pytest.mark.parametrize(
    ("options", "through"),
    [
        ({}, "device"),
        ({"direct": "0"}, "page cache"),  # 8 GB read of 8 GiB: less, and the file was dropped first
        ({"direct": "0", "size": "512m"}, "page cache"),
        ({"direct": "0", "size": "100g", "invalidate": "0"}, "page cache"),
        ({"direct": "0", "size": "100g"}, "device"),
        ({"direct": None, "buffered": "0"}, "device"),
        ({"ioengine": "null"}, "no device"),
        ({"direct": "0", "size": "100%"}, None),
    ],
)
def test_what_was_measured(options: dict[str, Any], through: str | None) -> None:
    moved = side(io_bytes=int(9e9))
    found = one_side(report(job(options=options, read=moved))).through
    assert (None if isinstance(found, Missing) else found) == through


def test_a_file_larger_than_memory_is_not_read_from_there() -> None:
    text = report(job(options={"direct": "0", "invalidate": "0"}))
    for memory, through in (("4194304", "device"), ("41943040", "page cache")):
        sides = host_of(text, memory=f"MemTotal: {memory} kB\nMemAvailable: 1 kB\n").fio_sides
        assert isinstance(sides, tuple)
        assert sides[0].through == through


@pytest.mark.parametrize(
    ("options", "through"),
    [({}, "page cache"), ({"end_fsync": "1"}, "device"), ({"fsync": "32"}, "device"),
     ({"fsync": "0"}, "page cache"), ({"sync": "1"}, "device")],
)  # fmt: skip
def test_what_writes_measure(options: dict[str, str], through: str) -> None:
    row = job("w", {"rw": "write", "direct": "0"} | options, read=NONE, write=side())
    assert one_side(report(row)).through == through


@pytest.mark.parametrize(
    ("options", "depth", "flight"),
    [
        ({"numjobs": "4", "group_reporting": "1"}, 32, 128),
        ({"numjobs": "4"}, 32, 32),
        ({"ioengine": "psync"}, 1, 1),
        ({"ioengine": "libaio", "direct": "0"}, 1, 1),
        ({"ioengine": "io_uring", "direct": "0"}, 32, 32),
        ({"iodepth": None}, 1, 1),
    ],
)
def test_requests_in_flight(options: dict[str, Any], depth: int, flight: int) -> None:
    text = report(job(options=options))
    assert (one_job(text).depth_reached, one_side(text).in_flight) == (depth, flight)


@pytest.mark.parametrize(
    ("block", "bytes_"),
    [("4k", 4096), ("1M", 1 << 20), ("8k,4k", 8192), ("4KiB", 4000), ("4096", 4096)],
)
def test_sizes_in_fios_words(block: str, bytes_: int) -> None:
    assert one_side(report(job(options={"bs": block}))).block_bytes == bytes_


@pytest.mark.parametrize("name", ["bssplit", "bsrange", "blocksize_range", "bs_unaligned"])
def test_blocks_of_several_sizes_are_held_against_nothing(name: str) -> None:
    value = {"bs_unaligned": "1"}.get(name, "4k-64k")
    found = one_side(report(job(options={name: value}, read=side(block=32768))))
    if name == "blocksize_range":
        assert isinstance(found.block_bytes, Missing)
    assert isinstance(found.off_percent, Missing)


def test_figures_that_do_not_fit_each_other() -> None:
    found = one_side(report(job(read=side(block=8192))))
    assert found.off_percent == pytest.approx(100.0, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "rw", "named", "does"),
    [
        ("random-read", "randwrite", "random read", "random write"),
        ("randread_4k", "randread", "random read", "random read"),
        ("seqwrite", "write", "sequential write", "sequential write"),
        ("read128", "randread", "read", "read"),
        ("rand_read_write", "randrw", "random", "random"),
        ("mixed-rand-read", "randrw", "random", "random"),
        ("seq", "randread", "sequential", "random"),
        ("thread-spread", "randwrite", None, None),
    ],
)
def test_what_a_name_says(name: str, rw: str, named: str | None, does: str | None) -> None:
    found = one_job(report(job(name, {"rw": rw})))
    told = [None if isinstance(one, Missing) else one for one in (found.named, found.does)]
    assert told == [named, does]


def test_a_report_without_options_tells_nothing_of_them() -> None:
    row = job()
    del row["job options"]
    text = report(row)
    assert isinstance(one_job(text).direct, Missing)
    assert isinstance(one_side(text).through, Missing)
    told = one_job(report(row, options={"rw": "randread", "direct": "1"}))
    assert (told.direct, told.engine) == (True, "psync")


def test_it_is_known_among_others() -> None:
    text = "$ nvidia-smi -L\nGPU 0: NVIDIA A100 (UUID: GPU-x)\n$ fio j.fio\nnote: x\n" + report()
    [raw] = [one for one in recognise(text.encode(), "x") if one.probe == "fio"]
    assert raw.line_offset == 4
    assert fio(str(raw.stdout)).runs[0].jobs[0].name == "rand-read"
    compact = json.dumps(json.loads(report()))
    assert [one.probe for one in recognise(compact.encode(), "x")] == ["fio"]


@pytest.mark.parametrize(
    "text",
    [
        "3;fio-3.33;x;0;0;1024;512000;128000;2;0;0;0.0;0.0;0;465;4.2\n",
        "x: (g=0): rw=read, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\n"
        "Starting 1 process\n\nx: (groupid=0, jobs=1): err= 0: pid=15189: Mon Nov 30 2026\n"
        "  read: IOPS=128k, BW=500MiB/s\n",
    ],
)
def test_forms_for_people_are_refused_with_what_to_type(text: str) -> None:
    with pytest.raises(UsageError, match="fio output without JSON") as raised:
        recognise(text.encode(), "x")
    assert "--output-format=json" in raised.value.hint
