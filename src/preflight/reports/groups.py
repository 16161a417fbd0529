"""Equal results of many subjects and hosts as one group: what a person reads once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct, field

from preflight.model import SEVERITY, Action, Evidence, Report, Result, Scalar, Status
from preflight.nodesets import fold, hosts_named
from preflight.reports.wording import MILDEST_FIRST, plural, some, typed, value

#: Characters of a list of places or hosts that a person still reads.
LONG = 240


class Place(Struct, frozen=True, gc=False):
    """Where a result was found; `host` is empty for a result over the fleet."""

    host: str
    subject: str
    device: str = ""


class Variant(Struct):
    """What differs inside a group: one measured value with its reason, and where."""

    measured: Scalar
    unit: str
    reason: str
    places: list[Place] = field(default_factory=list)


class Group(Struct):
    """Results that one person mends in one go. Several checks only where all are undetermined."""

    status: Status
    checks: list[str]
    title: str = ""
    expected: str = ""
    why: str = ""
    fix: tuple[str, ...] = ()
    action: Action = Action.NONE
    runbook: str = ""
    cause: str = ""  # the check that these results follow from
    by_value: dict[tuple[object, ...], Variant] = field(default_factory=dict)
    evidence: dict[tuple[str, Evidence], None] = field(default_factory=dict)

    @property
    def variants(self) -> list[Variant]:
        """The different values, in order of appearance."""
        return list(self.by_value.values())

    @property
    def advice(self) -> tuple[str, ...]:
        """The steps, naming the GPUs where all are on one host. Of what is undetermined those that
        supply what is missing: what the check advises comes with its why, and is for a fault that
        nobody has seen."""
        if self.status is Status.ERROR and self.why:
            return ()
        if len({place.host for place in self.places}) != 1:
            return self.fix
        subjects = [place.subject for place in self.places]
        devices = [place.device for place in self.places]
        return tuple(typed(step, subjects, devices) for step in self.fix)

    @property
    def places(self) -> list[Place]:
        """All places of the group, in order."""
        return [place for variant in self.variants for place in variant.places]

    @property
    def by_device(self) -> dict[str, list[Place]]:
        """The places where others know the subject by another name, under that name."""
        found: dict[str, list[Place]] = {}
        for place in self.places:
            # `processors 1 fp32` names `processors 1` already.
            if place.device and not f"{place.subject} ".startswith(f"{place.device} "):
                found.setdefault(place.device, []).append(place)
        return found


Entry = tuple[str, Result]


def entries(report: Report) -> Iterator[Entry]:
    """Every result with its host; the fleet's under an empty host."""
    for host in report.hosts:
        for result in host.results:
            yield host.host, result
    for result in report.fleet:
        yield "", result


def bad(report: Report) -> list[Group]:
    """FAIL, ERROR and WARN, worst first: by status, then by how much is to be done."""
    told = [one for one in entries(report) if one[1].status in SEVERITY[:3]]
    groups = _undetermined(gather(one for one in told if one[1].status is Status.ERROR))
    groups += gather(one for one in told if one[1].status is not Status.ERROR)
    return sorted(groups, key=_urgency)


def followers(lead: Group, groups: Sequence[Group]) -> list[Group]:
    """What follows from `lead` on the hosts where it stands."""
    hosts = {place.host for place in lead.places}
    return [group for group in groups if group.cause in lead.checks and _stands_on(group, hosts)]


def leads(groups: Sequence[Group]) -> list[Group]:
    """The groups to be told first: all but those that are told under their cause."""
    told = {id(group) for lead in groups if not lead.cause for group in followers(lead, groups)}
    return [group for group in groups if id(group) not in told]


def _stands_on(group: Group, hosts: set[str]) -> bool:
    return any(
        place.host in hosts or (not place.host and hosts_named(place.subject, hosts))
        for place in group.places
    )


def followers_told(found: Sequence[Group], *, hosts: bool, most: int, more: str) -> str:
    """`16 results follow from this: gpu.fabric.state gpu[0-7], nvlink.up gpu[0-7]`."""
    number = sum(len(group.places) * len(group.checks) for group in found)
    told = []
    for group in found:
        at = where(group.places, hosts=hosts, brief=True)
        alone = at in {place.host for place in group.places}
        told.append(some(group.checks, most, more="") + ("" if alone else f" {at}"))
    verb = "follows" if number == 1 else "follow"
    return f"{plural(number, 'result')} {verb} from this{more}: {some(told, most, more='')}"


