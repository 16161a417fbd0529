"""nccl-tests over several hosts: who takes part, what is started, what is told of each host."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from preflight.bench.nccl_tests import BINARIES
from preflight.cli.benches import plan_of
from preflight.cli.engines import as_one_bench
from preflight.cli.hosts import Asking
from preflight.cli.nccl_tests.asked import is_of_tests, questions
from preflight.cli.nccl_tests.job import Together
from preflight.cli.nccl_tests.ways import launcher_of
from preflight.cli.options import Options
from preflight.cli.plan import Question, make_plan
from preflight.collect import examine_one_of_many
from preflight.errors import UsageError
from preflight.faults import CONNECTION, fault
from preflight.judge import load, overrides
from preflight.model import Command, HostReport, Raw, Result, Status
from preflight.ship import SITE
from tests.lab.nccl_perf import binaries, mpirun


class Hosts(Struct):
    """A fleet that answers the first question as told, and runs nothing."""

    hosts: tuple[str, ...]
    sites: Mapping[str, list[Raw]]
    asked: list[tuple[tuple[str, ...], list[Command]]] = []

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        self.asked.append((self.hosts, list(commands)))
        for name in self.hosts:
            first = any(one.probe == SITE for one in commands)
            yield name, self.sites[name] if first else [Raw(name, "meminfo", ("cat",), rc=0)]


def site(name: str, folder: Path, gpus: int = 2, *, mpi: bool = True, **more: Any) -> list[Raw]:
    found = {
        one: {"path": f"{folder}/{one}", "mpi": mpi, "cannot": ""} for one in BINARIES.values()
    }
    told = {"preflight": "micro-train-site/1", "cannot": "no torch", "busy": "", "torch": "",
            "gpus": gpus, "tests": {"cannot": "", "found": found}, "nccl": {}}  # fmt: skip
    return [Raw(name, SITE, stdout=json.dumps({**told, **more}))]


class Setup(Struct):
    """A folder of binaries, and an mpirun in PATH that starts all ranks here."""

    nt: Path
    path: pytest.MonkeyPatch
    base: Path

    def mpirun(self, **how: Any) -> None:
        self.path.setenv("PATH", f"{mpirun(self.base / 'bin', **how)}:/usr/bin:/bin")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    made = Setup(binaries(tmp_path / "nt", mpi=True), monkeypatch, tmp_path)
    made.mpirun()
    for name in ("NCCL_STAND_IN", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    return made


def run(
    lab: Setup, sites: Mapping[str, list[Raw]], *collectives: str, limit_s: int = 30,
    event: threading.Event | None = None,
) -> tuple[dict[str, list[Raw]], Hosts]:  # fmt: skip
    """The answers, and the fleet that was asked."""
    wanted = list(collectives or ("all_reduce",))
    plan = plan_of(Options(nccl_tests=str(lab.nt), collective=wanted, begin="1M", end="1G",
                           factor=32))  # fmt: skip
    asked = [replace(one, timeout_s=limit_s) for one in questions(plan, ("python3",))]
    fleet = Hosts(tuple(sites), sites, [])
    job = Together(fleet, event or threading.Event(), plan, ("python3",), launcher_of(slurm=False))
    return dict(job.run([Command("meminfo", ("cat",)), *asked])), fleet


def report(host: str, raws: Sequence[Raw]) -> HostReport:
    every = load.load(("collectives", "nccl"), []).checks
    checks = overrides.mark(every, ["collectives.*"], asked=True)  # as the command does
    checks = [one for one in checks if one.across != "fleet"]
    return examine_one_of_many(host, raws, checks).report


def ended(host: str, raws: Sequence[Raw]) -> Result:
    return next(one for one in report(host, raws).results if one.check == "collectives.ended")


@pytest.mark.parametrize("hydra", [False, True])
def test_a_rank_for_each_gpu_and_the_first_host_tells(lab: Setup, hydra: bool) -> None:
    lab.mpirun(hydra=hydra)
    answers, fleet = run(lab, {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt)})
    assert not any(is_of_tests(one) for _, commands in fleet.asked for one in commands)
    (raw,) = [one for one in answers["h1"] if one.probe == "nccl-tests"]
    assert raw.rc == 0 and "Rank  3" in str(raw.stdout) and "on         h2 device  1" in raw.stdout
    found = {one.check: one for one in report("h1", answers["h1"]).results}
    for check in ("ended", "together", "even", "wrong"):
        assert found[f"collectives.{check}"].status is Status.PASS
    assert found["nccl.versions"].status is Status.PASS
    other = ended("h2", answers["h2"])
    assert other.status is Status.SKIP and "measured with the others, told by h1" in other.reason


def test_hosts_with_fewer_gpus_have_fewer_ranks_and_that_is_told(lab: Setup) -> None:
    answers, _ = run(lab, {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt, gpus=1)})
    found = {one.check: one for one in report("h1", answers["h1"]).results}
    assert found["collectives.even"].status is Status.WARN
    assert found["collectives.even"].reason == "h1 2, h2 1"


def test_a_host_that_takes_no_part_says_why_and_the_others_are_measured(lab: Setup) -> None:
    gone = [Raw("h3", CONNECTION, rc=None, missing=fault("refused", "port 22"))]
    sites = {
        "h0": site("h0", lab.nt, busy="GPU 3 holds process 4711 (alice)"),
        "h1": site("h1", lab.nt), "h2": site("h2", lab.nt), "h3": gone,
        "h4": site("h4", lab.nt, gpus=0, granted=""),
        "h5": site("h5", lab.nt, tests={"cannot": "there is no folder /nt", "found": {}}),
    }  # fmt: skip
    answers, fleet = run(lab, sites)
    assert list(answers) == list(sites)
    assert fleet.asked[-1][0] == ("h1", "h2")
    assert ended("h1", answers["h1"]).status is Status.PASS
    told = {name: ended(name, answers[name]) for name in ("h0", "h4", "h5")}
    assert told["h0"].status is Status.SKIP and "GPU 3 holds process 4711" in told["h0"].reason
    assert told["h4"].status is Status.ERROR and "no GPU can be used here" in told["h4"].reason
    assert told["h5"].status is Status.ERROR and "there is no folder /nt" in told["h5"].reason
    assert report("h3", answers["h3"]).verdict is Status.ERROR


def test_where_one_host_is_left_its_own_process_measures_it(lab: Setup) -> None:
    sites = {"h1": site("h1", lab.nt, gpus=0), "h2": site("h2", lab.nt, mpi=False)}
    _, fleet = run(lab, sites)
    hosts, commands = fleet.asked[-1]
    asked = next(one for one in commands if is_of_tests(one))
    assert hosts == ("h2",) and asked.argv[-2:] == ("-g", "2") and "program" in asked.argv


def test_a_build_without_mpi_is_refused_before_it_is_started(lab: Setup) -> None:
    sites = {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt, mpi=False)}
    with pytest.raises(UsageError, match=r"all_reduce_perf \(h2\): built without MPI") as error:
        run(lab, sites)
    assert "make MPI=1" in error.value.hint


def test_one_that_lies_about_mpi_is_found_out_by_what_it_printed(lab: Setup) -> None:
    binaries(lab.nt, mpi=False)
    answers, _ = run(lab, {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt)})
    found = {one.check: one for one in report("h1", answers["h1"]).results}
    assert found["collectives.together"].status is Status.FAIL
    assert "4 processes, each by itself" in found["collectives.together"].reason


def test_what_one_host_lacks_is_told_and_the_rest_is_measured(lab: Setup) -> None:
    lacking = site("h2", lab.nt)
    told = json.loads(str(lacking[0].stdout))
    del told["tests"]["found"]["reduce_perf"]
    lacking = [replace(lacking[0], stdout=json.dumps(told))]
    answers, _ = run(lab, {"h1": site("h1", lab.nt), "h2": lacking}, "reduce", "all_reduce")
    ends = {one.subject: one for one in report("h1", answers["h1"]).results
            if one.check == "collectives.ended"}  # fmt: skip
    assert ends["all_reduce"].status is Status.PASS
    assert ends["reduce"].status is Status.ERROR
    assert "h2: it is not in" in ends["reduce"].reason


@pytest.mark.parametrize(
    ("said", "status", "text"),
    [
        ("Permission denied (publickey).\n--\nORTE was unable to reliably start one or more "
         "daemons.\n", Status.ERROR, "`ssh -o BatchMode=yes HOST true` must work"),
        ("Host key verification failed.\n", Status.ERROR, "once by hand takes its key"),
        ("bash: line 1: orted: command not found\n", Status.ERROR, "has to be on every host"),
        ("/nt/all_reduce_perf: error while loading shared libraries: libcudart.so.12: cannot "
         "open shared object file\n", Status.ERROR, "export LD_LIBRARY_PATH"),
        ("There are not enough slots available in the system to satisfy the 4\n", Status.ERROR,
         "Open MPI has not enough slots for 4 processes"),
        ("strange words\n", Status.ERROR, "strange words"),
    ],
)  # fmt: skip
def test_what_keeps_mpirun_from_starting_is_told_with_what_to_type(
    lab: Setup, said: str, status: Status, text: str
) -> None:
    lab.mpirun(refuses=said)
    answers, _ = run(lab, {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt)})
    found = ended("h1", answers["h1"])
    assert found.status is status and text in found.reason


def test_one_that_hangs_is_ended_and_the_others_are_not_begun(
    lab: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_STAND_IN", "hang")
    sites = {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt)}
    answers, _ = run(lab, sites, "all_reduce", "reduce", limit_s=4)
    ends = {one.subject: one for one in report("h1", answers["h1"]).results
            if one.check == "collectives.ended"}  # fmt: skip
    assert ends["all_reduce"].status is Status.FAIL
    assert "mpirun did not end within" in ends["all_reduce"].reason
    assert "mpirun hung for" in ends["reduce"].reason


def test_interrupted_nothing_is_started(lab: Setup) -> None:
    event = threading.Event()
    event.set()
    sites = {"h1": site("h1", lab.nt), "h2": site("h2", lab.nt)}
    answers, fleet = run(lab, sites, event=event)
    assert len(fleet.asked) == 1
    assert "interrupted" in ended("h1", answers["h1"]).reason


def test_only_several_hosts_take_an_mpirun_and_where_there_is_none_it_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("one", "one,two"):
        options = Options(nccl_tests="/nt", hosts=[name])
        plan = make_plan(Question("nccl-bench", (), benches=plan_of(options)), options)
        many = Asking(tuple(name.split(",")), "over SSH", Hosts((), {}))
        with closing(many.spool):
            if "," not in name:
                as_one_bench(many, plan, options)
                continue
            with pytest.raises(UsageError, match="started by mpirun, and there is none"):
                as_one_bench(many, plan, options)
    with pytest.raises(UsageError, match="started by mpirun, and there is none") as error:
        launcher_of(slurm=False)
    assert "openmpi-bin" in error.value.hint
