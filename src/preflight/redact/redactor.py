"""What may be shown of a report or a capture: never secrets and, on demand, no names either.

A stand-in is stable within one `Redactor`: one address is `ipv4-1` everywhere. Lines stay lines, so
that evidence still points to where it was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.model import Missing, Raw, Report
from preflight.nodesets import expand, fold
from preflight.redact.names import (
    ADDRESSES,
    COMMON,
    HOST_TOLD,
    NO_VALUE,
    REST,
    STAND_IN,
    SUBJECT,
    Match,
    Rule,
)
from preflight.redact.secrets import MASK, in_arguments, secrets

__all__ = ["MASK", "Redactor", "redact_raw", "redact_report", "secrets"]

_FOLDED = re.compile(r"[\w.-]{0,200}\[[\d,-]{1,200}\][\w.-]{0,200}")
# An address of either kind, told as the name of a host.
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:.]*:[0-9a-f:.]*")


class Redactor:
    """Stand-ins for what names a machine or a person; one for all that is shown together."""

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self._domains: set[str] = set()  # short names of which the full name is known
        self._pattern: re.Pattern[str] | None = None
        self._users = {name for name in users if len(name) > 1 and not COMMON.fullmatch(name)}
        self.know(hosts)

    def know(self, hosts: Iterable[str]) -> None:
        """Take these for names of hosts from now on, in their short and their full form."""
        for name in hosts:
            self.host(name)

    def host(self, name: str) -> str:
        """The stand-in of a host; a name that many hosts have, such as localhost, stays."""
        lower = name.lower()
        if not name or COMMON.fullmatch(name) or STAND_IN.fullmatch(name):
            return name
        if lower not in self._hosts:
            short = lower if _ADDRESS.fullmatch(lower) else lower.partition(".")[0]
            # node-07 and node-07.site are one; node-07.site and node-07.other are two.
            same = None if short in self._domains else self._hosts.get(short)
            self._hosts[lower] = same or self.stand_in("host", lower)
            if not COMMON.fullmatch(short):
                self._hosts.setdefault(short, self._hosts[lower])
            if short != lower:
                self._domains.add(short)
            self._pattern = None
        return self._hosts[lower]

    def stand_in(self, kind: str, original: str) -> str:
        """`ipv4-1`: the same for the same original, in capitals or not."""
        # 0x506b4b0300c0ffee is 506b:4b03:00c0:ffee in other places.
        short = original.lower()
        key = kind, short.replace(":", "") if kind == "guid" else short
        if key not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[key] = f"{kind}-{self._counts[kind]}"
        return self._given[key]

    def secrets(self, text: str) -> str:
        """`text` without secrets."""
        return secrets(text)

    def full(self, text: str) -> str:
        """`text` without secrets, and with stand-ins for what names a machine or a person."""
        text = secrets(text)
        self._learn(text)
        for rule in ADDRESSES:
            text = self._apply(rule, text)
        text = self._replace_hosts(text)
        for rule in REST:
            text = self._apply(rule, text)
        for (kind, original), stand_in in self._given.items():
            # A serial that was named as one before may stand alone elsewhere.
            if kind == "serial" and len(original) >= 8 and original in text:
                text = text.replace(original, stand_in)
        for name in self._users:
            alone = rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])"
            text = re.sub(alone, self.stand_in("user", name), text)
        return text

    def _learn(self, text: str) -> None:
        for pattern in HOST_TOLD:
            for match in pattern.finditer(text):
                self.know(filter(_is_name, _names(match["v"])))

    def _apply(self, rule: Rule, text: str) -> str:
        def swap(match: Match) -> str:
            told = match["v"]
            if NO_VALUE.fullmatch(told) or STAND_IN.fullmatch(told) or rule.but(match):
                return match[0]
            if rule.kind in ("user", "host") and COMMON.fullmatch(told):
                return match[0]
            shown = self.host(told) if rule.kind == "host" else self.stand_in(rule.kind, told)
            start, end = (at - match.start() for at in match.span("v"))
            return f"{match[0][:start]}{shown}{match[0][end:]}"

        return rule.pattern.sub(swap, text)

    def _replace_hosts(self, text: str) -> str:
        names = [name for name in self._hosts if len(name) > 1 and not SUBJECT.fullmatch(name)]
        if not names:
            return text
        if "[" in text:
            starts = {re.split(r"\d", name)[0] for name in names}
            text = _FOLDED.sub(lambda match: self._unfold(match[0], starts), text)
        if self._pattern is None:
            self._pattern = _pattern(names)
        return self._pattern.sub(self._swap_host, text)

    def _unfold(self, folded: str, starts: set[str]) -> str:
        # systemd[1] is no list of hosts: expanding is dear, and only done for their prefixes.
        if not any(start and folded.lower().startswith(start) for start in starts):
            return folded
        names = _names(folded)
        if not any(name.lower() in self._hosts for name in names):
            return folded
        return fold(self._hosts.get(name.lower(), name) for name in names)

    def _swap_host(self, match: Match) -> str:
        labels = match["domain"].split(".")[1:]
        for kept in range(len(labels), -1, -1):
            name = ".".join([match["v"], *labels[:kept]]).lower()
            if name in self._hosts:
                rest = labels[kept:]
                # Two labels more are a domain; one is the suffix of a file: node-07.log.
                suffix = "" if len(rest) > 1 and not kept else "".join(f".{one}" for one in rest)
                return f"{self._hosts[name]}{suffix}"
        return match[0]


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """One pattern for all: names that differ in their numbers are one alternative."""
    shapes = {re.sub(r"\d+", r"\\d{1,20}", re.escape(name)) for name in names}
    told = "|".join(sorted(shapes, key=lambda shape: (-len(shape), shape)))
    domain = r"(?:\.[a-z][a-z0-9-]{0,62}){0,6}"
    return re.compile(rf"(?i)(?<![a-z0-9])(?P<v>{told})(?P<domain>{domain})(?![a-z0-9])")


def _names(text: str) -> list[str]:
    if not re.search(r"[\[,]", text):
        return [text]
    try:
        return expand(text)
    except UsageError:
        return []


def _is_name(text: str) -> bool:
    return len(text) > 1 and text[0].isalnum() and not _ADDRESS.fullmatch(text.lower())


# --- reports and captures ----------------------------------------------------------------------

#: Words of preflight itself: ids, statuses, times.
_OURS = re.compile(
    "schema|preflight|command|level|status|verdict|kind|check|runbook|action|started_at|unit"
)
# Keys that say what their text is, where the text alone does not.
_TELLING = re.compile(
    r"serial|asset_tag|^sn$|user|owner|hostname|guid|version|driver|firmware|bios|pass|pwd|secret"
    r"|credential|token|key"
)
_JUDGED = ("measured", "expected")
_ABOUT_VERSIONS = re.compile(r"version|driver|cudnn|firmware|vbios|ofed")


def redact_report(report: Report, redactor: Redactor, *, full: bool = True) -> Report:
    """The report as it may be shown: without secrets; with `full` without names too."""
    if full:
        redactor.know(host.host for host in report.hosts)
        redactor.know(_hostnames(report))
    walker = _Walker(redactor, full)
    return msgspec.convert(walker.walk(msgspec.to_builtins(report), ""), Report)


def redact_raw(raw: Raw, redactor: Redactor, *, full: bool = True) -> Raw:
    """One answer as it may be shown; its lines stay lines."""
    clean = redactor.full if full else redactor.secrets
    missing = raw.missing and Missing(raw.missing.kind, clean(raw.missing.text))
    host = redactor.host(raw.host) if full else raw.host
    return replace(
        raw,
        host=host,
        argv=tuple(map(clean, in_arguments(raw.argv))),
        stdout=_answer(raw.stdout, clean),
        stderr=_answer(raw.stderr, clean),
        source=clean(raw.source),
        missing=missing,
    )


def _answer(told: str | bytes, clean: Callable[[str], str]) -> str | bytes:
    if isinstance(told, str):
        return clean(told)
    text = told.decode("utf-8", "surrogateescape")
    return clean(text).encode("utf-8", "surrogateescape")


def _hostnames(report: Report) -> Iterable[str]:
    """How hosts call themselves, which may differ from how they were reached."""
    for host in report.hosts:
        identity = (host.facts or {}).get("identity")
        name = identity.get("hostname") if isinstance(identity, dict) else None
        if isinstance(name, str):
            yield name


class _Walker:
    """All texts of a report, each cleaned once."""

    def __init__(self, redactor: Redactor, full: bool) -> None:
        self._redactor = redactor
        self._full = full
        self._clean = redactor.full if full else redactor.secrets
        self._done: dict[tuple[str, str], str] = {}

    def walk(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, dict):
            about = _ABOUT_VERSIONS.search(str(value.get("check", ""))) is not None
            return {
                name: self.walk(part, "version" if about and name in _JUDGED else name)
                for name, part in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.walk(part, key) for part in self._arguments(value, key)]
        return value

    def _arguments(self, value: Sequence[Any], key: str) -> Sequence[Any]:
        return in_arguments(value) if key == "argv" else value

    def _text(self, text: str, key: str) -> str:
        if _OURS.fullmatch(key):
            return text
        if key == "host" and self._full:
            return self._redactor.host(text)
        if key == "device" and re.fullmatch(r"\d{9,20}", text):
            key = "serial"
        if (key, text) not in self._done:
            head = f"{key}: " if _TELLING.search(key) else ""
            self._done[key, text] = self._clean(head + text)[len(head) :]
        return self._done[key, text]
