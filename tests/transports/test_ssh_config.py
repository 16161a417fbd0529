"""The user's SSH configuration, with what it includes."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest

from preflight.errors import UsageError
from preflight.transports.ssh.config import Blocks, text_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh" / "conf.d").mkdir(parents=True)
    return tmp_path / ".ssh"


def _lookup(text: str, host: str) -> dict[str, str]:
    found: dict[str, str] = dict(paramiko.SSHConfig.from_text(text).lookup(host))
    return found


def test_included_files_stand_where_the_line_stood(home: Path) -> None:
    (home / "conf.d" / "a").write_text("Host node*\n  Port 2222\n")
    (home / "config").write_text(
        "Include conf.d/*\nHost head\n  User ops\n  Include conf.d/*\n  Port 2200\n"
    )
    text = text_of(home / "config")
    assert _lookup(text, "node1")["port"] == "2222"
    assert _lookup(text, "head")["user"] == "ops"
    assert _lookup(text, "head")["port"] == "2200"  # the block goes on after what was included
    assert "port" not in _lookup(text, "other")


def test_a_file_that_includes_itself_is_told(home: Path) -> None:
    (home / "config").write_text("Include config\n")
    with pytest.raises(UsageError, match="Include within Include"):
        text_of(home / "config")


def test_no_file_is_no_configuration(home: Path) -> None:
    assert text_of(home / "config") == ""


CONFIG = """\
User first
Host a b
  Port 1
Host=c
  Port 2
Host node* !node7
  Port 3
Match host d
  Port 4
Host *
  User last
  Port 9
"""


@pytest.mark.parametrize("host", ["a", "b", "c", "d", "node1", "node7", "else", "A", "a.b"])
def test_a_hosts_own_blocks_say_the_same_as_the_whole(host: str) -> None:
    assert _lookup(Blocks(CONFIG).text_for(host), host) == _lookup(CONFIG, host)


def test_blocks_of_other_hosts_are_left_out() -> None:
    text = "".join(f"Host h{number}\n  Port {number}\n" for number in range(1, 1000))
    assert Blocks(text).text_for("h7").split() == ["Host", "h7", "Port", "7"]


def test_what_a_block_includes_holds_for_the_hosts_of_that_block_only(home: Path) -> None:
    (home / "conf.d" / "a").write_text(
        "Port 7799\nHost node2\n  HostName 10.0.0.9\nHost *\n  User x\n"
    )
    (home / "config").write_text("Host zz* !zz9\n  Include conf.d/*\nHost *\n  User last\n")
    text = text_of(home / "config")
    assert _lookup(text, "node2") == {"hostname": "node2", "user": "last"}
    assert _lookup(text, "zz1")["port"] == "7799"
    assert _lookup(text, "zz1")["user"] == "x"
    assert "port" not in _lookup(text, "zz9")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("HostName 10.0.0.1 # the first one", "10.0.0.1"),
        ("HostName node#1", "node#1"),
        ('HostName "a # b"', "a # b"),
    ],
)
def test_a_comment_at_the_end_of_a_line_is_none_of_it(home: Path, line: str, value: str) -> None:
    (home / "config").write_text(f"Host n\n  {line}\n")
    assert _lookup(text_of(home / "config"), "n")["hostname"] == value


def test_a_command_may_hold_what_looks_like_a_comment(home: Path) -> None:
    (home / "config").write_text("Host n\n  ProxyCommand sh -c 'nc a 22 # x'\n")
    assert _lookup(text_of(home / "config"), "n")["proxycommand"] == "sh -c 'nc a 22 # x'"
