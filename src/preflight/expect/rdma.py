"""How fast RDMA between two ports can be."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.expect.bound import Bound
from preflight.expect.nics import is_up
from preflight.facts.collectives import RdmaTest
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.model import Known, Missing

#: Bytes around the data of a packet. RoCE v2: preamble, gap, Ethernet with its checksum, IPv4, UDP,
#: BTH, ICRC (IBTA annex A17; IEEE 802.3). InfiniBand: LRH, BTH, ICRC, VCRC (IBTA volume 1, 5.2).
_AROUND = {"Ethernet": 8 + 12 + 14 + 4 + 20 + 8 + 12 + 4, "InfiniBand": 8 + 12 + 4 + 2}


def rdma_gbits(host: Host, test: RdmaTest) -> Known[Bound]:
    """Gbit/s of data: the port's rate without what stands around the data of each packet."""
    if isinstance(test.mtu_bytes, Missing):
        return test.mtu_bytes
    if isinstance(test.link_layer, Missing):
        return test.link_layer
    share = payload_share(test.link_layer, test.mtu_bytes)
    rate = _rate_of(host, test, share)
    if isinstance(rate, Missing):
        return rate
    ways = 2 if test.bidirectional else 1
    if beyond := _beyond(test, rate * ways):
        return beyond
    told_ways = " x 2 ways" if ways == 2 else ""
    told_share = f"{share:.1%} of data at MTU {test.mtu_bytes}"
    return Bound(round(rate * share * ways, 2), f"{rate:g} Gb/s x {told_share}{told_ways}")


#: Times a port's rate that no figure of it is: what clocks and rounding may add; in loopback, where
#: no cable is, more.
_TOO_GOOD, _TOO_GOOD_IN_LOOPBACK = 1.03, 1.5


def _beyond(test: RdmaTest, most_gbits: float) -> Missing | None:
    """What to say of a figure that the port cannot carry."""
    told = test.average_gbits
    allowed = _TOO_GOOD_IN_LOOPBACK if test.loopback else _TOO_GOOD
    if isinstance(told, Missing) or told <= most_gbits * allowed:
        return None
    text = (
        f"{told:g} Gb/s is {told / most_gbits:.1f} times the {most_gbits:g} of the port: the "
        "figure, or the port that the input tells, is not of this test: add `ibstat` of its host"
    )
    return Missing("unreadable", text)


def payload_share(link_layer: str, mtu_bytes: int) -> float:
    """The share of the wire's time that is data: RoCE 1024 92.6 %, 4096 98.0 %; IB 4096 99.4 %."""
    return mtu_bytes / (mtu_bytes + _AROUND[link_layer])


def _rate_of(host: Host, test: RdmaTest, share: float) -> Known[float]:
    """The rate of the test's port, of an adapter with one that is up."""
    if not isinstance(test.rate_gbits, Missing):
        return test.rate_gbits
    ports: Sequence[NicPort] = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    mine = [one for one in ports if one.nic == test.device and is_up(one)]
    rates = {one.rate_gbits for one in mine if not isinstance(one.rate_gbits, Missing)}
    if len(rates) == 1:
        return rates.pop()
    return Missing("not-in-input", _without_rate(test, share))


#: Rates of ports.
_RATES = (10, 25, 40, 50, 56, 100, 200, 400, 800)


def _without_rate(test: RdmaTest, share: float) -> str:
    """What it is as much as, where the port's rate is not known."""
    device = "the port" if isinstance(test.device, Missing) else test.device
    text = f"the rate of {device} is not in the input: add `ibstat` (--from ibstat.txt)"
    if isinstance(test.average_gbits, Missing):
        return text
    fits = [rate for rate in _RATES if 0.95 <= test.average_gbits / (rate * share) < 1.03]
    return f"{text}; it is what one of {fits[0]} Gb/s carries" if fits else text
