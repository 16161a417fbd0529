"""How often the first cause is the right one, over labelled inputs.

Samples and recorded runs with the answers that the suite holds them to, and logs drawn with each
fault in twenty seeds, and without any. A right answer may be that the input cannot tell.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from msgspec import Struct

from preflight.model import Finding, Status
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.diagnosis import test_from_log as drawn
from tests.diagnosis import test_from_report as reports
from tests.diagnosis import test_from_stacks as stacks
from tests.diagnosis.test_samples_diagnosed import OWN, TABLE, found_in

SEEDS = 20
RIGHT_LEAST = 0.95


class Row(Struct, frozen=True):
    """What is to be said of one input; `kind` for the table."""

    kind: str
    wanted: str
    found: tuple[Finding, ...]

    @property
    def first(self) -> str:
        wrong = [one for one in self.found if one.status in (Status.FAIL, Status.WARN)]
        chosen = wrong or self.found[:1]
        return chosen[0].finding if chosen else "nothing"


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
    yield from _drawn(folder)


def _cause(answers: tuple[str, ...]) -> str:
    return answers[0].split()[1]


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
            yield Row("drawn logs", wanted, found_in(path))


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
    right = sum(row.first == row.wanted for row in told) / len(told)
    return 0 if right >= RIGHT_LEAST and not sum(map(_alarm, told)) else 1


def _alarm(row: Row) -> bool:
    """A cause where there is none, or another one that is sure."""
    sure = any(one.confidence == "high" and one.finding == row.first for one in row.found)
    sound = row.wanted in ("healthy", "step.unknown", "compute")
    causes = row.first not in ("healthy", "step.unknown", "nothing", "compute")
    return causes and row.first != row.wanted and (sound or sure)


def _line(kind: str, found: list[Row]) -> None:
    wrong = Counter(f"{row.wanted} as {row.first}" for row in found if row.first != row.wanted)
    right = len(found) - sum(wrong.values())
    told = ", ".join(f"{text} x {n}" for text, n in wrong.most_common(4))
    print(f"{kind:24}{len(found):5}{right / len(found):12.1%} {sum(map(_alarm, found)):13}  {told}")


if __name__ == "__main__":
    sys.exit(main())
