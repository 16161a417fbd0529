"""Keys over SSH: of hosts that are new, and of users that are encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.asking import asked, by_host, faults, the_fault
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import lab

pytestmark = pytest.mark.lab


def test_a_new_host_key_is_accepted_where_the_user_says_so(tmp_path: Path) -> None:
    hosts = {"new": LabHost(key="unknown"), "other": LabHost(key="changed")}
    with lab(tmp_path, hosts) as own:
        words = ("new,other", "--accept-new-host-keys")
        first = by_host(asked(own, *words))
        assert faults(first["new"]) == [] and first["new"].results
        assert faults(first["other"]) == ["host-key-changed"]  # that is no new one
        assert faults(by_host(asked(own, "new"))["new"]) == []  # it was written down
        done = own.run("ssh", "-o", "BatchMode=yes", "new", "true")
        assert done.returncode == 0, done.stderr


def test_an_encrypted_key_is_told_and_the_agent_opens_it(tmp_path: Path) -> None:
    with lab(tmp_path, {"node-1": LabHost()}) as own:
        key, socket = "/srv/client/.ssh/id_ed25519", "/srv/run/agent"
        env = {"SSH_AUTH_SOCK": socket}
        assert own.run("ssh-agent", "-a", socket).returncode == 0
        assert own.run("ssh-add", key, env=env).returncode == 0
        assert own.run("ssh-keygen", "-q", "-p", "-N", "secret", "-f", key).returncode == 0
        locked = the_fault(by_host(asked(own, "node-1"))["node-1"])
        assert locked.fault == "denied"
        assert "encrypted" in locked.text and "ssh-add" in locked.text
        opened = by_host(asked(own, "node-1", env=env))["node-1"]
        assert faults(opened) == [] and opened.results
