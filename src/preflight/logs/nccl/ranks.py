"""Which ranks came together, and which did not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.facts.nccl import NcclCommunicator, NcclRank
from preflight.logs.nccl.lines import Line
from preflight.model import NOT_IN_INPUT

#: Ranks that are kept one by one.
RANKS_MAX = 50_000
#: Ranks of one communicator that can be looked for.
_SIZE_MAX = 1 << 20
_TOLD_MAX = 200
_COMM = re.compile(
    r"(?:ncclComm\w+ )?comm (?P<comm>0x[\da-f]+) rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+)"
    r" cudaDev (?P<device>\d+)(?: nvmlDev (?P<nvml>\d+))?(?: busId (?P<bus>[\da-f]+))?"
    r"(?: commId (?P<id>0x[\da-f]+))?[^\n]{0,200}?- "
    r"(?P<what>Init|Destroy|Abort) (?P<state>START|COMPLETE)"
)
_STATES = {
    ("Init", "START"): "started",
    ("Init", "COMPLETE"): "complete",
    ("Destroy", "COMPLETE"): "destroyed",
    ("Abort", "COMPLETE"): "aborted",
}


class Ranks(Struct):
    """What all processes said of communicators: those of one process by their address."""

    found: dict[tuple[str, int, str], NcclRank] = field(default_factory=dict)
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)  # of (size, rank), without id
    starts: bool = False

    def take(self, line: Line) -> None:
        """One line that tells where a communicator stands."""
        told = _COMM.match(line.text)
        state = _STATES.get((told["what"], told["state"])) if told else None
        if told is None or state is None:
            return
        self.starts |= state == "started"
        key = (*line.process, told["comm"])
        known = self.found.get(key)
        if known and not (state == "started" and known.state != "started"):
            self.found[key] = replace(known, state=state)
        elif len(self.found) < RANKS_MAX:
            self.found[key] = self._rank(line, told, state)

    def _rank(self, line: Line, told: re.Match[str], state: str) -> NcclRank:
        rank, ranks = int(told["rank"]), int(told["ranks"])
        return NcclRank(
            f"{line.host} rank {rank}" if line.host else f"rank {rank}",
            line.host, line.pid, int(told["device"]), rank, ranks,
            self._communicator(rank, ranks, told["id"]),
            told["bus"] or NOT_IN_INPUT, int(told["nvml"]) if told["nvml"] else NOT_IN_INPUT,
            state, line.number, line.probe,
        )  # fmt: skip

    def _communicator(self, rank: int, ranks: int, known: str | None) -> str:
        if known:
            return f"{ranks} ranks, {known}"
        self.seen[ranks, rank] += 1
        number = self.seen[ranks, rank]
        return f"{ranks} ranks" + (f", no. {number}" if number > 1 else "")

    def ready(self, host: str) -> int:
        """How many processes of the host have a communicator that is complete."""
        return len({key[1] for key, one in self.found.items()
                    if key[0] == host and one.state != "started"})  # fmt: skip

    def communicators(self) -> Iterator[NcclCommunicator]:
        """Each with who is in it. What was only destroyed began before the log did."""
        by_name: dict[str, list[NcclRank]] = {}
        for one in self.found.values():
            by_name.setdefault(one.communicator, []).append(one)
        for name, ranks in by_name.items():
            yield _communicator(name, ranks, announced=self.starts)


def _communicator(name: str, ranks: list[NcclRank], *, announced: bool) -> NcclCommunicator:
    size = ranks[0].ranks
    seen = {one.rank for one in ranks}
    begun = {one.rank for one in ranks if one.state == "started"}
    done = {one.rank for one in ranks if one.state != "started"}
    known = size <= _SIZE_MAX and all(rank < size for rank in seen)
    return NcclCommunicator(
        name, size, len(seen), len(done), len({one.host for one in ranks}),
        folded(rank for rank in range(size) if rank not in seen) if known else "",
        folded(begun - done), announced, ranks[0].line, ranks[0].probe,
    )  # fmt: skip


def folded(numbers: Iterable[int]) -> str:
    """Numbers as a person writes them: 0-7, 12; cut where there are very many."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    told = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans[:_TOLD_MAX])
    return told + (", ..." if len(spans) > _TOLD_MAX else "")
