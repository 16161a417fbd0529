"""Whether the parameters that run are those of the next boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from preflight import datafiles, strict_yaml, writable
from preflight.facts.host import Host
from preflight.facts.setup import AtBoot, Persisted, Sysctl
from preflight.judge.results import result, undetermined
from preflight.model import NOT_IN_INPUT, Check, Evidence, Known, Missing, Result, Status
from preflight.printable import printable

#: To set one of a pair makes the other 0.
_PAIRS = {
    "vm.dirty_ratio": "vm.dirty_bytes", "vm.dirty_bytes": "vm.dirty_ratio",
    "vm.dirty_background_ratio": "vm.dirty_background_bytes",
    "vm.dirty_background_bytes": "vm.dirty_background_ratio",
}  # fmt: skip
#: What a kubelet sets at its start besides vm.overcommit_memory (protectKernelDefaults of
#: KubeletConfiguration).
_KUBELET = {"kernel.panic": 10, "kernel.panic_on_oops": 1}
_SHOWN = 6
_EXPECTED = "the same after a boot"
#: Where a site keeps what it has set itself.
_FILE = "/etc/sysctl.d/90-site.conf"
_TABLE = "data/kernel_defaults.yaml"


class Default(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table; its keys are told there."""

    name: str
    between: tuple[int, int]
    option: str = ""
    nodes: int = 0
    kubelet: int | None = None


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
    rows = [row for row in _defaults() if _known(host, row, running)]
    by_files = {one.name for one in files.settings}
    own = [row for row in rows if not {row.name, _PAIRS.get(row.name)} & by_files]
    told, evidence, lines = [], [], []
    for row in own:
        now, (low, high) = running[row.name], row.between
        if not low <= _number(now) <= high:
            least = low if low == high else f"{low} to {high}"
            told.append(f"{row.name} is {now.value}, and no file sets it: {least} after a boot")
            evidence.append(Evidence(now.probe, line=now.line))
            lines.append(f"{row.name} = {now.value}")
    typed = tuple(f"echo '{line}' | sudo tee -a {_FILE}" for line in lines[:_SHOWN])
    passed = f"none of {len(rows)} that were looked at"
    return _told(host, check, told, passed, tuple(evidence), typed, of=f" of {len(rows)}")


def _known(host: Host, row: Default, running: dict[str, Sysctl]) -> bool:
    """Whether the value after a boot is known, and only a file or a hand could set another."""
    now = running.get(row.name)
    if now is None or not isinstance(now.number, (int, float)):
        return False
    if row.option and _may_hold(running.get("cmdline"), row.option):
        return False
    nodes = NOT_IN_INPUT if isinstance(host.cpu, Missing) else host.cpu.numa_nodes
    if row.nodes and (isinstance(nodes, Missing) or nodes < row.nodes):
        return False
    # What dirty_bytes sets makes dirty_ratio 0, and the other way round: one of them is told.
    pair = running.get(_PAIRS.get(row.name, ""))
    if pair and now.number == 0 and _number(pair) > 0:
        return False
    return row.kubelet != now.number or not _set_by_kubelet(running)


def _may_hold(cmdline: Sysctl | None, option: str) -> bool:
    if cmdline is None or isinstance(cmdline.value, Missing):
        return True
    return any(one.startswith(f"{option}=") for one in cmdline.value.split())


def _set_by_kubelet(running: dict[str, Sysctl]) -> bool:
    return all(
        name in running and running[name].number == number for name, number in _KUBELET.items()
    )


def _number(one: Sysctl) -> float:
    return 0 if isinstance(one.number, Missing) else one.number


def _told(
    host: Host, check: Check, told: list[str], passed: str, evidence: tuple[Evidence, ...],
    steps: tuple[str, ...], of: str = "",
) -> Result:  # fmt: skip
    """`steps`: with the names and values of this host."""
    if not told:
        return result(check, host.name, Status.PASS, passed, _EXPECTED)
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return result(
        replace(check, fix=tuple(map(printable, steps))), host.name, Status.WARN,
        f"{len(told)}{of}: {'; '.join(told[:_SHOWN])}{more}", _EXPECTED, evidence=evidence[:2],
    )  # fmt: skip


@cache
def _defaults() -> tuple[Default, ...]:
    text = (datafiles.root() / "checks" / _TABLE).read_text(encoding="utf-8")
    rows = strict_yaml.load(text, f"checks/{_TABLE}")["rows"]
    return tuple(msgspec.convert(row, Default) for row in rows)


_RULES: dict[str, Callable[[Host, Check, Persisted, dict[str, Sysctl]], Result]] = {
    "system.sysctl.persisted": _differing,
    "system.sysctl.unsaved": _unsaved,
}
