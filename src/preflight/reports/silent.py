"""Hosts of which nothing, or no more, could be asked: told once for all that are alike."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from msgspec import Struct

from preflight.facts.collectives import TOLD_BY
from preflight.faults import FAULTS
from preflight.model import HostReport, MissingProbe, Status
from preflight.nodesets import fold
from preflight.verdict import host_verdict

#: Stands for the host's own name in what is told of several.
HOST = "HOST"
#: In place of a host's own name in what was said of it, so that the same of many is the same: a
#: character that no tool writes. So long may the names be that stand there in its stead.
_NAME, _FOLDED = "\ue000", 60
#: The check that every training run answers, however it ends.
_ENDED = "training.ranks"
_SWEPT = "training.sweep"
#: Commands that take many names at once, folded.
_TAKES_MANY = re.compile(r"scontrol show node HOST|.* on HOST")


class Silence(Struct):
    """Hosts with one fault. `told`: what happened, without the host's name, and on which."""

    status: Status
    fault: str
    broke_off: bool  # there are results from before
    told: dict[tuple[str, ...], list[str]]

    @property
    def hosts(self) -> list[str]:
        """Their names, in order."""
        return [name for names in self.told.values() for name in names]

    @property
    def title(self) -> str:
        """What it is in few words; empty where no fault was named."""
        if not self.fault and len(self.told) > 1:
            return "could not be read"  # files in place of hosts, each for a reason of its own
        known = FAULTS.get(self.fault)
        title = known.title if known else self.fault
        return f"{title}; what came before that is judged" if self.broke_off else title

    @property
    def texts(self) -> list[tuple[str, list[str]]]:
        """Each different text with its hosts; of one host with its name in it."""
        return [
            (_named(text, names), names) for texts, names in self.told.items() for text in texts
        ]

    @property
    def steps(self) -> tuple[str, ...]:
        """What to type, with the hosts' names where the command takes several, else the first."""
        known = FAULTS.get(self.fault)
        return tuple(_typed(step, self.hosts) for step in known.do) if known else ()


def silences(hosts: Iterable[HostReport]) -> list[Silence]:
    """Equal ones together, the most hosts first among equals."""
    alike: dict[tuple[object, ...], Silence] = {}
    for host in hosts:
        fault = next((one for one in host.missing if one.fault), None)
        known = host.results or (answered(host) and host.verdict is not Status.ERROR)
        if fault is None and known:
            continue
        about = (fault,) if fault else host.missing
        texts = tuple(dict.fromkeys(_text(one, host.host) for one in about))
        texts = texts or ("nothing was judged, and nothing says why",)
        name = fault.fault if fault else ""
        own = host_verdict((), host.missing) if host.missing else host.verdict
        status = Status.ERROR if host.results else own
        key = (status, name, bool(host.results))
        # Without a fault only what is told alike is alike.
        kind = "a file" if _is_file(host) else texts
        one = alike.setdefault((*key, "" if name else kind), Silence(*key, {}))
        one.told.setdefault(texts, []).append(host.host)
    return sorted(alike.values(), key=lambda one: -len(one.hosts))


def machines(hosts: Iterable[HostReport]) -> list[HostReport]:
    """The hosts among them: a file that could not be read stands there as one."""
    return [host for host in hosts if host.results or not _is_file(host)]


def answered(host: HostReport) -> bool:
    """Whether it told anything. Where only a comparison was asked for, it has no results."""
    if host.results or host.summary or host.reach:
        return True
    return host.verdict is not Status.ERROR and not any(_of_host(one) for one in host.missing)


def unverified(host: HostReport) -> bool:
    """Whether nothing was verified of a host that answered: all was left out."""
    if host.results:
        skipped = all(one.status is Status.SKIP for one in host.results)
        return skipped and not any(TOLD_BY in one.reason for one in host.results)
    return answered(host) and host.verdict is Status.SKIP


def untrained(hosts: Iterable[HostReport]) -> dict[str, list[str]]:
    """Why a training run that was asked for was left out, with the hosts that it was left out on:
    what else was judged there says nothing of it. A sweep is asked for in its place."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        ends = [one for one in host.results if one.check == _ENDED]
        swept = any(one.check == _SWEPT and one.status is not Status.SKIP for one in host.results)
        if ends and not swept and all(one.status is Status.SKIP for one in ends):
            found.setdefault(ends[0].reason, []).append(host.host)
    return found


def _is_file(host: HostReport) -> bool:
    return any(one.probe == host.host and one.kind == "unreadable" for one in host.missing)


def _of_host(one: MissingProbe) -> bool:
    return bool(one.fault) or one.kind == "unreachable"


def _text(one: MissingProbe, host: str) -> str:
    text = one.text if one.fault else f"{one.kind}: {one.text}"
    whole = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])") if host else None
    return whole.sub(_NAME, text) if whole else text


def _named(text: str, names: Sequence[str]) -> str:
    folded = fold(names)
    return text.replace(_NAME, folded if len(folded) <= _FOLDED else names[0])


def _typed(step: str, hosts: Sequence[str]) -> str:
    many = len(hosts) > 1 and _TAKES_MANY.fullmatch(step)
    name = fold(hosts) if many else hosts[0]
    return step.replace(HOST, name if step.endswith(" on HOST") else shlex.quote(name))
