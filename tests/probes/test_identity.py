"""Who answers: the question itself, put to this machine with tools of our own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from preflight.probes.identity import identity, locate
from tests.cli.command import with_tool
from tests.conftest import require

TOOLS = ("sh", "cat", "id", "uname")


def _asked(path: str) -> str:
    argv = list(identity.probe.command.argv)  # type: ignore[attr-defined]
    env = {"PATH": path, "LC_ALL": "C"}
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=True).stdout


def _path(base: Path) -> str:
    """A PATH with the tools that the question needs, and none that tells a host's name."""
    tools = base / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = next((p for d in ("/usr/bin", "/bin") if (p := Path(d) / tool).exists()), None)
        require(tool, found is not None)
        if found:
            (tools / tool).symlink_to(found)
    with_tool(tools, "date", "echo 2026-01-02T03:04:05Z")
    return str(tools)


def test_the_name_is_what_hostname_tells(tmp_path: Path) -> None:
    path = _path(tmp_path)
    with_tool(Path(path), "hostname", "echo node-07")
    assert identity(_asked(path)).hostname == "node-07"


@pytest.mark.parametrize("hostname", ["", "exit 1"])
def test_without_it_the_name_is_the_kernels(tmp_path: Path, hostname: str) -> None:
    path = _path(tmp_path)
    if hostname:
        with_tool(Path(path), "hostname", hostname)
    kernels = subprocess.run(["uname", "-n"], capture_output=True, text=True, check=True)
    assert identity(_asked(path)).hostname == kernels.stdout.strip()


def test_the_line_that_shows_the_clock() -> None:
    text = "hostname node-07\nkernel 6.8\ndate 2026-01-02T03:04:05Z\n"
    assert locate(text, 1, "clock_offset_s") == 3
    assert locate(text, 1, "kernel") == 2
    assert locate("hostname node-07\n", 1, "date_s") == 1
