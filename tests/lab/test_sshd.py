"""The SSH lab is what it says, seen with the ssh command: else tests in it would prove nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.fleet import HOSTS, TWIN
from tests.lab.ssh_hosts import USERS, LabHost
from tests.lab.sshd import Lab, lab

pytestmark = pytest.mark.lab

SHELLS = [user for user in USERS if user not in ("leaves", "nologin", "keyless")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    hosts = {**HOSTS, **{user: LabHost(user=user) for user in SHELLS}}
    with lab(tmp_path_factory.mktemp("lab"), hosts) as running:
        yield running


def ssh(made: Lab, *words: str) -> str:
    done = made.run("ssh", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("user", SHELLS)
def test_users_have_the_login_shells_that_they_are_called_after(made: Lab, user: str) -> None:
    # `true` after it, for many shells become the last command of a line.
    told = ssh(made, user, "sh -c 'cat /proc/$PPID/comm'; true")
    assert told.splitlines()[-1] == Path(USERS[user][0]).name


def test_each_host_answers_for_itself(made: Lab) -> None:
    ask = "uname -n; hostname; uname -r; cat /proc/sys/kernel/random/boot_id"
    told = {name: ssh(made, name, ask).split() for name in ("node-1", "node-2", "inner-1")}
    for name, (uname, hostname, release, _) in told.items():
        assert (uname, hostname, release) == (name, name, os.uname().release)
    assert len({boot_id for *_, boot_id in told.values()}) == 3
    assert ssh(made, "twin-b", "cat /proc/sys/kernel/random/boot_id").strip() == TWIN.boot_id


def test_hosts_behind_the_jump_host_are_reached_by_way_of_it_only(made: Lab) -> None:
    done = made.run("ssh", "-o", "BatchMode=yes", "-o", "ProxyJump=none", "inner-1", "true")
    assert "Network is unreachable" in done.stderr


def test_a_host_without_disk_has_none(made: Lab) -> None:
    for folder in ("/tmp", "/dev/shm", "~"):
        told = ssh(made, "full", f"echo x 2>&1 >{folder}/new || echo refused")
        assert "refused" in told or "No space left" in told


def test_a_lab_changes_nothing_outside(made: Lab) -> None:
    assert made.base.joinpath("keys").is_dir() and not Path("/srv/keys").exists()
    assert "/srv/home" not in Path("/etc/passwd").read_text()


def test_128_hosts_stand_in_seconds(tmp_path: Path) -> None:
    import time

    began = time.monotonic()
    with lab(tmp_path, {f"node{number:03}": LabHost() for number in range(1, 129)}) as many:
        assert time.monotonic() - began < 5
        assert ssh(many, "node128", "uname -n").strip() == "node128"
