"""The questions that a set of checks needs, by the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

from preflight.assemble.tables import (
    BELOW_GPUS,
    BY_OPTION,
    MADE_OF,
    PROBES,
    RECORDED_ONLY,
    SUPPLIERS,
)
from preflight.model import Check, Command
from preflight.probes.spec import Probe


def probe_of(name: str) -> Probe | None:
    """The probe called `name`, or `name#2`; None where it is a site's own or unknown."""
    stem = name.partition("#")[0]
    if stem not in PROBES:
        return None
    module, function = PROBES[stem].split(":")
    where = "preflight" if module.startswith("logs.") else "preflight.probes"
    found: Probe = getattr(import_module(f"{where}.{module}"), function).probe
    return found


def commands_for(
    checks: Iterable[Check], site: Sequence[Command] = (), facts: Sequence[str] = ()
) -> list[Command]:
    """The questions that these checks need, and the facts besides, in the order in which they are
    asked."""
    paths = {*facts, *(path for check in checks for path in _paths(check))}
    parts = {"identity", "pci", "os", "cpu", "memory"}
    parts.update(part for path in paths for part in _parts(path))
    wanted = {name for part in parts for name in SUPPLIERS[part]} - RECORDED_ONLY - BY_OPTION
    probes = [probe_of(name) for name in PROBES if name in wanted]
    return [probe.command for probe in probes if probe] + list(site)


def _parts(path: str) -> Iterator[str]:
    """The parts that the fact at `path` is made of."""
    root = path.partition("[")[0].partition(".")[0]
    yield from MADE_OF.get(root, ())
    if root == "gpus":
        yield from BELOW_GPUS.get(path.partition("[*].")[2].partition(".")[0], ())


def _paths(check: Check) -> Iterator[str]:
    """All facts of the host that a check reads: its own, its conditions', what it compares with."""
    yield from (check.fact, *check.when, *check.row.get("reads", ()))
    yield from (path for path in check.like if not path.startswith("."))
    for declared in (check.fail_unless, check.warn_unless):
        for argument in declared.values():
            if isinstance(argument, dict) and not str(argument.get("fact", ".")).startswith("."):
                yield argument["fact"]
    if check.row.get("settled_by"):
        yield "gpus"
