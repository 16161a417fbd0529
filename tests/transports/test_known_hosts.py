"""The lines of known_hosts that are about the hosts of a run."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from preflight.transports.ssh.known_hosts import name_of, read

KEY = base64.b64encode(b"a key").decode()


def _hashed(name: str) -> str:
    salt = b"12345678901234567890"
    told = hmac.digest(salt, name.encode(), hashlib.sha1)
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, told))


@pytest.mark.parametrize(
    ("hosts", "name", "found"),
    [
        ("node1", "node1", True),
        ("Node1,10.0.0.1", "node1", True),
        ("node1", "node11", False),
        ("node*", "node7", True),
        ("node*,!node7", "node7", False),
        ("node?", "node12", False),
        ("[node1]:2222", "[node1]:2222", True),
        ("[node*]:2222", "[node1]:2222", True),
        ("[node1]:2222", "node1", False),
        (_hashed("node1"), "node1", True),
        (_hashed("node1"), "node2", False),
        ("|1|broken", "node1", False),
    ],
)
def test_which_lines_are_about_a_host(tmp_path: Path, hosts: str, name: str, found: bool) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"# a comment\n\n{hosts} ssh-ed25519 {KEY} comment\n")
    keys = read([file], [name]).of(name, [file])
    assert bool(keys) is found
    if found:
        assert (keys[0].kind, keys[0].blob, keys[0].marker) == ("ssh-ed25519", b"a key", "")
        assert keys[0].source == f"{file}:3"


def test_markers_and_damage(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(
        f"@revoked node1 ssh-rsa {KEY}\n@cert-authority *.x ssh-rsa {KEY}\nnode1 ssh-rsa\n"
        f"node1 ssh-rsa !!!\n".encode()
        + b"\xff\xfe node1\n"
    )
    known = read([file, tmp_path / "absent"], ["node1", "a.x"])
    assert [key.marker for key in known.of("node1", [file])] == ["revoked"]
    assert [key.marker for key in known.of("a.x", [file])] == ["cert-authority"]
    assert known.of("node1", [tmp_path / "absent"]) == []  # another host's files


def test_the_name_has_the_port_where_it_is_not_22() -> None:
    assert name_of("node1", 22) == "node1"
    assert name_of("node1", 2222) == "[node1]:2222"
