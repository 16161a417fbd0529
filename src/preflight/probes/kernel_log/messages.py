"""What one message of the kernel, or of the fabric manager, tells: one record or none."""

from __future__ import annotations

import re

from preflight.facts.kernel import KernelEvent, Sxid, Xid
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.kernel_log.kinds import BDF, KERNEL, KINDS, NEEDLES, Kind
from preflight.probes.kernel_log.lines import Line

Record = Xid | Sxid | KernelEvent

_BUS = re.compile(r"(?:([0-9a-f]{4,8}):)?(?:00)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?")

# "(PCI:0000:3b:00 GPU-I:01 GPU-CI:02)" on a MIG GPU; "(0000:03:00)" and "(0003:00)" of old drivers.
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]+)[^)]*\): (?P<code>\d{1,5}),\s*"
    r"(?:pid=(?P<pid>[^,\s]+),?\s*)?(?:name=(?P<name>[^,]*),?\s*)?(?P<text>.*)"
)
# NVIDIA, Fabric Manager User Guide, "NVSwitch SXid errors": one error is up to three lines.
_SXID = re.compile(
    r"(?P<switch>nvidia-nvswitch\d+):? SXid \(PCI:[^)]*\): (?P<code>\d{1,5}), "
    r"(?:(?P<more>Severity (?P<level>\d)|Data)\b|(?P<severity>Fatal|Non-fatal)\b,?\s*)?(?P<text>.*)"
)
_FABRIC_MANAGER = re.compile(
    r"detected NVSwitch (?P<severity>fatal|non-fatal) error (?P<code>\d{1,5}) .*"
    r"pci bus id (?P<switch>[0-9a-fA-F:.]+)(?:.* port (?P<link>\d{1,3}))?"
)
_LINK = re.compile(r"\bLink (\d{1,3})\b")
_LOST_GPU = re.compile(rf"NVRM: The NVIDIA GPU ({BDF})")
_UNPLUGGED = re.compile(r"NVRM: (?:installed in this system has )?fallen off the bus")

#: Needle -> where its kinds stand in KINDS. Trying every pattern took three times as long.
_PLACES = [
    (needle, tuple(place for place, kind in enumerate(KINDS) if needle in kind.needles))
    for needle in NEEDLES
]

#: Who writes about Xids in the first person; others only cite.
_FIRST_HAND = frozenset({"kernel", "nv-fabricmanager"})
_SPEAKS = re.compile(
    r"\bS?Xid\b\W{0,6}(?:\(|\d)|fallen off the bus|detected NVSwitch \S*fatal error"
)
#: What nobody but the driver begins a message with, whoever passed it on; and the vGPU manager,
#: which writes in capitals of an Xid that a virtual machine's driver caused.
_PASSED_ON = re.compile(
    r"(?:\[ *\d+\.\d+\] ?)?(?:NVRM: Xid\b|nvidia-nvswitch\d+:? SXid\b|NVRM: .*fallen off the bus"
    r"|(?:error: )?vmiop_log: .*\bXID \d+ detected)"
)
# journald-kmsg.c; lib/ratelimit.c and kernel/printk; rsyslog, imklog and imjournal.
_LEFT_OUT = re.compile(
    r"Missed (?P<missed>\d{1,12}) kernel messages"
    r"|\w{1,64}: \d{1,12} (?:callbacks|messages) suppressed"
    r"|im(?:klog|journal)\b.{0,80} drop messages due to rate-limiting"
)
#: A program's line in a kernel log that has no host: python[123]: saw an Xid.
_CITES = re.compile(r"(?:\S+ )?[\w.@/-]+\[\d+\]: ")


def key_of(record: Record) -> tuple[str, ...]:
    """Which fault of which device: records of one fault have one key."""
    if isinstance(record, Xid):
        return ("xid", str(record.code), record.bus_id)
    if isinstance(record, Sxid):
        return ("sxid", str(record.code), record.switch)
    return (record.kind, record.subject)


