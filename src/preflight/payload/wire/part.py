"""The links of all hosts, in rounds in which no host has a part in two pairs."""

from __future__ import annotations

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


class Choice(NamedTuple):
    """By what links are timed, and why not by RDMA. `tool`: rdma, tcp, or "" for nothing; then
    `lacks` tells whether that is for want of a program."""

    tool: str
    why: str = ""
    rails: int = 0
    gpu: bool = False
    lacks: bool = False


def wire(bench: Bench) -> None:
    """Loopbacks of RDMA, then pairs: neighbours in a ring of the hosts, or all of them."""
    if not bench.plan.wire:
        return
    sites = _looked(bench)
    choice = chosen(bench.plan.wire, sites, len(bench.hosts))
    for at, site in sites.items():
        bench.tell({**site, "of": bench.name(at), "tool": choice.tool, "why": choice.why,
                    "lacks": choice.lacks})  # fmt: skip
    tests: list[Line] = []
    for number, orders in enumerate(_rounds(bench, choice), 1):
        bench.tell({"kind": "wire_round", "number": number, "tool": choice.tool,
                    "pairs": [list(map(bench.name, one["hosts"])) for one in orders]})  # fmt: skip
        for line in _done(bench, orders):
            tests.append({key: value for key, value in line.items() if key != "text"})
            _tell(bench, line)
    for line in ends(tests):
        bench.tell(line)


def _looked(bench: Bench) -> dict[int, Line]:
    orders = [bench.order("wire_look", [at], _LOOK_S) for at in bench.hosts]
    at_of = {one["test"]: one["hosts"][0] for one in orders}
    told = {at_of[test]: line for test, line in bench.heard(orders) if line["kind"] == "wire_site"}
    return dict(sorted(told.items()))


def chosen(asked: str, sites: dict[int, Line], hosts: int) -> Choice:
    """By what links are timed: RDMA where every host has it, unless TCP was asked for."""
    why = _without_rdma(sites) if asked != "tcp" else ""
    if asked != "tcp" and not why:
        rails = min(len(one["nics"]) for one in sites.values())
        return Choice("rdma", "", rails, all(one["cuda"] for one in sites.values()))
    if asked == "rdma":
        lacks = any(one["nics"] and not one["perftest"] for one in sites.values())
        return Choice("", f"--wire rdma: {why}", lacks=lacks)
    if hosts < 2:
        alone = "TCP of a host with itself passes no adapter; it takes two: --hosts 'node[01-02]'"
        return Choice("", f"{why}; {alone}" if why else alone)
    return Choice("tcp", why)


def _without_rdma(sites: dict[int, Line]) -> str:
    """Why RDMA cannot be timed; "" where it can."""
    if not sites:
        return "no host told what it has"
    for one in sites.values():
        name = one.get("of") or "this host"
        if not one["nics"]:
            return f"{name} has no RDMA port that is up (`ibv_devinfo`), or none that was chosen"
        if not one["perftest"]:
            return f"{name} has no ib_write_bw: apt-get install perftest, or dnf install perftest"
    return ""


def _rounds(bench: Bench, choice: Choice) -> Iterator[list[Line]]:
    """Orders that are done at the same time."""
    more: dict[str, Any] = {"share": SHARE}
    if choice.tool == "rdma":
        more = {"rails": choice.rails, "gpu": choice.gpu}
        limit_s = _LATE_S + rdma.seconds(choice.rails, gpu=choice.gpu, loopback=True)
        yield [bench.order("rdma", [at], limit_s, **more) for at in bench.hosts]
    hosts = bench.hosts
    if not choice.tool or len(hosts) < 2:
        return
    limit_s = _TCP_S
    if choice.tool == "rdma":
        limit_s = _LATE_S + 2 * rdma.seconds(choice.rails, gpu=choice.gpu, loopback=False)
    for pairs in (_all if bench.plan.pairwise else _ring)(len(hosts)):
        there = [pair for pair in pairs if all(hosts[one] in bench.hosts for one in pair)]
        if there:
            yield [bench.order(choice.tool, [hosts[one] for one in pair], limit_s, **more)
                   for pair in there]  # fmt: skip


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
