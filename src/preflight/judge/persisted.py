"""Whether the parameters that run are those of the next boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from preflight import datafiles, strict_yaml, writable
from preflight.facts.host import Host
from preflight.facts.setup import AtBoot, Persisted, Sysctl
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Known, Missing, Result, Status
from preflight.printable import printable

#: To set one of a pair makes the other 0.
_PAIRS = {
    "vm.dirty_ratio": "vm.dirty_bytes", "vm.dirty_bytes": "vm.dirty_ratio",
    "vm.dirty_background_ratio": "vm.dirty_background_bytes",
    "vm.dirty_background_bytes": "vm.dirty_background_ratio",
}  # fmt: skip
_SHOWN = 6
_EXPECTED = "the same after a boot"
#: Where a site keeps what it has set itself.
_FILE = "/etc/sysctl.d/90-site.conf"
_TABLE = "data/kernel_defaults.yaml"


def judge_persisted(host: Host, checks: Sequence[Check]) -> list[Result]:
    """One result of each check: all parameters that it finds are named in it."""
    files, sysctls = host.persisted, host.sysctls
    if isinstance(host.container, str) and host.container != "none":
        belongs = Missing("not-applicable", "belongs to the host, not to a container")
        return [undetermined(check, host.name, belongs) for check in checks]
    for part in (files, sysctls, _unread(files)):
        if isinstance(part, Missing):
            return [undetermined(check, host.name, part) for check in checks]
    assert isinstance(files, Persisted)
    assert not isinstance(sysctls, Missing)
    running = {one.name: one for one in sysctls}
    return [_RULES[check.id](host, check, files, running) for check in checks]


def _unread(files: Known[Persisted]) -> Missing | None:
    """A file that might set anything."""
    if isinstance(files, Missing) or not files.denied:
        return None
    return Missing("denied", f"{', '.join(files.denied[:3])} cannot be read; root can")


def _differing(host: Host, check: Check, files: Persisted, running: dict[str, Sysctl]) -> Result:
    odd = list(_off(files.settings, running))
    told = [
        f"{one.name} is {running[one.name].value}, {one.file}:{one.at} sets {one.value}"
        for one in odd
    ]
    evidence = tuple(Evidence(one.probe, line=one.line) for one in odd)
    steps = [
        f"the running value is right: in {one.file}:{one.at} write "
        f"{_line(one.name, running[one.name])} in place of {one.value}"
        for one in odd
    ]
    count = sum(one.name in running for one in files.settings)
    passed = f"{count} parameters of files, all as they are there"
    return _told(host, check, told, passed, evidence, (*steps[:_SHOWN], *check.fix[1:]))


def _line(name: str, now: Sysctl) -> str:
    return f"{name} = {now.value}" if name not in writable.SYSFS else str(now.value)


def _off(settings: Sequence[AtBoot], running: dict[str, Sysctl]) -> Iterator[AtBoot]:
    named = {one.name for one in settings}
    for one in settings:
        now = running.get(one.name)
        paired = _PAIRS.get(one.name) in named
        if now is None or paired or isinstance(now.value, Missing):
            continue  # this kernel has no such parameter
        if now.value != one.value:
            yield one


def _unsaved(host: Host, check: Check, files: Persisted, running: dict[str, Sysctl]) -> Result:
    if files.tuned != "none":
        reason = f"tuned sets values of its own at boot, by its profile {files.tuned}"
        return result(check, host.name, Status.SKIP, reason=reason)
    named = {one.name for one in files.settings}
    told, evidence, lines = [], [], []
    for name, (low, high) in _defaults().items():
        now = running.get(name)
        number = now.number if now else None
        if now is None or not isinstance(number, (int, float)) or name in named:
            continue
        if not low <= number <= high:
            least = low if low == high else f"{low} to {high}"
            told.append(f"{name} is {now.value}, and no file sets it: {least} after a boot")
            evidence.append(Evidence(now.probe, line=now.line))
            lines.append(f"{name} = {now.value}")
    typed = (f"echo '{line}' | sudo tee -a {_FILE}" for line in lines[:_SHOWN])
    return _told(host, check, told, "nothing set by hand", tuple(evidence), tuple(typed))


def _told(
    host: Host, check: Check, told: list[str], passed: str, evidence: tuple[Evidence, ...],
    steps: tuple[str, ...],
) -> Result:  # fmt: skip
    """`steps`: with the names and values of this host."""
    if not told:
        return result(check, host.name, Status.PASS, passed, _EXPECTED)
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return result(
        replace(check, fix=tuple(map(printable, steps))), host.name, Status.WARN,
        f"{len(told)}: {'; '.join(told[:_SHOWN])}{more}", _EXPECTED, evidence=evidence[:2],
    )  # fmt: skip


@cache
def _defaults() -> dict[str, tuple[int, int]]:
    text = (datafiles.root() / "checks" / _TABLE).read_text(encoding="utf-8")
    rows = strict_yaml.load(text, f"checks/{_TABLE}")["rows"]
    return {row["name"]: (row["between"][0], row["between"][1]) for row in rows}


_RULES: dict[str, Callable[[Host, Check, Persisted, dict[str, Sysctl]], Result]] = {
    "system.sysctl.persisted": _differing,
    "system.sysctl.unsaved": _unsaved,
}
