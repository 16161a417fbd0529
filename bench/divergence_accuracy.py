"""How often what went wrong with the loss is found where it began, and its cause named first.

    python -m bench.divergence_accuracy [--seeds 20]

Drawn runs, each with one fault, in the styles of three trainers; healthy ones with noise of many
kinds; and the recorded runs of the training harness.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench.labelled.lines import ran
from bench.labelled.plans import tried
from bench.labelled.record import recorded
from bench.labelled.styles import STYLES
from preflight.diagnosis.divergence.conclude import Judged, judged
from preflight.diagnosis.divergence.event import Event
from preflight.logs.training.log import read
from tests.diagnosis import losses

_LEAST_STEPS = 30
FOUND_LEAST, FIRST_LEAST, SECOND_LEAST = 0.98, 0.85, 0.95


class Row(Struct, frozen=True):
    """One run. `found`: the right event, within its lines; `place`: of the right cause, from 1; 0
    where it is not named."""

    kind: str
    found: bool
    place: int
    alarms: tuple[str, ...]  # of a healthy run


def told(text: str, folder: Path) -> Judged | None:
    path = folder / "train.log"
    path.write_text(text)
    return judged(read(path, lambda _: None))


def rows(seeds: int, folder: Path) -> Iterator[Row]:
    for name, fault in losses.FAULTS.items():
        for seed in range(seeds):
            drawn = losses.rows(seed, fault.change)
            for style in fault.styles:
                yield _of(name, fault, drawn, told(losses.STYLES[style](drawn), folder))
    for name, fault in losses.RESUMED.items():
        for seed in range(seeds):
            drawn = losses.restarted(seed, fault.change)
            yield _of(name, fault, drawn, told(losses.megatron(drawn), folder))
    for name, draw in losses.HEALTHY.items():
        for seed in range(seeds):
            for style in ("megatron", "json-lines"):
                found = told(losses.STYLES[style](draw(seed)), folder)
                events = found.events if found else []
                yield Row(f"healthy: {name}", True, 1, tuple(one.kind for one in events))
    yield from _recorded(folder)


#: Injected faults that a loss shows, and where; a third of a hundred steps are before it. What a
#: bit, or a lost optimizer, does to so small a model is less than its noise.
_SHOWN = {
    "nan": losses.Fault(("not-finite", "loss-vanished"), ("code",), lambda row, chance: None, 34),
    "bad-batch": losses.Fault(("spike",), ("bad-batch",), lambda row, chance: None, 34),
}
#: A rate a hundred times too high from the first step on: a log without another run beside it
#: shows a start that goes up and down, as others do.
_UNSURE = ("rate-x100",)


def _recorded(folder: Path) -> Iterator[Row]:
    """Runs of the harness with and without faults, and two hundred healthy ones of its loop."""
    kept = recorded("told")
    for one in tried():
        text = kept.get(f"{one.name}.jsonl", b"").decode()
        run = ran(text) if text else None
        if run is None or len(run.steps) < _LEAST_STEPS or one.fault.name in _UNSURE:
            continue
        for style in ("megatron", "json-lines", "nanogpt"):
            found = told(STYLES[style].write(run), folder)
            fault = _SHOWN.get(one.fault.name)
            if fault:
                yield _of(f"harness: {one.fault.name}", fault, [], found)
            else:
                kinds = tuple(event.kind for event in found.events) if found else ()
                yield Row("healthy: harness", True, 1, kinds)
    for lines in recorded("healthy").values():
        found = told(lines.decode(), folder)
        yield Row("healthy: loop", True, 1, tuple(e.kind for e in found.events) if found else ())


def _of(name: str, fault: losses.Fault, drawn: list[losses.Row], found: Judged | None) -> Row:
    per = drawn[1].step - drawn[0].step if drawn else 1
    right = [one for one in found.events if _right(one, fault, per)] if found else []
    if found is None or not right:
        return Row(name, False, 0, ())
    causes = [one.cause for one in found.causes[found.events.index(right[0])]]
    place = next((at for at, one in enumerate(causes, 1) if one in fault.causes), 0)
    return Row(name, True, place, ())


def _right(event: Event, fault: losses.Fault, per: int) -> bool:
    return event.kind in fault.event and abs(event.step - fault.at) <= fault.slack * per


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.divergence_accuracy")
    parser.add_argument("--seeds", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(rows(asked.seeds, Path(folder)))
    faulty = [one for one in found if not one.kind.startswith("healthy")]
    print(f"{'runs':32}{'n':>5}{'event':>8}{'first':>8}{'first two':>11}  false alarms")
    for kind in dict.fromkeys(one.kind for one in found):
        _line(kind, [one for one in found if one.kind == kind])
    _line("all with a fault", faulty)
    alarms = sum(bool(one.alarms) for one in found)
    met = (
        _share(one.found for one in faulty) >= FOUND_LEAST
        and _share(one.place == 1 for one in faulty) >= FIRST_LEAST
        and _share(one.place in (1, 2) for one in faulty) >= SECOND_LEAST
    )  # fmt: skip
    return 0 if met and not alarms else 1


def _share(told: Iterator[bool]) -> float:
    values = list(told)
    return sum(values) / len(values)


def _line(kind: str, found: list[Row]) -> None:
    alarms = Counter(alarm for one in found for alarm in set(one.alarms))
    words = ", ".join(f"{name} x {n}" for name, n in alarms.most_common(3))
    first, two = (_share(one.place in places for one in found) for places in ((1,), (1, 2)))
    event = _share(one.found for one in found)
    print(f"{kind:32}{len(found):5}{event:8.1%}{first:8.1%}{two:11.1%}  {words}")


if __name__ == "__main__":
    sys.exit(main())
