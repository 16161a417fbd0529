"""Ctrl-C while the command line is still being read: one line and the status of an interruption."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Runs preflight as its console script does; Ctrl-C comes when the named module is looked for.
START = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

wanted, ignored = sys.argv.pop(1), sys.argv.pop(1)
if ignored == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, Finder())
from preflight.__main__ import main
sys.exit(main())
"""
#: In the order in which they are read: before the command line is, and after it.
READ = ("preflight.cli.app", "typer", "preflight.cli.options", "preflight.cli.streams",
        "preflight.cli.topo", "preflight.cli.judging")  # fmt: skip


def start(wanted: str, how: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", START, wanted, how, "topo", "--from", "/dev/null"]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("wanted", READ)
def test_it_ends_with_one_line(wanted: str) -> None:
    done = start(wanted, "heard")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "interrupted; there is no report"


@pytest.mark.parametrize("wanted", READ)
def test_a_caller_that_has_it_ignored_is_heeded(wanted: str) -> None:
    done = start(wanted, "ignored")
    assert done.returncode == 2
    assert "interrupted" not in done.stderr


def test_the_console_script_starts_there_too() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '\n[project.scripts]\npreflight = "preflight.__main__:main"\n' in project
