"""What goes between hosts: the ports of a host, and what of them each collective gets.

A ring enters and leaves a host once, through all of its ports. In an all-to-all each rank sends to
every other, and what goes to other hosts goes through its GPU's share of the ports; in a
send-receive one rank of a host sends to one of the next (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from msgspec import Struct

from preflight.expect.bound import Bound
from preflight.expect.nics import is_up, training_ports
from preflight.facts.collectives import Collective
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.model import Known, Missing

#: 24 GB/s of an adapter of 200 Gb/s (NVIDIA/nccl-tests, issue 119).
ADAPTER = 0.96
#: GPUs of a board with NVSwitches.
BOARD = 8
#: What goes round a ring; hosts that add up within first send each other less, and switches that
#: add up once: never less than a half.
RING = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
_PAIRS = ("alltoall", "sendrecv")
NO_PORTS = Missing(
    "not-in-input",
    "which adapters carry it is not in the input: add `ibstat` of one host (--from ibstat.txt)",
)


class Carriers(Struct, frozen=True):
    """Ports that carry it: Gb/s of each, those that are down by what ports like them run at."""

    rates_gbits: tuple[float, ...]
    down: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = len(self.rates_gbits)
        total = f"{count} {'adapter' if count == 1 else 'adapters'}, {sum(self.rates_gbits):g} Gb/s"
        return f"{total} (without link: {', '.join(self.down)})" if self.down else total


def judged_kind(run: Collective, hosts: int) -> Known[str]:
    """The collective, where it is known what it can reach among so many hosts."""
    kind = run.collective
    if isinstance(kind, Missing):
        return kind
    if " or " in kind:
        text = f"which of {kind} it was is not in the input, and between hosts their bounds differ"
        return kind if hosts == 1 else Missing("not-in-input", text)
    if kind in RING + _PAIRS:
        return kind
    return Missing("not-applicable", f"no source tells what a {kind} can reach: shown, not judged")


def outside(host: Host, run: Collective, *, whole: bool) -> Known[Bound]:
    """GB/s through the ports of a host; of a `whole` one all, else the share of its GPUs."""
    ports, each = carriers(host), run.ranks_per_host
    if isinstance(ports, Missing):
        return ports
    share = 1.0 if whole or isinstance(each, Missing) else min(1.0, each / BOARD)
    total = sum(ports.rates_gbits) / 8 * ADAPTER * share
    told = f"{ports} / 8 x {ADAPTER:.0%}"
    told += f" x {share:.0%} for {each} of {BOARD} GPUs" if share < 1 else ""
    if run.collective not in _PAIRS:
        return Bound(total, told)
    if isinstance(each, Missing):
        return each
    assert isinstance(run.ranks, int)
    if run.collective == "alltoall":
        peers, away = run.ranks - 1, run.ranks - each
        return Bound(total / each * peers / away,
                     f"{told} / {each} ranks x {peers}/{away}, for {away} of {peers} peers of a "
                     "rank are on other hosts")  # fmt: skip
    return max(
        Bound(total / each, f"{told} / {each} ranks, for one sends to the next host"),
        Bound(max(ports.rates_gbits) / 8 * ADAPTER,
              f"one adapter, {max(ports.rates_gbits):g} Gb/s / 8 x {ADAPTER:.0%}, for one rank "
              "sends to the next host"),
        key=lambda one: one.value,
    )  # fmt: skip


def carriers(host: Host) -> Known[Carriers]:
    """The ports that collectives go over: those of NCCL's list, where there is one, else those for
    training, those that are down included: that they are is a fault. Missing where their rates are
    not known."""
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    named = _listed(host)
    found = tuple(one for one in ports if one.name in named) if named else _of_training(host)
    if len(found) < len(named):
        told = f"NCCL lists {len(named)} adapters, and their rates are not in the input"
        return Missing("not-in-input", f"{told}: add `ibstat` of one host (--from ibstat.txt)")
    rates = [one.rate_gbits if is_up(one) else one.usual_rate_gbits for one in found]
    known = tuple(rate for rate in rates if not isinstance(rate, Missing))
    if not known or len(known) < len(found):
        return NO_PORTS
    return Carriers(known, tuple(one.nic for one in found if not is_up(one)))


def _of_training(host: Host) -> tuple[NicPort, ...]:
    """Those that are up, and those like them that lost their link. A port of InfiniBand is Disabled
    by hand; one of Ethernet is called so whenever it has no carrier."""
    up = training_ports(host)
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    return up + tuple(
        one for one in ports
        if up and one.role == "training" and not is_up(one)
        and not isinstance(one.usual_rate_gbits, Missing)
        and (one.phys_state, one.link_layer) != ("Disabled", "InfiniBand")
    )  # fmt: skip


def _listed(host: Host) -> set[str]:
    """The list of NCCL's first host that has one: mlx5_0/1."""
    if isinstance(host.nccl, Missing) or isinstance(host.nccl.selections, Missing):
        return set()
    lists = [one.adapters for one in host.nccl.selections if one.adapters]
    return {f"{one.name}/{one.port}" for one in lists[0]} if lists else set()
