"""How fast TCP can be on an interface."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.facts.host import Host
from preflight.facts.wire import WireEnd
from preflight.model import Known, Missing

#: Bytes of a packet that are no data: IPv4 and TCP with its time stamps (RFC 791, 9293, 7323); and
#: around a packet: preamble, gap, Ethernet with its checksum (IEEE 802.3).
_WITHIN, _AROUND = 20 + 20 + 12, 8 + 12 + 14 + 4


def wire_tcp_gbits(_host: Host, end: WireEnd) -> Known[Bound]:
    """Gbit/s of data one way: the interface's rate, of a bond that of all members, without headers:
    MTU 1500 94.1 %, 9000 99.0 %."""
    if end.tool != "tcp":
        return Missing("not-applicable", "RDMA: held against its port as rdma.bandwidth")
    if isinstance(end.mtu_bytes, Missing):
        return end.mtu_bytes
    if end.physical is not True:
        return Missing("not-applicable", "a virtual interface has no rate of its own: shown only")
    if not end.rates_gbits or end.mtu_bytes <= _WITHIN:
        return Missing("not-applicable", f"{end.name} tells no rate (its driver): shown only")
    share = (end.mtu_bytes - _WITHIN) / (end.mtu_bytes + _AROUND)
    told = " + ".join(f"{rate:g}" for rate in end.rates_gbits)
    formula = f"{told} Gb/s x {share:.1%} of data at MTU {end.mtu_bytes}"
    return Bound(round(sum(end.rates_gbits) * share, 3), formula)
