"""Where nothing could be learned a line says what to type to learn it, once for each reason."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from preflight.judge.learn import to_learn
from preflight.judge.load import load
from preflight.judge.results import result, undetermined
from preflight.model import HostReport, Missing, MissingKind, Result, Status
from preflight.reports import render
from tests.reports.built import report

CHECKS = load(("network", "collectives")).checks


@pytest.mark.parametrize(
    ("kind", "reason", "step"),
    [
        ("denied", "dmesg exited with 1: not permitted; run preflight as root or with --sudo "
         "(`sudo dmesg`)", "the same with --sudo, or as root"),
        ("denied", "pid 7: its environment may only be read by its user and by root",
         "the same with --sudo, or as root"),
        ("no-tool", "ip is not installed; it comes with iproute2",
         "sudo apt-get install iproute2   # there; or dnf, zypper; then the same again"),
        ("no-tool", "python3 has no torch; --python '/opt/env/bin/python3' has one",
         "the same with --python 'PATH/OF/python3' of the environment that trains"),
        ("no-tool", "/usr/bin/python3 has no torch; --python /opt/env/bin/python3",
         "the same with --python /opt/env/bin/python3"),
        ("timeout", "nvidia-smi did not end within 30 s",
         "the same with --host-timeout 5m; again? the tool by hand there: does it hang?"),
        ("exited", "nvidia-smi -q -x exited with 9: it printed nothing",
         "nvidia-smi -q -x   # by hand there: what does it say?"),
        ("exited", "all_reduce_perf: libx.so: cannot open; export LD_LIBRARY_PATH=FOLDER of it",
         "export LD_LIBRARY_PATH=FOLDER   # as the reason says"),
        ("exited", "all_reduce_perf exited with 75: GPU 3 holds process 4711",
         "wait until it has ended, or --even-if-busy"),
        ("exited", "/x: No such file or directory: --shard names one file of the data",
         "ls -l FILE   # there"),
        ("exited", "/x: No such file or directory: mkdir -p /x, or another --url",
         "the same with another --url file:///DIR"),
        ("exited", "the run was interrupted", "the same again, to its end"),
        ("unreadable", "the recording is cut short: it lacks its end",
         "record all of it, to its end, and the same again"),
        ("exited", "the driver is not loaded: preflight gpu-health --sudo",
         "the same with --sudo, or as root"),
        ("unreadable", "not for 5 %: preflight nccl-bench --set collectives.host=5",
         "preflight nccl-bench --set collectives.host=5"),
        ("exited", "/x: No such file or directory: mkdir -p /x, or another --dir",
         "the same with another --dir"),
        ("exited", "fio refuses the job file: fio: failed parsing rw=wrtie: fio --parse-only FILE "
         "tells more", "fio --parse-only FILE"),
        ("unreadable", "'x' is no number", "the same with --save there.capture.gz"),
    ],
)  # fmt: skip
def test_it_is_by_the_reason(kind: MissingKind, reason: str, step: str) -> None:
    (told,) = to_learn(reason, kind)
    assert told.startswith(step)
    found = undetermined(CHECKS[0], "n1", Missing(kind, reason))
    assert (found.status, found.fix) == (Status.ERROR, (told,))


def test_what_is_skipped_or_passes_needs_none() -> None:
    assert undetermined(CHECKS[0], "n1", Missing("not-asked", "needs --duration")).fix == ()
    assert result(CHECKS[0], "n1", Status.PASS).fix == ()


def test_what_the_check_itself_says_comes_first() -> None:
    check = replace(CHECKS[0], learn=("if cold: warm it", "look again"))
    assert undetermined(check, "n1", Missing("timeout", "cold")).fix == ("warm it", "look again")


def told(fmt: str, *results: Result) -> str:
    host = HostReport("n1", Status.ERROR, results=results)
    return "".join(render(report(host), fmt))


@pytest.mark.parametrize("fmt", ["text", "markdown", "junit", "json"])
def test_every_report_tells_it(fmt: str) -> None:
    missing = Missing("denied", "dmesg may not be read")
    assert "the same with --sudo, or as root" in told(fmt, undetermined(CHECKS[0], "n1", missing))


def test_many_checks_that_lack_one_thing_have_one_line_of_it() -> None:
    missing = Missing("timeout", "nvidia-smi did not end within 30 s")
    text = told("text", *(undetermined(one, "n1", missing) for one in CHECKS[:20]))
    assert len(re.findall(r"\bdo: ", text)) == 1
    assert "the same with --host-timeout 5m" in text
