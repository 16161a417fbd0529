"""Inside of what is slow: which GPU, which fabric, which rail of a host; and rails that are slow
between all hosts.

What to try next is planned in locate/inside.py. What was tried is told in a line for each host that
it is about: `{"kind": "inside", "of": host, "tried": [...], "culprits": [...]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

from ..locate.inside import Blamed, BlamedGpus, Trial, fabrics, gpus, rails
from .bench import Bench, busbw_gbps, seconds_in
from .orders import Line
from .slow import BYTES, COMPARED

#: More slow hosts than these are not looked into: that would take longer than the search.
_MOST = 4
#: Fewer GPUs cannot be told from each other.
_LEAST_GPUS = 3
#: The ways between the GPUs of a host, by what NCCL is denied (its User Guide): peers, then memory
#: of the host, then nothing but adapters.
_PEERS = "GPU to GPU"
FABRICS = {
    _PEERS: {},
    "the host's memory": {"NCCL_P2P_DISABLE": "1"},
    "its adapters": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
}
#: The variable that leaves one rail.
_RAIL = {"cuda": ("NCCL_IB_HCA", "={}"), "cpu": ("GLOO_SOCKET_IFNAME", "{}")}


class _Asked(NamedTuple):
    """A trial as the hosts are asked for it."""

    hosts: list[int]
    what: str
    more: Line


class _Host:
    """What is told of one host."""

    def __init__(self) -> None:
        self.tried: dict[int, Line] = {}
        self.culprits: list[Line] = []
        self.counts: dict[str, int] = {}


class _Inside:
    """The trials of this part. `size`: bytes of the collective."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.plan = bench, bench.plan
        self.gpu = bench.plan.device == "cuda"
        self.size = bench.plan.locate_bytes or BYTES[bench.plan.device]
        self.told: dict[int, _Host] = {}
        self._numbers = count(1)

    def played(
        self, search: Any, kind: str, asked: Callable[[Trial], list[_Asked]],
        of: Callable[[Trial], Iterable[int]],
    ) -> tuple[list[Any], dict[int, list[int]]]:  # fmt: skip
        """What a search finds, and by its numbers those that are told. A trial is measured by the
        first of what it asks for, as a share of the second where there is one."""
        told: dict[int, list[int]] = {}
        try:
            trials: list[Trial] = next(search)
            while True:
                wanted = {one.number: asked(one) for one in trials}
                gbps = self._measured([each for one in wanted.values() for each in one])
                answers: dict[int, list[float] | None] = {}
                for one in trials:
                    mine = [gbps.pop(0) for _ in wanted[one.number]]
                    told[one.number] = [number for number, _ in mine]
                    answers[one.number] = _share([each for _, each in mine])
                    for at in of(one):
                        self._note(at, kind, told[one.number])
                trials = search.send(answers)
        except StopIteration as end:
            return list(end.value), told

    def _measured(self, wanted: Sequence[_Asked]) -> list[tuple[int, list[float]]]:
        """Number and GB/s of each, in as few rounds as hosts allow: none has two parts in one."""
        found: dict[int, tuple[int, list[float]]] = {}
        left = list(enumerate(wanted))
        while left:
            used: set[int] = set()
            orders: dict[int, Line] = {}
            for at, one in list(left):
                if used.isdisjoint(one.hosts):
                    used.update(one.hosts)
                    left.remove((at, one))
                    orders[at] = self.bench.order(
                        "compare", one.hosts, collective=COMPARED, bytes=self.size,
                        repeats=self.plan.repeats, **one.more,
                    )  # fmt: skip
            lines = self.bench.told(list(orders.values()))
            for at, order in orders.items():
                found[at] = self._told(wanted[at], lines[order["test"]])
        return [found[at] for at in range(len(wanted))]

    def _told(self, asked: _Asked, lines: Sequence[Line]) -> tuple[int, list[float]]:
        ranks = len(asked.hosts) * len(asked.more.get("devices", range(self.plan.ranks)))
        gbps = busbw_gbps(self.size, ranks, seconds_in(lines))
        number = next(self._numbers)
        line = {"test": number, "what": asked.what, "bytes": self.size,
                "among": [self.bench.name(at) for at in asked.hosts],
                "busbw_gbps": [round(one, 6) for one in gbps]}  # fmt: skip
        self.bench.tell({"kind": "tried", **line})
        for at in asked.hosts:
            self.of(at).tried[number] = line
        return number, gbps

    def of(self, at: int) -> _Host:
        """What is told of host number `at`."""
        return self.told.setdefault(at, _Host())

    def _note(self, at: int, kind: str, numbers: Sequence[int]) -> None:
        counts = self.of(at).counts
        counts[kind] = counts.get(kind, 0) + len(numbers)

    def blame(self, at: int, kind: str, name: str, share: float, tests: Sequence[int]) -> None:
        """A culprit of the host, or one of all that is told with it."""
        lines = {number: line for one in self.told.values() for number, line in one.tried.items()}
        self.of(at).tried.update({number: lines[number] for number in tests})
        self.of(at).culprits.append(
            {"kind": kind, "name": name, "share": round(share, 4), "tests": list(tests)}
        )

    def tell(self) -> None:
        """A line for each host of which anything was looked at."""
        for at, one in sorted(self.told.items()):
            if one.counts:
                own = {"of": self.bench.name(at)} if self.plan.hosts else {}
                proving = {number for each in one.culprits for number in each["tests"]}
                tried = [line for number, line in one.tried.items()
                         if not proving or number in proving]  # fmt: skip
                self.bench.tell({"kind": "inside", **own, "counts": one.counts, "tried": tried,
                                 "culprits": one.culprits})  # fmt: skip


