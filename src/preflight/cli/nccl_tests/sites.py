"""What hosts have for nccl-tests: GPUs, binaries, or why they can be no part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from preflight.bench.nccl_tests import BINARIES, collectives_of
from preflight.cli.one_job import Site, why_left
from preflight.model import Missing, Raw
from preflight.ship import SITE

#: A field of no answer: the first question failed on that host.
_SILENT = "it told nothing of itself"


class Tested(Struct):
    """One host. `why`: what keeps it from taking part; None where nothing does."""

    host: str
    gpus: int = 0
    paths: dict[str, str] = {}  # of the collectives that it can run
    without_mpi: dict[str, str] = {}  # of these, those built for one process
    lacks: dict[str, Missing] = {}  # of the others, why not
    nccl: dict[str, str] = {}  # variables of NCCL that are set there
    why: Missing | None = None
    raws: Sequence[Raw] = ()


def tested(site: Site, plan: Mapping[str, Any]) -> Tested:
    """What a host told to the first question. Torch is not needed."""
    told = site.told
    if not told:
        return Tested(site.host, why=_no_answer(site), raws=site.raws)
    if told.get("busy"):
        return Tested(site.host, why=Missing("not-asked", str(told["busy"])))
    gpus, tests = int(told.get("gpus", 0)), told.get("tests") or {}
    why = _no_gpus(gpus, plan, told)
    if why or tests.get("cannot"):
        lacks = tests.get("cannot")
        lacks = f"{lacks}; `make` in nccl-tests builds them: --nccl-tests FOLDER" if lacks else ""
        text = "; and ".join(filter(None, (lacks, why)))
        return Tested(site.host, gpus, why=Missing("exited" if why else "no-tool", text))
    found = {name: tests["found"].get(BINARIES[name]) for name in collectives_of(plan)}
    good = {name: one for name, one in found.items() if one and not one["cannot"]}
    lacks = {name: _lack(name, one, plan) for name, one in found.items() if name not in good}
    return Tested(
        site.host, int(plan.get("ranks") or gpus),
        {name: one["path"] for name, one in good.items()},
        {name: one["path"] for name, one in good.items() if not one["mpi"]},
        lacks, {str(name): str(text) for name, text in told.get("nccl", {}).items()},
        None if good else next(iter(lacks.values())),
    )  # fmt: skip


def _no_answer(site: Site) -> Missing:
    told = next((raw.missing for raw in reversed(site.raws) if raw.missing), None)
    said = why_left(site).strip().splitlines() if site.raws else [_SILENT]
    return told or Missing("exited", said[-1].strip()[:300])


def _no_gpus(gpus: int, plan: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    wanted = int(plan.get("ranks") or 0)
    if wanted > gpus > 0:
        return f"--ranks {wanted}, and {gpus} {'GPU' if gpus == 1 else 'GPUs'} can be used here"
    granted = told.get("granted")
    limit = f" (CUDA_VISIBLE_DEVICES is {granted!r})" if granted is not None else ""
    return "" if gpus else (
        f"no GPU can be used here{limit}; `nvidia-smi -L` lists those that are there. nccl-tests "
        "runs between GPUs; without --nccl-tests torch measures between processors"
    )  # fmt: skip


def _lack(name: str, one: Mapping[str, Any] | None, plan: Mapping[str, Any]) -> Missing:
    if one:
        return Missing("exited", str(one["cannot"]))
    folder = plan["tests"]["folder"]
    return Missing(
        "no-tool",
        f"it is not in {folder}: `make` in nccl-tests builds it, or name what is wanted: "
        "--collective all_reduce",
    )


def left_out(one: Tested, probe: str) -> list[Raw]:
    """The answers of a host that is no part of it."""
    closing = [raw for raw in one.raws if raw.probe != SITE]
    why = one.why or Missing("exited", _SILENT)
    return [Raw(one.host, probe, rc=None, missing=why), *closing]
