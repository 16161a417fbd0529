"""Hosts without an answer: equal ones once, with the words and the commands of their fault."""

from __future__ import annotations

import re

import pytest

from preflight.faults import FAULTS
from preflight.model import MissingProbe, Result, Status
from preflight.reports.silent import answered, silences
from preflight.verdict import with_fleet
from tests.reports.built import HOSTILE, host, passed, report, text_of
from tests.reports.fleet import broken, cluster

GOOD = passed("a.b", "gpu0", 1, "1")


def test_texts_that_differ_in_the_name_alone_are_told_once() -> None:
    hosts = [broken(f"n{i}", "refused", f"connect to n{i} port 22: refused") for i in (1, 2, 10)]
    (one,) = silences(hosts)
    assert one.hosts == ["n1", "n2", "n10"]
    assert one.texts == [("connect to n[1-2,10] port 22: refused", ["n1", "n2", "n10"])]
    text = text_of(report(*hosts, host("n3", GOOD)))
    assert "ERROR  n[1-2,10]  the connection is refused\n       said:   connect to n[1-2," in text


def test_of_one_host_its_own_text_and_commands_are_told() -> None:
    (one,) = silences([broken("n1", "no-route", "n1.example: no route; n10 has one")])
    assert one.texts == [("n1.example: no route; n10 has one", ["n1"])]
    assert one.steps == ("the way to the address above: ip route get ADDRESS",)


def test_different_texts_of_one_fault_are_told_with_their_hosts() -> None:
    hosts = [broken(f"n{i}", "died", f"after {i // 2} s") for i in range(2, 6)]
    text = text_of(report(*hosts))
    assert "ERROR  n[2-5]  the connection broke off\n" in text
    assert "said:   n[2-3]: after 1 s\n               n[4-5]: after 2 s\n" in text


def test_faults_stay_apart_and_the_most_hosts_come_first() -> None:
    hosts = [broken("n1", "refused", "x"), broken("n2", "denied", "x"), broken("n3", "denied", "x")]
    assert [(one.fault, one.hosts) for one in silences(hosts)] == [
        ("denied", ["n2", "n3"]),
        ("refused", ["n1"]),
    ]


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("node-down", "scontrol show node 'n[1-2]'"),
        ("died", "did it crash or reboot? last -x | head, on n[1-2]"),
        ("proxy", "ssh -v n1 true"),
        ("node-unknown", "sinfo -N -l"),
    ],
)
def test_a_command_gets_as_many_names_as_it_takes(fault: str, step: str) -> None:
    (one,) = silences([broken("n1", fault, "x"), broken("n2", fault, "x")])
    assert step in one.steps


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_reads_well_and_names_the_host(fault: str) -> None:
    text = text_of(report(broken("n1", fault, "what was tried"), host("n2", GOOD)))
    assert f"ERROR  n1  {FAULTS[fault].title}\n       said:   what was tried\n" in text
    assert not re.search(r"\bHOST\b", text)
    assert text.count("  do:") == bool(FAULTS[fault].do)


def test_a_host_that_broke_off_is_told_beside_its_results() -> None:
    told = report(broken("n1", "died", "n1 broke off", GOOD), host("n2", GOOD))
    text = text_of(told)
    assert "ERROR  n1  the connection broke off; what came before that is judged\n" in text
    assert text.count("n1 broke off") == 1
    assert "2 hosts, 2 answered (1 not to the end), 1 passed" in text
    assert told.hosts[0].verdict is Status.ERROR


def test_without_a_fault_what_was_said_stands_for_it() -> None:
    gone = [MissingProbe("x", "unreadable", "it is no report")]
    text = text_of(report(host("a", missing=gone), host("b", missing=gone), host("c")))
    assert "ERROR  a, b  unreadable: it is no report\n" in text or "ERROR  a,b  unre" in text


def test_files_that_could_not_be_read_are_one_block() -> None:
    files = [host(name, missing=[MissingProbe(name, "unreadable", f"is no {i}")])
             for i, name in enumerate(("a.bin", "b.bin"))]  # fmt: skip
    text = text_of(report(*files, host("n1", GOOD)))
    assert "ERROR  a.bin, b.bin  could not be read" in text.replace("a.bin,b.bin", "a.bin, b.bin")
    assert "said:   a.bin: unreadable: is no 0\n               b.bin: unreadable: is no 1\n" in text


def test_a_name_for_the_shell_is_quoted() -> None:
    (one,) = silences([broken("$(reboot)", "proxy", "x")])
    assert one.steps == ("ssh -v '$(reboot)' true",)


def test_hostile_texts_stay_text() -> None:
    text = text_of(report(broken(HOSTILE, "refused", HOSTILE), host("n2", GOOD)))
    assert all(char == "\n" or char >= " " for char in text)


def test_of_128_hosts_the_whole_is_short() -> None:
    text = text_of(cluster())
    assert text.count("\n") < 85
    for said in ("node030  the connection is refused", "node099  it gave no answer in time"):
        assert said in text


def test_a_host_that_was_only_compared_is_told_of_where_nothing_could_be() -> None:
    lacks = MissingProbe("driver", "no-tool", "nvidia-smi: not found")
    hosts = [host(f"n{i}", missing=[lacks], summary="Ubuntu") for i in range(3)]
    with_fleet(hosts, [Result("fleet.x", "n[0-1]", Status.PASS)], {"n0", "n1"})
    assert [(one.status, one.hosts, one.title) for one in silences(hosts)] == [
        (Status.ERROR, ["n2"], "")
    ]
    assert [answered(one) for one in hosts] == [True] * 3
    gone = broken("n3", "refused", "x")
    assert not answered(gone)
    assert not answered(host("n4", missing=[MissingProbe("ssh", "unreachable", "x")]))
    assert answered(host("n5"))
