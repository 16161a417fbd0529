"""preflight io-bench on a real directory: fio's own figures, nothing left behind, nothing touched
that is not its own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from preflight.capture import Reader
from tests.cli.command import preflight, with_tool
from tests.conftest import require

#: A job of a second.
JOB = """[rand-read]
rw=randread
bs=8k
size=64m
runtime=1
time_based
direct=0
iodepth=1
"""


def needs_fio() -> None:
    require("fio", shutil.which("fio") is not None)


def bench(folder: Path, *more: str) -> Any:
    return preflight("io-bench", "--dir", str(folder), *more)


def job_of(folder: Path, text: str) -> str:
    (folder / "my.fio").write_text(text)
    return str(folder / "my.fio")


def test_every_figure_is_fios_own_and_the_job_file_is_kept(tmp_path: Path) -> None:
    needs_fio()
    data = tmp_path / "data"
    data.mkdir()
    ran = bench(data, "--size", "64M", "--runtime", "6s", "--patterns", "fio", "--format", "json",
                "--save", str(tmp_path / "x.capture.gz"))  # fmt: skip
    assert ran.rc in (0, 1), ran.err
    assert (
        f"files of at most 64 MiB into {data}, again and again, removed afterwards; about 6 s"
        in ran.err
    )
    assert list(data.iterdir()) == []
    [table] = json.loads(ran.out)["measurements"]
    again = preflight("io-bench", "--from", str(tmp_path / "x.capture.gz"), "--format", "json")
    assert json.loads(again.out)["measurements"] == [table]
    names = ["seq-write", "seq-read", "rand-read-4k", "rand-read-128k", "mixed-4k read",
             "mixed-4k write", "log", "log sync"]  # fmt: skip
    assert list(table["numbers"]) == names

    raws = Reader(tmp_path / "x.capture.gz", "x")
    lines = next(str(raw.stdout) for raw in raws if raw.probe == "io-bench").splitlines()
    theirs = {one["name"]: one["report"]["jobs"][0] for one in map(json.loads, lines)
              if one["kind"] == "fio"}  # fmt: skip
    for name, told in table["numbers"].items():
        job, _, way = name.partition(" ")
        side = theirs[job][way or ("read" if "read" in job else "write")]
        asked = {"block_bytes", "random"}  # of the job, not measured
        told = {key: value for key, value in told.items() if key not in asked}
        assert told == (syncs_of(side) if way == "sync" else figures_of(side))
    told = {note.partition(", of one core: ")[2] for note in table["notes"]} - {""}
    cores = (f"{name} {one['usr_cpu']:.0f} % user, {one['sys_cpu']:.0f} % system"
             for name, one in theirs.items())  # fmt: skip
    assert told == {"; ".join(cores)}

    # By hand it is the same job.
    (data / "job.fio").write_text(table["job_file"])
    done = subprocess.run(
        ["fio", "--output-format=json", "--section=rand-read-4k", "job.fio"],
        cwd=data, capture_output=True, text=True, check=True,
    )  # fmt: skip
    by_hand = json.loads(done.stdout[done.stdout.index("{") :])
    assert by_hand["jobs"][0]["job options"] == theirs["rand-read-4k"]["job options"]


def figures_of(side: Any) -> Any:
    """What fio tells of one side of a job, in the report's names; here in full."""
    latency = side.get("clat_ns") or side["lat_ns"]
    return {"iops": side["iops"], "bandwidth_mbps": side["bw_bytes"] / 1e6,
            "done_bytes": side["io_bytes"], "runtime_s": side["runtime"] / 1e3,
            **latencies_of(latency)}  # fmt: skip


def syncs_of(side: Any) -> Any:
    return latencies_of(side["lat_ns"])


def latencies_of(told: Any) -> Any:
    of = told["percentile"]
    return {"mean_us": told["mean"] / 1e3, "p50_us": of["50.000000"] / 1e3,
            "p99_us": of["99.000000"] / 1e3, "p999_us": of["99.900000"] / 1e3,
            "max_us": told["max"] / 1e3}  # fmt: skip


def test_a_job_of_ones_own(tmp_path: Path) -> None:
    needs_fio()
    data = tmp_path / "data"
    data.mkdir()
    ran = bench(data, "--job", job_of(tmp_path, JOB), "--format", "json")
    [table] = json.loads(ran.out)["measurements"]
    assert table["job_file"] == JOB
    assert [row["block"] for row in table["rows"]] == ["8 KiB"]
    assert list(data.iterdir()) == []


def test_a_file_is_never_written_to(tmp_path: Path) -> None:
    needs_fio()
    (tmp_path / "file").write_text("x")
    ran = preflight("io-bench", "--dir", str(tmp_path / "file"))
    assert ran.rc == 2
    assert "is a file, which is never written to" in " ".join(ran.err.split())
    assert (tmp_path / "file").read_text() == "x"
    refused = bench(tmp_path, "--job", job_of(tmp_path, "[a]\nsize=1m\nfilename=/etc/x\n"))
    assert (refused.rc, "my.fio:3: filename=/etc/x is not taken" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/nosuch", "/nosuch: No such file or directory hint: mkdir -p /nosuch, or another --dir"),
        ("/dev/null", "/dev/null is a device, which is never written to hint: --dir DIR"),
        ("/proc", "/proc is proc, which has no room for files hint: another --dir"),
    ],
)
def test_a_directory_that_cannot_be_is_refused_before_anything(place: str, said: str) -> None:
    ran = preflight("io-bench", "--dir", place, "--size", "64M")
    assert (ran.rc, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())
    assert "writes files" not in ran.err


