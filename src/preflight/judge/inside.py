"""GPUs, fabrics and rails within a host that are slower than those of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from preflight.expect.models import model_of
from preflight.facts.collectives import Culprit, Inside
from preflight.facts.host import Host
from preflight.judge.results import result, undetermined
from preflight.judge.steps import of_what_was_found
from preflight.model import Check, Evidence, Missing, Result, Status

_EXPECTED = "no slower than the others"
#: The check of each kind of culprit, and why there may be nothing to judge.
_KINDS = {"collectives.gpu": "gpu", "collectives.fabric": "fabric", "collectives.nic": "nic"}
_NOT_TRIED = {
    "gpu": "its GPUs were not compared: it takes three, on a host that is slow or alone",
    "fabric": "its fabrics were not compared: it takes a slow host with GPUs, and a sound one",
    "nic": "its rails were not compared: it takes two adapters of a kind, or --interface A,B",
}
_BY_DESIGN = Missing(
    "not-applicable",
    "no NVSwitch joins these GPUs: pairs differ by how the board connects them; shown, and judged "
    "beside a sound host of the same kind: --hosts HOSTS",
)


def judge_inside(host: Host, checks: Sequence[Check]) -> list[Result]:
    """A result for each culprit of the check's kind, and one where there is none."""
    found = host.inside
    assert isinstance(found, Inside)
    return [one for check in checks for one in _judged(host, check, found)]


def _judged(host: Host, check: Check, found: Inside) -> Iterator[Result]:
    kind = _KINDS[check.id]
    count = found.counts.get(kind, 0)
    if not count:
        yield undetermined(check, host.name, Missing("not-applicable", _NOT_TRIED[kind]))
        return
    if kind == "gpu" and found.alone and not _switched(found):
        yield undetermined(check, host.name, _BY_DESIGN)
        return
    mine = [one for one in found.culprits if one.kind == kind]
    yield from (_culprit(check, one, host) for one in mine)
    if not mine:
        yield result(check, host.name, Status.PASS, f"{count} tests", _EXPECTED)


def _switched(found: Inside) -> bool:
    """Whether each GPU reaches each other alike."""
    model = found.product if isinstance(found.product, Missing) else model_of(found.product)
    return not isinstance(model, Missing) and model.nvswitch


def _culprit(check: Check, one: Culprit, host: Host) -> Result:
    behind = one.behind_percent
    assert not isinstance(behind, Missing)
    shown = "never came to an end" if behind >= 100 else f"{behind:.0f} % slower"
    rail = one.name.removesuffix(" of all hosts").rpartition(" ")[2]
    steps = of_what_was_found(check.fix, one.name)
    check = replace(
        check, fix=tuple(each.replace("HOST", host.name).replace("RAIL", rail) for each in steps)
    )
    return result(
        check, one.name, Status.FAIL, shown, _EXPECTED, reason=f"proved by {one.proof}",
        evidence=(Evidence(one.probe, f"found by {one.proof}"[:400], one.line),),
    )  # fmt: skip
