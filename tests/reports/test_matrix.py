"""Hosts by domains: who is alike, worst first, on lines that fit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.model import HostReport, MissingProbe, Report, Result, Status
from preflight.reports.blocks import View
from preflight.reports.layout import cells, plain
from preflight.reports.matrix import kinds, matrix
from preflight.reports.text import lines
from preflight.reports.wording import DOMAINS
from preflight.verdict import with_fleet
from tests.reports.built import (
    host,
    one_host,
    passed,
    report,
    skipped,
    text_of,
    undetermined,
    warm,
    width,
)
from tests.reports.fleet import broken, cluster, odd


def shown(told: Report, columns: int = 100, verbose: int = 0) -> list[str]:
    return [plain(line) for line in matrix(told, View(columns, verbose, hosts=True))]


def test_one_host_has_none() -> None:
    assert shown(one_host()) == []


def test_a_file_that_could_not_be_read_is_no_host() -> None:
    file = host("junk.bin", missing=[MissingProbe("junk.bin", "unreadable", "is not text")])
    told = report(file, host("n1", passed("gpu.a", "gpu0", 1, "1")), command="run")
    assert shown(told) == []
    text = text_of(told)
    assert "GPUs  PASS   1 passed" in text
    assert "ERROR  junk.bin  unreadable: is not text" in text


def test_the_cluster_reads_at_a_glance() -> None:
    assert shown(cluster()) == [
        "                       gpu   pcie  nvlink  dcgm  fabric  kernel  fleet",
        "node064                FAIL  PASS  PASS    -     PASS    PASS    WARN",
        "node[003,007]          PASS  PASS  PASS    -     PASS    PASS    FAIL",
        "node[017,042,108]      PASS  FAIL  PASS    -     PASS    PASS    WARN",
        "node[030,099]          gave no answer",
        "node111                PASS  PASS  PASS    -     -       ERR     WARN",
        "node[021-023,080,090]  WARN  PASS  PASS    -     PASS    PASS    WARN",
        "the other 114 hosts    PASS  PASS  PASS    -     PASS    PASS    WARN",
    ]


@pytest.mark.parametrize(
    ("results", "mark"),
    [
        ([passed("gpu.a", "gpu0", 1, "1"), warm("gpu0", 90)], "WARN"),
        ([undetermined("gpu.a", "gpu0", "lost"), warm("gpu0", 90)], "ERR"),
        ([undetermined("gpu.a", "gpu0", "lost"), width("gpu0", 1)], "ERR   FAIL"),
        ([skipped("gpu.a", "gpu0", "none")], "-"),
        ([passed("gpu.a", "gpu0", 1, "1"), skipped("gpu.b", "gpu0", "none")], "PASS"),
    ],
)
def test_a_cell_holds_the_worst(results: list[Result], mark: str) -> None:
    (line,) = (one for one in shown(report(host("n1", *results), broken("n2", "died", "x")))
               if one.startswith("n1"))  # fmt: skip
    assert line == f"n1  {mark}"


def test_what_was_found_over_the_fleet_is_the_column_of_those_it_names() -> None:
    good = passed("gpu.a", "gpu0", 1, "1")
    told = report(*(host(f"n{i}", good) for i in range(1, 5)), fleet=[odd("n[2,4] gpu0")])
    assert shown(told)[1:] == ["n[2,4]  PASS  FAIL", "n[1,3]  PASS  -"]


def test_a_host_that_no_comparison_verified_is_none_of_those_that_pass() -> None:
    good = passed("gpu.a", "gpu0", 1, "1")
    blind = host("n1", skipped("gpu.a", "gpu0", "not in the input"), summary="Ubuntu")
    alike = Result("fleet.x", "n[1-2]", Status.PASS, "same")
    told = report(blind, host("n2", good), host("n3", good), fleet=[alike])
    assert sorted(shown(told)[1:]) == ["n1  -     -", "n2  PASS  PASS", "n3  PASS  -"]


def test_hosts_that_were_only_compared_have_answered() -> None:
    hosts = [host(f"n{i}", summary="Ubuntu") for i in range(1, 5)]
    fleet = [odd("n2")]
    with_fleet(hosts, fleet, {"n1", "n2", "n3"})
    told = report(*hosts, broken("n5", "died", "x"), fleet=fleet)
    assert shown(told) == [
        "        fleet", "n2      FAIL", "n5      gave no answer", "n[1,3]  PASS", "n4      -",
    ]  # fmt: skip
    text = text_of(told)
    assert "5 hosts, 4 answered, 2 passed or only warned of" in text
    assert "1 of 5 without results, nothing was verified on n4" in " ".join(text.split())


def many_kinds(count: int) -> Report:
    """Hosts of which no two are alike in all domains."""
    names = list(DOMAINS)[:5]
    hosts = []
    for i in range(count):
        marks = (passed(f"{name}.x", "s", 1, "1") if i >> at & 1 else
                 skipped(f"{name}.x", "s", "none") for at, name in enumerate(names))  # fmt: skip
        hosts.append(host(f"n{i}", *marks))
    return report(*hosts)


def test_more_kinds_than_one_reads_are_counted() -> None:
    text = shown(many_kinds(30))
    assert len(text) == 1 + 12 + 1
    assert text[-1] == "and 18 more kinds, 18 hosts (-v lists them)"
    assert len(shown(many_kinds(30), verbose=1)) == 31
    assert len(shown(many_kinds(13))) == 14


def test_columns_that_do_not_fit_are_left_out_where_nothing_is_wrong_in_them() -> None:
    names = list(DOMAINS)
    good = [passed(f"{name}.x", "s", 1, "1") for name in names[:-1]]
    told = report(
        host("n1", *good, skipped(f"{names[-1]}.x", "s", "none")),
        host("n2", *good, width("gpu0", 1)),
    )
    nothing = report(host("n1", *good), host("n2", *good[:-1]))
    assert len(shown(nothing)) > 4  # where nothing is wrong anywhere they go on below
    assert shown(told)[:3] == ["    pcie", "n2  FAIL", "n1  PASS"]
    assert "nothing was judged in site" in shown(told)
    assert any(one.startswith("nothing wrong was found in gpu, nvlink") for one in shown(told))


def test_columns_that_do_not_fit_and_matter_go_on_below() -> None:
    bad = [undetermined(f"{name}.x", "s", "lost") for name in DOMAINS]
    told = report(host("n1", *bad), broken("n2", "died", "x"))
    text = shown(told)
    assert sum(one.startswith("n1") for one in text) > 1
    assert sum(one.count("ERR") for one in text) == len(DOMAINS)


def test_every_host_is_in_one_row() -> None:
    rows = kinds(cluster())
    assert sorted(name for row in rows for name in row.hosts) == [
        one.host for one in cluster().hosts
    ]


_TEXT = st.text(max_size=60)
_RESULTS = st.lists(
    st.builds(Result, check=st.text("abc.\x1b\u4e2d", min_size=1, max_size=30), subject=_TEXT,
              status=st.sampled_from(Status)), max_size=4,
)  # fmt: skip
_FAULTS = st.lists(
    st.builds(MissingProbe, probe=_TEXT, kind=st.just("timeout"), text=_TEXT,
              fault=st.sampled_from(["", "died", "refused", "unheard-of"])), max_size=2,
)  # fmt: skip
_HOSTS: st.SearchStrategy[list[HostReport]] = st.lists(
    st.builds(lambda name, results, missing: host(name, *results, missing=missing),
              st.text(max_size=80), _RESULTS, _FAULTS), min_size=2, max_size=6,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_HOSTS, _TEXT, st.sampled_from([40, 72, 100]), st.integers(0, 2))
def test_no_hosts_at_all_make_a_line_too_wide(
    hosts: list[HostReport], subject: str, columns: int, verbose: int
) -> None:
    told = report(*hosts, fleet=[odd(subject, measured=subject)])
    for line in lines(told, verbose=verbose, width=columns):
        # What the shell takes as one word, here a host's name, is never broken.
        words = re.findall(r"'[^']*(?:'|$)|[^ ]+", plain(line))
        longest = max(map(cells, words), default=0)
        assert cells(plain(line)) <= columns or longest > columns - 24
        assert "\x1b" not in plain(line)
