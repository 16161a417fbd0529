"""A bench of storage tries what a checkpoint takes for granted: who asks for that alone gets it
alone. Nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Ran, preflight

TRIED = ("rename", "fsync", "fsync_time", "directory_fsync", "read_back", "flock", "posix_lock",
         "map", "symlink")  # fmt: skip


def statuses(ran: Ran) -> dict[str, str]:
    (host,) = json.loads(ran.out)["hosts"]
    return {one["check"]: one["status"] for one in host["results"]}


@pytest.mark.parametrize("command", [("io-bench",), ("run", "--level", "standard")])
def test_what_is_asked_for_alone_is_tried_alone(tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    where = ("--dir", str(folder)) if command == ("io-bench",) else ()
    ran = preflight(*command, *where, "--only", "storage.proof.*", "--format", "json",
                    TMPDIR=str(folder))  # fmt: skip
    assert ran.rc == 0, ran.err
    found = statuses(ran)
    assert found.pop("storage.proof.other_hosts") == "SKIP"  # this one is alone
    assert found == {f"storage.proof.{name}": "PASS" for name in TRIED}
    assert "of at most 1.0 MiB" in ran.err or "of at most 1 MiB" in ran.err
    assert json.loads(ran.out).get("measurements", []) == []
    assert list(folder.iterdir()) == []
