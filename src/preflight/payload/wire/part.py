"""The links of all hosts, in rounds in which no host has a part in two pairs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..collectives.bench import Bench
from ..locate.pairwise import circle
from . import rdma
from .ends import ends
from .sides import Line

#: Of the usual time of a test by TCP.
SHARE = 1.0
_LOOK_S, _TCP_S = 30.0, 90.0
#: Programs that hang are ended each after some time.
_LATE_S = 120.0
#: After so long no more rounds are begun: a bench has an hour for all that it does.
_MOST_S = 1500.0
#: Of more hosts the test of a pair is brief where all pairs are tried.
_ALL_WHOLE = 6


class Choice(NamedTuple):
    """By what links are timed: rdma, tcp, or "" for nothing. `hosts`: those that take part; `why`:
    of each host why it does not, or why not by RDMA. `rails`: of each its adapters, of which
    those at one place are timed with each other."""

    tool: str
    hosts: list[int]
    why: dict[int, str]
    rails: dict[int, list[str]] = {}  # noqa: RUF012 - nobody changes it
    gpu: bool = False


def wire(bench: Bench) -> None:
    """Loopbacks of RDMA, then pairs: neighbours in a ring of the hosts, or all of them."""
    if not bench.plan.wire:
        return
    sites = _looked(bench)
    choice = chosen(bench.plan.wire, sites)
    for at, site in sites.items():
        tool = choice.tool if at in choice.hosts else ""
        bench.tell({**site, "of": bench.name(at), "tool": tool, "why": choice.why.get(at, ""),
                    "asked": bench.plan.wire})  # fmt: skip
    for line in ends(list(_timed(bench, choice))):
        bench.tell(line)


def _timed(bench: Bench, choice: Choice) -> Iterator[Line]:
    """All rounds, told as they come; without what programs printed."""
    until_s, rounds = time.monotonic() + _MOST_S, list(_rounds(bench, choice))
    for number, asked in enumerate(rounds, 1):
        orders = [one for one in asked if set(one["hosts"]) <= set(bench.hosts)]
        if time.monotonic() > until_s:
            bench.tell({"kind": "wire_left", "rounds": len(rounds) + 1 - number, "of": len(rounds)})
            return
        if not orders:
            continue
        bench.tell({"kind": "wire_round", "number": number, "tool": choice.tool,
                    "pairs": [list(map(bench.name, one["hosts"])) for one in orders]})  # fmt: skip
        for line in _done(bench, orders):
            _tell(bench, line)
            yield {key: value for key, value in line.items() if key != "text"}


def _looked(bench: Bench) -> dict[int, Line]:
    orders = [bench.order("wire_look", [at], _LOOK_S) for at in bench.hosts]
    at_of = {one["test"]: one["hosts"][0] for one in orders}
    told = {at_of[test]: line for test, line in bench.heard(orders) if line["kind"] == "wire_site"}
    return dict(sorted(told.items()))


def chosen(asked: str, sites: dict[int, Line]) -> Choice:
    """By what links are timed: RDMA where several hosts have it, unless TCP was asked for."""
    without = {at: told for at, one in sites.items() if (told := _without_rdma(one))}
    able = [at for at in sites if at not in without]
    if asked != "tcp" and (len(able) > 1 or len(able) == len(sites) or asked == "rdma"):
        if not able:
            return Choice("", [], without)
        cuda = all(sites[at]["cuda"] for at in able)
        return Choice("rdma", able, without, _rails({at: sites[at] for at in able}), cuda)
    why: dict[int, str] = {} if asked == "tcp" else without
    if len(sites) < 2:
        alone = "TCP of a host with itself passes no adapter; it takes two: --hosts 'node[01-02]'"
        return Choice("", [], {at: "; ".join(filter(None, (why.get(at), alone))) for at in sites})
    return Choice("tcp", list(sites), why)


def _rails(sites: dict[int, Line]) -> dict[int, list[str]]:
    """By their order; where some hosts have fewer, those that all have by name: a rail is one
    network, and its numbers must not shift where an adapter is down."""
    names = {at: [str(nic["nic"]) for nic in one["nics"]] for at, one in sites.items()}
    least = min(map(len, names.values()))
    common = set.intersection(*map(set, names.values()))
    if any(len(one) > least for one in names.values()) and common:
        return {at: [nic for nic in one if nic in common] for at, one in names.items()}
    return {at: one[:least] for at, one in names.items()}


def _without_rdma(site: Line) -> str:
    """Why RDMA cannot be timed there; "" where it can."""
    if not site["nics"]:
        return "no RDMA port that is up, or none that was chosen: `ibv_devinfo`"
    if not site["perftest"]:
        return "no ib_write_bw: apt-get install perftest, or dnf install perftest"
    return ""


def _rounds(bench: Bench, choice: Choice) -> Iterator[list[Line]]:
    """Orders that are done at the same time."""
    many = min(map(len, choice.rails.values()), default=0)
    if choice.tool == "rdma":
        limit_s = _LATE_S + rdma.seconds(many, gpu=choice.gpu, brief=True)
        yield [_order(bench, choice, [at], limit_s) for at in choice.hosts]
    hosts = choice.hosts
    if not choice.tool or len(hosts) < 2:
        return
    limit_s = _TCP_S
    if choice.tool == "rdma":
        limit_s = _LATE_S + 2 * rdma.seconds(many, gpu=choice.gpu, brief=False)
    for pairs in (_all if bench.plan.pairwise else _ring)(len(hosts)):
        yield [_order(bench, choice, [hosts[one] for one in pair], limit_s) for pair in pairs]


def _order(bench: Bench, choice: Choice, hosts: list[int], limit_s: float) -> Line:
    more: dict[str, Any] = {"share": SHARE}
    if choice.tool == "rdma":
        more = {"nics": [choice.rails[at] for at in hosts], "gpu": choice.gpu,
                "brief": bench.plan.pairwise and len(choice.hosts) > _ALL_WHOLE}  # fmt: skip
    return bench.order(choice.tool, hosts, limit_s, **more)


def _ring(many: int) -> list[list[tuple[int, ...]]]:
    """Each with its two neighbours: two rounds of an even number of hosts, three of an odd one."""
    if many == 2:
        return [[(0, 1)]]
    found: list[list[tuple[int, ...]]] = [[], [], []]
    for at in range(many):
        last = many % 2 and at == many - 1
        found[2 if last else at % 2].append((at, (at + 1) % many))
    return [one for one in found if one]


def _all(many: int) -> list[list[tuple[int, ...]]]:
    return [[one.nodes for one in pairs] for pairs in circle(many)]


def _done(bench: Bench, orders: Sequence[Line]) -> Iterator[Line]:
    """What is told of the tests; of one that a host did not end, that."""
    hosts_of = {one["test"]: one["hosts"] for one in orders}
    lost: set[int] = set()
    for test, line in bench.heard(orders):
        names = [bench.name(at) for at in hosts_of[test]]
        if line["kind"] == "wire":
            yield {key: value for key, value in line.items() if key not in ("of", "test")}
        elif line["kind"] == "gone" and test not in lost:
            lost.add(test)
            text = f"{line.get('of') or 'this host'}: {line['text']}"
            yield {"kind": "wire", "tool": "", "from": names[0], "to": names[-1], "rail": 0,
                   "flows": 1, "trouble": text}  # fmt: skip


def _tell(bench: Bench, line: Line) -> None:
    """To both ends; what a program printed to the one that called."""
    if not bench.plan.hosts:
        bench.tell(line)
        return
    bench.tell({**line, "of": line["from"]})
    if line["to"] != line["from"]:
        bench.tell({**{key: value for key, value in line.items() if key != "text"},
                    "of": line["to"]})  # fmt: skip
