"""One run of fio, in a directory of its own: a child that ends with us, with its processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from typing import Any, NamedTuple

from .. import scratch
from ..parent import die_with_launcher
from .watched import within

#: Beyond the time of its jobs: it starts, lays files out, syncs at the end.
_BEYOND_S, _LAST_S = 30.0, 5.0
_SAID = 4000
_PARSES_S, _SAID_OF_A_JOB = 10.0, 200
_BEGIN = re.compile(r'\{\s*"fio version"')


class Ran(NamedTuple):
    """`report`: fio's own, None where it wrote none. `said`: what else it said. `hung`: it did not
    end in time."""

    status: int
    report: dict[str, Any] | None
    said: str
    hung: bool = False


def program() -> str:
    """Where fio is; "" where it is not."""
    return shutil.which("fio", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin") or ""


def refuses(job_file: str) -> str:
    """What fio finds wrong with the text; "" where nothing, or where there is no fio."""
    if not program():
        return ""
    within(_PARSES_S + _LAST_S, "fio read the job file")
    try:
        done = subprocess.run(
            [program(), "--parse-only", "-"], input=job_file, capture_output=True, text=True,
            errors="replace", timeout=_PARSES_S, env=_environment(), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""  # what does not end here is told when it runs
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "; ".join(said[:2])[:_SAID_OF_A_JOB] or "no reason given" if done.returncode else ""


def run(arguments: list[str], folder: str, seconds: float) -> Ran:
    """fio with these arguments, its files in `folder`, for so many seconds of its jobs."""
    within(seconds + _BEYOND_S + 3 * _LAST_S, "fio was at work")
    held = (scratch._sweeper,) if scratch._sweeper >= 0 else ()
    child = subprocess.Popen(
        [program(), "--output-format=json", *arguments], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True, pass_fds=held, preexec_fn=_with_us, env=_environment(),
    )  # fmt: skip
    try:
        out, said, hung = _told(child, seconds)
    finally:
        _end(child, signal.SIGKILL)
    begin = _BEGIN.search(out)
    report = None
    if begin:
        with contextlib.suppress(ValueError):
            report = json.JSONDecoder(strict=False).raw_decode(out, begin.start())[0]
    said = "\n".join(filter(None, (out[: begin.start()] if begin else out, said)))
    return Ran(child.returncode if child.returncode is not None else -9, report, said[:_SAID], hung)


def _with_us() -> None:
    """Who kills us kills it; its processes, which hold the sweeper's pipe, end by their time."""
    die_with_launcher(signal.SIGKILL)


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _told(child: subprocess.Popen[str], seconds: float) -> tuple[str, str, bool]:
    """What it printed; asked to end where its time is over, so that it tells what was measured."""
    try:
        return (*child.communicate(timeout=seconds + _BEYOND_S), False)
    except subprocess.TimeoutExpired:
        _end(child, signal.SIGINT)
    try:
        return (*child.communicate(timeout=_LAST_S), False)
    except subprocess.TimeoutExpired:
        _end(child, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return (*child.communicate(timeout=_LAST_S), True)
    return "", "", True


def _end(child: subprocess.Popen[str], number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child.pid, number)
