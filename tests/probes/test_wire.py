"""The links of a host by themselves: what is read, and what is held against what."""

from __future__ import annotations

import json

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.facts.wire import Wire
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result
from preflight.payload.wire.losses import losses
from preflight.probes.collectives.bench import bench
from preflight.reports.wire import wire_tables
from tests import wire_lines
from tests.conftest import sample


def results(text: str, host: str = "h1") -> dict[str, Result]:
    checks = [one for one in load(("collectives",)).checks if one.id.startswith(("wire.", "rdma."))]
    found = examine(host, [Raw(host, "nccl-bench", stdout=text)], checks).results
    return {one.check: one for one in found}


def statuses(text: str, host: str = "h1") -> dict[str, str]:
    return {check: one.status.value for check, one in results(text, host).items()}


def links(text: str) -> Wire:
    found = bench(text).wire
    assert isinstance(found, Wire)
    return found


def test_a_recorded_pair_of_ways_is_read() -> None:
    found = links(sample("nccl_bench/wire_slow_h1.jsonl"))
    assert not isinstance(found.ends, Missing) and not isinstance(found.tests, Missing)
    (end,) = found.ends
    assert (end.name, end.tool, end.physical, end.rates_gbits) == ("eth0", "tcp", False, ())
    assert 0.37 < end.sends_gbits < 0.39  # type: ignore[operator]
    first = found.tests[0]
    assert (first.name, first.repeats, first.again_percent) == ("eth0 to h2, 1 flow", 5, 0.0)


def test_the_slow_host_and_the_lossy_one_are_warned_of_and_others_are_not() -> None:
    for name, host, check in (("slow", "h3", "wire.host"), ("loss", "h3", "wire.lost")):
        found = statuses(sample(f"nccl_bench/wire_{name}_{host}.jsonl"), host)
        assert {one for one, status in found.items() if status not in ("PASS", "SKIP")} == {check}
    first = statuses(sample("nccl_bench/wire_slow_h1.jsonl"))
    assert set(first.values()) == {"PASS", "SKIP"}


def test_tcp_is_held_against_its_interface_with_the_arithmetic_shown() -> None:
    (table, _) = wire_tables(
        assemble("h1", [Raw("h1", "nccl-bench", stdout=wire_lines.tcp())]).host
    )
    assert "eth0 97 Gb/s: 98% of 99.004 (100 Gb/s x 99.0% of data at MTU 9000)" in table["notes"]
    assert statuses(wire_lines.tcp(lambda *_: 80.0))["wire.bandwidth"] == "WARN"
    assert statuses(wire_lines.tcp(lambda *_: 40.0))["wire.bandwidth"] == "FAIL"
    bond = wire_lines.tcp(lambda *_: 80.0, rates_gbits=[40.0, 40.0])
    assert statuses(bond)["wire.bandwidth"] == "PASS"
    assert statuses(wire_lines.tcp(physical=False))["wire.bandwidth"] == "SKIP"


def test_what_the_bench_went_by_is_told_with_its_values() -> None:
    lines = [json.loads(one) for one in wire_lines.tcp().splitlines()]
    for one in lines:
        if one["kind"] == "wire_end":
            one |= {"behind_from_percent": 25.0, "bound_from_percent": 65.0}
    text = "".join(f"{json.dumps(one)}\n" for one in lines)
    (table, _) = wire_tables(assemble("h1", [Raw("h1", "nccl-bench", stdout=text)]).host)
    assert "an end that is 25 % behind or more" in table["notes"][-1]
    assert "65 % or more of a processor" in table["notes"][-1]


def test_what_processors_limit_is_no_fault_of_a_link() -> None:
    """One connection is a third of many, as on any host with 100 Gb/s; then all of them are."""
    by_flows = lambda _, to, flows: 97.0 if flows > 1 else 30.0  # noqa: E731
    limited = wire_lines.tcp(by_flows, busy=lambda _, flows: 0.9 if flows == 1 else 0.3)
    assert statuses(limited)["wire.flows"] == "SKIP"
    assert statuses(wire_lines.tcp(by_flows))["wire.flows"] == "WARN"
    all_ = results(wire_lines.tcp(lambda *_: 40.0, busy=lambda *_: 0.9))
    assert all_["wire.bandwidth"].status.value == "SKIP"
    assert "processors were the limit" in all_["wire.bandwidth"].reason
    told = wire_lines.tcp(lambda *_: 40.0, busy=lambda *_: 0.9)
    _, tests = wire_tables(assemble("h1", [Raw("h1", "nccl-bench", stdout=told)]).host)
    assert tests["rows"][0]["Gb/s"] == ">= 40.0"


def test_one_way_that_is_slow_is_its_hosts_and_not_that_of_its_peers() -> None:
    gbits = lambda a, b, flows: 40.0 if b == "h2" else 97.0  # noqa: E731
    found = {host: results(wire_lines.tcp(gbits, host), host) for host in wire_lines.HOSTS}
    warned = {(host, check) for host, each in found.items() for check, one in each.items()
              if one.status.value == "WARN"}  # fmt: skip
    assert warned == {("h2", "wire.host"), ("h2", "wire.ways")}


