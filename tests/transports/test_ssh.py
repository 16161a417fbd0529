"""What hosts reached at the same time share."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabric import Config

from preflight.hostlists import parse
from preflight.transports.ssh import builtin as ssh


def test_a_connection_leaves_the_configuration_alone_that_other_threads_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    way = ssh.make(parse(["node-[1-2]"]).targets)

    def merge(_config: Config) -> None:
        raise AssertionError("the configuration is built anew, and is empty meanwhile")

    monkeypatch.setattr(Config, "merge", merge)
    for name in ("node-1", "node-2"):
        assert way._connection(name, None, None, None).host == name
