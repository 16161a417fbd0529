"""Running the command as a user does, with tools of our own in PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

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
    """Run the installed command; its output decoded, its exit status kept.

    `under` is a command that runs it elsewhere, as sudo and unshare do.
    """
    done = subprocess.run(
        [*under, PREFLIGHT, *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **env},
        timeout=120,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


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
