"""How fast collectives can be on this hardware.

Bus bandwidth is what nccl-tests calls it: bytes over time, times a factor by which it can be held
against the links whatever the number of ranks (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from msgspec.structs import replace

from preflight.expect.between import ADAPTER, BOARD, RING, judged_kind, outside
from preflight.expect.bound import Bound
from preflight.expect.models import Model, model_of
from preflight.facts.collectives import Collective, Side
from preflight.facts.host import Host
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.units import format_bytes

#: What is excellent, in the report's words.
EXCELLENT = 0.92
#: What a ring gets through NVLinks of their data rate: 235 of 300 GB/s on A100, 370 of 478 on H100,
#: 682 of 900 on B200 (logs of microsoft/superbenchmark; stas00/ml-engineering, NVLS off).
_RING = 0.78
#: What every rank adds to the time of a large message: 4 us to 10 us by the curves of 64 H100, 72
#: and 144 GB200 (coreweave/nccl-tests), 32 B200 (stas00/ml-engineering).
_RANK_S = 6e-6
#: The best of how many GPUs stands in the table.
_MEASURED_AMONG = 8
#: So far above all that links carry no figure is of this hardware: the best of 8 GPUs and of two
#: hosts are 487 of 483 GB/s.
_TOO_GOOD = 1.1
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
_NO_SUMS = Missing("not-applicable", "NCCL's log tells of no switch that could add up and does not")
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
    if beyond := _beyond(host, run):
        return beyond
    factor = 2 * (run.ranks - 1) / run.ranks if run.collective == "all_reduce" else 1.0
    latency_s = run.ranks * _RANK_S
    plain_s = size * factor / links.value / 1e9
    value = links.value * plain_s / (plain_s + latency_s)
    told = f"{links.formula}; less {run.ranks} ranks x 6 us in the time of {format_bytes(size)}"
    return Bound(round(value, 1), told)


def collective_rough(host: Host, run: Collective) -> Known[Bound]:
    """The same at the largest size of a run that measured none of 1 GB."""
    return collective_busbw(host, replace(
        run, at_bytes=run.rough_bytes, busbw_gbps=run.rough_gbps
    ))  # fmt: skip


def compared_busbw(host: Host, run: Collective, hosts: int, size_bytes: int) -> Known[Bound]:
    """GB/s of the all-reduce of so many of the hosts of a run, as a search compares them."""
    each = run.ranks_per_host
    if isinstance(each, Missing):
        return each
    return collective_busbw(host, replace(
        run, collective="all_reduce", ranks=hosts * each, host_count=hosts, at_bytes=size_bytes,
        busbw_gbps=NOT_IN_INPUT,
    ))  # fmt: skip


def collective_nvls(host: Host, run: Collective) -> Known[Bound]:
    """GB/s of an all-reduce whose sums the switches make, where NCCL's log tells that on this
    hardware they do not."""
    found = collective_busbw(host, run)
    if isinstance(found, Missing):
        return found
    model = _model(run)
    if run.collective != "all_reduce" or isinstance(model, Missing):
        return _NO_SUMS
    if _adds_up(host, run) is not False or isinstance(model.nvls_gbps, Missing):
        return _NO_SUMS
    if isinstance(host.nccl, Missing) or isinstance(host.nccl.hosts, Missing):
        return _NO_SUMS
    by_hand = {(one.name, one.value) for one in host.nccl.variables}
    if ("NCCL_NVLS_ENABLE", "0") in by_hand or "NCCL_NVLS_ENABLE=0" in run.variables:
        return Missing("not-applicable", "NCCL_NVLS_ENABLE=0 was set")
    hosts = tuple(replace(one, nvls=True) for one in host.nccl.hosts)
    with_sums = collective_busbw(replace(host, nccl=replace(host.nccl, hosts=hosts)), run)
    if isinstance(with_sums, Missing) or with_sums.value <= found.value:
        return _NO_SUMS
    return with_sums


def _beyond(host: Host, run: Collective) -> Missing | None:
    """What to say of a figure that no link of this hardware carries: line rates, and of adapters
    twice those where sums may be made within hosts or in a switch."""
    model, busbw = _model(run), _quicker(run)
    assert not isinstance(model, Missing)
    if isinstance(busbw, Missing):
        return None
    most = _line_rate(model, run)
    apart = not isinstance(run.host_count, Missing) and run.host_count > 1
    if apart and not (model.form == "superchip" and _joined(host)):
        found = outside(host, run, whole=model.form == "superchip")
        assert not isinstance(found, Missing)
        twice = 2 if run.collective in RING else 1
        told = f"{found.formula}{' x 2 where sums are made on the way' if twice > 1 else ''}"
        most = min(most, Bound(found.value * twice, told), key=lambda one: one.value)
    if busbw <= most.value * _TOO_GOOD:
        return None
    text = (
        f"{busbw:g} GB/s is {busbw / most.value:.1f} times the most that could be, "
        f"{most.value:.0f} ({most.formula}): the figure, or the adapters or GPUs that the input "
        "tells, are not of this run: add `ibstat` of one of its hosts, without --nics"
    )
    return Missing("unreadable", text)


def _quicker(run: Collective) -> Known[float]:
    """GB/s of the better side of the size that is judged: neither may be more than can be."""
    if isinstance(run.busbw_gbps, Missing):
        return run.busbw_gbps
    both = [side for row in run.rows if row.size_bytes == run.at_bytes
            for side in (row.out_of_place, row.in_place)]  # fmt: skip
    return max([run.busbw_gbps, *(one.busbw_gbps for one in both if isinstance(one, Side))])


def _line_rate(model: Model, run: Collective) -> Bound:
    """GB/s of a GPU's links, or what was measured where switches add up, if that is more."""
    assert not isinstance(model.nvlinks, Missing) and not isinstance(model.nvlink_gbps, Missing)
    line = Bound(model.nvlinks * model.nvlink_gbps,
                 f"{model.nvlinks} NVLinks x {model.nvlink_gbps:g} GB/s")  # fmt: skip
    if run.collective != "all_reduce" or isinstance(model.nvls_gbps, Missing):
        return line
    best = Bound(model.nvls_gbps, "the best measured with NVLS")
    return max(line, best, key=lambda one: one.value)


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
    if run.collective not in RING:
        return Missing("not-applicable", "only a ring goes through all adapters of a host at once")
    if not _switched(model):
        return _PCIE
    return Bound(_LEAST_GBITS / 8 * ADAPTER, "one adapter of 100 Gb/s for all GPUs of a host")


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
    if isinstance(kind := judged_kind(run, hosts), Missing):
        return kind
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
    """GB/s between hosts: what its ports give it, if its links carry as much. Two hosts that first
    add up within send each other a half of what a ring sends."""
    adds_up = _adds_up(host, run)
    inside = _within(model, BOARD, adds_up)
    found = outside(host, run, whole=model.form == "superchip")
    if isinstance(inside, Missing) or isinstance(found, Missing):
        return inside if isinstance(inside, Missing) else found
    if adds_up and model.nvswitch and run.host_count == 2 and isinstance(run.ranks, int):
        told = f"{found.formula} x 2(n-1)/n, for two hosts exchange sums"
        found = Bound(found.value * 2 * (run.ranks - 1) / run.ranks, told)
    return found if found.value <= inside.value else inside


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
