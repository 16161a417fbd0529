"""How often the first cause is the right one, over labelled inputs.

Samples with the answers that the suite holds them to; logs drawn with each fault in twenty seeds,
and without any; runs of the training harness with each injected fault, in three seeds, alone and
of four ranks, as report, as log in eight styles, as traces, as a look at their processes. A right
answer may be that the input cannot tell.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from msgspec import Struct

from bench.labelled.inputs import labelled
from preflight.model import Finding, Status
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.diagnosis import test_from_log as drawn
from tests.diagnosis import test_from_report as reports
from tests.diagnosis import test_from_stacks as stacks
from tests.diagnosis.test_samples_diagnosed import DUMPS, OWN, TABLE, found_in

SEEDS = 20
RIGHT_LEAST = 0.95


class Row(Struct, frozen=True):
    """What is to be said of one input: one of these findings, with the subject where it is named.
    `kind` for the table."""

    kind: str
    wanted: tuple[str, ...]
    found: tuple[Finding, ...]

    @property
    def chosen(self) -> Finding | None:
        wrong = [one for one in self.found if one.status in (Status.FAIL, Status.WARN)]
        return next(iter(wrong or self.found), None)

    @property
    def first(self) -> str:
        return self.chosen.finding if self.chosen else "nothing"

    @property
    def right(self) -> bool:
        one = self.chosen
        named = f"{one.finding} {one.subject}".rstrip() if one else ""
        return self.first in self.wanted or named in self.wanted


def rows(folder: Path) -> Iterator[Row]:
    for name, answers in TABLE.items():
        kind = name.split("/")[0]
        yield Row(kind, _cause(answers), found_in(SAMPLES / name))
    for name, answers in OWN.items():
        yield Row("own traces", _cause(answers), found_in(SAMPLES / "own" / "traces" / name))
    for name, answer in stacks.TABLE.items():
        yield Row("own stacks", _cause((answer,)), found_in(stacks.OWN / name))
    for name, answer in reports.TABLE.items():
        path = folder / f"{name}.json"
        recorded = SAMPLES / "micro_train" / f"{name}.jsonl"
        preflight("micro-train", "--from", str(recorded), "--save", str(path))
        yield Row("micro-train", _cause((answer,)), found_in(path))
    for name, answers in DUMPS.items():
        yield Row(
            "own dumps", _cause(answers), found_in(SAMPLES / "own" / "flight_recorder" / name)
        )
    yield from _drawn(folder)
    for one in labelled(folder):
        yield Row(f"runs: {one.medium}", one.right, one.found)


def _cause(answers: tuple[str, ...]) -> tuple[str, ...]:
    """Of the answers of the suite the first, with its subject where that is a rank's."""
    _, *words = answers[0].split()
    return (" ".join(words),) if "rank" in words else (words[0],)


def _drawn(folder: Path) -> Iterator[Row]:
    """Logs in Megatron's style, of 300 steps."""

    def usual(step: int, chance: Random) -> float:
        return drawn.usual(step, chance)

    faults: dict[str, dict[str, object]] = {
        "healthy": {},
        "drift": {"seconds": lambda s, c: usual(s, c) * (1.3 if s > 180 else 1)},
        "data-wait-periodic": {"seconds": lambda s, c: usual(s, c) + (1.5 if s % 8 == 0 else 0)},
        "checkpoint-stall": {
            "seconds": lambda s, c: usual(s, c) + (20 if s % 50 == 0 else 0),
            "more": lambda s, c: [f"saving checkpoint at iteration {s}"] if s % 50 == 0 else [],
        },
        "data-wait": {"more": drawn.timers({"batch-generator": (380.0, 420.0)})},
        "exposed-communication": {"more": drawn.timers({"all-grads-sync": (400.0, 430.0)})},
        "irregular": {"seconds": lambda s, c: usual(s, c) * (8 if c.random() < 0.03 else 1)},
    }
    for wanted, how in faults.items():
        for seed in range(SEEDS):
            path = folder / "drawn.log"
            path.write_text(drawn.megatron(seed=seed, **how))  # type: ignore[arg-type]
            yield Row("drawn logs", (wanted,), found_in(path))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        told = list(rows(Path(folder)))
    kinds: dict[str, list[Row]] = {}
    for row in told:
        kinds.setdefault(row.kind, []).append(row)
    print(f"{'inputs':24}{'n':>5}{'right first':>13}{'false alarms':>14}  wrong")
    for kind, found in kinds.items():
        _line(kind, found)
    _line("all", told)
    right = sum(row.right for row in told) / len(told)
    return 0 if right >= RIGHT_LEAST and not sum(map(_alarm, told)) else 1


#: What is no cause.
_SOUND = {"healthy", "step.unknown", "nothing", "compute"}


def _alarm(row: Row) -> bool:
    """A cause where there is none, or another one that is sure."""
    if row.right or row.first in _SOUND:
        return False
    sure = row.chosen is not None and row.chosen.confidence == "high"
    return sure or set(row.wanted) <= _SOUND


def _line(kind: str, found: list[Row]) -> None:
    wrong = Counter(f"{row.wanted[0]} as {row.first}" for row in found if not row.right)
    right = sum(row.right for row in found)
    told = ", ".join(f"{text} x {n}" for text, n in wrong.most_common(4))
    print(f"{kind:24}{len(found):5}{right / len(found):12.1%} {sum(map(_alarm, found)):13}  {told}")


if __name__ == "__main__":
    sys.exit(main())
