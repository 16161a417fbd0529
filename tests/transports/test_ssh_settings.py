"""What the SSH configuration says of the way to a host, and whose keys are looked for."""

from __future__ import annotations

import base64
from pathlib import Path

import paramiko
import pytest

from preflight.hostlists import parse
from preflight.transports.ssh.errors import KeyPolicy, RevokedKey, UnknownKey
from preflight.transports.ssh.known_hosts import KnownKey
from preflight.transports.ssh.settings import (
    Settings,
    connect_wait_s,
    known_hosts_files,
    load,
    target_of,
)


@pytest.mark.parametrize(
    ("hop", "target"),
    [
        ("gate", (None, "gate", None)),
        ("ops@gate:2222", ("ops", "gate", 2222)),
        ("ssh://ops@gate:2222/", ("ops", "gate", 2222)),
        ("fe80::1", (None, "fe80::1", None)),
        ("[fe80::1]:22", (None, "fe80::1", 22)),
    ],
)
def test_a_jump_host(hop: str, target: tuple[str | None, str, int | None]) -> None:
    assert target_of(hop) == target


JUMPS = """\
Host inner*
  ProxyJump gate
Host gate
  ProxyJump front:2222
Host far
  ProxyJump one,two
Host direct
  ProxyJump none
"""


@pytest.mark.parametrize(
    ("host", "hops"),
    [
        ("inner1", ("front:2222", "gate")),
        ("gate", ("front:2222",)),
        ("far", ("one", "two")),
        ("direct", ()),
        ("else", ()),
    ],
)
def test_the_way_to_a_host(host: str, hops: tuple[str, ...]) -> None:
    assert Settings(JUMPS).jumps(host) == hops


def test_a_jump_host_is_not_reached_by_itself() -> None:
    settings = Settings("Host *\n  ProxyJump gate\n")
    assert settings.jumps("node1") == ("gate",)
    assert settings.jumps("gate") == ()


def test_the_known_hosts_of_jump_hosts_are_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    folder.mkdir()
    (folder / "config").write_text(f"{JUMPS}Host inner1\n  HostName 10.0.0.1\n")
    key = base64.b64encode(b"key").decode()
    names = ("10.0.0.1", "gate", "[front]:2222", "elsewhere")
    (folder / "known_hosts").write_text("".join(f"{name} ssh-rsa {key}\n" for name in names))
    _, known = load(parse(["inner1"]).targets)
    assert set(known.by_name) == {"10.0.0.1", "gate", "[front]:2222"}


KEY = paramiko.ECDSAKey.generate()


def _policy(tmp_path: Path, *, accept: bool, marker: str = "") -> KeyPolicy:
    from threading import Lock

    lines = [KnownKey(KEY.get_name(), KEY.asbytes(), marker, "known_hosts:7")] if marker else []
    return KeyPolicy("node1", lines, tmp_path / ".ssh" / "known_hosts", accept, Lock())


def test_a_new_key_is_refused_or_with_leave_written_down(tmp_path: Path) -> None:
    client = paramiko.SSHClient()
    with pytest.raises(UnknownKey, match="no line for node1"):
        _policy(tmp_path, accept=False).missing_host_key(client, "node1", KEY)
    assert not (tmp_path / ".ssh").exists()
    _policy(tmp_path, accept=True).missing_host_key(client, "node1", KEY)
    written = (tmp_path / ".ssh" / "known_hosts").read_text()
    assert written == f"node1 {KEY.get_name()} {KEY.get_base64()}\n"


def test_a_revoked_key_is_refused_with_or_without_leave(tmp_path: Path) -> None:
    with pytest.raises(RevokedKey, match="known_hosts:7"):
        _policy(tmp_path, accept=True, marker="revoked").missing_host_key(
            paramiko.SSHClient(), "node1", KEY
        )
    assert not (tmp_path / ".ssh").exists()


def test_a_host_trusted_by_an_authority_names_the_way(tmp_path: Path) -> None:
    with pytest.raises(UnknownKey, match="--ssh system"):
        _policy(tmp_path, accept=True, marker="cert-authority").missing_host_key(
            paramiko.SSHClient(), "node1", KEY
        )


@pytest.mark.parametrize(
    ("told", "wait_s"), [({}, 10), ({"connecttimeout": "3"}, 3), ({"connecttimeout": "99"}, 30),
                         ({"connecttimeout": "none"}, 30), ({"connecttimeout": "1m"}, 30)],
)  # fmt: skip
def test_how_long_a_host_may_take_to_take_the_connection(
    told: dict[str, str], wait_s: float
) -> None:
    assert connect_wait_s(told, 10, 30) == wait_s


def test_no_known_hosts_file_is_no_file_called_none() -> None:
    user = {"userknownhostsfile": "none", "globalknownhostsfile": "/etc/ssh/known"}
    assert known_hosts_files(user) == [Path("/dev/null"), Path("/etc/ssh/known")]
    assert known_hosts_files({**user, "globalknownhostsfile": "none"}) == [Path("/dev/null")]
    assert known_hosts_files({"userknownhostsfile": "/a /b", "globalknownhostsfile": "none"}) == [
        Path("/a"), Path("/b"),
    ]  # fmt: skip
