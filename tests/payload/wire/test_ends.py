"""Who is told to be slow, by tests with figures that are made up."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.payload.collectives.bench import Bench
from preflight.payload.collectives.plan import Plan
from preflight.payload.wire import part
from preflight.payload.wire.ends import ends
from preflight.payload.wire.part import _all, _ring, chosen
from tests.lab.wire_hosts import WireHosts

Line = dict[str, Any]
HOSTS = ["a", "b", "c", "d", "e"]


def ring(gbits: Callable[[str, str], float], hosts: list[str] = HOSTS, **more: Any) -> list[Line]:
    """A test of each way between neighbours, with one connection."""
    pairs = list(zip(hosts, hosts[1:] + hosts[:1], strict=True))
    ways = [*pairs, *((b, a) for a, b in pairs)]
    return [{"kind": "wire", "tool": "tcp", "from": a, "to": b, "rail": 0, "flows": 1,
             "median_gbits": gbits(a, b), **more} for a, b in ways]  # fmt: skip


def of(lines: list[Line], kind: str) -> list[Line]:
    return [one for one in lines if one["kind"] == kind]


def slow(lines: list[Line]) -> dict[str, str]:
    return {one["of"]: one["where"] for one in of(lines, "wire_end") if one["behind_percent"] > 20}


def test_a_host_that_only_receives_slowly_is_told_and_its_peers_are_not() -> None:
    lines = list(ends(ring(lambda _, to: 10.0 if to == "c" else 40.0)))
    told = next(one for one in lines if one["kind"] == "wire_end")
    assert (told["behind_from_percent"], told["bound_from_percent"]) == (25.0, 65.0)
    assert slow(lines) == {"c": "receives, 1 flow"}
    assert of(lines, "wire_end")[0]["level_gbits"] == 40.0
    named = {(one["from"], one["to"]) for one in of(lines, "wire_link")}
    assert named and not any("c" in pair for pair in named)
    behind = {one["of"]: one["peers_behind"] for one in of(lines, "wire_end")}
    assert behind == {"a": [], "b": ["c"], "c": [], "d": ["c"], "e": []}


def test_a_link_is_told_to_both_ends_where_these_are_fast_with_others() -> None:
    lines = list(ends(ring(lambda *pair: 10.0 if set(pair) == {"b", "c"} else 40.0)))
    assert slow(lines) == {}
    links = [(one["of"], one["from"], one["to"]) for one in of(lines, "wire_link")
             if one["behind_percent"] > 20]  # fmt: skip
    assert sorted(links) == [("b", "b", "c"), ("b", "c", "b"), ("c", "b", "c"), ("c", "c", "b")]


def test_a_host_between_two_slow_ones_is_not_blamed() -> None:
    found = {
        one["of"]: one
        for one in ends(ring(lambda *pair: 10.0 if {"a", "c"} & set(pair) else 40.0))
        if one["kind"] == "wire_end"
    }
    assert "--pairwise" in found["b"]["undetermined"]
    assert "undetermined" not in found["c"] and found["c"]["behind_percent"] == 75.0


def test_a_test_that_failed_is_as_slow_as_can_be() -> None:
    lines = ring(lambda *_: 40.0)
    for one in lines:
        if "c" in (one["from"], one["to"]):
            del one["median_gbits"]
            one["trouble"] = "nobody answers"
    assert set(slow(list(ends(lines)))) == {"c"}


def test_of_two_hosts_there_is_no_level() -> None:
    lines = list(ends(ring(lambda *_: 40.0, ["a", "b"])))
    assert [one["of"] for one in lines] == ["a", "b"]
    assert not any("behind_percent" in one for one in lines)


def test_where_processors_were_the_limit_it_is_told() -> None:
    lines = ring(lambda a, _: 10.0 if a == "c" else 40.0)
    for one in lines:
        one["busy"] = 0.9 if one["from"] == "c" else 0.1
    (end,) = [one for one in ends(lines) if one["kind"] == "wire_end" and one["of"] == "c"]
    assert end["bound"] == ["sends, 1 flow"] == [end["where"]]


@pytest.mark.parametrize("hosts", [2, 3, 4, 5, 8, 9])
def test_no_host_is_in_two_pairs_of_a_round(hosts: int) -> None:
    for rounds in (_ring(hosts), _all(hosts)):
        assert all(len({*itertools.chain(*pairs)}) == 2 * len(pairs) for pairs in rounds)
    near = {frozenset(pair) for pairs in _ring(hosts) for pair in pairs}
    assert near == {frozenset((at, (at + 1) % hosts)) for at in range(hosts)}
    assert len(_ring(hosts)) == (1 if hosts == 2 else 2 + hosts % 2)
    assert {frozenset(pair) for pairs in _all(hosts) for pair in pairs} == {
        frozenset(pair) for pair in itertools.combinations(range(hosts), 2)
    }


def site(nics: tuple[str, ...] = (), perftest: str = "6.06") -> Line:
    return {"nics": [{"nic": nic} for nic in nics], "perftest": perftest, "cuda": False}


def test_rdma_is_timed_among_those_that_have_it_and_tcp_where_nobody_has() -> None:
    rails = ("mlx5_0", "mlx5_1")
    found = chosen("auto", {0: site(rails), 1: site(("mlx5_1",)), 2: site(rails, "")})
    assert (found.tool, found.hosts) == ("rdma", [0, 1])
    # A rail is one network: the adapter that is missing shifts no numbers.
    assert found.rails == {0: ["mlx5_1"], 1: ["mlx5_1"]}
    assert found.why == {2: "no ib_write_bw: apt-get install perftest, or dnf install perftest"}
    assert chosen("auto", {0: site(), 1: site(rails)}).tool == "tcp"
    assert chosen("tcp", {0: site(rails), 1: site(rails)}).tool == "tcp"
    alone = chosen("auto", {0: site()})
    assert alone.tool == "" and "--hosts 'node[01-02]'" in alone.why[0]
    assert chosen("rdma", {0: site(), 1: site()}).tool == ""


def test_rounds_that_would_take_too_long_are_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part, "_MOST_S", -1.0)
    lines: list[Line] = []
    plan = Plan(hosts=["a", "b", "c"], addresses=["127.0.0.1"] * 3, wire="tcp")
    bench = Bench(plan, lines.append, WireHosts(plan))  # type: ignore[arg-type]
    assert list(part._timed(bench, part.Choice("tcp", [0, 1, 2], {}))) == []
    assert lines == [{"kind": "wire_left", "rounds": 3, "of": 3}]


def test_a_host_that_is_lost_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "SHARE", 0.05)
    plan = Plan(hosts=["a", "b", "c"], wire="tcp",
                addresses=[f"127.0.0.{number}" for number in (1, 2, 3)])  # fmt: skip
    hosts = WireHosts(plan)
    hosts.lost = {2}
    lines: list[Line] = []
    bench = Bench(plan, lines.append, hosts)  # type: ignore[arg-type]
    told = list(part._timed(bench, part.Choice("tcp", [0, 1, 2], {})))
    assert [one["trouble"] for one in told if "trouble" in one] == ["c: it is no more there"]
    assert {(one["from"], one["to"]) for one in told if "gbits" in one} == {("a", "b"), ("b", "a")}
    # Nobody calls for a host that is gone.
    assert hosts.rounds == [[[0, 1]], [[1, 2]]]
