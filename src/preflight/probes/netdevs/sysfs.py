"""Network interfaces, from sysfs, the table of routes and `ip`."""

from __future__ import annotations

import re
from typing import Any

from preflight.errors import ParseError
from preflight.facts.nics import Netdev, Netdevs
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "netdevs"
# Documentation/ABI/testing/sysfs-class-net, sysfs-class-net-statistics, networking/bonding.rst of
# the kernel. Ends of containers (veth and their like) are left out: there are hundreds. Rates and
# carriers of links that are down cannot be read.
_ASK = """\
told=; say() { told="$told$1
"; }
value() { v=; { read -r v <"$1"; } 2>/dev/null; [ -z "$v" ] || say "$2 $v"; }
at() { cd -P "/sys/class/net/$1" 2>/dev/null; }
cd /sys/class/net || exit 2
for n in *; do
  case $n in lo|veth*|cali*|lxc*|tap*|vnet*|azv*|'*') continue ;; esac
  [ -e "$n/mtu" ] || continue
  say "netdev $n"
  if [ -e "$n/device" ]; then
    at "$n/device" && say "device $PWD"
    at "$n/device/driver" && say "driver ${PWD##*/}"
    cd /sys/class/net || exit 2
    if [ -e "$n/device/physfn" ]; then say virtual; fi
    value "$n/device/sriov_numvfs" sriov_numvfs
  fi
  if [ -e "$n/bridge" ]; then say bridge; fi
  if [ -e "$n/tun_flags" ]; then say tunnel; fi
  if [ -e "/proc/net/vlan/$n" ]; then say vlan; fi
  if at "$n/master"; then say "master ${PWD##*/}"; cd /sys/class/net || exit 2; fi
  for f in operstate carrier carrier_changes speed mtu bonding/mode bonding/slaves \\
    bonding_slave/mii_status statistics/rx_missed_errors statistics/rx_crc_errors qos/trust; do
    value "$n/$f" "${f##*/}"
  done
done
{ while read -r n to more; do
  [ "$to" != 00000000 ] || say "default $n"
done </proc/net/route && say routes; } 2>/dev/null
printf %s "$told"
ip -o -4 addr 2>/dev/null && echo addresses
echo end"""

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_ADDRESS = re.compile(r"\d{1,6}: (\S{1,32}) +inet (\d{1,3}(?:\.\d{1,3}){3}/\d{1,2}) ", re.ASCII)
_COUNT = re.compile(r"-?\d{1,20}", re.ASCII)
#: As many as are kept.
_MOST = 256
_NO_IP = Missing("no-tool", "ip is not installed; it comes with iproute2")
_DOWN = Missing("not-applicable", "the interface tells none: its link is down")
_NO_BOND = Missing("not-applicable", "it is no bond")
_NOT_PCI = Missing("not-applicable", "it is no device on PCI")

_Part = dict[str, Any]
#: Field -> the key of the line that shows it, where that is another.
_SHOWN = {
    "rate_gbits": "speed", "mtu_bytes": "mtu", "state": "operstate", "rx_missed":
    "rx_missed_errors", "members": "slaves", "members_down": "slaves",
    "virtual_functions": "sriov_numvfs", "member_rates_gbits": "slaves",
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The line that shows a field of the interface whose record begins at `start`."""
    key = f"{_SHOWN.get(field, field)} "
    for number, line in enumerate(text.split("\n")[start:], start + 1):
        if line.startswith(key):
            return number
        if line.startswith("netdev "):
            break
    return start


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def netdevs(text: str) -> Netdevs:
    """Lines of `key value`, `netdev NAME` before those of each interface; routes and addresses."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of interfaces is cut short: no closing `end`", len(lines))
    parts: dict[str, _Part] = {}
    here: _Part = {}
    addresses: dict[str, list[str]] = {}
    for number, line in enumerate(lines[:-1], 1):
        key, _, value = line.partition(" ")
        if match := _ADDRESS.match(line):
            addresses.setdefault(match[1].partition("@")[0], []).append(match[2])
        elif key == "netdev" and len(parts) < _MOST:
            here = parts.setdefault(value, {"name": value, "line": number})
        elif key == "default" and value in parts:
            parts[value]["default"] = True
        elif here:
            here.setdefault(key, " ".join(value.split()))
    for part in parts.values():
        part["addresses"] = tuple(addresses.get(part["name"], ())) if "addresses" in lines else None
        part["routes"] = "routes" in lines
    return Netdevs(tuple(_netdev(part, parts) for part in parts.values()), probe=_PROBE)


def _netdev(part: _Part, others: dict[str, _Part]) -> Netdev:
    carrier = part.get("carrier")
    return Netdev(
        name=part["name"] or "?",
        address=_pci(part.get("device", "")),
        driver=part.get("driver") or NOT_IN_INPUT,
        kind=_kind(part),
        state=part.get("operstate") or NOT_IN_INPUT,
        carrier=carrier == "1" if carrier in ("0", "1") else _DOWN,
        carrier_changes=_count(part.get("carrier_changes")),
        rate_gbits=_rate(part),
        mtu_bytes=_count(part.get("mtu")),
        master=part.get("master") or Missing("not-applicable", "it belongs to no other"),
        ipv4=_NO_IP if part["addresses"] is None else part["addresses"],
        default_route="default" in part if part["routes"] else NOT_IN_INPUT,
        virtual_functions=_count(part.get("sriov_numvfs")),
        rx_missed=_count(part.get("rx_missed_errors")),
        rx_crc_errors=_count(part.get("rx_crc_errors")),
        trust=part.get("trust") or NOT_IN_INPUT,
        **_bond(part, others),
        line=part["line"],
        probe=_PROBE,
    )


def _kind(part: _Part) -> str:
    if "virtual" in part:
        return "virtual-function"
    if "mode" in part:
        return "bond"
    for kind in ("bridge", "vlan", "tunnel"):
        if kind in part:
            return kind
    return "physical" if "device" in part else "other"


def _pci(path: str) -> Known[str]:
    """The last function on the way to the device: virtio hangs below its own."""
    found = [one for one in path.split("/") if _PCI.fullmatch(one)]
    return found[-1] if found else _NOT_PCI


def _bond(part: _Part, others: dict[str, _Part]) -> dict[str, Any]:
    if "mode" not in part:
        return dict.fromkeys(("members", "members_down", "member_rates_gbits"), _NO_BOND)
    members = [others[name] for name in part.get("slaves", "").split() if name in others]
    rates = {rate for rate in map(_rate, members) if isinstance(rate, float)}
    untold = Missing("not-applicable", "no member tells its rate")
    return {
        "members": tuple(each["name"] for each in members),
        "members_down": tuple(each["name"] for each in members if _lost(each)),
        "member_rates_gbits": tuple(sorted(rates)) or untold,
    }


def _lost(member: _Part) -> bool:
    return member.get("mii_status") == "down" or member.get("operstate") == "down"


def _rate(part: _Part) -> Known[float]:
    """Mbit/s; -1 and 4294967295 stand for none."""
    speed = _count(part.get("speed"))
    if isinstance(speed, Missing):
        return _DOWN if speed is NOT_IN_INPUT else speed
    return speed / 1000 if 0 < speed < 10**8 else _DOWN


def _count(told: str | None) -> Known[int]:
    if told is None:
        return NOT_IN_INPUT
    unread = Missing("unreadable", f"{told[:60]!r} is no number")
    return int(told) if _COUNT.fullmatch(told) else unread
