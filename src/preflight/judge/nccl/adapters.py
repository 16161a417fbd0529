"""The list of adapters: as many as there are, of one kind, and none that is not for training."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.expect.nics import is_fit, is_stated
from preflight.facts.host import Host
from preflight.facts.nccl import NcclHost, NcclLog, NcclSelection
from preflight.judge.nccl.machine import is_of, live_ports, told_variables
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

_RDMA = Missing("not-applicable", "no adapters of RDMA are in the list")


def judge_listed(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """Every live port of the host is in NCCL's list."""
    assert not isinstance(log.hosts, Missing)
    return [_listed(host, log, check, one) for one in log.hosts]


def _listed(host: Host, log: NcclLog, check: Check, one: NcclHost) -> Result:
    if isinstance(one.adapters, Missing):
        return undetermined(check, one.name, _RDMA)
    ports = live_ports(host) if is_of(host, log, one.name) else None
    if ports is None or isinstance(ports, Missing):
        why = Missing("not-in-input", "cannot tell how many there are: give `ibstat` of the host")
        return undetermined(check, one.name, why)
    listed, live = one.adapters, len({port.name for port in ports.ports})
    causes = told_variables(log, one.name, ("NCCL_IB_HCA",))
    # Somebody who names most of them leaves out those of storage, as fast as the others.
    chosen = bool(causes) and 2 * listed > live
    known = ports.infiniband or not isinstance(host.topology.nics, Missing)
    worst = Status.FAIL if known else Status.WARN
    status = Status.PASS if listed >= live or chosen else worst
    reason = f"{live - listed} of {ports.told} idle" + (f"; {causes} is set" if causes else "")
    return result(
        check, one.name, status, listed, f"at least {live}", reason=reason,
        evidence=(_evidence(log, one),),
    )  # fmt: skip


def _evidence(log: NcclLog, one: NcclHost) -> Evidence:
    selections = () if isinstance(log.selections, Missing) else log.selections
    shown = next((each for each in selections if each.host == one.name), one)
    return Evidence(shown.probe, line=shown.line)


def judge_mixed(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """The adapters of a list are of one kind. Both kinds fail where work has failed on them."""
    assert not isinstance(log.selections, Missing)
    found = []
    for one in log.selections:
        if not one.adapters:
            found.append(undetermined(check, one.name, _RDMA))
            continue
        mixed = ", " in one.layers
        broken = any(each.host == one.host for each in log.completions)
        status = Status.PASS if not mixed else Status.FAIL if broken else Status.WARN
        reason = "work over them failed, see nccl.completions" if broken else ""
        found.append(_named(check, one, status, one.layers or "unknown", "one kind", reason))
    return found


def judge_odd(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """No bond, and no adapter of another role, stands among those of training."""
    assert not isinstance(log.selections, Missing)
    nics = () if isinstance(host.topology.nics, Missing) else host.topology.nics
    # What the user leaves out now is of training nevertheless, and the job knew no such list.
    roles = ("other",) if is_stated(host) else ("other", "left-out")
    unfit = {nic.name for nic in nics if nic.role in roles and not is_fit(host, nic)}
    found = []
    for one in log.selections:
        if not one.adapters:
            found.append(undetermined(check, one.name, _RDMA))
            continue
        others = [
            each.name for each in one.adapters
            if each.name in unfit and is_of(host, log, one.host)
        ]  # fmt: skip
        odd = tuple(dict.fromkeys([*one.bonds, *others]))
        status = Status.WARN if odd and len(odd) < len(one.adapters) else Status.PASS
        told = ", ".join(odd) if status is Status.WARN else "none"
        found.append(_named(check, one, status, told, "none", "", odd))
    return found


def _named(
    check: Check, one: NcclSelection, status: Status, measured: str, expected: str, reason: str,
    but: tuple[str, ...] = (),
) -> Result:  # fmt: skip
    """With the list that names the others, or those of the kind that most are of."""
    layers = [each.layer for each in one.adapters]
    usual = max(set(layers), key=lambda layer: (layers.count(layer), layer == "IB"))
    kept = [
        f"{each.name}:{each.port}" for each in one.adapters
        if (each.name not in but if but else each.layer == usual)
    ]  # fmt: skip
    # Without the = NCCL takes a name for the beginning of one: mlx5_1 is mlx5_10 too.
    value = "=" + ",".join(kept)
    check = replace(check, fix=tuple(step.replace("[HCAS]", value) for step in check.fix))
    return result(
        check, one.name, status, measured, expected, reason=reason,
        evidence=(Evidence(one.probe, line=one.line),),
    )  # fmt: skip
