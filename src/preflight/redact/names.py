"""What names a machine by a number: addresses, UUIDs, serials; and what is no name after all.

All repetitions are bounded: no text, however long, is looked at twice.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import NamedTuple

Match = re.Match[str]

#: What stands for a name already; the four digits are the tag of a capture.
STAND_IN = re.compile(
    r"(?:host|file|ipv4|ipv6|mac|guid|uuid|serial|user|email)-(?:[0-9a-f]{4}-)?\d+|\*+"
)
#: Values that say that there is none.
NO_VALUE = re.compile(
    r"(?i)\[?n/?a\]?|none|null|unknown|not|true|false|yes|no|default|to|[0:-]+|[f:-]+|(.)\1+"
)
#: Words of logs and tools: to replace them would change what a text says.
COMMON = re.compile(
    r"(?i)localhost(?:\.localdomain)?\d?|localdomain|hostname|host|input|local|node|gpu|cpu|nvidia"
    r"|cuda|nccl|kernel|linux"
    r"|systemd|ubuntu|debian|centos|rocky|rhel|master|worker|server|client|login|compute|head|test"
    r"|default|root|nobody|admin|user|daemon|unknown|all|any|data|home|shared|public"
)
#: A host may be called gpu7 or a100 too; in a sentence that is the GPU.
SUBJECT = re.compile(
    r"(?:gpu|mlx\d_|nvme|eth|ib|rank|cpu|numa|socket|port|bond|card|cuda)-?\d{1,2}"
    r"|a2|a10g?|a16|a30|a40|a100|a800|b[123]00|g[bh][23]00|gb10|h20|h[128]00|k80|l4|l20|l40s?|m[46]0"
    r"|p4|p40|p100|t4|v100s?|rtx\d{4}|mi\d{3}[ax]?|ipv[46]|x86|amd64|aarch64|python\d|cuda\d{2}"
)

_HH = "[0-9A-Fa-f]{2}"
_HHHH = "[0-9A-Fa-f]{4}"
_IN_A_TABLE = r"(?:/gids/\d{1,4}:|(?<![\w:]))"
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
    """The group `v` of `pattern` becomes a stand-in of the kind, unless `but` knows better. A text
    that holds none of the hints, in small letters, is not searched; no hints: each text is."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    but: Callable[[Match], bool]


def never(_: Match) -> bool:
    """No exception to a rule."""
    return False


def rule(kind: str, hints: str, pattern: str, but: Callable[[Match], bool] = never) -> Rule:
    """A rule; `hints` are parted by `|`."""
    return Rule(kind, tuple(filter(None, hints.split("|"))), re.compile(pattern), but)


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


def _is_everywhere(match: Match) -> bool:
    # The name of NVMe's discovery service is in the standard.
    return match["v"] == "org.nvmexpress.discovery"


