"""Reports and captures as they may be shown: never with secrets and, on demand, without names.

A stand-in is stable within one `Redactor`: one address is `ipv4-1` everywhere. Lines stay lines, so
that evidence still points to where it was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from preflight.model import Change, HostReport, Raw, Report
from preflight.redact.files import NO_FILE, in_a_plan, is_path
from preflight.redact.hosts import in_a_launch
from preflight.redact.secrets import MASK, in_arguments, secrets
from preflight.redact.stand_ins import Redactor

__all__ = ["MASK", "Redactor", "redact_raw", "redact_report", "secrets"]

#: Words of preflight itself: ids, statuses, times.
_OURS = re.compile(
    "schema|preflight|command|level|status|verdict|kind|check|runbook|action|started_at|unit|fault"
    "|about|since|was_status|now_status"
)
# Keys that say what their text is, where the text alone does not.
_TELLING = re.compile(
    r"serial|asset_tag|^sn$|user|owner|hostname|guid|pdi|version|driver|firmware|bios|pass|pwd"
    r"|secret|credential|token|key"
)
#: First words of subjects of checks of NCCL that name no host.
_NO_HOST = ("", "job", "line", "communicator")
_JUDGED = ("measured", "expected", "was", "now")
_ABOUT_VERSIONS = re.compile(r"version|driver|cudnn|firmware|vbios|ofed")
# Two captures that answer the same for one host.
_A_CAPTURE_OF = re.compile(r"(a capture of )(.+)")
_PROFILE = re.compile(r"(profile )(.+)")


def redact_report(report: Report, redactor: Redactor, *, full: bool = True) -> Report:
    """The report as it may be shown: without secrets; with `full` without names too."""
    plain = msgspec.to_builtins(report)
    if full:
        for text in _texts(plain):
            redactor.keep_clear_of(text)
        for text in _texts(plain):
            redactor.know_scripts(text)
        redactor.know(host.host for host in report.hosts if not _is_file(host))
        redactor.know(_hostnames(report))
        redactor.know(name for one in _changes(report) for name in one.hosts)
        plain["argv"] = redactor.arguments(in_arguments(report.argv))
        _name_inputs(plain, report, redactor)
    walker = _Walker(redactor, full)
    return msgspec.convert(walker.walk(plain, ""), Report)


def redact_raw(raw: Raw, redactor: Redactor, *, full: bool = True) -> Raw:
    """One answer as it may be shown; its lines stay lines."""
    clean = redactor.full if full else redactor.secrets
    host, source = raw.host, clean(raw.source)
    if full:
        host, source = redactor.host(raw.host), redactor.source(raw.source)
        for folder in in_a_plan(raw.argv):
            redactor.file(folder)
        redactor.know(in_a_launch(raw.argv))
    return replace(
        raw,
        host=host,
        source=source,
        argv=tuple(map(clean, in_arguments(raw.argv))),
        stdout=_answer(raw.stdout, clean),
        stderr=_answer(raw.stderr, clean),
        missing=raw.missing and replace(raw.missing, text=clean(raw.missing.text)),
    )


def _answer(told: str | bytes, clean: Callable[[str], str]) -> str | bytes:
    if isinstance(told, str):
        return clean(told)
    text = told.decode("utf-8", "surrogateescape")
    return clean(text).encode("utf-8", "surrogateescape")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)


def _hostnames(report: Report) -> Iterable[str]:
    """How hosts call themselves, which may differ from how they were reached."""
    for host in report.hosts:
        identity = (host.facts or {}).get("identity")
        name = identity.get("hostname") if isinstance(identity, dict) else None
        if isinstance(name, str):
            yield name
        for one in host.results:
            # "node-02", "node-02 gpu3": a log of NCCL may be of many hosts
            name = one.subject.partition(" ")[0]
            if one.check.startswith("nccl.") and name not in _NO_HOST and name != host.host:
                yield name


def _changes(report: Report) -> Iterable[Change]:
    """What names hosts that may not be in the report any more."""
    return report.changes.each if report.changes else ()


def _is_file(host: HostReport) -> bool:
    """Whether it is no host but an input that could not be used, which stands in its place."""
    return not host.results and any(
        one.probe == host.host and one.kind == "unreadable" for one in host.missing
    )


def _name_inputs(plain: dict[str, Any], report: Report, redactor: Redactor) -> None:
    """Stand-ins for inputs that stand in place of hosts, in the plain form of the report."""
    for shown, host in zip(plain["hosts"], report.hosts, strict=True):
        if not _is_file(host):
            continue
        capture = _A_CAPTURE_OF.fullmatch(host.host)
        name = f"{capture[1]}{redactor.host(capture[2])}" if capture else None
        shown["host"] = name or redactor.file(host.host)
        for one in shown["missing"]:
            one["probe"] = shown["host"] if one["probe"] == host.host else one["probe"]
            one["text"] = redactor.refusal(one["text"])


def _host(redactor: Redactor, name: str) -> str:
    """The host of a report; the inputs in place of hosts have their stand-ins already."""
    return name if name in NO_FILE or _A_CAPTURE_OF.fullmatch(name) else redactor.host(name)


def _profile(redactor: Redactor, name: str) -> str:
    return redactor.file(name) if is_path(name) else redactor.full(name)


def _source(redactor: Redactor, text: str) -> str:
    """The source of evidence, or of a changed threshold: an option or a profile."""
    if text.startswith("--"):
        return redactor.full(text)
    profile = _PROFILE.fullmatch(text)
    if profile:
        return f"{profile[1]}{_profile(redactor, profile[2])}"
    return redactor.source(text)


#: Keys whose text is a name and nothing else.
_NAMED: dict[str, Callable[[Redactor, str], str]] = {
    "host": _host,
    "hosts": _host,
    "profile": _profile,
    "source": _source,
}


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
            about = (
                _ABOUT_VERSIONS.search(str(value.get("check") or value.get("about"))) is not None
            )
            return {
                name: self.walk(part, "version" if about and name in _JUDGED else name)
                for name, part in value.items()
            }
        if isinstance(value, (list, tuple)):
            if key == "argv":  # done where names go
                return list(value) if self._full else in_arguments(value)
            return [self.walk(part, key) for part in value]
        return value

    def _text(self, text: str, key: str) -> str:
        if _OURS.fullmatch(key):
            return text
        if self._full and key in _NAMED:
            return _NAMED[key](self._redactor, text)
        if key == "device" and re.fullmatch(r"\d{9,20}", text):
            key = "serial"
        if (key, text) not in self._done:
            head = f"{key}: " if _TELLING.search(key) else ""
            self._done[key, text] = self._clean(head + text)[len(head) :]
        return self._done[key, text]
