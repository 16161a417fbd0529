"""Which hosts a text stands for."""

from __future__ import annotations

import pytest

from preflight.errors import UsageError
from preflight.hostlists import Target, lines, parse


def _names(*texts: str) -> list[str]:
    return [target.name for target in parse(texts).targets]


def test_sets_lists_users_and_ports() -> None:
    assert _names("node[01-03]", "login") == ["node01", "node02", "node03", "login"]
    assert parse(["ops@db[1-2]:2222"]).targets == [
        Target("db1:2222", "db1", "ops", 2222),
        Target("db2:2222", "db2", "ops", 2222),
    ]


def test_a_comma_within_brackets_belongs_to_the_set() -> None:
    assert _names("node[1,3],head") == ["node1", "node3", "head"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("fe80::1", Target("fe80::1", "fe80::1")),
        ("[::1]:22", Target("[::1]:22", "::1", None, 22)),
        ("ops@[2001:db8::7]:2222", Target("[2001:db8::7]:2222", "2001:db8::7", "ops", 2222)),
        ("10.0.0.1:22", Target("10.0.0.1:22", "10.0.0.1", None, 22)),
    ],
)
def test_addresses(text: str, target: Target) -> None:
    assert parse([text]).targets == [target]


def test_a_host_named_twice_is_asked_once_and_told() -> None:
    found = parse(["node[1-2]", "node2,node1", "node3"])
    assert [target.name for target in found.targets] == ["node1", "node2", "node3"]
    assert found.repeated == ["node2", "node1"]


@pytest.mark.parametrize(
    "text", ["a b", "@x", "user@", "x:99999", "x:0", "a;b", "-oProxyCommand=x", "$(id)", "u;@x"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse([text])


def test_lines_of_a_hostfile() -> None:
    text = "# ours\nnode1 slots=8\nnode1 slots=8\n\n  node[2-3]  # rack 2\nops@head:2222\n"
    assert lines(text) == ["node1", "node[2-3]", "ops@head:2222"]
    assert lines("node1 node2\tnode3\n") == ["node1", "node2", "node3"]
