"""Whether a run that was killed went on as if nothing had happened."""

from __future__ import annotations

import math
from typing import Any

from preflight.facts.training import Resume, TrainFailure
from preflight.model import Known, Missing
from preflight.probes.training.failures import causes
from preflight.probes.training.lines import PROBE, RESUMED, WHOLE, Line, Told

_NOT_RUN = Missing("not-asked", "the run was not killed and resumed")
_SHARED = Missing("not-asked", "over several hosts it needs --folder, on storage that all share")
_NOT_BITWISE = Missing(
    "not-applicable", "on a GPU the order of sums may differ: the loss is compared"
)
#: The buckets of DDP are laid out anew after the first step, of a resumed run too; in which order
#: three or more ranks are summed follows from the place in its bucket. Of two it is all the same.
_OTHER_BUCKETS = Missing(
    "not-applicable",
    "the buckets of DDP change after a first step, and with them the order in which three or more "
    "ranks are summed: the loss is compared",
)
_NO_NUMBERS = Missing("not-applicable", "no loss of the two runs is a number")
_LAUNCHES = ("killed", RESUMED)


def resume(told: Told, failures: tuple[TrainFailure, ...]) -> Resume:
    """What the resumed launch told, held against the one that was not interrupted."""
    if not told.plan.get("resume"):
        return _none(_SHARED if told.hosts() > 1 else _NOT_RUN)
    resumed = told.where("resumed", launch=RESUMED)
    done = told.where("done", launch=RESUMED)
    # Whoever was killed on purpose takes others with it.
    launches = (RESUMED,) if told.of["killed"] else _LAUNCHES
    failed = next((one for each in launches for one in causes(failures, each)), None)
    if failed is not None:
        trouble: Known[str] = f"{failed.name}: {failed.text}"
    elif causes(failures, WHOLE) and not resumed:
        return _none(Missing("not-applicable", "the whole run did not come to its end"))
    elif not resumed and any(one["failed"] for one in told.where("done", launch=WHOLE)):
        return _none(
            Missing(
                "not-applicable",
                "a checkpoint could not be written, so nothing was killed and resumed",
            )
        )
    else:
        trouble = "" if done and told.of["end"] else told.unfinished()
    if not resumed:
        why = Missing("not-applicable", "the run did not come to its resume")
        return Resume(**{**_fields(why if failed else told.unfinished()), "trouble": trouble},
                      line=failed.line if failed else 0, probe=PROBE)  # fmt: skip
    return _held(told, resumed, trouble)


def _held(told: Told, resumed: list[Line], trouble: Known[str]) -> Resume:
    first = resumed[0]
    ranks = [one["rank"] for one in resumed]
    before = {one["step"]: one for one in told.steps[WHOLE].get(ranks[0], [])}
    after = told.steps[RESUMED].get(ranks[0], [])
    both = [(before[one["step"]], one) for one in after if one["step"] in before]
    saved = _digests(told.where("saved", launch=WHOLE, step_at=first["step_from"]))
    unknown = told.unfinished()
    return Resume(
        trouble=trouble,
        step=int(first["step_from"]),
        elapsed_s=float(max(one["elapsed_s"] for one in resumed)),
        loss_difference=_apart(both) if both else unknown,
        same_parameters=_same_parameters(told, unknown),
        same_samples=all(a["samples"] == b["samples"] for a, b in both) if both else unknown,
        snapshot_whole=saved == _digests(resumed) if saved else unknown,
        damaged=tuple(map(str, first["wrong"])),
        line=first["line"],
        probe=PROBE,
    )


def _apart(both: list[tuple[Line, Line]]) -> Known[float]:
    """The largest difference of their losses. Where both are no number they do not differ; where
    one is, it is as far as can be."""
    told = [(float(a["loss"]), float(b["loss"])) for a, b in both]
    known = [one for one in told if any(map(math.isfinite, one))]
    if not known:
        return _NO_NUMBERS
    return max(abs(a - b) if math.isfinite(a - b) else math.inf for a, b in known)


def _same_parameters(told: Told, unknown: Missing) -> Known[bool]:
    whole, resumed = (_digests(told.where("done", launch=one)) for one in (WHOLE, RESUMED))
    if not whole or not resumed:
        return unknown
    if whole != resumed and told.plan.get("device") == "cuda":
        return _NOT_BITWISE
    if whole != resumed and told.plan.get("sharding") == "ddp" and told.world() > 2:
        return _OTHER_BUCKETS
    return whole == resumed


def _digests(lines: list[Line]) -> dict[int, str]:
    return {one["rank"]: one["digest"] for one in lines}


def _none(why: Missing) -> Resume:
    return Resume(**_fields(why))


def _fields(why: Missing) -> dict[str, Any]:
    return dict.fromkeys(Resume.__struct_fields__[:-2], why)
