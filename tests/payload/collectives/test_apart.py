"""Hosts and ranks that can be no part of a bench are named, and the others go on."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from preflight.payload import alone
from preflight.payload import site as sites
from preflight.payload.collectives import agents
from preflight.payload.collectives.agents import SIGN, GoneError, Lead, Wire, called, free_ports
from preflight.payload.collectives.alike import alike
from preflight.payload.collectives.bench import Bench, Here
from preflight.payload.collectives.harness import settled
from preflight.payload.collectives.over_hosts import cannot_take_part
from preflight.payload.collectives.parts import _sizes as sizes
from preflight.payload.collectives.plan import Plan, PlanError
from preflight.payload.collectives.served import LEAD_PORT, serve
from preflight.payload.group import join
from preflight.payload.ranks import Among, Launch
from preflight.payload.site import site

Line = dict[str, Any]
HOSTS = ["h1", "h2", "h3", "h4"]


class Hosts(Here):
    """Hosts that told these versions of NCCL."""

    def __init__(self, versions: list[str]) -> None:
        super().__init__(Plan())
        self.agents = list(range(len(versions)))
        self.about = {at: {"nccl": one or None} for at, one in enumerate(versions)}


@pytest.mark.parametrize(
    ("versions", "left", "told"),
    [
        (["2.21.5"] * 4, [0, 1, 2, 3], []),
        ([""] * 4, [0, 1, 2, 3], []),
        (["2.21.5", "2.21.5", "2.20.5", "2.21.5"], [0, 1, 3],
         ["h3: it has NCCL 2.20.5, and h1, h2, h4 NCCL 2.21.5"]),
        (["2.21.5", "2.20.5"], [],
         ["h1: it has NCCL 2.21.5, and no version is that of most hosts",
          "h2: it has NCCL 2.20.5, and no version is that of most hosts"]),
    ],
)  # fmt: skip
def test_a_host_with_another_nccl_is_left_out(
    versions: list[str], left: list[int], told: list[str]
) -> None:
    lines: list[Line] = []
    hosts = Hosts(versions)
    alike(Bench(Plan(hosts=HOSTS[: len(versions)]), lines.append, hosts))
    assert hosts.agents == left
    assert [f"{one['of']}: {one['text']}" for one in lines] == told


def plan_of(many: int) -> Plan:
    port = free_ports("127.0.0.1", 1)[0] - LEAD_PORT
    return Plan(hosts=HOSTS[:many], master="127.0.0.1", port=port, job="a",
                addresses=["127.0.0.1"] * many)  # fmt: skip


def beside(do: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread


def test_a_host_that_cannot_says_so_at_once() -> None:
    plan, began = plan_of(2), time.monotonic()
    lead = Lead(plan.master, plan.port + LEAD_PORT, 2, plan.job)
    others = [beside(lambda: serve(plan, 0, {"nccl": None})),
              beside(lambda: cannot_take_part(plan, 1, "7 GPUs"))]  # fmt: skip
    assert lead.gather() == [0]
    assert lead.about[1]["cannot"] == "7 GPUs"
    lead.dismiss()
    for one in others:
        one.join(5)
    assert time.monotonic() - began < 10


def test_where_the_one_that_leads_cannot_the_others_know_why() -> None:
    plan = plan_of(2)
    leading = beside(lambda: cannot_take_part(plan, 0, "no GPU"))
    with pytest.raises(GoneError, match="h1, which leads, takes no part: no GPU"):
        serve(plan, 1, {})
    leading.join(5)


def test_gpus_that_torch_does_not_find_are_not_replaced_by_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init() -> None:
        raise RuntimeError("Error 802: system not yet initialized\nmore")

    monkeypatch.setattr(alone, "visible_gpus", lambda: [0] * 8)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", init)
    with pytest.raises(PlanError, match=r"this host has 8: Error 802: system not yet initialized$"):
        settled(Plan())
    monkeypatch.setattr(alone, "visible_gpus", list)
    assert settled(Plan()).device == "cpu"


def test_ranks_that_do_not_come_are_named_with_their_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "_MEET_S", 1)
    monkeypatch.setattr(join, "_MEET_HOSTS_S", 1)

    def work(_: Callable[[Line], None]) -> None:
        join.join("cpu")

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    among = Among(world=4, port=port, environment={"PREFLIGHT_HOSTS": "h1,h2"})
    lines = list(Launch(2, work, silent_s=30, among=among).lines())
    failed = next(one for one in lines if one["kind"] == "failed")
    assert failed["rank"] == 0
    assert failed["text"].endswith("2 of 4 did not come within 1 s: rank 2, 3 (h2)")


class OneDies(Here):
    """Three hosts, of which the last is lost as often as is told, before anything is measured."""

    def __init__(self, deaths: int) -> None:
        super().__init__(Plan(hosts=HOSTS[:3]))
        self.agents, self.deaths, self.asked = [0, 1, 2], deaths, list[list[int]]()

    def run(self, orders: Sequence[Line], _limit_s: float) -> Iterator[tuple[int, int, Line]]:
        (order,) = orders
        self.asked.append(order["hosts"])
        if self.deaths:
            self.deaths -= 1
            yield order["test"], self.agents.pop(), {"kind": "gone", "text": "it is lost"}
        else:
            yield order["test"], 0, {"kind": "size", "ranks": len(self.agents)}


@pytest.mark.parametrize(
    ("deaths", "asked"), [(0, [[0, 1, 2]]), (1, [[0, 1, 2], [0, 1]]), (2, [[0, 1, 2], [0, 1]])]
)
def test_where_a_host_is_lost_at_the_beginning_the_others_are_measured(
    deaths: int, asked: list[list[int]]
) -> None:
    hosts, lines = OneDies(deaths), list[Line]()
    sizes(Bench(hosts.plan, lines.append, hosts))
    assert hosts.asked == asked
    assert sum(one["kind"] == "size" for one in lines) == (deaths < 2)


def test_of_several_interfaces_each_is_to_have_an_address() -> None:
    told = site("lo,none0", "", even_if_busy=True)
    assert told["cannot"].startswith("there is no interface none0; ")
    assert (told["address"], site("lo,lo", "", even_if_busy=True)["cannot"]) == ("127.0.0.1", "")


@pytest.mark.parametrize(
    ("flags", "address", "why"),
    [
        (None, "", "there is no interface eth1"),
        (0x1002, "10.1.0.2", "eth1 is down"),
        (0x1003, "10.1.0.2", "eth1 is up and has no link (no carrier)"),
        (0x1043, "", "no IPv4 address on eth1"),
        (0x1043, "10.1.0.2", ""),
    ],
)
def test_an_interface_is_to_be_there_and_to_work(
    flags: int | None, address: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"lo": (0x49, "127.0.0.1"), "eth1": (flags, address)}
    monkeypatch.setattr(sites, "_flags", lambda name: known[name][0])
    monkeypatch.setattr(sites, "_address_on", lambda name: known[name][1])
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo")])
    told = site("lo,eth1", "", even_if_busy=True)
    assert told["cannot"] == (f"{why}; `ip -brief address`" if why else "")
    assert told.get("fault") == ("interface" if why else None)


@contextmanager
def gathered(many: int) -> Iterator[tuple[Lead, list[Wire]]]:
    """A host that leads, and the connections of agents that say what a test lets them say."""
    plan = plan_of(many)
    place = (plan.master, plan.port + LEAD_PORT)
    lead = Lead(*place, many, plan.job)
    wires = [called(place, at, plan.job, "127.0.0.1", {}) for at in range(many)]
    assert lead.gather() == list(range(many))
    try:
        yield lead, wires
    finally:
        lead.dismiss()
        for wire in wires:
            wire.close()


def test_a_host_that_is_stopped_is_lost_once_the_others_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents, "_ALONE_S", 0.3)
    with gathered(3) as (lead, wires):
        for wire in wires[:2]:
            wire.send({"test": 7, "kind": "step", "name": "all_reduce, 8 bytes"})
            wire.send({"test": 7, "kind": "over"})
        began_s = time.monotonic()
        told = list(lead.run([{"test": 7, "hosts": [0, 1, 2]}], 60.0))
        assert time.monotonic() - began_s < 10
        ((at, line),) = [(at, line) for _, at, line in told if line["kind"] == "gone"]
        assert at == 2 and lead.agents.keys() == {0, 1}
    assert line["text"].startswith("it gave no sign for ")
    assert line["text"].endswith(" s while the others were at all_reduce, 8 bytes")


def test_a_host_that_is_ended_is_told_with_where_the_others_were() -> None:
    with gathered(2) as (lead, wires):
        wires[0].send({"test": 7, "kind": "step", "name": "all_reduce, 8 bytes"})
        wires[0].send({"test": 7, "kind": "over"})
        ending = threading.Timer(0.3, wires[1].close)
        ending.start()
        told = list(lead.run([{"test": 7, "hosts": [0, 1]}], 60.0))
        ending.join()
    (line,) = [line for _, _, line in told if line["kind"] == "gone"]
    assert line["text"].startswith("it was ended while the others were at all_reduce, 8 bytes (")


def test_hosts_do_not_wait_for_one_that_leads_and_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents, "LEAD_SILENT_S", 0.3)
    plan = plan_of(2)
    with (
        closing(Lead(plan.master, plan.port + LEAD_PORT, 2, plan.job).server),
        pytest.raises(GoneError, match="h1, which leads, gave no sign for "),
    ):
        serve(plan, 1, {})


def test_the_one_that_leads_gives_signs_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "_SIGN_S", 0.1)
    with gathered(2) as (lead, wires):
        waiting = threading.Thread(target=lambda: list(lead.run([{"test": 3, "hosts": [0]}], 1.0)))
        waiting.start()
        assert {"test": SIGN} in wires[1].received()
        waiting.join()


def test_a_test_of_no_host_is_done_at_once() -> None:
    with gathered(1) as (lead, _):
        assert list(lead.run([{"test": 1, "hosts": []}], 5.0)) == []