#: Before the names of hosts: a host's name could be a part of these.
ADDRESSES = (
    rule(
        "uuid", "",
        r"(?i)\b(?P<v>(?:MIG-)?(?:GPU-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b",
    ),
    rule("uuid", "gpu-", r"\b(?P<v>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){0,3})\b"),
    rule("serial", "device serial", rf"Device Serial Number (?P<v>{_HH}(?:-{_HH}){{7}})\b"),
    # perftest writes the bytes of a port's address in decimal.
    rule("ipv6", "gid: ", r"\bGID: (?P<v>[0-9]{2,3}(?::[0-9]{2,3}){15})(?![\d:])"),
    # 20 bytes: an InfiniBand interface; 8: EUI-64; 6: Ethernet.
    rule(
        "mac", "",
        rf"(?<![\w:])(?P<v>{_HH}(?:(?::{_HH}){{19}}|(?::{_HH}){{7}}|(?::{_HH}){{5}}))"
        rf"(?!\w|:{_HH}\b)",
    ),
    rule("mac", "", rf"(?<![\w-])(?=[\d-]{{0,17}}[A-Fa-f])(?P<v>{_HH}(?:-{_HH}){{5}})(?![\w-])"),
    # How a network boot is told its interface; 01 is Ethernet. And systemd's last choice of a name.
    rule("mac", "bootif=", rf"(?i)BOOTIF=(?:01-)?(?P<v>{_HH}(?:-{_HH}){{5}})"),
    rule("mac", "enx|wlx|ibx", r"\b(?:enx|wlx|ibx)(?P<v>[0-9a-f]{12})\b"),
    # A GPU's own: gpu_fabric_guid in XML, GPU Fabric GUID and PDI (per-device identifier) in both.
    rule(
        "guid", "guid|pdi",
        r"(?i)(?:guid|(?<![a-z])pdi)[\"']?[ \t]{0,60}[:=(>][ \t]{0,20}[\"']?(?:0x)?"
        r"(?P<v>[0-9a-f]{8,16})\b",
    ),
    rule("guid", "", r"(?i)(?<![\w:])(?P<v>[0-9a-f]{4}(?::[0-9a-f]{4}){3})(?![\w:])"),
    rule(
        "guid", "0x|h-|s-|r-",
        rf"(?i)(?:(?<=\b[HSR]-)|\b0x)(?P<v>(?:{_OUI})[0-9a-f]{{10}}|[0-9a-f]{{6}}0300"
        r"[0-9a-f]{6})\b",
    ),
    # Disks and ports of storage networks.
    rule(
        "guid", "wwn|wwpn|wwnn|naa.|eui.",
        r"(?i)(?:\bwwn-0x|\bww[np]?n[\"']?[ \t]{0,20}[:=][ \t]{0,8}[\"']?(?:0x)?|\bnaa\.|\beui\.)"
        r"(?P<v>[0-9a-f]{16,32})\b",
    ),
    rule(
        "serial", "iqn.|nqn.",
        r"(?i)\b[in]qn\.\d{4}-\d{2}\.(?P<v>[\w.:-]{2,222}\w)", _is_everywhere,
    ),
    # Instances of AWS and of Oracle's cloud.
    rule("serial", "i-0", r"(?<![\w-])(?P<v>i-0[0-9a-f]{16})\b"),
    rule("serial", "ocid1.", r"\b(?P<v>ocid1\.[\w.-]{10,250}\w)"),
)  # fmt: skip
#: After them.
NUMBERS = (
    # Of a port's address the kind stays: of the link alone, or one of IPv4 as an adapter has it.
    rule("guid", "gid[", r"(?i)\bgid\[ {0,3}\d{1,4}\]:[ \t]{1,8}fe80::"
         r"(?P<v>[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){3})\b"),
    rule(
        "guid", "fe80:",
        rf"(?i){_IN_A_TABLE}fe80(?::0000){{3}}:(?P<v>{_HHHH}(?::{_HHHH}){{3}})\b",
    ),
    rule("ipv4", ":ffff:", rf"(?i){_IN_A_TABLE}(?:0000:){{5}}ffff:(?P<v>{_HHHH}:{_HHHH})\b"),
    # A file of a port's addresses in sysfs, as grep names it before what stands in it.
    rule("ipv6", "gids/", r"/gids/\d{1,4}:(?P<v>(?:[0-9a-f]{4}:){7}[0-9a-f]{4})\b"),
    # NCCL puts no blank before the address of the other side.
    rule(
        "ipv6", "gid",
        r"Gids?(?P<v>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:]|\.\d)",
        _is_no_ipv6,
    ),
    rule(
        "ipv6", "",
        r"(?<![\w:.])(?P<v>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:]|\.\d)",
        _is_no_ipv6,
    ),
    rule(
        "ipv4", "",
        r"(?<![A-Za-z0-9.])(?P<v>\d{1,3}(?:\.\d{1,3}){3})(?![A-Za-z0-9]|\.\d)",
        _is_version,
    ),
    rule("host", "ip-", r"\b(?P<v>ip-\d{1,3}(?:-\d{1,3}){3})\b"),
    rule(
        "serial", "serial",
        r"(?i)<(?:\w{1,40}_)?serial(?:_?(?:number|no|num))?>(?P<v>[^<\s]{3,64})<",
    ),
    rule(
        "serial", "serial",
        r"(?i)(?:(?<![a-z])|(?<=chassis)|(?<=board)|(?<=system)|(?<=product))"
        r"serial(?:[ _-]?(?:number|num|no))?\.?[\"']?[ \t]{0,60}(?:\bis\b|[:=#])"
        r"[ \t]{0,40}[\"']?(?P<v>[a-z0-9][\w-]{1,62}[a-z0-9])",
        _is_no_serial,
    ),
    rule("serial", "serial ", r"(?i)\bserial (?P<v>(?=[A-Z]{0,31}\d)[A-Z0-9]{8,32})\b"),
    rule(
        "serial", "asset|s/n|sn",
        r"(?i)\b(?:asset[ _]tag|s/?n)[\"']?[ \t]{0,60}[:=][ \t]{0,40}[\"']?"
        r"(?P<v>(?=[a-z-]{0,40}\d)[a-z0-9-]{6,64})\b",
    ),
    # ConnectX; in its vital product data with more behind it.
    rule("serial", "mt", r"\b(?P<v>MT\d{4}[A-Z]{1,2}\d{5})(?=\b|MLNX)"),
    # The UUID there, without its dashes: `[V3] Vendor specific: d610e4f4...`.
    rule("uuid", "vendor specific", r"Vendor specific: (?P<v>[0-9a-f]{32})\b"),
)  # fmt: skip
