"""What the links of a host carry by themselves, without collectives: Gbit/s, microseconds."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class WireTest(Struct, frozen=True):
    """One test between two hosts, or of an adapter with itself."""

    name: str  # eth0 to h2, 8 flows; mlx5_0 from h1, 1 flow
    sender: str
    receiver: str
    tool: str  # tcp | ib_write_bw | ib_write_lat; "" where a host was lost
    nic: str = ""
    rail: int = 0
    flows: int = 1
    memory: str = "host"  # of RDMA: host | GPU 3
    together: bool = False  # both ways at once, or all adapters
    loopback: bool = False
    gbits: Known[float] = NOT_IN_INPUT  # the median
    repeats: int = 0
    spread_gbits: Known[float] = NOT_IN_INPUT  # from the least to the most
    again_percent: Known[float] = NOT_IN_INPUT  # of TCP: packets that were sent once more
    p50_us: Known[float] = NOT_IN_INPUT  # TCP: there and back; RDMA: one way
    p99_us: Known[float] = NOT_IN_INPUT
    processor_bound: bool = False  # then the link carries so much at least
    trouble: Known[str] = NOT_IN_INPUT  # none, or why it measured nothing
    line: int = 0
    probe: str = ""


class WireEnd(Struct, frozen=True):
    """One interface or adapter of this host, by what it reached with the best of its peers."""

    name: str  # eth0; mlx5_0
    tool: str  # tcp | rdma
    rail: int = 0
    sends_gbits: Known[float] = NOT_IN_INPUT  # in one connection or in many, whatever is more
    receives_gbits: Known[float] = NOT_IN_INPUT
    #: Of both ways the slower; missing where processors were the limit.
    gbits: Known[float] = NOT_IN_INPUT
    ways_apart: Known[float] = NOT_IN_INPUT  # the faster way is so many times as fast
    flows_apart: Known[float] = NOT_IN_INPUT  # many connections are so many times as fast as one
    #: Of TCP with one connection packets that were sent once more, in the worse way.
    lost_percent: Known[float] = NOT_IN_INPUT
    #: Both ways at once, or all adapters, as a share of what they reach one by one.
    together_share: Known[float] = NOT_IN_INPUT
    #: Below what three of four hosts do not exceed, where it is worst:
    #: a way and a number of connections.
    slower_percent: Known[float] = NOT_IN_INPUT
    slower_where: str = ""
    #: From what on others are not held against an end that is behind; and from how much of a
    #: processor's time on that limited a test.
    behind_from_percent: Known[float] = NOT_IN_INPUT
    bound_from_percent: Known[float] = NOT_IN_INPUT
    latency_us: Known[float] = NOT_IN_INPUT
    # What bounds TCP.
    physical: Known[bool] = NOT_IN_INPUT
    mtu_bytes: Known[int] = NOT_IN_INPUT
    rates_gbits: tuple[float, ...] = ()  # of a bond those of its members
    line: int = 0
    probe: str = ""


class WireLink(Struct, frozen=True):
    """One way between two hosts neither of which is behind with others."""

    name: str  # h1 to h2
    gbits: Known[float] = NOT_IN_INPUT
    slower_percent: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class WireBetween(Struct, frozen=True):
    """What is true of all ways between hosts."""

    name: str  # between h[1-4]
    lost_percent: Known[float] = NOT_IN_INPUT  # of packets, by the end that loses fewest
    line: int = 0
    probe: str = ""


class Wire(Struct, frozen=True):
    """One answer, of one host."""

    tool: str  # tcp | rdma
    why: str = ""  # why not by RDMA
    loopback_gbits: float = 0.0  # by TCP, of its processors alone
    tests: Known[tuple[WireTest, ...]] = NOT_IN_INPUT
    ends: Known[tuple[WireEnd, ...]] = NOT_IN_INPUT
    links: Known[tuple[WireLink, ...]] = NOT_IN_INPUT
    between: Known[tuple[WireBetween, ...]] = NOT_IN_INPUT  # on the host that led
    #: Of an adapter with itself, all at once as a share of one by one.
    loopback_share: Known[float] = NOT_IN_INPUT
    left: str = ""  # what was left out for want of time; told to the host that leads
    adapters: tuple[str, ...] = ()  # of RDMA, with rate and GID index
    line: int = 0
    probe: str = ""
