"""What one message of the kernel, or of the fabric manager, tells: one record or none."""

from __future__ import annotations

import re

from msgspec import Struct

from preflight.facts.kernel import KernelEvent, Sxid, Xid
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.kernel_log_lines import Line

Record = Xid | Sxid | KernelEvent

_BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
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
_LOST_GPU = re.compile(rf"NVRM: The NVIDIA GPU ({_BDF})")
_UNPLUGGED = re.compile(r"NVRM: (?:installed in this system has )?fallen off the bus")

_KERNEL = frozenset({"kernel"})
_LIBRARIES = r"lib(?:nccl|cu(?:da|blas|dnn|fft|sparse|rand|solver|pti|file)|nv|torch|c10|caffe2)"
# Ends of containers and virtual machines come and go with them: no link of the machine.
_NO_LINK = r"(?!docker|br-|veth|cali|cni|cilium|flannel|lxc|virbr|vnet|tap|tun|vxlan|kube|lo\b)"


class _Kind(Struct, frozen=True):
    """A message that makes an event; the group `subject` says whom it is about.

    `secondary` tells the same fault again: it counts only where no first line tells it.
    """

    kind: str
    pattern: re.Pattern[str]
    programs: frozenset[str] = _KERNEL
    secondary: bool = False


#: Every message that makes an event. The formats are those of the kernel's sources.
_KINDS = (
    _Kind("off-bus", re.compile(  # NVIDIA's driver, beside Xid 79 or in its place
        rf"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<subject>{_BDF}).*fallen off the bus")),
    _Kind("pcie-limited", re.compile(  # drivers/pci/pci.c, __pcie_print_link_status
        rf"\S+ (?P<subject>{_BDF}): [\d.]+ Gb/s available PCIe bandwidth, limited by ")),
    _Kind("nic-power", re.compile(  # mlx5/core/events.c, mlx5_pcie_event
        rf"mlx5_core (?P<subject>{_BDF}):.*[Ii]nsufficient power on the PCIe slot")),
    _Kind("nic-unplugged", re.compile(  # mlx5/core/events.c, port_module
        rf"mlx5_core (?P<subject>{_BDF}): Port module event.*, Cable unplugged")),
    _Kind("link-flap", re.compile(  # systemd, networkd-link.c
        rf"(?P<subject>{_NO_LINK}[^\s:]+): (?:[Ll]ost|[Gg]ained) carrier"),
        _KERNEL | {"systemd-networkd"}),
    _Kind("link-flap", re.compile(  # mlx5 "Link down"; most others "NIC Link is Down"
        rf"(?:.*?\s)?(?P<subject>{_NO_LINK}[\w.@-]+):? (?:NIC )?Link (?:is )?(?:[Uu]p|[Dd]own)\b")),
    _Kind("peermem-invalid", re.compile(  # nvidia-peermem.c, nv_get_p2p_free_callback
        r"(?:nvidia[-_]peermem|nv_peer_mem)\b.*invalid context")),
    _Kind("segfault-cuda", re.compile(  # arch/x86/mm/fault.c, show_signal_msg
        rf"(?P<subject>.+?)\[\d+\]: segfault at .* in {_LIBRARIES}")),
    _Kind("segfault-cuda", re.compile(  # arch/x86/kernel/traps.c, show_signal
        rf"traps: (?P<subject>.+?)\[\d+\] general protection fault\b.* in {_LIBRARIES}")),
    _Kind("oom-kill", re.compile(  # mm/oom_kill.c
        r"(?:Memory cgroup out|Out) of memory: Kill(?:ed)? process \d+,? \((?P<subject>[^)]*)\)")),
    _Kind("hung-task", re.compile(  # kernel/hung_task.c
        r"INFO: task (?P<subject>.+):\d+ blocked for more than \d+ seconds")),
    _Kind("panic-asked", re.compile(  # drivers/tty/sysrq.c; drivers/misc/lkdtm; test modules
        r"Kernel panic - not syncing: (?:sysrq triggered crash|dumptest|Test panic)")),
    _Kind("panic", re.compile(r"Kernel panic - not syncing: ")),  # kernel/panic.c
    _Kind("mce", re.compile(  # arch/x86/kernel/cpu/mce; drivers/firmware/efi/cper.c
        r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: "
        r"(?:event severity: |Uncorrected|.*Machine Check(?: Exception)?: )")),
    _Kind("mce", re.compile(r"mce: \[Hardware Error\]: Machine check events logged"),
        secondary=True),
    _Kind("aer-uncorrected", re.compile(  # drivers/pci/pcie/aer.c, aer_print_error
        rf"(?:\S+ )?(?P<subject>{_BDF}): (?:AER: )?PCIe Bus Error: severity=Uncorrect")),
    _Kind("aer-uncorrected", re.compile(  # the root port's notice of it
        rf".*AER: (?:Multiple )?Uncorrect\w+ .*error .*\b(?P<subject>{_BDF})$"), secondary=True),
)  # fmt: skip

#: What to look for in the whole text. Most logs hold few of these; plain searches take
#: two thirds of the time of one pattern with all of them as alternatives (250 KB: 1.9 and 3.0 ms).
NEEDLES = (
    "Xid (", "detected NVSwitch", "fallen off the bus", "limited by", "nsufficient power on",
    "Cable unplugged", "arrier", "Link ", "invalid context", "segfault at", "general protection",
    "ut of memory: Kill", "blocked for more than", "Kernel panic", "Hardware Error]",
    "severity=Uncorr", "AER: ", '"MESSAGE":[',
)  # fmt: skip


def key_of(record: Record) -> tuple[str, ...]:
    """Which fault of which device: records of one fault have one key."""
    if isinstance(record, Xid):
        return ("xid", str(record.code), record.bus_id)
    if isinstance(record, Sxid):
        return ("sxid", str(record.code), record.switch)
    return (record.kind, record.subject)


def record_of(line: Line, number: int, above: str) -> tuple[Record | None, bool]:
    """What line `number` tells, and whether it only repeats what another line tells.

    `above` is the text before it, where a GPU may be named.
    """
    message = line.message.strip()
    if line.program in _KERNEL:
        if match := _XID.match(message):
            return _xid(match, number, line.at_s), False
        if match := _SXID.match(message):
            return _sxid(match, number, line.at_s), bool(match["more"])
        if _UNPLUGGED.match(message):
            return _unplugged(message, number, line.at_s, above), False
    if line.program in ("kernel", "nv-fabricmanager") and (match := _FABRIC_MANAGER.match(message)):
        return _switch_error(match, number, line.at_s), False
    for kind in _KINDS:
        if line.program in kind.programs and (match := kind.pattern.match(message)):
            subject = match.groupdict().get("subject") or ""
            subject = _bus_id(subject) if kind.kind == "off-bus" else subject
            return KernelEvent(kind.kind, subject, number, line.at_s, message), kind.secondary
    return None, False


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
    named = _LOST_GPU.findall(above)
    return KernelEvent("off-bus", _bus_id(named[-1]) if named else "", number, at_s, message)


def _bus_id(text: str) -> str:
    """PCI:0000:9B:00 -> 00000000:9b:00.0, as in Gpu.bus_id."""
    match = _BUS.fullmatch(text.lower())
    if not match:
        return text.lower()
    return f"{match[1] or '':0>8}:{match[2]}:{match[3]}.{match[4] or 0}"
