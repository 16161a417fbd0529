"""How fast collectives and RDMA can be on this hardware.

Bus bandwidth is what nccl-tests calls it: bytes over time, times a factor by which it can be held
against the links whatever the number of ranks (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from preflight.expect.bound import Bound
from preflight.expect.models import Model, model_of
from preflight.expect.nics import is_up, training_ports
from preflight.facts.collectives import Collective, RdmaTest
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.units import format_bytes

#: What is excellent, in the report's words.
EXCELLENT = 0.92
#: What a ring gets through NVLinks of their data rate: 235 of 300 GB/s on A100, 370 of 478 on H100,
#: 682 of 900 on B200 (logs of microsoft/superbenchmark; stas00/ml-engineering, NVLS off).
_RING = 0.78
#: 24 GB/s of an adapter of 200 Gb/s (NVIDIA/nccl-tests, issue 119).
_ADAPTER = 0.96
#: What every rank adds to the time of a large message: 4 us to 10 us by the curves of 64 H100, 72
#: and 144 GB200 (coreweave/nccl-tests), 32 B200 (stas00/ml-engineering).
_RANK_S = 6e-6
#: GPUs of a board with NVSwitches, and the best of how many stands in the table.
_BOARD, _MEASURED_AMONG = 8, 8
#: An adapter that no board with NVSwitches is sold with less than.
_LEAST_GBITS = 100.0
#: A rack of GB200 or GB300 NVL72; of more than two nobody has told what they can do.
_RACK = 72

_NO_PEERS = Missing("not-applicable", "one rank by itself sends nothing")
_MESH = Missing(
    "not-applicable", "its NVLinks go straight from GPU to GPU: how many join two the board decides"
)
_PCIE = Missing(
    "not-applicable",
    "no NVSwitch joins these GPUs: what their way over PCIe carries depends on the board; shown",
)
_NO_PORTS = Missing(
    "not-in-input",
    "which adapters carry it is not in the input: add `ibstat` of one host (--from ibstat.txt), or "
    "say what is enough: --set collectives.busbw.warn=350 --set collectives.busbw.fail=300",
)
_NO_RACK = Missing(
    "not-in-input",
    "whether NVLink joins these hosts is not in the input: run it with NCCL_DEBUG=INFO",
)
_MANY_RACKS = Missing(
    "not-applicable", "what more than two racks can do nobody has published: shown, not judged"
)


def collective_busbw(host: Host, run: Collective) -> Known[Bound]:
    """GB/s at the size that is judged: what the links within a host carry, between hosts the
    adapters if that is less; and less by the latency of so many ranks."""
    links, size = _links(host, run), run.at_bytes
    if isinstance(links, Missing):
        return links
    if isinstance(size, Missing):
        return size
    assert isinstance(run.ranks, int)
    factor = 2 * (run.ranks - 1) / run.ranks if run.collective == "all_reduce" else 1.0
    latency_s = run.ranks * _RANK_S
    plain_s = size * factor / links.value / 1e9
    value = links.value * plain_s / (plain_s + latency_s)
    told = f"{links.formula}; less {run.ranks} ranks x 6 us in the time of {format_bytes(size)}"
    return Bound(round(value, 1), told)


def compared_busbw(host: Host, run: Collective, hosts: int, size_bytes: int) -> Known[Bound]:
    """GB/s of the all-reduce of so many of the hosts of a run, as a search compares them."""
    each = run.ranks_per_host
    if isinstance(each, Missing):
        return each
    return collective_busbw(host, replace(
        run, collective="all_reduce", ranks=hosts * each, host_count=hosts, at_bytes=size_bytes,
    ))  # fmt: skip


def collective_one_adapter(_host: Host, run: Collective) -> Known[Bound]:
    """GB/s of a single adapter of 100 Gb/s for a whole board of GPUs with NVSwitches: what is
    slower went over no adapter of the training network."""
    model, hosts, each = _model(run), run.host_count, run.ranks_per_host
    if isinstance(model, Missing):
        return model
    if isinstance(hosts, Missing) or isinstance(each, Missing):
        return hosts if isinstance(hosts, Missing) else NOT_IN_INPUT
    if hosts < 2 or each < 4:
        return Missing("not-applicable", "it takes several hosts with four GPUs or more")
    if not _switched(model):
        return _PCIE
    return Bound(_LEAST_GBITS / 8 * _ADAPTER, "one adapter of 100 Gb/s for all GPUs of a host")


def _links(host: Host, run: Collective) -> Known[Bound]:
    """GB/s without latency."""
    model, ranks, hosts = _model(run), run.ranks, run.host_count
    if isinstance(model, Missing):
        return model
    if isinstance(ranks, Missing):
        return ranks
    if isinstance(hosts, Missing):
        return hosts
    if ranks < 2:
        return _NO_PEERS
    if not _switched(model):
        return _MESH if model.form == "sxm" else _PCIE
    if hosts == 1:
        return _within(model, ranks, _adds_up(host, run))
    if model.form == "superchip":
        joined = _joined(host)
        if joined is not False:
            return _rack(model, host, run) if joined else _NO_RACK
    return _between(model, host, run)


def _model(run: Collective) -> Known[Model]:
    return run.product if isinstance(run.product, Missing) else model_of(run.product)


def _switched(model: Model) -> bool:
    """Whether each of its GPUs reaches each other one at the full rate of its links."""
    return model.nvswitch or (model.form == "superchip" and model.generation == "blackwell")


def _within(model: Model, ranks: int, adds_up: bool | None) -> Known[Bound]:
    """GB/s where NVSwitches join the ranks. Where the log does not tell whether the switches add
    up, what rings do without them is enough: 77 % of it on H100."""
    if isinstance(model.nvlinks, Missing):
        return model.nvlinks
    if isinstance(model.nvlink_gbps, Missing):
        return model.nvlink_gbps
    ring = model.nvlinks * model.nvlink_gbps * _RING
    told = f"{model.nvlinks} NVLinks x {model.nvlink_gbps:g} GB/s x {_RING:.0%} of a ring"
    if adds_up is False or isinstance(model.nvls_gbps, Missing):
        return Bound(ring, told)
    nvls = model.nvls_gbps * min(1.0, _in_switch(ranks) / _in_switch(_MEASURED_AMONG))
    if adds_up is None:
        more = f"; {nvls:.0f} with NVLS, which the log does not tell" if nvls > ring else ""
        return Bound(ring, f"{told}{more}")
    best = f"{model.nvls_gbps:g} GB/s, the best measured among {_MEASURED_AMONG} with NVLS"
    share = "" if ranks >= _MEASURED_AMONG else f" x {nvls / model.nvls_gbps:.0%} for {ranks}"
    return Bound(nvls, f"{best}{share}") if nvls > ring else Bound(ring, told)


def _in_switch(ranks: int) -> float:
    """The bus bandwidth of an all-reduce whose sums the switch makes, in that of a link: 2(n-1)/n
    over (n+1)/n, for every rank sends and receives one share more than there are peers."""
    return 2 * (ranks - 1) / (ranks + 1)


def _rack(model: Model, host: Host, run: Collective) -> Known[Bound]:
    """GPUs of many hosts behind one fabric of NVSwitches."""
    assert isinstance(run.ranks, int)
    if run.ranks > 2 * _RACK:
        return _MANY_RACKS
    return _within(model, run.ranks, _adds_up(host, run))


def _between(model: Model, host: Host, run: Collective) -> Known[Bound]:
    """GB/s between hosts: all adapters of a host, if its links carry as much. Two hosts that first
    add up within send each other a half of what a ring sends."""
    adds_up = _adds_up(host, run)
    inside, ports = _within(model, _BOARD, adds_up), adapters(host)
    if isinstance(inside, Missing):
        return inside
    if isinstance(ports, Missing):
        return ports
    each = run.ranks_per_host
    share = 1.0 if isinstance(each, Missing) else min(1.0, each / _BOARD)
    if model.form == "superchip":
        share = 1.0
    rates = [one.rate_gbits for one in ports if not isinstance(one.rate_gbits, Missing)]
    outside = sum(rates) / 8 * _ADAPTER * share
    told = f"{len(rates)} adapters, {sum(rates):g} Gb/s / 8 x {_ADAPTER:.0%}"
    told += f" x {share:.0%} for {each} of {_BOARD} GPUs" if share < 1 else ""
    if adds_up and model.nvswitch and run.host_count == 2 and isinstance(run.ranks, int):
        outside *= 2 * (run.ranks - 1) / run.ranks
        told += " x 2(n-1)/n, for two hosts exchange sums"
    found = Bound(outside, told)
    return found if outside <= inside.value else inside


def adapters(host: Host) -> Known[tuple[NicPort, ...]]:
    """The ports that collectives go over: those of NCCL's list, where there is one, else those of
    training that are up. Missing where their rates are not known."""
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    named = _listed(host)
    if named:
        found = tuple(one for one in ports if one.name in named)
        if len(found) < len(named):
            told = f"NCCL lists {len(named)} adapters, and their rates are not in the input"
            return Missing("not-in-input", f"{told}: add `ibstat` of one host (--from ibstat.txt)")
    else:
        found = training_ports(host)
    if not found or any(isinstance(one.rate_gbits, Missing) for one in found):
        return _NO_PORTS
    return found


def _listed(host: Host) -> set[str]:
    """The list of NCCL's first host that has one: mlx5_0/1."""
    if isinstance(host.nccl, Missing) or isinstance(host.nccl.selections, Missing):
        return set()
    lists = [one.adapters for one in host.nccl.selections if one.adapters]
    return {f"{one.name}/{one.port}" for one in lists[0]} if lists else set()


def _adds_up(host: Host, run: Collective) -> bool | None:
    """Whether the NVSwitches add up (NVLS), as NCCL's log tells it; None where it does not. Of the
    collectives only all-reduce gains by it as the table says."""
    if run.collective != "all_reduce":
        return False
    if isinstance(host.nccl, Missing) or isinstance(host.nccl.hosts, Missing):
        return None
    told = [one.nvls for one in host.nccl.hosts if not isinstance(one.nvls, Missing)]
    return all(told) if told else None


def _joined(host: Host) -> bool | None:
    """Whether NVLink goes from host to host, as NCCL's log tells it; None where it does not."""
    if isinstance(host.nccl, Missing) or isinstance(host.nccl.hosts, Missing):
        return None
    told = [one.mnnvl for one in host.nccl.hosts if not isinstance(one.mnnvl, Missing)]
    return all(told) if told else None


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
    told_ways = " x 2 ways" if ways == 2 else ""
    told_share = f"{share:.1%} of data at MTU {test.mtu_bytes}"
    return Bound(round(rate * share * ways, 2), f"{rate:g} Gb/s x {told_share}{told_ways}")


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
