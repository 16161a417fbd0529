"""preflight io-bench --url, on a real server that speaks S3: what is asked, announced and told, and
that nothing stays behind however it ends, nor a secret anywhere."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import preflight as source
from tests.cli.command import Ran, preflight
from tests.conftest import require
from tests.lab import s3

URL = f"s3://{s3.BUCKET}/runs/me"


def bench(*more: str) -> Ran:
    return preflight("io-bench", "--url", URL, "--python", sys.executable, "--size", "64M",
                     "--runtime", "2s", *more)  # fmt: skip


def needs_s3fs() -> None:
    require("s3fs", find_spec("s3fs") is not None)


def test_it_is_announced_measured_judged_recorded_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_s3fs()
    store = s3.Store(objects={"runs/me/theirs": b"x"}, corrupts=3)
    with s3.serving(store) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        ran = bench("--format", "json", "--save", str(tmp_path / "x.capture.gz"), "--set",
                    "objects.get.bandwidth=1000000")  # fmt: skip
    assert list(store.objects) == ["runs/me/theirs"]
    assert f"puts at most 64 MiB below {URL} and gets as much, in at most 1," in ran.err
    report = json.loads(ran.out)
    (host,) = report["hosts"]
    found = {one["check"]: one["status"] for one in host["results"]}
    assert (ran.rc, found.pop("objects.content"), found.pop("objects.get.bandwidth")) == (
        1, "FAIL", "FAIL",
    )  # fmt: skip
    assert found["objects.reached"] == found["objects.listed"] == "PASS"
    assert found["objects.failures"] == "SKIP"
    assert not [one for one in found if not one.startswith("objects.")]

    (table,) = report["measurements"]
    assert table["table"] == URL
    assert next(iter(table["numbers"])) == "put 16 KiB, 1 at once"
    captured = gzip.decompress((tmp_path / "x.capture.gz").read_bytes()).decode()
    for secret in (s3.KEY, s3.SECRET):
        assert secret not in ran.out + ran.err + captured
    again = preflight("io-bench", "--from", str(tmp_path / "x.capture.gz"), "--format", "json")
    assert json.loads(again.out)["measurements"] == [table]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    needs_s3fs()
    store = s3.Store(objects={"runs/me/theirs": b"x"}, slow_s=0.05)
    with (
        s3.serving(store) as environment,
        subprocess.Popen(
            [sys.executable, "-m", "preflight", "io-bench", "--url", URL, "--python",
             sys.executable], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
            env={**os.environ, **environment, "PREFLIGHT_LOCK": str(tmp_path / "lock"),
                 "TMPDIR": str(tmp_path)},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as run,
    ):  # fmt: skip
        wait_for(lambda: len(store.objects) > 5, 30)
        run.send_signal(number)
        assert run.wait(timeout=15) == (-9 if number == signal.SIGKILL else 130)
        wait_for(lambda: list(store.objects) == ["runs/me/theirs"], 20)


def wait_for(holds: Callable[[], bool], limit_s: float) -> None:
    """Poll until it holds; AssertionError where it does not in time."""
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_a_python_without_fsspec_says_what_to_type(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -S -I "$@"\n')  # -I is there already
    bare.chmod(0o755)
    ran = preflight("io-bench", "--url", "memory://x", "--python", str(bare),
                    PYTHONPATH=str(Path(source.__file__).parents[1]))  # fmt: skip
    assert ran.rc == 3
    told = " ".join(ran.out.split())
    assert "has no fsspec" in told
    assert "pip install fsspec s3fs" in told or "--python /" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("--url", "s3://key:hunter2@bucket/x"), "AWS_PROFILE"),
     (("--url", "https://bucket.s3.amazonaws.com/x?X-Amz-Signature=hunter2"), "nothing can be put"),
     (("--url", "s3://bucket/x?token=hunter2"), "a prefix without"),
     (("--url", "s3:///hunter2"), "expected a bucket"),
     (("--url", "az://box;AccountKey=hunter2/x"), "without keys, tokens"),
     (("--url", "s3://bucket/x;token=hunter2"), "without keys, tokens"),
     (("--url", "zip://x"), "no store of objects"), (("--url", "dir://x"), "no store of objects"),
     (("--url", "s3://bucket/*/hunter2"), "a prefix without"),
     (("--url", "s3://bucket/../hunter2"), "a prefix without .."),
     (("--url", "simplecache::s3://bucket/hunter2"), "--url s3://BUCKET/PREFIX"),
     (("--url", ""), "--url s3://BUCKET/PREFIX"),
     (("--url", "s3://b/x", "--dir", "/tmp"), "--dir is of files"),
     (("--url", "s3://b/x", "--from", "x.json"), "--from reads what was recorded"),
     (("--url", "s3://b/x", "--size", "1M"), "--size 1M is out of range"),
     (("--url", "s3://b/x", "--runtime", "3d"), "--runtime 3d is out of range")],
)  # fmt: skip
def test_what_is_refused(arguments: tuple[str, ...], told: str) -> None:
    ran = preflight("io-bench", *arguments)
    assert (ran.rc, told in ran.err, "hunter2" in ran.out + ran.err) == (2, True, False)


def test_nothing_is_asked_where_it_is_a_dry_run() -> None:
    ran = preflight("io-bench", "--url", "s3://bucket/x", "--dry-run")
    assert ran.rc == 0
    assert "puts at most 256 MiB below s3://bucket/x" in ran.out
    assert "fio" not in ran.out
    assert "would write nothing that stays" in ran.out
