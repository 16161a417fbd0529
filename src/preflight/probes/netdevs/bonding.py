"""A bond and its members, from /proc/net/bonding/NAME: networking/bonding.rst of the kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.errors import ParseError
from preflight.facts.nics import Netdev, Netdevs
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "bonding"
_HEAD = "Ethernet Channel Bonding Driver:"
_FIELD = re.compile(r"([A-Z][\w ./-]{1,40}): (\S.{0,120})", re.ASCII)
_LACP = "802.3ad"
_NO_LACP = Missing("not-applicable", "the bond's mode is not LACP (802.3ad)")
_NO_PARTNER = "00:00:00:00:00:00"
_SPEED = re.compile(r"(\d{1,7}) Mbps", re.ASCII)


@probe(_PROBE, ["cat", "/proc/net/bonding/bond0"], timeout_s=10)
def bonding(text: str) -> Netdevs:
    """The bond's fields, then those of each member, which begin with `Slave Interface: NAME`. The
    file does not tell the bond's own name: it is called by its members."""
    bonds: list[tuple[int, list[dict[str, str]]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        told = line.strip()
        if told.startswith(_HEAD):
            bonds.append((number, [{}]))
        elif bonds and (match := _FIELD.fullmatch(told)):
            if match[1] == "Slave Interface":
                bonds[-1][1].append({})
            bonds[-1][1][-1].setdefault(match[1], match[2].strip())
    if not bonds:
        raise ParseError(f"expected `{_HEAD}`", 1)
    return Netdevs(tuple(_bond(line, *parts) for line, parts in bonds), probe=_PROBE)


def _bond(line: int, own: dict[str, str], *members: dict[str, str]) -> Netdev:
    names = [member["Slave Interface"] for member in members]
    told = all("MII Status" in member for member in members)
    cut = Missing("unreadable", "the text is cut short in a member")
    return Netdev(
        name=f"bond({'+'.join(names)})",
        kind="bond",
        state=own.get("MII Status") or NOT_IN_INPUT,
        members=tuple(names),
        members_down=tuple(
            member["Slave Interface"] for member in members if member["MII Status"] != "up"
        )
        if told
        else cut,
        members_up=sum(member["MII Status"] == "up" for member in members) if told else cut,
        members_out=_out(own, members) if told else cut,
        member_rates_gbits=_rates(members),
        line=line,
        probe=_PROBE,
    )


def _out(own: dict[str, str], members: Sequence[dict[str, str]]) -> Known[tuple[str, ...]]:
    """Members that LACP leaves out, of those whose link is up."""
    if _LACP not in own.get("Bonding Mode", ""):
        return _NO_LACP if "Bonding Mode" in own else NOT_IN_INPUT
    if "Aggregator ID" not in own:  # told to root alone, and by the kernel's newer versions
        return NOT_IN_INPUT
    return tuple(
        member["Slave Interface"]
        for member in members
        if member.get("MII Status") == "up"
        and (
            own.get("Partner Mac Address") == _NO_PARTNER
            or member.get("Aggregator ID", own["Aggregator ID"]) != own["Aggregator ID"]
            or "churned" in (member.get("Actor Churn State"), member.get("Partner Churn State"))
        )
    )


def _rates(members: Sequence[dict[str, str]]) -> Known[tuple[float, ...]]:
    """Each once; a member whose link is down tells `Unknown`."""
    told = [member.get("Speed", "Unknown") for member in members]
    told = [speed for speed in told if not speed.startswith("Unknown")]
    odd = next((speed for speed in told if not _SPEED.fullmatch(speed)), None)
    if odd is not None:
        return Missing("unreadable", f"{odd[:60]!r} is no speed of a member")
    rates = {int(speed.split()[0]) / 1000 for speed in told}
    return tuple(sorted(rates)) or Missing("not-applicable", "no member tells its rate")
