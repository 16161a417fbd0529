"""The rule `lock`: what of a host is locked, and how it differs from a lock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.env_names import is_felt, shown
from preflight.env_table import family_of
from preflight.facts.host import Host
from preflight.judge.results import about, result, undetermined
from preflight.judge.versions import is_version, version_holds
from preflight.lockfile import Locked
from preflight.model import Check, Evidence, Known, Missing, Result, Status
from preflight.printable import printable
from preflight.redact.secrets import MASK, secrets

#: Of a check, as the command line puts it there: the entries to compare with, or that all are to be
#: told, to make a lock of them.
ENTRIES, TELL = "lock_entries", "lock_tell"
#: The facts that it takes.
READS = (
    "os", "identity", "driver", "board", "gpus", "nics", "fabric_manager", "software", "packages",
    "environment", "accelerator_count", "stack",
)  # fmt: skip
#: Name the devices that a process was granted, not a setting.
_GRANTS = re.compile(r".*_VISIBLE_DEVICES|SLURM_.*|TORCHELASTIC_RUN_ID|NVIDIA_IMEX_CHANNELS")
_SINGLE = ("LD_LIBRARY_PATH", "LD_PRELOAD")


class Now(Struct, frozen=True):
    """One thing of a host that a lock may hold, and where it was seen."""

    kind: str
    name: str
    value: str
    probe: str = ""
    line: int = 0


def of_host(host: Host) -> Iterator[Now | tuple[str, Missing]]:
    """All that is locked, by kinds; a kind that is not known, and why."""
    yield _text("os", "release", host.os)
    yield _text("kernel", "linux", _of(host.identity, "kernel"))
    yield _text("driver", "nvidia", host.stack.driver)
    yield _text("torch", "cuda", host.stack.torch_cuda)
    yield _text("toolkit", "nvcc", host.stack.toolkit)
    yield _products(host)
    yield _text("accelerator", "driver", host.accelerator_count.version)
    yield _text("bios", "system", _of(host.board, "bios_version"))
    yield from _of_devices("vbios", host.gpus, "product", "vbios")
    yield from _of_devices("nic", host.nics, "hca", "firmware")
    yield _text("service", "fabric-manager", host.fabric_manager.version)
    yield from _named("software", host.software, "version")
    yield from _named("package", host.packages, "version")
    yield from _named("env", _settings(host), "value")


def _products(host: Host) -> Now | tuple[str, Missing]:
    """The models of the GPUs; how many of them a job is granted is no version."""
    if isinstance(host.stack.gpus, Missing):
        return "gpu", host.stack.gpus
    models = {one.product for one in host.stack.gpus if isinstance(one.product, str)}
    none = Missing("not-applicable", "no GPU here")
    return Now("gpu", "model", ", ".join(sorted(models))) if models else ("gpu", none)


def _of(part: Any, field: str) -> Known[str]:
    found: Known[str] = part if isinstance(part, Missing) else getattr(part, field)
    return found


def _text(kind: str, name: str, value: Known[str]) -> Now | tuple[str, Missing]:
    return (kind, value) if isinstance(value, Missing) else Now(kind, name, value)


def _named(kind: str, part: Known[Any], field: str) -> Iterator[Now | tuple[str, Missing]]:
    if isinstance(part, Missing):
        yield kind, part
        return
    for one in part:
        value = getattr(one, field)
        if isinstance(value, str):
            yield Now(kind, one.name, value, one.probe, one.line)


def _of_devices(
    kind: str, devices: Known[Any], model: str, field: str
) -> Iterator[Now | tuple[str, Missing]]:
    """The firmware of each model; several on one host are told together."""
    if isinstance(devices, Missing):
        yield kind, devices
        return
    found: dict[str, set[str]] = {}
    for one in devices:
        name, value = getattr(one, model), getattr(one, field)
        if isinstance(name, str) and isinstance(value, str):
            found.setdefault(name, set()).add(value)
    for name, values in found.items():
        yield Now(kind, name, ", ".join(sorted(values)))


def _settings(host: Host) -> Known[Any]:
    """Variables that are settings. Of one that is set twice the process counts before the file."""
    if isinstance(host.environment, Missing):
        return host.environment
    found = {
        one.name: one
        for one in sorted(host.environment, key=lambda one: not one.of.startswith("/"))
        if (family_of(one.name) or one.name in _SINGLE) and not _GRANTS.fullmatch(one.name)
    }
    return tuple(found.values())


def judge_lock(host: Host, checks: Sequence[Check]) -> list[Result]:
    """What differs from the lock, a result each."""
    told = list(of_host(host))
    now = [_shown(one) for one in told if isinstance(one, Now)]
    missing: dict[str, Missing] = {}
    for one in told:
        if isinstance(one, tuple):
            missing.setdefault(*one)
    return [each for check in checks for each in _judged(host, check, now, missing)]


def _shown(one: Now) -> Now:
    """As results show it, of which locks are made."""
    return replace(one, value=secrets(printable(one.value)))


def _judged(
    host: Host, check: Check, now: Sequence[Now], missing: dict[str, Missing]
) -> Iterator[Result]:
    if check.row.get(TELL):
        yield from _all(check, now, missing)
        return
    entries = [Locked(*entry) for entry in check.row.get(ENTRIES, ())]
    locked = [_masked(one) for one in entries if one.kind != "env" or is_felt(one.name)]
    if not locked:
        none = Missing("not-asked", "needs --against env.lock.json, which --lock writes")
        yield undetermined(check, host.name, none)
        return
    meant = (check.fail_unless or check.warn_unless)["subset_of"]
    locked = [one for one in locked if one.name not in meant]
    yield from _compared(
        host, check, locked, [one for one in now if one.name not in meant], missing
    )


def _masked(one: Locked) -> Locked:
    """Without what a variable's value in a lock of somebody's own making may give away."""
    return replace(one, value=shown(one.name, one.value)) if one.kind == "env" else one


def _compared(
    host: Host, check: Check, locked: Sequence[Locked], now: Sequence[Now],
    missing: dict[str, Missing],
) -> Iterator[Result]:  # fmt: skip
    """A kind that is not known is told once, by the check on changes, unless nothing at all could
    be compared."""
    have = {(one.kind, one.name): one for one in now}
    missing = {kind: why for kind, why in missing.items() if not _has_none(host, why)}
    sure = [one for one in locked if (one.kind, one.name) in have or one.kind not in missing]
    unknown = sorted({one.kind for one in locked if one not in sure})
    if check.id.endswith(".new"):
        yield from _new(host, check, locked, now, missing)
        return
    changes = check.id.endswith(".changed")
    found = list(_changed(check, sure, have) if changes else _absent(check, sure, have))
    if changes or not sure:
        found += [
            undetermined(check, kind, missing[kind], expected="as locked") for kind in unknown
        ]
    yield from found
    if not found:
        yield result(check, host.name, Status.PASS, _summary(sure, now), "as locked")


def _new(
    host: Host, check: Check, locked: Sequence[Locked], now: Sequence[Now],
    missing: dict[str, Missing],
) -> Iterator[Result]:  # fmt: skip
    """Variables that were not set when the lock was made. What else is new is listed only: who
    installs a package uses it or not, a variable works at once."""
    have = {one.name for one in locked if one.kind == "env"}
    settings = [one for one in now if one.kind == "env"]
    if "env" in missing:
        yield undetermined(check, "env", missing["env"])
        return
    if not any(one.kind in ("env", "software") for one in locked):  # of tools' output
        unread = Missing("not-applicable", "the lock was made where no variable was read")
        yield undetermined(check, "env", unread)
        return
    fresh = [one for one in settings if one.name not in have]
    for one in fresh:
        seen = (Evidence(one.probe, line=one.line),) if one.probe else ()
        yield result(
            about(check, one.name), f"env {one.name}", _status(check), one.value, "not set",
            reason="it was not set when the lock was made", evidence=seen,
        )  # fmt: skip
    if not fresh:
        yield result(check, host.name, Status.PASS, f"{len(settings)} set", "as locked")


def _has_none(host: Host, why: Missing) -> bool:
    """Whether the host says that it has none: what is locked is gone then, not unknown. A container
    may not see what the host has."""
    return why.kind == "not-applicable" and host.container == "none"


def _all(check: Check, now: Sequence[Now], missing: dict[str, Missing]) -> Iterator[Result]:
    """What a lock is made of: the command that writes it reads these results."""
    if not check.id.endswith(".changed"):
        return
    for one in now:
        yield result(check, f"{one.kind} {one.name}", Status.PASS, one.value)
    optional = replace(check, optional=True)  # who locks a host without Python locks the rest
    for kind, why in missing.items():
        yield undetermined(optional, kind, why)


def _summary(locked: Sequence[Locked], now: Sequence[Now]) -> str:
    have = {(one.kind, one.name) for one in locked}
    fresh = [f"{one.kind} {one.name}" for one in now if (one.kind, one.name) not in have]
    unkept = sum(one.value == MASK for one in locked)
    told = f"{len(locked) - unkept} entries"
    told += f", {unkept} more by name alone: their values are not kept" if unkept else ""
    return f"{told}; not in the lock: {', '.join(fresh)}" if fresh else told


def _changed(
    check: Check, locked: Iterable[Locked], now: dict[tuple[str, str], Now]
) -> Iterator[Result]:
    for one in locked:
        have = now.get((one.kind, one.name))
        kept = have is not None and MASK not in (have.value, one.value)  # else there is no value
        if have is not None and kept and not _alike(have.value, one.value):
            seen = (Evidence(have.probe, line=have.line),) if have.probe else ()
            yield result(
                about(check, one.name), f"{one.kind} {one.name}", _status(check),
                have.value, one.value,
                reason=f"{_order(have.value, one.value)}, locked at {one.told()}", evidence=seen,
            )  # fmt: skip


def _absent(
    check: Check, locked: Iterable[Locked], now: dict[tuple[str, str], Now]
) -> Iterator[Result]:
    for one in locked:
        if (one.kind, one.name) not in now:
            told = f"it is not there, locked at {one.told()}"
            subject = f"{one.kind} {one.name}"
            yield result(check, subject, _status(check), "absent", one.value, reason=told)


def _status(check: Check) -> Status:
    return Status.FAIL if check.fail_unless else Status.WARN


def _alike(value: str, wanted: str) -> bool:
    """2.5 is 2.5.0, and 2.5.0+cu124 is not 2.5.0+cpu."""
    if value == wanted:
        return True
    letters = (re.sub(r"[\d.]", "", text) for text in (value, wanted))
    same = len(set(letters)) == 1
    return same and is_version(f"=={wanted}") and version_holds(value, f"=={wanted}")


def _order(value: str, wanted: str) -> str:
    if not (value[:1].isdigit() and is_version(f">{wanted}")):
        return "another"
    if version_holds(value, f">{wanted}"):
        return "newer"
    return "older" if version_holds(value, f"<{wanted}") else "another build"