def test_a_job_file_that_fio_does_not_take_is_refused_before_anything(tmp_path: Path) -> None:
    needs_fio()
    (data := tmp_path / "data").mkdir()
    ran = bench(data, "--job", job_of(tmp_path, JOB.replace("randread", "randraed", 2)))
    assert (ran.rc, ran.out) == (2, "")
    assert "fio refuses the job file: fio: failed parsing rw=randraed" in ran.err
    assert "writes files" not in ran.err


def test_another_ones_work_is_left_alone(tmp_path: Path) -> None:
    needs_fio()
    lock = tmp_path / "lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = preflight("io-bench", "--dir", str(tmp_path), PREFLIGHT_LOCK=str(lock))
    assert "active work of preflight holds" in ran.out
    # Who asked for it by name has no answer.
    assert (ran.rc, "wait until it has ended" in ran.out) == (3, True), ran.out


@pytest.mark.parametrize("at", [0, 1], ids=["what watches it", "what measures"])
def test_killed_as_for_want_of_memory_it_does_not_pass(tmp_path: Path, at: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = [sys.executable, "-m", "preflight", "io-bench", "--dir", str(data), "--size", "64M",
             "--runtime", "20s", "--patterns", "small-files,checkpoint"]  # fmt: skip
    env = {**os.environ, "PREFLIGHT_LOCK": str(tmp_path / "lock")}
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    run = subprocess.Popen(words, text=True, env=env, stdout=pipe, stderr=null)
    try:
        wait_for(lambda: any(data.glob(".preflight-io.*/small-files/0")), 20)
        _chain(run.pid)[at].kill()
        out, _ = run.communicate(timeout=20)
    finally:
        run.kill()
    assert (run.returncode, "signal 9" in out, "fio alone" in out) == (3, True, False), out


def _chain(pid: int) -> list[psutil.Process]:
    """The process that watches the bench, and the one that does it, in its own directory."""
    found = [one for one in psutil.Process(pid).children(recursive=True)
             if _words(one)[1:4] == ["-I", "-", "io"]]  # fmt: skip
    first = next(one for one in found if one.ppid() not in {each.pid for each in found})
    works = [one for one in found if one.ppid() == first.pid and any(map(_is_folder, _open(one)))]
    return [first, *works]


def _words(one: psutil.Process) -> list[str]:
    """None of one that has ended meanwhile."""
    try:
        return one.cmdline()
    except psutil.NoSuchProcess:
        return []


def _open(one: psutil.Process) -> list[str]:
    return [str(each.readlink()) for each in Path(f"/proc/{one.pid}/fd").iterdir()]


def _is_folder(target: str) -> bool:
    return Path(target).name.startswith(".preflight-io.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    needs_fio()
    data = tmp_path / "data"
    data.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "preflight", "io-bench", "--dir", str(data), "--size", "64M",
         "--python", sys.executable],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
        env={**os.environ, "PREFLIGHT_LOCK": str(tmp_path / "lock"), "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:  # fmt: skip
        wait_for(lambda: any(data.glob(".preflight-io.*/data")), 20)
        run.send_signal(number)
        assert run.wait(timeout=15) == (-9 if number == signal.SIGKILL else 130)
    wait_for(lambda: not any(data.iterdir()), 10)


def wait_for(holds: Callable[[], bool], limit_s: float) -> None:
    """Poll until it holds; AssertionError where it does not in time."""
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_what_fio_says_of_an_error_is_told(tmp_path: Path) -> None:
    path = with_tool(tmp_path / "bin", "fio", "echo 'fio: io_u error on file x: Input/output error:"
                     " read offset=0, buflen=4096' >&2; exit 1")  # fmt: skip
    ran = preflight("io-bench", "--dir", str(tmp_path), "--patterns", "fio", PATH=path)
    assert ran.rc == 1
    assert "io_u error on file x: Input/output error" in ran.out
    assert [one.name for one in tmp_path.iterdir()] == ["bin"]


def test_a_checkpoint_is_saved_and_nothing_of_it_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    ran = bench(data, "--size", "64M", "--runtime", "6s", "--patterns", "checkpoint", "--writers",
                "2", "--only", "io.pattern.*", "--format", "json")  # fmt: skip
    assert ran.rc == 0, ran.out + ran.err
    assert list(data.iterdir()) == []
    told, saves = json.loads(ran.out)["measurements"]
    assert told["numbers"]["checkpoint save"]["wrong"] == 0
    assert told["numbers"]["checkpoint restore"]["bandwidth_mbps"] > 0
    assert saves["rows"][0]["bytes"] == "32 MiB"


def test_killed_in_a_save_it_leaves_nothing_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "preflight", "io-bench", "--dir", str(data), "--size", "256M",
         "--patterns", "checkpoint", "--python", sys.executable],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
        env={**os.environ, "PREFLIGHT_LOCK": str(tmp_path / "lock"), "TMPDIR": str(tmp_path)},
    ) as run:  # fmt: skip
        wait_for(lambda: any(data.glob(".preflight-io.*/checkpoint/*.new")), 20)
        run.kill()
    wait_for(lambda: not any(data.iterdir()), 10)


def test_writers_are_of_a_checkpoint(tmp_path: Path) -> None:
    for more, said in [
        (("--writers", "0"), "--writers is out of range"),
        (
            ("--writers", "2", "--patterns", "fio"),
            "--writers: of checkpoint, which is not measured",
        ),
    ]:
        ran = bench(tmp_path, *more)
        assert (ran.rc, said in ran.err) == (2, True)
