"""Whole hosts that are drawn and advised: text -> map, advice, and every form that shows them.

`drawn hosts`: a mutated text, by itself or beside another of a machine's parts, is drawn or refused
as input. Then no GPU is in the picture twice, the table of links is square, each seat is one GPU's,
each line of advice says why, and the drawing is an XML document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from xml.parsers import expat

from fuzz.mutations import mutated
from fuzz.pipeline import BrokenPromiseError, samples
from fuzz.targets import Target
from preflight.collect import examine_one_of_many
from preflight.errors import UsageError
from preflight.model import Advice, HostReport, Map, MapNode, Report
from preflight.recognise import recognise
from preflight.reports import render
from preflight.verdict import count

NAME = "drawn hosts"
#: Whose output a picture is made of.
_OF_MACHINES = frozenset({
    "lspci", "lspci-tree", "hwloc", "nvidia-smi", "nvidia-smi-q", "nvidia-smi-topo",
    "nvidia-smi-p2p", "nvlink", "numactl", "lscpu", "ibstat", "ibstatus", "ibv_devinfo",
    "rdma-link", "show-gids", "ip-addr", "ethtool",
})  # fmt: skip
#: Characters of a part: all forms are made of it.
_MAX_CHARS = 30_000
_FORMS = ("text", "markdown", "json", "svg")


@cache
def parts() -> tuple[str, ...]:
    """Texts of the samples that tell of a machine's parts."""
    return tuple(
        text for text, raws in samples()
        if len(text) <= _MAX_CHARS and any(raw.probe in _OF_MACHINES for raw in raws)
    )  # fmt: skip


def inputs(rng: Random) -> Iterator[str]:
    """Without end."""
    while True:
        text = mutated(rng, rng.choice(parts()))
        yield text if rng.random() < 0.4 else f"{text}\n\n{rng.choice(parts())}"


def target() -> Target:
    """All of it, with the forms."""
    return Target(NAME, _drawn, (UsageError,), seconds_per_mb=8.0, least_s=0.5)


def _drawn(text: str) -> None:
    raws = recognise(text.encode("utf-8", "surrogatepass"), "input")
    report = examine_one_of_many("input", raws, (), drawn=True).report
    if report.map is None or report.advice is None:
        raise BrokenPromiseError("neither drawn nor refused")
    _keep_to(report.map, report.advice)
    for form in _FORMS:
        shown = "".join(render(_report(report), form))
        if form == "svg":
            expat.ParserCreate().Parse(shown, True)


def _report(host: HostReport) -> Report:
    return Report("topo", (), "quick", "2026-01-02T03:04:05Z", 0.1, host.verdict,
                  count(host.results), (host,))  # fmt: skip


def _keep_to(drawn: Map, advice: Advice) -> None:
    gpus = Counter(node.name for node in _every(drawn.nodes) if node.kind == "gpu")
    if twice := [name for name, count in gpus.items() if count > 1]:
        raise BrokenPromiseError(f"drawn twice: {twice[0]}")
    table = drawn.table
    if table and {len(row) for row in table.cells} | {len(table.cells)} != {len(table.names)}:
        raise BrokenPromiseError("the table of links is not square")
    seats = [seat.gpu for seat in advice.seats]
    if [seat.local_rank for seat in advice.seats] != list(range(len(set(seats)))):
        raise BrokenPromiseError("a seat for each GPU, and one")
    if not all([one.why for one in advice.exports] + [one.why for one in advice.groups]):
        raise BrokenPromiseError("advice without a reason")


def _every(nodes: Sequence[MapNode]) -> Iterator[MapNode]:
    for node in nodes:
        yield node
        yield from _every(node.below)
