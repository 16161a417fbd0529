"""The recorded runs as inputs of a diagnosis, each with what is right to say first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench.labelled.lines import ran
from bench.labelled.plans import UNTOLD, Fault, Tried, tried
from bench.labelled.record import recorded
from bench.labelled.styles import STYLES, Style
from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.step_time.from_live import reading
from preflight.model import Finding
from preflight.probes.look.look import look
from tests.cli.command import preflight
from tests.diagnosis.test_samples_diagnosed import found_in


class Labelled(Struct, frozen=True):
    """What was found in one input. `right`: findings of which one stands first."""

    medium: str  # report, trace, look, or the style of a log
    fault: str
    right: tuple[str, ...]
    found: tuple[Finding, ...]


def labelled(folder: Path, only: str = "") -> Iterator[Labelled]:
    """Every recorded run in every form; `folder` is for what is written on the way."""
    told, looks = recorded("told"), recorded("looks")
    traces: dict[str, dict[str, bytes]] = defaultdict(dict)
    for name, data in recorded("traces").items():
        run, _, rank = name.partition("/")
        traces[run][rank] = data
    for one in tried(only):
        name = one.fault.name or "none"
        if f"{one.name}.jsonl" in told:
            yield from _told(one, told[f"{one.name}.jsonl"].decode(), folder)
        if one.name in traces:
            found = _of_files(folder / one.name, traces[one.name])
            yield Labelled("trace", name, one.fault.traces, found)
        if f"{one.name}.jsonl" in looks:
            host = look(looks[f"{one.name}.jsonl"].decode(), "node1")
            read = reading({"look": [host]}, Asked())
            yield Labelled("look", name, one.fault.look, findings([read] if read else []))


def _told(one: Tried, text: str, folder: Path) -> Iterator[Labelled]:
    name = one.fault.name or "none"
    lines, report = folder / f"{one.name}.jsonl", folder / f"{one.name}.json"
    lines.write_text(text)
    preflight("micro-train", "--from", str(lines), "--save", str(report))
    yield Labelled("report", name, one.fault.report, found_in(report))
    run = ran(text)
    for style, how in STYLES.items():
        path = folder / f"{one.name}.{style}.log"
        path.write_text(how.write(run))
        yield Labelled(style, name, _right(one.fault, how, one.ranks), found_in(path))


def _right(fault: Fault, style: Style, ranks: int) -> tuple[str, ...]:
    if fault.by_rank and style.by_rank and ranks > 1:
        return fault.by_rank
    if style.coarse or (fault.name == "kill" and not style.words):
        return (*fault.log, *UNTOLD)
    if style.alone and ranks > 1:  # a rank that waits for a slower one
        return (*fault.log, "exposed-communication")
    return fault.data if fault.data and style.data else fault.log


def _of_files(folder: Path, files: dict[str, bytes]) -> tuple[Finding, ...]:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return found_in(folder)
