"""Running the command as a user does, with tools of our own in PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tests.cli.started import started

PREFLIGHT = Path(sys.executable).with_name("preflight")


class Ran(Struct):
    """How it ended."""

    rc: int
    out: str
    err: str


def preflight(
    *arguments: str,
    stdin: bytes = b"",
    cwd: Path | None = None,
    under: Sequence[str] = (),
    **env: str,
) -> Ran:
    """Run the command as installed; its output decoded, its exit status kept.

    `under` is a command that runs it elsewhere, as sudo and unshare do.
    """
    whole = {**os.environ, **env}
    argv = [*under, str(PREFLIGHT), *arguments]
    if not under and started().alike(whole):
        return _copied(argv, stdin, cwd or Path.cwd(), whole)
    done = subprocess.run(argv, input=stdin, capture_output=True, cwd=cwd, env=whole, timeout=120)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def _copied(argv: list[str], stdin: bytes, cwd: Path, env: dict[str, str]) -> Ran:
    """The same by a copy of a process that has read the modules, between pipes as well."""
    (in_, feed), (out, told), (err, said) = os.pipe(), os.pipe(), os.pipe()
    with ThreadPoolExecutor(3) as beside:
        beside.submit(_feed, feed, stdin)
        texts = [beside.submit(_read, one) for one in (out, err)]
        try:
            status = started().run(argv, (in_, told, said), env, cwd)
        finally:
            for stream in (in_, told, said):
                os.close(stream)
        return Ran(status, *(one.result().decode() for one in texts))


def _feed(stream: int, text: bytes) -> None:
    with suppress(BrokenPipeError), open(stream, "wb") as file:
        file.write(text)


def _read(stream: int) -> bytes:
    with open(stream, "rb") as file:
        return file.read()


def with_tool(folder: Path, name: str, script: str) -> str:
    """A PATH in which `name` is this shell script, before everything else."""
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def replaying(folder: Path, text: str | bytes, then: str = "exit 0") -> str:
    """A PATH in which nvidia-smi prints `text`, then does `then`."""
    answer = folder / "answer"
    folder.mkdir(exist_ok=True)
    answer.write_bytes(text.encode() if isinstance(text, str) else text)
    return with_tool(folder, "nvidia-smi", f"cat {answer}; {then}")
