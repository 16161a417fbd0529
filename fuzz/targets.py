"""What is fuzzed: every probe of assemble.PROBES, and the readers of what a user hands over."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

from msgspec import Struct

from preflight import capture, error_texts, strict_yaml
from preflight.assemble.sources import probe_of
from preflight.assemble.tables import PROBES
from preflight.cli.targets.read import facts_of, not_understood, readings_of
from preflight.cli.targets.walk import walk
from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.divergence.conclude import findings_of, judged
from preflight.diagnosis.divergence.plan import plan_of
from preflight.errors import ParseError, UsageError
from preflight.logs.hangs import flight_recorder, ras, stacks
from preflight.logs.samples import iostat
from preflight.logs.training import log as training
from preflight.probes.site import site_answer
from preflight.recognise import recognise
from preflight.reports.divergence import tables_of
from preflight.traces import kineto, timeline
from preflight.transports.fio_sieve import fio_sieved


class Target(Struct, frozen=True):
    """A reader and what it may raise."""

    name: str
    read: Callable[[str], Any]
    refuses: tuple[type[Exception], ...] = ()
    #: The bound: so many seconds for a megabyte, and these for the smallest input: a start costs
    #: something, and the machine is shared.
    seconds_per_mb: float = 1.0
    least_s: float = 0.02

    def limit_s(self, text: str) -> float:
        """The most time for this text."""
        return max(self.seconds_per_mb * len(text) / 1e6, self.least_s)


@cache
def targets() -> dict[str, Target]:
    """Every target by its name, the probes as they are declared."""
    found = [Target(name, _probe(name), (ParseError,)) for name in PROBES]
    found += [
        Target("site probe", site_answer),
        Target("recognise", _recognise, (UsageError,)),
        Target("fio sieve", _sieved, (UsageError,)),
        Target("capture", _capture, (UsageError,)),
        Target("strict_yaml", lambda text: strict_yaml.load(text, "x.yaml"), (UsageError,)),
        Target("error texts", error_texts.find),
        Target("training log", _file(training.read), (ParseError,), least_s=0.1),
        # The first one reads the tables of names.
        Target("trace", _file(kineto.read), (ParseError,), least_s=0.1),
        Target("timeline", _file(timeline.read), (ParseError,), least_s=0.1),
        Target("flight recorder", _file(flight_recorder.read), (ParseError,), least_s=0.1),
        Target("stacks", _file(stacks.read), (ParseError,), least_s=0.1),
        Target("ras", _file(ras.read), (ParseError,), least_s=0.1),
        Target("iostat", _file(iostat.read), (ParseError,), least_s=0.1),
        Target("diagnosed", _diagnosed, (UsageError,), least_s=0.5),
        Target("diverged", _diverged, (ParseError,), least_s=0.5),
    ]
    return {target.name: target for target in found}


def _probe(name: str) -> Callable[[str], Any]:
    probe = probe_of(name)
    assert probe is not None
    return probe.parse


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _recognise(text: str) -> Any:
    return recognise(_bytes(text), "input")


def _file(read: Callable[[Path, Callable[[str], None]], Any]) -> Callable[[str], Any]:
    """A reader of a file as one of its text."""

    def of_text(text: str) -> Any:
        with NamedTemporaryFile() as file:
            file.write(_bytes(text))
            file.flush()
            return read(Path(file.name), lambda told: None)

    return of_text


def _diagnosed(text: str) -> Any:
    """All of diagnose-step-time on one file: which kind it is, what is read, what is concluded."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "input")
        path.write_bytes(_bytes(text))
        walked = walk([str(path)], Path(folder))
        readings = readings_of(facts_of(walked, lambda told: None), Asked())
        return findings([*readings, *not_understood(walked)])


def _diverged(text: str) -> Any:
    """All of divergence-rescue on one log, its plan and its pictures too."""
    one = judged(_file(training.read)(text))
    if one is None:
        return None
    return [*findings_of(one), *tables_of(one), plan_of(one, [], "/run", "now")]


def _sieved(text: str) -> Any:
    with NamedTemporaryFile() as file:
        file.write(_bytes(text))
        file.flush()
        found = fio_sieved(Path(file.name), "x")
    if found is None:
        raise UsageError("it holds no report of fio, or more than that", "another file")
    return found


def _capture(text: str) -> Any:
    reader = capture.Reader(_bytes(text))
    return list(reader), reader.damage
