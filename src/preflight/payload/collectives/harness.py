"""A bench of collectives: the ranks of this host, from their start to their end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import asdict, replace
from typing import Any

import torch
import torch.distributed as dist

from .. import alone
from ..places import PlaceError, place_of
from ..ranks import Tell
from .agents import GoneError
from .bench import Bench, Here
from .operations import COLLECTIVES
from .over_hosts import cannot_take_part, lead
from .parts import parts
from .plan import Plan, PlanError
from .rails import adapters
from .served import serve
from .work import TYPES

FORM = "nccl-bench/1"


def harness(plan: Plan, tell: Tell) -> None:
    """The whole bench. Whoever interrupts it gets the ranks ended."""
    began = time.monotonic()
    torch.set_num_threads(1)  # ranks are forked: no thread of this process may hold anything
    try:
        at = place_of(plan.hosts)
        plan = settled(plan)
    except PlaceError as error:
        tell({"preflight": FORM, "kind": "cannot", "text": str(error)})
        return
    except PlanError as error:
        tell({"preflight": FORM, "kind": "cannot", "text": str(error)})
        if len(plan.hosts) > 1:
            with contextlib.suppress(GoneError, OSError):
                cannot_take_part(plan, at, str(error))
        return
    host = {"host": plan.hosts[at]} if plan.hosts else {}
    about = _about(plan)
    tell({"preflight": FORM, "kind": "begin", **about, **host})
    try:
        own = {name: about[name] for name in ("torch", "nccl")}
        _benched(plan, at, tell, {**own, "rails": _rails(plan)})
    except (GoneError, OSError) as error:
        tell({"kind": "gone", "text": str(error)})
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


def _benched(plan: Plan, at: int, tell: Tell, about: dict[str, Any]) -> None:
    if len(plan.hosts) < 2:
        parts(Bench(plan, tell, Here(plan)))
    elif at == 0:
        lead(plan, tell, about)
    else:
        serve(plan, at, about)


def settled(plan: Plan) -> Plan:
    """The plan with what it left open decided by what is here. Raises PlanError."""
    gpus = torch.cuda.device_count()
    device = plan.device or ("cuda" if gpus else "cpu")
    ranks = plan.ranks or (gpus if device == "cuda" else 2)
    unknown = [one for one in plan.collectives if one not in COLLECTIVES]
    if unknown:
        raise PlanError(f"no collective {unknown[0]}: there are {', '.join(COLLECTIVES)}")
    if plan.dtype not in TYPES:
        raise PlanError(f"no dtype {plan.dtype}: there are {', '.join(TYPES)}")
    there = 0 if gpus or device == "cuda" else len(alone.visible_gpus())
    if not gpus and (device == "cuda" or there):
        raise PlanError(_without_gpus(there))
    if device == "cuda" and ranks > gpus:
        raise PlanError(f"{ranks} ranks are asked for, and there are {gpus} GPUs")
    if ranks < 2 and len(plan.hosts) < 2:
        what = "one GPU" if device == "cuda" else "one rank asked for"
        raise PlanError(f"a collective takes two ranks, and here is {what}")
    backend = "nccl" if device == "cuda" else "gloo"
    if not dist.is_available() or not dist.is_backend_available(backend):
        raise PlanError(f"torch {torch.__version__} was built without {backend}")
    if plan.factor == 1 or plan.factor < 0:
        raise PlanError(f"factor {plan.factor}: expected 2 or more")
    return replace(plan, device=device, ranks=ranks)


def _rails(plan: Plan) -> list[str]:
    if plan.device == "cuda":
        return adapters(plan.nics or os.environ.get("NCCL_IB_HCA", ""))
    return plan.interface.split(",") if "," in plan.interface else []


def _without_gpus(there: int) -> str:
    """Why torch has none, in CUDA's words, and how many NVML sees: processors would be timed in
    their place."""
    built = torch.version.cuda or "none"
    told = f"torch {torch.__version__} (CUDA: {built}) finds no GPU"
    told += f", and this host has {there}" if there else ""
    if not torch.version.cuda:
        return told
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        return f"{told}: {str(error).strip().splitlines()[0][:300]}"
    return told


def _about(plan: Plan) -> dict[str, Any]:
    gpu = plan.device == "cuda"
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if gpu else None
    return {
        "plan": asdict(plan), "world": plan.ranks * max(1, len(plan.hosts)),
        "torch": torch.__version__, "backend": "nccl" if gpu else "gloo", "nccl": nccl,
        "python": sys.version.split()[0],
        "environment": {
            name: value for name, value in os.environ.items() if name.startswith("NCCL_")
        },
    }  # fmt: skip
