"""Which hosts can take a job: nothing unknown, nothing failed, nothing odd among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.model import HostReport, MissingProbe, Report, Result, Status
from preflight.nodesets import fold, hosts_named
from preflight.reports.split import split_hosts
from preflight.reports.wording import verdict
from preflight.verdict import with_fleet
from tests.reports.built import host, passed, report, skipped, undetermined, warm, width
from tests.reports.fleet import broken, cluster, odd

GOOD = passed("a.b", "gpu0", 1, "1")


@pytest.mark.parametrize(
    ("one", "failed"),
    [
        (host("n1", GOOD), False),
        (host("n1", GOOD, skipped("a.c", "gpu0", "none")), False),
        (host("n1", GOOD, warm("gpu0", 90)), False),
        (host("n1", GOOD, width("gpu0", 1)), True),
        (host("n1", GOOD, undetermined("a.c", "gpu0", "lost")), True),
        (host("n1", skipped("a.c", "gpu0", "none")), True),
        (host("n1"), True),
        (broken("n1", "refused", "refused"), True),
        (broken("n1", "died", "broke off", GOOD), True),
    ],
)
def test_a_host_goes_where_it_belongs(one: HostReport, failed: bool) -> None:
    told = report(one, host("n2", GOOD))
    assert split_hosts(told) == ((["n2"], ["n1"]) if failed else (["n1", "n2"], []))


def test_a_host_of_which_a_whole_domain_is_unknown_fails_where_the_others_were_judged() -> None:
    gpu, disk = passed("gpu.x", "gpu0", 1, "1"), passed("host.y", "n", 1, "1")
    blind = host("n1", disk, skipped("gpu.x", "n1", "not in the input"))
    told = report(blind, *(host(f"n{i}", gpu, disk) for i in (2, 3)))
    assert split_hosts(told) == (["n2", "n3"], ["n1"])
    assert verdict(told).endswith("; nothing of gpu was verified on n1")
    # What only one of them was asked for lacks nowhere.
    more = report(host("n1", disk), host("n2", disk), host("n3", disk, gpu))
    assert split_hosts(more) == (["n1", "n2", "n3"], [])
    assert "nothing" not in verdict(more)


def test_that_the_others_are_alike_verifies_nothing_of_a_host() -> None:
    blind = host("n1", skipped("gpu.x", "n1", "not in the input"), summary="Ubuntu")
    alike = Result("fleet.x", "n[1-2]", Status.PASS, "same")
    told = report(blind, host("n2", passed("gpu.x", "gpu0", 1, "1")), fleet=[alike])
    assert split_hosts(told) == (["n2"], ["n1"])


def test_hosts_that_were_only_compared_pass_unless_they_are_odd() -> None:
    hosts = [host(f"n{i}", summary="Ubuntu") for i in range(1, 5)]
    fleet = [odd("n2"), odd("n3", status=Status.WARN)]
    with_fleet(hosts, fleet, {"n1", "n2", "n3"})
    told = report(*hosts, fleet=fleet)
    assert split_hosts(told) == (["n1", "n3"], ["n2", "n4"])
    assert split_hosts(told, strict=True) == (["n1"], ["n2", "n3", "n4"])


def test_with_strict_a_warning_is_a_failure() -> None:
    told = report(host("n1", GOOD, warm("gpu0", 90)), host("n2", GOOD))
    assert split_hosts(told, strict=True) == (["n2"], ["n1"])


def test_a_file_that_could_not_be_read_is_no_host() -> None:
    file = host("junk.bin", missing=[MissingProbe("junk.bin", "unreadable", "is not text")])
    assert split_hosts(report(file, host("n1", GOOD))) == (["n1"], [])


@pytest.mark.parametrize(
    ("status", "subject", "failed"),
    [
        (Status.FAIL, "n[1,3]", ["n1", "n3"]),
        (Status.ERROR, "n2 gpu3", ["n2"]),
        (Status.FAIL, "n[1-2] gpu[0-7], n3", ["n1", "n2", "n3"]),
        (Status.WARN, "n1", []),
        (Status.PASS, "n[1-4]", []),
        (Status.SKIP, "n1", []),
        (Status.FAIL, "", ["n1", "n2", "n3", "n4"]),
        (Status.FAIL, "all of them", ["n1", "n2", "n3", "n4"]),
        (Status.FAIL, "n1, n9", ["n1"]),
    ],
)
def test_a_host_that_is_odd_among_the_others_fails(
    status: Status, subject: str, failed: list[str]
) -> None:
    told = report(*(host(f"n{i}", GOOD) for i in range(1, 5)), fleet=[odd(subject, status=status)])
    assert split_hosts(told)[1] == failed


def test_of_the_cluster_the_bad_ones_and_no_others() -> None:
    passed_, failed = split_hosts(cluster())
    assert fold(failed) == "node[003,007,017,030,042,064,099,108,111]"
    assert len(passed_) + len(failed) == 128


@pytest.mark.parametrize(
    ("subject", "known", "named"),
    [
        ("node[03,07]", {"node03", "node07", "node08"}, {"node03", "node07"}),
        ("node07 gpu3", {"node07", "gpu3"}, {"node07"}),
        ("gpu[1-2] gpu3", {"gpu1", "gpu2", "gpu3"}, {"gpu1", "gpu2"}),
        ("node[07,09] gpu[0-7], web", {"node07", "web"}, {"node07", "web"}),
        ("a[1-2],b7", {"a1", "a2", "b7"}, {"a1", "a2", "b7"}),
        ("input of a.json gpu0", {"input of a.json", "input"}, {"input of a.json", "input"}),
        ("input of a.json, n1", {"input of a.json", "n1"}, {"input of a.json", "n1"}),
        ("rank 5", {"node07"}, set()),
        ("", {"node07"}, set()),
        ("node[07", {"node07"}, set()),
        ("node[1-999999999]", {"node07"}, set()),
        ("[2001:db8::7]", {"[2001:db8::7]"}, {"[2001:db8::7]"}),
    ],
)
def test_the_hosts_that_a_subject_names(subject: str, known: set[str], named: set[str]) -> None:
    assert hosts_named(subject, known) == named


_NAMES = st.lists(st.from_regex(r"(node|gpu|rack1-n)[0-9]{1,3}", fullmatch=True), min_size=1)


@given(_NAMES, _NAMES, st.sampled_from(["", " gpu[0-7]", " rank 5"]))
def test_what_was_folded_is_found_again(odd_ones: list[str], others: list[str], at: str) -> None:
    assert hosts_named(f"{fold(odd_ones)}{at}", {*odd_ones, *others}) == set(odd_ones)


@given(st.text(), st.sets(st.text(max_size=5), max_size=5))
def test_no_subject_names_a_host_that_is_not_there(subject: str, known: set[str]) -> None:
    assert hosts_named(subject, known) <= known


@given(st.lists(st.sampled_from(list(Status)), min_size=1, max_size=6))
def test_every_host_is_in_one_of_the_two(statuses: list[Status]) -> None:
    told: Report = report(
        *(host(f"n{i}", GOOD) for i in range(6)),
        fleet=[odd(f"n{i}", status=one) for i, one in enumerate(statuses)],
    )
    passed_, failed = split_hosts(told)
    assert sorted([*passed_, *failed]) == [f"n{i}" for i in range(6)]