def test_adapters_are_judged_by_the_best_of_their_peers() -> None:
    gbits = lambda a, b, flows: 190.0 if "h3" in (a, b) else 392.0  # noqa: E731
    assert set(statuses(wire_lines.rdma(gbits)).values()) == {"PASS", "SKIP"}
    slow = statuses(wire_lines.rdma(gbits, "h3"), "h3")
    assert {check for check, status in slow.items() if status in ("WARN", "FAIL")} == {
        "rdma.bandwidth", "wire.host",
    }  # fmt: skip


def test_it_is_not_asked_where_nobody_asked_and_told_where_it_broke_off() -> None:
    assert statuses(sample("nccl_bench/one_host.jsonl"))["wire.host"] == "SKIP"
    whole = wire_lines.tcp().splitlines(keepends=True)
    (one,) = {text for check, text in _reasons(whole[0]).items() if check == "wire.host"}
    assert one == "the bench did not come to its links: it was cut short"
    lost = whole[0] + json.dumps({"kind": "gone", "of": "h2", "text": "it is lost"}) + "\n"
    assert "h2: it is lost" in _reasons(lost)["wire.host"]
    # No test came to its end: nothing passes.
    assert statuses("".join(whole[:2]))["wire.ended"] == "ERROR"


def _reasons(text: str) -> dict[str, str]:
    return {check: one.reason for check, one in results(text).items()}


@pytest.mark.parametrize("key", ["gbits", "flows", "rail"])
def test_a_line_that_is_none_of_ours_is_told(key: str) -> None:
    lines = wire_lines.tcp().splitlines()
    damaged = json.loads(lines[2]) | {key: {"a": 1}}
    text = "\n".join([*lines[:2], json.dumps(damaged), *lines[3:], ""])
    assert statuses(text)["wire.ended"] == "ERROR"


def lost(text: str, host: str) -> tuple[str, str]:
    """What is found of the host, and of what all of them lose."""
    found = statuses(text, host)
    return found["wire.lost"], found["wire.lost_everywhere"]


def lossy(*ways: tuple[str, str]) -> dict[str, tuple[str, str]]:
    """By host, where of each hundredth packet of these ways is lost."""

    def again(sender: str, receiver: str) -> int:
        return 1000 * ((sender, receiver) in ways)

    return {host: lost(wire_lines.tcp(host=host, again=again), host) for host in wire_lines.HOSTS}


def test_a_host_that_loses_what_comes_to_it_is_named() -> None:
    assert lossy(("h1", "h3"), ("h2", "h3")) == {
        "h1": ("PASS", "PASS"), "h2": ("PASS", "SKIP"), "h3": ("WARN", "SKIP"),
    }  # fmt: skip


def test_where_all_lose_it_is_none_of_them() -> None:
    every = [(a, b) for a in wire_lines.HOSTS for b in wire_lines.HOSTS if a != b]
    assert lossy(*every) == {
        "h1": ("SKIP", "WARN"), "h2": ("SKIP", "SKIP"), "h3": ("SKIP", "SKIP"),
    }  # fmt: skip
    text = wire_lines.tcp(again=lambda *_: 1000)
    (subject, measured) = next(
        (one.subject, one.measured) for one in results(text).values()
        if one.check == "wire.lost_everywhere"
    )  # fmt: skip
    assert (subject, measured) == ("between h[1-3]", 1.0)
    assert "not one host" in results(text)["wire.lost"].reason


def test_where_senders_or_receivers_may_lose_nobody_is_blamed() -> None:
    """In a ring of four two that face each other lose what comes to them, or their peers what they
    send."""
    tests = [
        {"tool": "tcp", "flows": 1, "from": a, "to": b, "sent": 1000, "again": 20 * (b in "bd")}
        for a, b in ("ab", "ba", "bc", "cb", "cd", "dc", "da", "ad")
    ]
    found = losses(tests)
    assert {one["lost_everywhere_percent"] for one in found.values()} == {2.0}
    assert [found[one]["peers_lossy"] for one in "abcd"] == [["b", "d"], ["a", "c"]] * 2


def test_of_a_pair_among_others_that_loses_neither_is_blamed() -> None:
    """Of four in a ring one way loses: both ends are well with others."""
    tests = [
        {"tool": "tcp", "flows": 1, "from": a, "to": b, "sent": 1000, "again": 20 * (a + b == "ab")}
        for a, b in ("ab", "ba", "bc", "cb", "cd", "dc", "da", "ad")
    ]
    assert not any("peers_lossy" in one for one in losses(tests).values())


def test_recordings_that_do_not_tell_what_all_lose_are_read() -> None:
    assert lost(sample("nccl_bench/wire_loss_h3.jsonl"), "h3") == ("WARN", "SKIP")
