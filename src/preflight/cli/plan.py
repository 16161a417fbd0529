"""What is to be judged: the checks as chosen and changed by the options, and what they ask."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight import datafiles, strict_yaml
from preflight.assemble.sources import commands_for, probe_of
from preflight.cli.options import Options, are_many
from preflight.errors import UsageError
from preflight.judge import load, overrides
from preflight.model import LEVELS, Check, Command, Level, Override
from preflight.units import parse_duration

#: Questions about the environment of the shell, or of the processes whose ids follow.
_OF_ENVIRONMENT = ("environment", "nccl-topo")
_PYTHON = Options().python
#: Of what only the comparison of hosts shows.
EVERYTHING = ("*",)
#: The domain of object stores.
OBJECTS = "objects"
#: The check on what --nics names.
STATED = "network.ports.stated"


class Plan(Struct):
    """What is to be judged."""

    checks: list[Check]
    site_probes: list[Command]
    overrides: tuple[Override, ...]
    watch_s: float = 0.0
    python: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    #: What is trained (cli/training.py); None where nothing is.
    trains: dict[str, Any] | None = None
    #: What is put under load (cli/stress.py); None where nothing is.
    stresses: dict[str, Any] | None = None
    #: What is timed (cli/benches.py); None where nothing is.
    benches: dict[str, Any] | None = None
    #: What is written and read (cli/storing.py); None where nothing is.
    stores: dict[str, Any] | None = None
    #: What is put and got (cli/objects.py); None where nothing is.
    objects: dict[str, Any] | None = None
    #: The file of data that is decoded (cli/shards.py); None where none is.
    decodes: dict[str, Any] | None = None
    #: Checks above the level that was asked for: judged where a recording holds what they need.
    beyond: frozenset[str] = frozenset()
    #: The level that all chosen checks need; empty where one of the asked level is among them.
    needs: str = ""

    def commands(self) -> list[Command]:
        """The questions that it takes; recorded answers need none, nor the modules that ask."""
        asked = [
            self._by_python(one) for one in commands_for(self.checks, self.site_probes, self.facts)
        ]
        if self.pids:
            asked.append(_of_processes(self.pids))
        asked = [self._with_environment(one) for one in asked]
        return [*asked, *self._shipped()]

    def _shipped(self) -> Iterator[Command]:
        """The questions that the payload answers. What trains comes last: nothing runs beside."""
        if self.watch_s:
            from preflight.ship import watch_command

            yield watch_command(self.watch_s, self.python)
        if self.stresses is not None:
            from preflight.cli.stress import stress_question

            yield stress_question(self.stresses, self.python)
        if self.benches is not None:
            from preflight.cli.benches import questions

            yield from questions(self.benches, self.python)
        if self.stores is not None:
            from preflight.cli.storing import store_question

            yield store_question(self.stores, self.python)
        if self.objects is not None:
            from preflight.cli.objects import objects_question

            yield objects_question(self.objects, self.python)
        if self.decodes is not None:
            from preflight.ship import shard_command

            yield shard_command(self.decodes, self.python)
        if self.trains is not None:
            from preflight.cli.training import estimate
            from preflight.ship import train_command

            yield train_command(self.trains, self.python, estimate(self.trains))

    def _with_environment(self, command: Command) -> Command:
        """Whose environment counts: that of the processes that the user named, else the shell's."""
        if command.probe not in _OF_ENVIRONMENT or not self.pids:
            return command
        return replace(command, argv=(*command.argv, *map(str, self.pids)))

    def _by_python(self, command: Command) -> Command:
        """What Python is asked is asked of the one that trains."""
        if command.argv[0] != "python3" or not self.python:
            return command
        return replace(command, argv=(*self.python, *command.argv[1:]))


def _of_processes(pids: Sequence[int]) -> Command:
    """The question about the processes that the user named."""
    asked = probe_of("process")
    assert asked is not None
    return replace(asked.command, argv=(*asked.command.argv, *map(str, pids)))


class Question(Struct, frozen=True):
    """What a judging command is about. `asked`: checks on what the command's name asks for.
    `fleet`: of what only the comparison of hosts shows, the part that belongs to it; a command with
    a part asks one host alone nothing for it. `parts`: of the domains named there these checks
    alone. `facts`: paths that it shows besides, as a picture and advice do."""

    command: str
    domains: tuple[str, ...]
    asked: tuple[str, ...] = ()
    fleet: tuple[str, ...] = EVERYTHING
    parts: dict[str, tuple[str, ...]] = {}
    facts: tuple[str, ...] = ()
    #: Whether pairs of hosts may be measured, which are drawn as machines are.
    pairs: bool = False
    #: The plan of a training run, where its options were asked for.
    trains: dict[str, Any] | None = None
    #: The plan of a stress run, where that was asked for.
    stresses: dict[str, Any] | None = None
    #: The plan of a bench of collectives, where that was asked for.
    benches: dict[str, Any] | None = None
    #: The plan of a bench of storage, where that was asked for.
    stores: dict[str, Any] | None = None
    #: The plan of a bench of an object store.
    objects: dict[str, Any] | None = None
    #: The plan of decoding a file of data, where that was asked for.
    decodes: dict[str, Any] | None = None
    #: Tables made of those that all hosts measured, to stand behind them.
    more_tables: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]] | None = None