def inside(bench: Bench) -> None:
    """The GPUs of a host that is alone; else what the search found to be slow, beside what it found
    to be sound."""
    plan = bench.plan
    if not plan.inside or not plan.locate:
        return
    part = _Inside(bench)
    if not plan.hosts:
        _gpus(part, 0, None)
    elif bench.sound:
        sound = [at for at in bench.sound if at in bench.hosts]
        slow = [at for at in bench.slow if at in bench.hosts][:_MOST]
        for at in slow:
            _gpus(part, at, sound[0] if sound else None)
        _fabrics(part, slow, sound)
        _rails(part, slow, sound)
    part.tell()


def _gpus(part: _Inside, host: int, sound: int | None) -> None:
    many = part.plan.ranks
    if not part.gpu or many < _LEAST_GPUS:
        return

    def asked(trial: Trial) -> list[_Asked]:
        what, more = f"GPUs {trial.nodes[0]} and {trial.nodes[1]}", {"devices": list(trial.nodes)}
        return [_Asked([at], what, more) for at in (host, sound) if at is not None]

    search = gpus(many, all_pairs=part.plan.pairwise)
    found, told = part.played(search, "gpu", asked, lambda _: [host])
    one: BlamedGpus
    for one in found:
        name = " to ".join(f"GPU {each}" for each in one.gpus)
        part.blame(host, "gpu", name, one.share, _all(told, one.tests))


def _fabrics(part: _Inside, slow: list[int], sound: list[int]) -> None:
    if not part.gpu or part.plan.ranks < 2:
        return

    def asked(trial: Trial) -> list[_Asked]:
        return [_Asked(list(trial.nodes), trial.way, {"environment": FABRICS[trial.way]})]

    found, told = part.played(fabrics(slow, sound, list(FABRICS)), "fabric", asked,
                              lambda trial: set(trial.nodes).intersection(slow))  # fmt: skip
    for one in found:
        if one.way in ("", _PEERS) and part.of(one.node).culprits:  # one GPU is enough for that
            continue
        name = one.way or "all of its fabrics alike"
        part.blame(one.node, "fabric", name, one.share, _all(told, one.tests))


def _rails(part: _Inside, slow: list[int], sound: list[int]) -> None:
    """Those that all hosts have. What is slow for all is told with the host that leads."""
    names = _common([part.bench.rails(at) for at in [*sound, *slow]])
    (variable, value), lead = _RAIL[part.plan.device], min(part.bench.hosts)

    def asked(trial: Trial) -> list[_Asked]:
        more = {"environment": {variable: value.format(trial.way)}}
        return [_Asked(list(trial.nodes), f"over {trial.way} alone", more)]

    def of(trial: Trial) -> set[int]:
        return {lead, *set(trial.nodes).intersection(slow)}

    found, told = part.played(rails(slow, sound, names), "nic", asked, of)
    one: Blamed
    for one in found:
        at = lead if one.node is None else one.node
        if not one.way and part.of(at).culprits:  # what is slow in every way is no rail
            continue
        name = one.way or "all of its rails alike"
        name = f"{one.way} of all hosts" if one.node is None else name
        part.blame(at, "nic", name, one.share, _all(told, one.tests))


def _common(lists: list[list[str]]) -> list[str]:
    first, *others = lists
    return [one for one in first if all(one in each for each in others)]


def _all(told: dict[int, list[int]], numbers: Sequence[int]) -> list[int]:
    return [each for number in numbers for each in told[number]]


def _share(gbps: Sequence[list[float]]) -> list[float] | None:
    """Of the second, which a sound host reached; the first itself where there is none."""
    own, beside = gbps[0], gbps[1] if len(gbps) > 1 else []
    if len(gbps) < 2 or not own:
        return own or None
    level = sorted(beside)[len(beside) // 2] if beside else 0.0
    return [one / level for one in own] if level else [1.0]
