"""The table of events, causes and bounds: checks/data/divergence.yaml."""

from __future__ import annotations

from functools import cache

from msgspec import Struct, convert

from preflight import datafiles, strict_yaml
from preflight.model import Status


class Bounds(Struct, frozen=True, forbid_unknown_fields=True):
    """What counts as an event; the head of the file explains each, with its source."""

    sigmas: float
    back_sigmas: float
    rise: float
    few_rise: float
    early_rise: float
    least_sigma: float
    beyond: float
    alone_steps: float
    stays_rows: int
    back_rows: int
    slow_rise: float
    growth: float
    startup_steps: float
    halvings: int
    decline_powers: int
    skips_per_100: float
    flat: float
    swing_share: float
    chance_nats: float
    chance_rows: int
    zero_from: float
    resume_rise: float
    resume_rows: int


class Kind(Struct, frozen=True, forbid_unknown_fields=True):
    """An event. `recovered`: its status where the run came back by itself."""

    id: str
    title: str
    status: Status
    rank: int
    fix: tuple[str, ...]
    runbook: str
    recovered: Status | None = None


class Suspect(Struct, frozen=True, forbid_unknown_fields=True):
    """A cause. `tells`: what would prove it, or rule it out."""

    id: str
    title: str
    fix: tuple[str, ...]
    tells: str


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """All of the file."""

    bounds: Bounds
    events: tuple[Kind, ...]
    causes: tuple[Suspect, ...]

    def kind(self, name: str) -> Kind:
        return next(one for one in self.events if one.id == name)

    def suspect(self, name: str) -> Suspect:
        return next(one for one in self.causes if one.id == name)


@cache
def table() -> Table:
    """As the file has it."""
    path = datafiles.root() / "checks" / "data" / "divergence.yaml"
    document = strict_yaml.load(path.read_text(encoding="utf-8"), "checks/data/divergence.yaml")
    return convert(document, Table)