def make_plan(question: Question, options: Options) -> Plan:
    """The checks as chosen and changed by the options."""
    catalogue = load.load(question.domains, [Path(name) for name in options.checks])
    stated = changes(options)
    checks = [one for one in catalogue.checks if _belongs(one, question)]
    checks = overrides.apply(_on_nics(checks, options), stated)
    # Who names the Python that trains wants it to be there.
    named = (
        ("stress.*", "training.*", "collectives.*", "io.*", "objects.*")
        if options.python != _PYTHON
        else ()
    )
    none = _states_no_gpus(stated)
    asked = [one for one in question.asked if not (none and one == "gpu.present")]
    checks = overrides.mark(checks, (*asked, *named), asked=True)
    if _states_gpus(stated):
        checks = overrides.mark(checks, ["gpu.present"], stated=True)
    checks = _on_lock(checks, options)
    if question.objects is None and not options.from_:  # a store is asked where one is named
        checks = [one for one in checks if one.domain != OBJECTS]
    if question.fleet != EVERYTHING and not (options.from_ or are_many(options)):
        checks = [one for one in checks if one.across != "fleet" or one.row.get("stated")]
    level = next(level for level in LEVELS if level == options.level)
    # What was recorded is judged whatever the level: it takes nothing more.
    most: Level = "full" if options.from_ else level
    every = overrides.select(checks, only=options.only, skip=options.skip)
    checks = overrides.select(checks, only=options.only, skip=options.skip, level=most)
    needs = "" if checks else min((one.level for one in every), key=LEVELS.index, default="")
    beyond = {one.id for one in checks if LEVELS.index(one.level) > LEVELS.index(level)}
    beyond |= {one.id for one in checks if one.domain == OBJECTS and options.from_}
    # A soak is watched by what puts under load.
    watched = options.duration is not None and question.stresses is None
    return Plan(
        checks,
        catalogue.probes,
        (*stated, *([Override("nics", options.nics, "--nics")] if options.nics else [])),
        parse_duration(options.duration) if watched and options.duration else 0.0,
        tuple(shlex.split(options.python)),
        tuple(options.pid),
        question.facts,
        _work(question.trains, "training", checks, options),
        _work(question.stresses, "stress", checks, options),
        _work(question.benches, "collectives", checks, options),
        _work(question.stores, "io", checks, options),
        question.objects if any(one.domain == OBJECTS for one in checks) else None,
        question.decodes,
        frozenset(beyond),
        needs,
    )


def _work(
    asked: dict[str, Any] | None, domain: str, checks: Sequence[Check], options: Options
) -> dict[str, Any] | None:
    """What was asked for; else what checks of this level need. What is recorded needs no work."""
    domains = (domain, "storage") if domain == "io" else (domain,)  # who writes tries it too
    needing = (one for one in checks if one.domain in domains and one.level != "quick")
    if domain == "collectives" and asked is not None:
        from preflight.cli.benches import looks_for

        return asked | looks_for(checks)
    if domain == "io" and not options.from_ and (asked is not None or any(needing)):
        from preflight.cli.storing import wanted

        return wanted(asked, checks)
    if asked is not None or options.from_ or not any(needing):
        return asked
    if domain == "collectives":
        from preflight.cli.benches import BETWEEN_GPUS

        return BETWEEN_GPUS | ({"nics": options.nics} if options.nics else {})
    if domain == "stress" and options.level == "full":
        from preflight.cli.stress import SOAK

        return dict(SOAK)
    return {}


def _on_nics(checks: list[Check], options: Options) -> list[Check]:
    """The checks, without the one on --nics where that is not given; what is stated is never
    skipped."""
    if options.nics is None:
        return [check for check in checks if check.id != STATED]
    return overrides.mark(checks, [STATED], stated=True)


def _on_lock(checks: list[Check], options: Options) -> list[Check]:
    """The checks, without those on a lock where there is none."""
    if options.lock is None and options.against is None:
        return [check for check in checks if check.rule != "lock"]
    from preflight.cli.locking import with_lock

    return with_lock(checks, options)


def _belongs(check: Check, question: Question) -> bool:
    """Whether a check is of one host, or of that part of the fleet or of its domain."""
    parts = {**question.parts, "fleet": question.fleet}
    return any(fnmatchcase(check.id, glob) for glob in parts.get(check.domain, EVERYTHING))


def _states_gpus(changes: Sequence[Override]) -> bool:
    return any(change.id == "gpu.count" and change.value != 0 for change in changes)


def _states_no_gpus(changes: Sequence[Override]) -> bool:
    """The last word counts."""
    counts = [change.value for change in changes if change.id == "gpu.count"]
    return bool(counts) and counts[-1] == 0


def changes(options: Options) -> tuple[Override, ...]:
    """The thresholds that a profile and the user state, in the order in which they count."""
    return (*_profile(options.profile), *map(overrides.parse, options.set_))


def _profile(name: str | None) -> Iterator[Override]:
    if name is None:
        return
    folder = datafiles.root() / "checks" / "profiles"
    path = Path(name) if name.endswith(".yaml") else folder / f"{name}.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        known = ", ".join(sorted(each.stem for each in folder.glob("*.yaml"))) or "none yet"
        hint = f"shipped profiles: {known}; or the path of your own, ending in .yaml"
        raise UsageError(f"--profile {name}: there is no {path}", hint) from error
    document = strict_yaml.load(text, str(path))
    if not isinstance(document, dict) or set(document) != {"set"} or not document["set"]:
        raise UsageError(f"{path}: a profile is one mapping, set: {{ID: VALUE}}")
    if not isinstance(document["set"], dict):
        raise UsageError(f"{path}: set: is a mapping, such as {{gpu.count: 8}}")
    for identifier, value in document["set"].items():
        yield Override(identifier, value, f"profile {name}")