def _urgency(group: Group) -> tuple[int, int, str]:
    # Of what could not be determined the most first: its checks' actions are for other faults.
    undetermined = group.status is Status.ERROR
    weight = len(group.checks) if undetermined else MILDEST_FIRST.index(group.action)
    return SEVERITY.index(group.status), -weight, group.checks[0]


def gather(told: Iterable[Entry]) -> list[Group]:
    """Results of one check, status, expectation and advice in one group, in order."""
    groups: dict[tuple[object, ...], Group] = {}
    for host, one in told:
        # Where nothing could be determined the reason is what is to be mended.
        reason = one.reason if one.status is Status.ERROR else ""
        key = (one.check, one.status, one.expected, one.action, one.why, one.fix, reason, one.cause)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(
                one.status, [one.check], one.title, one.expected, one.why, one.fix, one.action,
                one.runbook, one.cause,
            )  # fmt: skip
        _variant(group, one).places.append(Place(host, one.subject, one.device))
        for evidence in one.evidence:
            group.evidence[host, evidence] = None
    return list(groups.values())


def _variant(group: Group, one: Result) -> Variant:
    # The type too: True is 1 to Python, and yes to a person.
    key = (type(one.measured), one.measured, one.unit, one.reason)
    found = group.by_value.get(key)
    if found is None:
        found = group.by_value[key] = Variant(one.measured, one.unit, one.reason)
    return found


def _undetermined(groups: Sequence[Group]) -> list[Group]:
    """Checks that one and the same lack left undetermined on the same places, as one group."""
    joined: dict[tuple[object, ...], Group] = {}
    for group in groups:
        where = frozenset((place.host, place.subject) for place in group.places)
        key = (group.variants[0].reason, where, group.cause)
        if key in joined:
            joined[key].checks.extend(group.checks)
        else:
            joined[key] = group
    return list(joined.values())


def where(places: Sequence[Place], *, hosts: bool, brief: bool = False) -> str:
    """`gpu[0-7]`; with `hosts` `node[03,07] gpu2, node09`; with `brief` no wall of names."""
    text = _where(places, hosts)
    if not brief or len(text) <= LONG:
        return text
    names = list(dict.fromkeys(place.host for place in places))
    if len(names) == 1:
        return some([place.subject for place in places], 6)
    folded = fold(names)
    at = folded if len(folded) <= LONG else plural(len(names), "host")
    return f"{plural(len(places), 'subject')} on {at}"


def _where(places: Iterable[Place], hosts: bool) -> str:
    by_host: dict[str, list[str]] = {}
    for place in places:
        by_host.setdefault(place.host, []).append(place.subject)
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, subjects in by_host.items():
        others = tuple(subject for subject in subjects if subject not in ("", host))
        if len(others) < len(subjects):
            alike.setdefault((), []).append(host)
        if others:
            alike.setdefault(others, []).append(host)
    by_text: dict[str, list[str]] = {}  # each kind is folded once, not for each of its hosts
    for kind, at in alike.items():
        by_text.setdefault(_folded(kind), []).extend(at)
    return ", ".join(
        _at(_folded(tuple(at)), folded, hosts=hosts or not folded) for folded, at in by_text.items()
    )


@lru_cache(maxsize=64)
def _folded(names: tuple[str, ...]) -> str:
    """Folded once: the same thousand hosts stand in group after group."""
    return fold(names)


def _at(host: str, subjects: str, *, hosts: bool) -> str:
    return f"{host} {subjects}".strip() if hosts else subjects


def headline(group: Group) -> str:
    """`63 to 65 pages, expected at most 60`."""
    measured = _measured(group)
    # What was found over the fleet says in words what the others have.
    spoken = isinstance(group.variants[0].measured, str) and not group.places[0].host
    expected = f"expected {group.expected}" if group.expected and not spoken else ""
    return ", ".join(part for part in (measured, expected) if part)


def _measured(group: Group) -> str:
    first = group.variants[0]
    if len({(type(one.measured), one.measured, one.unit) for one in group.variants}) == 1:
        if first.measured is None and not group.expected:
            return ""
        return value(first.measured, first.unit, unlike=group.expected)
    numbers = [
        one.measured
        for one in group.variants
        if isinstance(one.measured, (int, float)) and not isinstance(one.measured, bool)
    ]
    if len(numbers) < len(group.variants):
        return ""
    low, high = (value(pick(numbers), unlike=group.expected) for pick in (min, max))
    return f"{low} to {high} {first.unit}".rstrip()
