"""Hosts of which nothing, or no more, could be asked: told once for all that are alike."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from msgspec import Struct

from preflight.faults import FAULTS
from preflight.model import HostReport, MissingProbe, Status
from preflight.nodesets import fold

#: Stands for the host's own name in what is told of several.
HOST = "HOST"
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
        if fault is None and (host.results or (host.verdict is Status.SKIP and not host.missing)):
            continue
        about = (fault,) if fault else host.missing
        texts = tuple(dict.fromkeys(_text(one, host.host) for one in about))
        texts = texts or ("nothing was judged, and nothing says why",)
        name = fault.fault if fault else ""
        key = (host.verdict if not host.results else Status.ERROR, name, bool(host.results))
        # Without a fault only what is told alike is alike.
        one = alike.setdefault((*key, "" if name else texts), Silence(*key, {}))
        one.told.setdefault(texts, []).append(host.host)
    return sorted(alike.values(), key=lambda one: -len(one.hosts))


def machines(hosts: Iterable[HostReport]) -> list[HostReport]:
    """The hosts among them: a file that could not be read stands there as one."""
    return [
        host
        for host in hosts
        if host.results or not any(_is_file(one, host) for one in host.missing)
    ]


def _is_file(one: MissingProbe, host: HostReport) -> bool:
    return one.probe == host.host and one.kind == "unreadable"


def _text(one: MissingProbe, host: str) -> str:
    text = one.text if one.fault else f"{one.kind}: {one.text}"
    whole = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])") if host else None
    return whole.sub(HOST, text) if whole else text


def _named(text: str, names: Sequence[str]) -> str:
    return text.replace(HOST, names[0]) if len(names) == 1 else text


def _typed(step: str, hosts: Sequence[str]) -> str:
    many = len(hosts) > 1 and _TAKES_MANY.fullmatch(step)
    name = fold(hosts) if many else hosts[0]
    return step.replace(HOST, name if step.endswith(" on HOST") else shlex.quote(name))
