"""The lines of the bundled bench of storage: one report of fio for each job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.errors import ParseError
from preflight.facts.fio import FioJob, FioRun
from preflight.facts.host import Host
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result, Status
from preflight.probes.fio.bench import io_bench
from preflight.recognise import recognise
from tests.fio_text import bench, job


def host_of(text: str, rc: int | None = 0) -> Host:
    return assemble("x", [Raw("x", "io-bench", ("python3",), rc, text)]).host


def run_of(text: str) -> FioRun:
    [run] = io_bench(text).runs
    return run


def only(**line: Any) -> str:
    return json.dumps({"preflight": "io-bench/1"} | line) + "\n"


def test_all_jobs_are_one_run() -> None:
    run = run_of(bench())
    assert [one.name for one in run.jobs] == ["rand-read", "log"]
    assert [one.line for one in run.jobs] == [3, 4]
    # Jobs that ran one after the other are not added up.
    assert [one.name for one in run.totals] == ["rand-read", "log"]
    assert run.job_file == "[rand-read]\nrw=randread\n"
    assert run.place == "/data, xfs on /dev/nvme0n1"
    assert [one.name for one in run.disks] == ["nvme0n1"]
    assert [raw.probe for raw in recognise(bench().encode(), "x")] == ["io-bench"]


def test_a_file_system_in_memory_is_no_device() -> None:
    run = run_of(bench(fs="tmpfs", memory=True))
    assert {one.through for one in (*run.sides, *run.syncs)} == {"memory"}
    assert {one.through for one in run.totals} == {"memory"}


@pytest.mark.parametrize(
    ("of", "step"),
    [("memory", "tmpfs is memory: another --dir"), ("cached image", "losetup --direct-io=on"),
     ("not known", "findmnt -T DIR")],
)  # fmt: skip
def test_what_is_no_device_is_said_of_jobs_and_patterns(of: str, step: str) -> None:
    saved = {"kind": "pattern", "name": "checkpoint", "part": "save", "way": "write",
             "through": "device", "trouble": ""}  # fmt: skip
    told = results(bench(job(), of=of) + json.dumps(saved) + "\n", 0)
    for one in (told["io.cache", "rand-read"], told["io.pattern.cache", "checkpoint save"]):
        assert (one.status, one.measured) == (Status.WARN, of)
        assert step in one.fix[0]
        assert not any("direct=1 " in each for each in one.fix)
    sound = results(bench(job()) + json.dumps(saved) + "\n", 0)
    assert sound["io.cache", "rand-read"].status is Status.PASS
    assert sound["io.pattern.cache", "checkpoint save"].status is Status.PASS


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (only(kind="busy", text="GPU 0 holds process 7"), "busy", "holds process 7"),
        (only(kind="cannot", why="no-fio", text="fio is not here"), "no-tool", "is not here"),
        (only(kind="cannot", why="refused", text="/x is a file"), "exited", "is a file"),
        (only(kind="begin"), "exited", "ended before its first job"),
    ],
)
def test_why_nothing_was_measured(text: str, kind: str, words: str) -> None:
    found = host_of(text).fio_sides
    assert isinstance(found, Missing)
    assert found.kind == kind
    assert words in found.text


def one_job(line: dict[str, Any]) -> FioJob:
    [found] = run_of(only(kind="begin") + json.dumps({"kind": "fio", "name": "a"} | line)).jobs
    return found


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ({"status": -9, "hung": True, "report": None}, "the file system does not answer"),
        ({"status": 1, "said": "fio: io_u error on file d: Input/output error: read offset=0, "
          "buflen=4096\n"}, "io_u error on file d: Input/output error"),
        ({"status": 3, "said": ""}, "fio ended with status 3, and said nothing"),
    ],
)  # fmt: skip
def test_a_job_without_a_report_failed(line: dict[str, Any], trouble: str) -> None:
    found = one_job(line)
    assert found.ended is False
    assert trouble in found.trouble


def test_that_no_job_could_begin() -> None:
    text = only(kind="begin") + json.dumps({"kind": "failed", "text": "fio: failed to x"})
    assert [one.trouble for one in run_of(text).jobs] == ["failed to x"]


def test_cut_or_interrupted_it_tells_what_came() -> None:
    text = bench(end=False)
    cut = host_of(text[:-50], None).fio_jobs
    assert isinstance(cut, Missing) or [one.name for one in cut] == ["rand-read"]
    told = host_of(text + '{"kind":"interrupted"}\n', 130).fio_jobs
    assert isinstance(told, tuple)
    assert [one.name for one in told] == ["rand-read", "log"]


KILLED = '{"kind":"killed","text":"ended by signal 9 (memory?) while files were read,"}\n'
PLAN = {"patterns": ["fio", "dataloader", "checkpoint"], "demand_mbps": 100.0}


def results(text: str, rc: int | None) -> dict[tuple[str, str], Result]:
    raws = [Raw("x", "io-bench", ("python3",), rc, text, elapsed_s=4.0, limit_s=60.0)]
    report = examine("x", raws, load(["io"]).checks)
    return {(one.check, one.subject): one for one in report.results}


@pytest.mark.parametrize(
    ("more", "rc", "said"),
    [
        (KILLED, 0, "ended by signal 9 (memory?)"),  # the process that measures
        ("", 137, "killed by signal 9 after 4 s (memory?)"),  # the one beside it, and with it all
        ("", 0, "was ended"),  # a file that lacks its end
    ],
)
@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_what_a_bench_that_was_killed_did_not_come_to_is_open(
    more: str, rc: int, said: str, jobs: int
) -> None:
    first, *rest = bench(end=False, plan=PLAN).splitlines(keepends=True)
    loaded = json.dumps({"kind": "pattern", "name": "dataloader", "part": "read", "way": "read",
                         "through": "device", "done_bytes": 9 << 20, "elapsed_s": 0.1, "count": 9,
                         "trouble": ""}) + "\n"  # fmt: skip
    sections = json.dumps({"kind": "job", "text": "[global]\n[rand-read]\n[log]\n"}) + "\n"
    reports = [*rest[1:], loaded]
    told = results(first + sections + "".join(reports[: jobs + (jobs == 2)]) + more, rc)
    unknown = {key: one for key, one in told.items() if one.status is Status.ERROR}
    open_ = {key for key, one in unknown.items() if said in one.reason}
    loader = "dataloader the rest" if jobs > 1 else "dataloader"
    ended = {"io.pattern.ended": {"checkpoint", loader},
             "io.ended": {0: {"x"}, 1: {"log"}}.get(jobs, set())}  # fmt: skip
    for check, subjects in ended.items():
        assert {name for one, name in open_ if one == check} == subjects


def test_what_was_not_asked_for_is_not_open_after_a_kill() -> None:
    told = results(only(kind="begin", plan={"patterns": ["checkpoint"]}) + KILLED, 0)
    assert told["io.ended", "x"].status is Status.SKIP
    assert told["io.pattern.ended", "checkpoint"].status is Status.ERROR


def test_hung_by_its_own_report_is_not_its_end() -> None:
    line = json.loads(bench(job()).splitlines()[2]) | {"hung": True}
    assert isinstance(one_job(line).ended, Missing)


@pytest.mark.parametrize("text", ["", "hello", "{", "[1]", '{"preflight":"stress/1","kind":"x"}'])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        io_bench(text)


def test_a_line_that_is_none_is_told() -> None:
    with pytest.raises(ParseError, match="line 2"):
        io_bench(only(kind="begin") + "x\n" + only(kind="end"))
