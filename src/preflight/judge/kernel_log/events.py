"""The events of a log as the report names them, and those that a row is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.kernel import KernelEvent, KernelLog, Sxid, Xid
from preflight.judge.kernel_log.rows import Row
from preflight.judge.kernel_log.seen import Seen
from preflight.model import Missing


class Events(Struct, frozen=True):
    """All events of one log, as the report names them."""

    xids: tuple[Seen, ...]
    sxids: tuple[Seen, ...]
    events: tuple[tuple[str, Seen], ...]  # with their kinds


def events_of(host: Host, log: KernelLog) -> Events:
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    # A GPU whose number is not known is called by its address, as the log writes it.
    names = {_slot(gpu.bus_id): gpu.name for gpu in gpus if ":" not in gpu.name}
    return Events(
        tuple(_of_xid(one, names) for one in log.xids),
        tuple(_of_sxid(one) for one in log.sxids),
        tuple((one.kind, _of_event(one, names)) for one in log.events),
    )


def _slot(address: str) -> str:
    """0000:1b:00.0 and 00000000:1B:00 are one device: domain, bus and device without function."""
    return address.lower().rpartition(".")[0].lstrip("0") or address.lower().lstrip("0")


def _of_xid(one: Xid, names: dict[str, str]) -> Seen:
    return Seen(
        label=f"Xid {one.code}",
        subject=names.get(_slot(one.bus_id), one.bus_id),
        device=one.bus_id,
        line=one.line,
        at_s=one.at_s,
        text=one.text,
        code=one.code,
        pid=one.pid if isinstance(one.pid, int) else None,
        process=one.process if isinstance(one.process, str) else "",
        probe=one.probe,
    )


def _of_sxid(one: Sxid) -> Seen:
    return Seen(
        label=f"SXid {one.code}",
        subject=one.switch,
        device=one.switch,
        line=one.line,
        at_s=one.at_s,
        text=f"{one.severity}, {one.text}",
        code=one.code,
        link=one.link if isinstance(one.link, int) else None,
        probe=one.probe,
    )


def _of_event(one: KernelEvent, names: dict[str, str]) -> Seen:
    subject = names.get(_slot(one.subject), one.subject) if ":" in one.subject else one.subject
    return Seen(
        "", subject, one.subject, one.line, one.at_s, one.text, probe=one.probe, count=one.count
    )


def mine(host: Host, row: Row, seen: Events) -> list[Seen]:
    """The events that a row is about."""
    if row.table == "kernel-events":
        alike = [one for kind, one in seen.events if kind == row.kind]
        alike = _of_gpus(host, seen, alike) if row.of_gpus else alike
        alike = _without_driver(host, alike) if row.unless_runs else alike
        alike = _without_repeats(row.repeats, alike) if row.repeats else alike
        elsewhere = {one.device for one in seen.xids if one.code == row.unless_xid}
        if elsewhere or any(one.device for one in alike):
            elsewhere.add("")  # a message that names no device is about one that is named
        return [one for one in alike if one.device not in elsewhere]
    events = seen.xids if row.table == "xid" else seen.sxids
    if row.code == "other":
        return [one for one in events if one.code not in row.known]
    return [one for one in events if one.code == row.code or one.code in row.codes]


def _of_gpus(host: Host, seen: Events, events: Sequence[Seen]) -> list[Seen]:
    """Those of the host's GPUs, known by nvidia-smi, by an Xid or by the driver's name."""
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    known = {_slot(gpu.bus_id) for gpu in gpus} | {_slot(one.device) for one in seen.xids}
    return [one for one in events if "nvidia " in one.text or _slot(one.device) in known]


def _without_driver(host: Host, events: Sequence[Seen]) -> list[Seen]:
    """Those of a driver that has no GPU: where nvidia-smi shows one, or a host has none at all,
    none; and where the driver was loaded since the boot, those that name it."""
    if (not isinstance(host.gpus, Missing) and host.gpus) or host.gpu_inventory.on_pci == 0:
        return []
    log = host.kernel_log
    last = log.starts[-1:] if isinstance(log, KernelLog) else ()
    loaded = any(start.what == "driver" for start in last)
    return [one for one in events if not loaded or "nvidia" in one.text.lower()]


def _without_repeats(pattern: str, events: Sequence[Seen]) -> list[Seen]:
    """Without the events that only repeat others of their device, where it has others."""
    repeats = [bool(re.search(pattern, one.text)) for one in events]
    told = {one.device for one, again in zip(events, repeats, strict=True) if not again}
    return [
        one
        for one, again in zip(events, repeats, strict=True)
        if not (again and one.device in told)
    ]
