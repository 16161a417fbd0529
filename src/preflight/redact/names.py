"""What names a machine or a person in the texts of the tools: patterns, and what is none after all.

All repetitions are bounded: no text, however long, is looked at twice.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import NamedTuple

Match = re.Match[str]

#: What stands for a name already.
STAND_IN = re.compile(r"(?:host|ipv4|ipv6|mac|guid|uuid|serial|user|email)-\d+|\*+")
#: Values that say that there is none.
NO_VALUE = re.compile(
    r"(?i)\[?n/?a\]?|none|null|unknown|not|true|false|yes|no|default|to|[0:-]+|[f:-]+|(.)\1+"
)
#: Words of logs and tools: to replace them would change what a text says.
COMMON = re.compile(
    r"(?i)localhost|localdomain|hostname|host|input|local|node|gpu|cpu|nvidia|cuda|nccl|kernel|linux"
    r"|systemd|ubuntu|debian|centos|rocky|rhel|master|worker|server|client|login|compute|head|test"
    r"|default|root|nobody|admin|user|daemon|unknown|all|any|data|home|shared|public"
)
#: A host may be called gpu7 too; in a sentence that is the GPU.
SUBJECT = re.compile(r"(?:gpu|mlx\d_|nvme|eth|ib|rank|cpu|numa)\d{1,2}")

_HH = "[0-9A-Fa-f]{2}"
# Organisation codes of makers of InfiniBand adapters and switches (https://standards-oui.ieee.org):
# they tell a GUID from a register of 64 bits.
_OUI = (
    "0002c9|e41d2d|f45214|7cfe90|248a07|506b4b|ec0d9a|98039b|b8599f|0c42a1|1070fd|08c0eb|043f72"
    "|b8cef6|b83fd2|9c0591|946dae|a088c2|e8ebd3|fc6a1c|900a84|5c2573|58a2e1|001175"
)
_BEFORE_A_VERSION = re.compile(
    r"(?i)(?<![a-z])(?:ver(?:sion)?s?|rev(?:ision)?|release|firmware|fw|[v]?bios|inforom|driver"
    r"|build|cudnn|cublas|nccl|cuda|tensorrt|ofed|nvidia[\w-]{0,40}|lib\w{1,40})[\w-]{0,20}[\"']?"
    r"(?:[\s:=(,v@^~<>!\"']|\b(?:at|least|most|is|one|of|not|expected)\b){0,40}$|==[ ]?$"
)
# MLNX_OFED 5.8-1.1.2.1, but not 10.0.0.1-10.0.0.9.
_INSIDE_A_VERSION = re.compile(r"(?<![\d.])\d{1,4}(?:\.\d{1,4}){1,2}-$")


class Rule(NamedTuple):
    """The group `v` of `pattern` becomes a stand-in of the kind, unless `but` knows better."""

    kind: str
    pattern: re.Pattern[str]
    but: Callable[[Match], bool]


def _is_version(match: Match) -> bool:
    """Four numbers are an address, unless what stands before them speaks of a version."""
    before = match.string[max(0, match.start() - 80) : match.start()].rsplit("\n", 1)[-1]
    octets = match["v"].split(".")
    return (
        any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets)
        # Loopback, "any" and net masks tell about a configuration and nobody's network.
        or octets[0] in ("0", "127", "255")
        or _BEFORE_A_VERSION.search(before) is not None
        or _INSIDE_A_VERSION.search(before) is not None
    )


def _is_no_ipv6(match: Match) -> bool:
    text = match["v"]
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return True
    # ::1 and :: are on every host; c10:: is a name space of PyTorch.
    everywhere = address.is_loopback or address.is_unspecified
    return everywhere or text.startswith("c10::") or not re.search(r"\d", text)


def _is_no_serial(match: Match) -> bool:
    # `Serial: 8250/16550 driver` is the kernel's; `SerialNumber: 0000:00:14.0` an address.
    return match.string[match.end("v") : match.end("v") + 1] in ("/", ":")


def _is_unit(match: Match) -> bool:
    # user@1000.service is a unit of systemd.
    return match["v"].endswith((".service", ".socket", ".scope", ".slice", ".target", ".timer"))


def _is_level(match: Match) -> bool:
    # `user  :warn  :` is a facility and a level of a log (dmesg -x).
    levels = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
    return match["v"] in levels


def _never(_: Match) -> bool:
    return False


def _rule(kind: str, pattern: str, but: Callable[[Match], bool] = _never) -> Rule:
    return Rule(kind, re.compile(pattern), but)


#: Before the names of hosts: a host's name could be a part of these.
ADDRESSES = (
    _rule(
        "uuid",
        r"(?i)\b(?P<v>(?:MIG-)?(?:GPU-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b",
    ),
    _rule("uuid", r"\b(?P<v>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){0,3})\b"),
    _rule("serial", rf"Device Serial Number (?P<v>{_HH}(?:-{_HH}){{7}})\b"),
    # 20 bytes: an InfiniBand interface; 8: EUI-64; 6: Ethernet.
    _rule(
        "mac",
        rf"(?<![\w:])(?P<v>{_HH}(?:(?::{_HH}){{19}}|(?::{_HH}){{7}}|(?::{_HH}){{5}}))"
        rf"(?!\w|:{_HH}\b)",
    ),
    _rule("mac", rf"(?<![\w-])(?=[\d-]{{0,17}}[A-Fa-f])(?P<v>{_HH}(?:-{_HH}){{5}})(?![\w-])"),
    _rule(
        "guid",
        r"(?i)guid[\"']?[ \t]{0,40}[:=(][ \t]{0,20}[\"']?(?:0x)?(?P<v>[0-9a-f]{8,16})\b",
    ),
    _rule("guid", r"(?i)(?<![\w:])(?P<v>[0-9a-f]{4}(?::[0-9a-f]{4}){3})(?![\w:])"),
    _rule(
        "guid",
        rf"(?i)(?:(?<=\b[HSR]-)|\b0x)(?P<v>(?:{_OUI})[0-9a-f]{{10}}|[0-9a-f]{{6}}0300"
        r"[0-9a-f]{6})\b",
    ),
)
#: After them.
REST = (
    _rule(
        "email",
        r"(?<![\w.+-])(?P<v>[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}"
        r"\.[A-Za-z]{2,24})\b",
        _is_unit,
    ),
    _rule(
        "ipv6",
        r"(?<![\w:.])(?P<v>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:]|\.\d)",
        _is_no_ipv6,
    ),
    _rule(
        "ipv4",
        r"(?<![A-Za-z0-9.])(?P<v>\d{1,3}(?:\.\d{1,3}){3})(?![A-Za-z0-9]|\.\d)",
        _is_version,
    ),
    _rule("host", r"\b(?P<v>ip-\d{1,3}(?:-\d{1,3}){3})\b"),
    _rule("serial", r"(?i)<(?:\w{1,40}_)?serial(?:_?(?:number|no|num))?>(?P<v>[^<\s]{3,64})<"),
    _rule(
        "serial",
        r"(?i)(?<![a-z])serial(?:[ _-]?(?:number|num|no))?\.?[\"']?[ \t]{0,60}(?:\bis\b|[:=#])"
        r"[ \t]{0,40}[\"']?(?P<v>[a-z0-9][\w-]{1,62}[a-z0-9])",
        _is_no_serial,
    ),
    _rule("serial", r"(?i)\bserial (?P<v>(?=[A-Z]{0,31}\d)[A-Z0-9]{8,32})\b"),
    _rule(
        "serial",
        r"(?i)\b(?:asset[ _]tag|s/?n)[\"']?[ \t]{0,60}[:=][ \t]{0,40}[\"']?"
        r"(?P<v>(?=[a-z-]{0,40}\d)[a-z0-9-]{6,64})\b",
    ),
    _rule("serial", r"\b(?P<v>MT\d{4}[A-Z]{1,2}\d{5})\b"),
    _rule("user", r"/(?:home|[Uu]sers)/(?P<v>[A-Za-z_][\w.-]{0,62}\w)"),
    _rule(
        "user",
        r"(?i)\b(?:(?:sudo_)?user(?:name|_?id)?|logname|owner)[\"']?[ \t]{0,8}[=:][ \t]{0,8}"
        r"[\"']?(?P<v>[a-z_][\w.-]{0,62}\w)",
        _is_level,
    ),
    _rule("user", r"\b(?:e?uid|gid)=\d{1,10}\((?P<v>[^)\s]{1,64})\)"),
    _rule("user", r"\b(?:for|by|of) (?:invalid )?user (?P<v>[A-Za-z_][\w.-]{0,62}\w)"),
    _rule("user", r"\b(?:Accepted|Failed) \w{1,32} for (?P<v>[\w.-]{1,64}) from\b"),
    _rule("user", r"\bsudo(?:\[\d{1,10}\])?:[ \t]{1,8}(?P<v>[\w.-]{1,64}) : "),
    _rule("user", r"(?<![\w.+-])(?P<v>[\w.+-]{1,64})@(?=host-\d)"),
)

#: Where a text itself says how a host is called.
HOST_TOLD = tuple(
    re.compile(pattern)
    for pattern in (
        # a system log, with either kind of time
        r"(?m)^(?:<\d{1,3}>)?"
        r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,30}) "
        r"(?P<v>[\w.-]{1,253}) (?:kernel|systemd|sshd|sudo|slurmd|crond?|CRON|dockerd|containerd"
        r"|kubelet|nv\w{1,20})(?:\[\d{1,10}\])?:",
        # NCCL_DEBUG=INFO, nccl-tests
        r"(?m)(?:^|\s)(?P<v>[\w.-]{1,253}):\d{1,10}:\d{1,10} \[\d{1,3}\] [^\n]{0,40}NCCL ",
        r"\bPid {1,8}\d{1,10} on {1,8}(?P<v>[\w.-]{1,253}) device\b",
        r"(?m)^hostname[ :]{1,3}(?P<v>[\w.-]{1,253})$",
        r"(?i)\bhostname[\"']?[ \t]{0,40}[=:][ \t]{0,8}[\"']?(?P<v>[\w.-]{1,253})",
        r"\b[Hh]ostname (?:set )?to <(?P<v>[\w.-]{1,253})>",
        r"(?m)^Linux (?P<v>[\w.-]{1,253}) \d{1,2}\.\d{1,3}\.",
        # Slurm, torchrun
        r"\b(?:NodeName|NodeList|BatchHost|MASTER_ADDR|SLURMD_NODENAME|SLURM_(?:JOB_)?NODELIST)="
        r"(?P<v>[\w.,\[\]-]{1,4096})",
        # ibnetdiscover, iblinkinfo
        r"\"(?P<v>[\w.-]{1,253}) (?:HCA-\d|mlx\d_|hfi1_)",
        # a pasted prompt; ssh
        r"(?m)^\[?[\w.-]{1,64}@(?P<v>[\w.-]{1,253})[: ][~/]",
        r"\bssh: connect to host (?P<v>[\w.-]{1,253}) port\b",
    )
)
