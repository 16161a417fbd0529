"""How long a small message may take: the steps that it makes, each with its time, and the launch.

The steps are those of NCCL's own model, with the times of its LL protocol (NVIDIA/nccl,
src/graph/tuning.cc): an all-reduce goes up and down a tree, whose depth between hosts is the
logarithm of their number; all-gather, reduce-scatter, broadcast and reduce go round a ring. What no
source tells is shown, not judged: all-to-all and send-receive, hosts whose GPUs PCIe joins.
"""

from __future__ import annotations

import math

from msgspec import Struct

from preflight.expect.bound import Bound
from preflight.expect.models import Model, model_of
from preflight.expect.nics import training_ports
from preflight.facts.collectives import Collective
from preflight.facts.host import Host
from preflight.model import Known, Missing

#: What a collective takes by itself, and each step of a ring or tree over NVLink.
_BASE_US, _NVLINK_US = 6.8, 0.6
#: So long eight A100 that one thread launches take more than their steps (35 us in all: samples).
#: The process group of torch adds a call of its own and an event: an estimate, and a generous one.
_LAUNCH_US, _LAUNCH_TORCH_US = 20.0, 60.0
#: In less no kernel has started and ended, and no adapter has sent to another.
_LEAST_US = 1.0
#: More than this many times the bound alarms on no machine that was measured: see `_SLOW`.
WARN, FAIL = 1.5, 2.5


class Network(Struct, frozen=True):
    """What carries a step between hosts, and how long that takes."""

    told: str
    tree_us: float
    ring_us: float


#: 16 GPUs of two hosts take 35 us to 47 us (samples: A100 and B200 over InfiniBand and RoCE), two
#: of two hosts 20 us (NVIDIA/nccl-tests, issue 150).
_RDMA = Network("InfiniBand or RoCE", 5.0, 2.7)
#: EFA: 65 us to 75 us on p5, 161 us to 178 us on p4de (samples); GPUDirect-TCPXO of A3 Mega 123 us.
_SLOW = Network("EFA, or a plugin over TCP", 70.0, 35.0)

_TREE = ("all_reduce",)
_RING = ("all_gather", "reduce_scatter", "broadcast", "reduce")
_UNLIKE = Missing(
    "not-applicable", "no source tells how long a small message of this collective takes: shown"
)
_PCIE = Missing(
    "not-applicable", "no NVSwitch joins the GPUs of a host: no source tells their steps: shown"
)
_ALONE = Missing("not-applicable", "one rank by itself sends nothing")
_TCP = Missing(
    "not-applicable", "the hosts have no port of RDMA for training: TCP takes what it takes: shown"
)
_WHICH = Missing(
    "not-in-input",
    "so long takes TCP, and EFA too: which network carried it is not in the input: run it with "
    "NCCL_DEBUG=INFO, or add `ibstat` of one host (--from ibstat.txt)",
)


def collective_latency(host: Host, run: Collective) -> Known[Bound]:
    """Microseconds of a message of 8 B to 4 KiB."""
    found = _of_ranks(host, run)
    if isinstance(found, Missing):
        return found
    ranks, hosts = found
    if impossible := _too_quick(run, hosts):
        return impossible
    network = _network(host, run) if hosts > 1 else _RDMA
    if isinstance(network, Missing):
        return network
    if network is not None:
        return _bound(run, ranks, hosts, network)
    fast, slow = (_bound(run, ranks, hosts, each) for each in (_RDMA, _SLOW))
    took_us = run.small_us
    if isinstance(took_us, Missing) or took_us <= WARN * fast.value:
        return fast
    return slow if took_us > WARN * slow.value else _WHICH


def _too_quick(run: Collective, hosts: int) -> Missing | None:
    """What to say of a time in which no message gets so far, whatever the algorithm."""
    between = math.ceil(math.log2(hosts))
    least_us = _LEAST_US * (1 + between)
    if isinstance(run.small_us, Missing) or run.small_us >= least_us:
        return None
    steps = f"a kernel and {between} steps between hosts" if between else "a kernel"
    text = f"{run.small_us:g} us is less than {steps} take, {_LEAST_US:g} us each"
    return Missing("unreadable", f"{text}: the time, the ranks or the hosts are not of this run")


def _of_ranks(host: Host, run: Collective) -> Known[tuple[int, int]]:
    """Ranks and hosts, where the way between them is one that sources tell of."""
    if isinstance(run.collective, Missing):
        return run.collective
    if run.collective not in _TREE + _RING:
        return _UNLIKE
    if isinstance(run.ranks, Missing):
        return run.ranks
    if isinstance(run.host_count, Missing):
        return run.host_count
    if run.ranks < 2:
        return _ALONE
    model = run.product if isinstance(run.product, Missing) else model_of(run.product)
    if isinstance(model, Missing):
        return model
    if run.ranks > run.host_count and not _joined(model):
        return _PCIE
    return run.ranks, run.host_count


def _joined(model: Model) -> bool:
    return model.nvswitch or model.form in ("sxm", "superchip")


def _network(host: Host, run: Collective) -> Known[Network] | None:
    """What the hosts talk through, or should; None where the input does not tell."""
    log = () if isinstance(host.nccl, Missing) else host.nccl.selections
    told = {one.network for one in log} if not isinstance(log, Missing) else set()
    netdevs = () if isinstance(host.netdevs, Missing) else host.netdevs
    layers = {port.link_layer for port in training_ports(host)}
    if any(one.driver == "gve" for one in netdevs) or told - {"IB", "Socket"}:
        return _SLOW
    if layers:
        return _RDMA if layers <= {"InfiniBand", "Ethernet"} else _SLOW
    if "IB" in told:
        return _RDMA
    if isinstance(host.nic_ports, Missing) and host.nic_ports.kind != "not-applicable":
        return None
    # A board with NVSwitches is made to train with others, and is held to what these do.
    model = run.product if isinstance(run.product, Missing) else model_of(run.product)
    return _RDMA if not isinstance(model, Missing) and model.nvswitch else _TCP


def _bound(run: Collective, ranks: int, hosts: int, network: Network) -> Bound:
    within, between, steps_us = _steps(str(run.collective), ranks, hosts, network)
    launch_us = _LAUNCH_TORCH_US if run.tool.startswith("torch") else _LAUNCH_US
    value = _BASE_US + within * _NVLINK_US + between * steps_us + launch_us
    told = [f"{_BASE_US:g} us of NCCL"]
    told += [f"{within} steps x {_NVLINK_US:g} us of NVLink"] if within else []
    told += [f"{between} steps x {steps_us:g} us of {network.told}"] if between else []
    return Bound(round(value, 1), " + ".join([*told, f"{launch_us:g} us to launch it"]))


def _steps(
    collective: str, ranks: int, hosts: int, network: Network
) -> tuple[int, int, float]:  # fmt: skip
    """Steps within hosts, those between them, and how long one of these takes."""
    if collective in _TREE:
        return 2 * (math.ceil(ranks / hosts) - 1), 2 * math.ceil(math.log2(hosts)), network.tree_us
    return ranks - hosts, hosts - 1, network.ring_us
