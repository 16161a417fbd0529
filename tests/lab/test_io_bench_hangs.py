"""A bench of storage, and the questions on what storage is, where a server stops answering, a quota
is reached, or a file system is frozen: who asks gets a word with the directory in it, and what was
written goes once it answers again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pytest

from preflight.assemble.host import assemble
from preflight.model import Missing, Raw
from preflight.probes.storage.mounts import ANSWER_S, mounts
from preflight.probes.storage.proofs import proofs_in
from tests.cli.command import PREFLIGHT, preflight
from tests.cli.test_io_bench import needs_fio, wait_for
from tests.lab.frozen import frozen_directory
from tests.lab.fuse import served

pytestmark = pytest.mark.lab
SOURCES = Path(__file__).resolve().parents[2] / "src/preflight"
#: The bench as it is on a host, with less patience.
_BENCH = """
import json, sys
from payload.scratch import scratch
from payload.storage import fio, harness, place, watched as watched_in
from payload.storage.plan import Plan
watched_in._HUNG_S = 1.5
place._LOOKS_S, fio._BEYOND_S, fio._LAST_S, harness._TRIES_S = 1.0, 0.2, 0.2, 1.0
with scratch():
    watched_in.watched(lambda tell: harness.harness(Plan(**json.loads(sys.argv[1])), tell),
            lambda line: print(json.dumps(line), flush=True), harness.FORM)
"""
#: Ten seconds of small writes.
JOB = "[a]\nrw=write\nbs=64k\nsize=16m\nrate=1m\nthread\n"


def ended(process: subprocess.Popen[Any], within_s: float) -> int:
    """Its status; AssertionError where it does not end in time."""
    try:
        return process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"it runs for more than {within_s} s") from None


class Started(NamedTuple):
    process: subprocess.Popen[bytes]
    lines: TextIO

    def told(self, within_s: float) -> list[dict[str, Any]]:
        """Its lines, once it has ended."""
        assert ended(self.process, within_s) == 0
        self.lines.seek(0)
        return [json.loads(line) for line in self.lines]


@contextmanager
def bench(folder: Path, **plan: Any) -> Iterator[Started]:
    asked = json.dumps({"dir": str(folder), "size_bytes": 16 << 20, "seconds": 0.3, **plan})
    # A file: who hangs holds a pipe open.
    with (
        (folder.parent / "lines").open("w+") as lines,
        subprocess.Popen(
            [sys.executable, "-c", _BENCH, asked], cwd=SOURCES, stdout=lines
        ) as process,
    ):
        yield Started(process, lines)


def troubles(lines: list[dict[str, Any]]) -> list[str]:
    """What the jobs of it are said to have met."""
    text = "\n".join(map(json.dumps, lines))
    jobs = assemble("x", [Raw("x", "io-bench", ("python3",), 0, text)]).host.fio_jobs
    assert not isinstance(jobs, Missing)
    return [str(one.trouble) for one in jobs if one.ended is not True]


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A directory, and the file that its server does not answer beside."""
    flag = tmp_path / "hangs"
    with served(tmp_path / "at", "--hang-while", str(flag)) as at:
        try:
            yield at, flag
        finally:
            flag.unlink(missing_ok=True)


def test_a_server_that_does_not_answer_is_named(hanging: tuple[Path, Path]) -> None:
    at, flag = hanging
    flag.touch()
    with bench(at) as run:
        [told] = run.told(8)
    assert (told["kind"], told["preflight"]) == ("hung", "io-bench/1")
    assert told["text"].startswith(f"{at} does not answer: nothing for 1 s while it was looked at")
    assert f"fuse.lab on lab, mounted at {at}" in told["text"]
    [trouble] = troubles([told])
    assert trouble.startswith(f"{at} does not answer")


def test_one_that_stops_while_fio_is_at_work(hanging: tuple[Path, Path]) -> None:
    needs_fio()
    at, flag = hanging
    with bench(at, seconds=3, job_file=JOB) as run:
        wait_for(lambda: any(at.glob(".preflight-io.*/a.0.0")), 10)
        flag.touch()
        lines = run.told(15)
    assert [one["kind"] for one in lines] == ["begin", "proof", "job", "fio"]
    [trouble] = troubles(lines)
    assert trouble == f"fio did not end in time, and was killed: {at} does not answer"
    flag.unlink()  # the server is back
    wait_for(lambda: not any(at.iterdir()), 10)


def test_a_frozen_file_system(tmp_path: Path) -> None:
    with frozen_directory(tmp_path) as at:
        with bench(at, size_bytes=1 << 20, measure=False) as run:
            lines = run.told(15)
        assert [one["kind"] for one in lines] == ["hung"]
        assert "ext4 on /dev/loop" in lines[0]["text"]
    assert not list(at.iterdir())


def test_ctrl_c_and_the_questions_meanwhile(hanging: tuple[Path, Path]) -> None:
    at, flag = hanging
    flag.touch()
    where = at.parent
    with subprocess.Popen(
        [PREFLIGHT, "io-bench", "--dir", str(at), "--only", "io.*"], cwd=where, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        # Who keeps what came so far looks for a place: none on that file system.
        env={**os.environ, "TMPDIR": str(at), "PREFLIGHT_LOCK": str(where / "lock")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:  # fmt: skip
        # Asked as a share would be, and sooner; tests beside this one see no share that hangs.
        changes = {f"timeout -k 1 {ANSWER_S} ": "timeout -k 1 1 ", "180": "40",
                   "fuse[.]sshfs": "fuse[.]lab"}  # fmt: skip
        argv = list(mounts.probe.command.argv)  # type: ignore[attr-defined]
        for old, new in changes.items():
            assert old in argv[-1]
            argv[-1] = argv[-1].replace(old, new)
        with (where / "answers").open("w+") as answers:  # as above
            subprocess.run(argv, stdout=answers, check=True, timeout=10)
            answers.seek(0)
            found = mounts(answers.read().replace("fuse.lab", "fuse.sshfs"))
        run.send_signal(signal.SIGINT)
        assert ended(run, 5) == 130
    assert not isinstance(found, Missing)
    assert [one.name for one in found.mounts if one.answers is False] == [str(at)]


def test_a_quota(tmp_path: Path) -> None:
    """What could not be tried for want of room is no fault of what was to be tried."""
    needs_fio()
    (tmp_path / "my.fio").write_text("[a]\nrw=write\nbs=1m\nsize=64m\ndirect=0\n")
    with served(tmp_path / "at", "--quota", str(8 << 20)) as at:
        ran = preflight("io-bench", "--dir", str(at), "--job", str(tmp_path / "my.fio"),
                        "--size", "64M", "--only", "io.*")  # fmt: skip
        assert ran.rc == 1
        assert "error 122: Disk quota exceeded" in ran.out
        assert "quota -s" in ran.out
        (at / "full").write_bytes(bytes(8 << 20))
        with bench(at, measure=False) as run:
            lines = run.told(10)
        assert [one.name for one in at.iterdir()] == ["full"]
    [proof] = proofs_in("\n".join(map(json.dumps, lines)), "io-bench")
    assert isinstance(proof.read_back, Missing)
    assert proof.read_back.text == "it could not be tried: the quota is exceeded there"
    assert proof.flock == "works"
