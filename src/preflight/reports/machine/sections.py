"""Maps and advice of hosts, those that are alike once, as lines."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from preflight.model import SEVERITY, Advice, HostReport, Map, Report
from preflight.nodesets import fold
from preflight.reports.groups import LONG
from preflight.reports.layout import Line, Span, flow
from preflight.reports.machine.links import link_lines
from preflight.reports.machine.placing import advice_lines, is_some
from preflight.reports.machine.tree import tree
from preflight.reports.silent import machines

#: Different maps that are shown; the others with -v, and in the JSON report.
MOST = 3
_EMPTY: Line = ()


class Machine(Struct, frozen=True):
    """Hosts that are alike in map and advice."""

    hosts: tuple[str, ...]
    map: Map
    advice: Advice

    @property
    def name(self) -> str:
        """The hosts folded, or counted where no person would read them."""
        folded = fold(self.hosts)
        return folded if len(folded) <= LONG else f"{len(self.hosts):,} hosts"


def drawn(report: Report) -> list[Machine]:
    """The different machines of a report of which there is anything to draw: what is wrong first,
    then those of the most hosts."""
    alike: dict[bytes, list[HostReport]] = {}
    for host in report.hosts:
        if host.map is not None and (host.map.nodes or host.map.table):
            alike.setdefault(msgspec.json.encode((host.map, host.advice)), []).append(host)
    found = [
        Machine(tuple(each.host for each in hosts), hosts[0].map, hosts[0].advice or Advice())
        for hosts in alike.values()
        if hosts[0].map
    ]
    bad = {host.host: SEVERITY.index(host.verdict) for host in report.hosts}
    return sorted(found, key=lambda one: (min(map(bad.__getitem__, one.hosts)), -len(one.hosts)))


def machine_lines(
    report: Report, *, width: int, verbose: int = 0, box: bool = False
) -> Iterator[Line]:
    """The map of each different machine, then the advice for it."""
    found = drawn(report)
    most = len(found) if verbose else MOST
    many = len(machines(report.hosts)) > 1
    for number, one in enumerate(found[:most]):
        yield from [_EMPTY] if number else []
        on = f" of {one.name}" if many else ""
        yield from flow([], [Span(f"topology{on}", "bold")], hang=2, width=width)
        yield from map_lines(one.map, width=width, verbose=verbose, box=box)
        if is_some(one.advice):
            yield _EMPTY
            yield from flow([], [Span(f"how to start a job{' there' if many else ''}", "bold")],
                            hang=2, width=width)  # fmt: skip
        yield from advice_lines(one.advice, width=width, verbose=verbose)
    if found[most:]:
        hosts = sum(len(one.hosts) for one in found[most:])
        told = f"and {len(found) - most} more kinds of machine on {hosts:,} hosts (-v shows them)"
        yield from flow([], [Span(told, "dim")], hang=2, width=width)


def map_lines(map_: Map, *, width: int, verbose: int = 0, box: bool = False) -> Iterator[Line]:
    """The tree, the links, and what is not known."""
    yield from tree(map_.nodes, width=width, verbose=verbose, box=box)
    yield from link_lines(map_, width=width, verbose=verbose)
    for text in map_.unknown:
        yield from flow([Span("not known  ", "dim")], [Span(text)], hang=11, width=width)