def record_of(line: Line, number: int, above: str) -> tuple[Record | None, bool]:
    """What line `number` tells, and whether it only repeats what another line tells.

    `above` is the line not far above that names a GPU, if there is one.
    """
    message = line.message.strip()
    if line.program in KERNEL and message.startswith("N"):
        if match := _XID.match(message):
            return _xid(match, number, line.at_s), False
        if _UNPLUGGED.match(message):
            return _unplugged(message, number, line.at_s, above), False
    if line.program in KERNEL and (match := _SXID.match(message)):
        return _sxid(match, number, line.at_s), bool(match["more"])
    if line.program in _FIRST_HAND and (match := _FABRIC_MANAGER.match(message)):
        return _switch_error(match, number, line.at_s), False
    for kind in _likely(message):
        if line.program in kind.programs and (match := kind.pattern.match(message)):
            groups = match.groupdict()
            subject = groups.get("subject") or ""
            subject = _bus_id(subject) if kind.of_gpu else subject
            many = int(groups.get("count") or 1)
            event = KernelEvent(kind.kind, subject, number, line.at_s, message, count=many)
            return event, kind.secondary
    return None, False


def _likely(message: str) -> list[Kind]:
    """The kinds of which a needle stands in the message, in their order."""
    found = {place for needle, places in _PLACES if needle in message for place in places}
    return [KINDS[place] for place in sorted(found)]


def speaks_of_an_xid(line: Line, text: str) -> bool:
    """Whether `line`, in full `text`, tells of an Xid first hand and not as a citation."""
    if passed_on(line):
        return True
    if line.program not in _FIRST_HAND or not _SPEAKS.search(text):
        return False
    return not _CITES.match(line.message) and not line.message.startswith("audit: ")


def passed_on(line: Line) -> bool:
    """Whether a program of a syslog passes on, in whole, what only the driver writes. In the ring
    buffer such a line is a test of whoever watches it."""
    return line.named and _PASSED_ON.match(line.message) is not None


def left_out(line: Line) -> int | None:
    """How many of the kernel's messages the line says are missing; 0 where it says only that some
    are, None where it says nothing of the kind."""
    match = _LEFT_OUT.match(line.message)
    if not match or (match["missed"] and line.program != "systemd-journald"):
        return None
    return int(match["missed"] or 0)


def cited_key(line: Line) -> tuple[str, ...] | None:
    """Which fault of which device such a line is about."""
    match = _XID.match(line.message)
    return key_of(_xid(match, 0, None)) if match else None


def _xid(match: re.Match[str], number: int, at_s: float | None) -> Xid:
    pid, name = (match["pid"] or "").strip("'"), (match["name"] or "").strip("'")
    unknown = Missing("unreadable", "the driver did not know the process")
    return Xid(
        code=int(match["code"]),
        bus_id=_bus_id(match["bus"]),
        line=number,
        at_s=at_s,
        text=match["text"].strip(),
        pid=int(pid) if re.fullmatch(r"\d{1,10}", pid) else unknown if pid else NOT_IN_INPUT,
        process=unknown if name == "<unknown>" else name or NOT_IN_INPUT,
    )


def _sxid(match: re.Match[str], number: int, at_s: float | None) -> Sxid:
    severity = (match["severity"] or "unknown").lower()
    # The second line of an error has its severity as a number.
    severity = {"0": "non-fatal", "1": "fatal"}.get(match["level"] or "", severity)
    code, text = int(match["code"]), f"{match['more'] or ''}{match['text']}".strip()
    return Sxid(code, match["switch"], number, at_s, severity, text, _link(_LINK.search(text)))


def _switch_error(match: re.Match[str], number: int, at_s: float | None) -> Sxid:
    link: Known[int] = int(match["link"]) if match["link"] else NOT_IN_INPUT
    switch, text = _bus_id(match["switch"]), match.group().strip()
    return Sxid(int(match["code"]), switch, number, at_s, match["severity"], text, link)


def _link(match: re.Match[str] | None) -> Known[int]:
    return int(match[1]) if match else NOT_IN_INPUT


def _unplugged(message: str, number: int, at_s: float | None, above: str) -> KernelEvent:
    """The last of three lines; the first, not far above, names the GPU."""
    named = _LOST_GPU.search(above)
    return KernelEvent("off-bus", _bus_id(named[1]) if named else "", number, at_s, message)


def names_a_gpu(text: str) -> bool:
    """Whether lines below may be about the GPU of this one."""
    return _LOST_GPU.search(text) is not None


def _bus_id(text: str) -> str:
    """PCI:0000:9B:00 -> 00000000:9b:00.0, as in Gpu.bus_id."""
    match = _BUS.fullmatch(text.lower())
    if not match:
        return text.lower()
    return f"{match[1] or '':0>8}:{match[2]}:{match[3]}.{match[4] or 0}"
