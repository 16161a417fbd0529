"""A bench of collectives: the ranks of this host, from their start to their end."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, replace
from typing import Any

import torch
import torch.distributed as dist

from ..ranks import Among, Launch, Tell
from .operations import COLLECTIVES
from .plan import Plan, PlanError
from .work import TYPES, work

FORM = "nccl-bench/1"
#: What every rank tells alike.
_OF_ALL = ("size", "step", "joined")
#: Until the first size: kernels are loaded, connections are made.
_START_S = 120.0


def harness(plan: Plan, tell: Tell) -> None:
    """The whole bench. Whoever interrupts it gets the ranks ended."""
    began = time.monotonic()
    torch.set_num_threads(1)  # ranks are forked: no thread of this process may hold anything
    try:
        plan = settled(plan)
    except PlanError as error:
        tell({"preflight": FORM, "kind": "cannot", "text": str(error)})
        return
    tell({"preflight": FORM, "kind": "begin", **_about(plan)})
    launch = Launch(plan.ranks, lambda tell_it: work(plan, tell_it), silent_s=plan.silent_s,
                    start_s=_START_S, among=_among(plan))  # fmt: skip
    try:
        for line in launch.lines():
            # All ranks go at one pace: the first one's figures are those of all.
            if line["kind"] not in _OF_ALL or line["rank"] == 0:
                tell(line)
    finally:
        launch.kill()
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


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
    if device == "cuda" and ranks > gpus:
        raise PlanError(f"{ranks} ranks are asked for, and there are {gpus} GPUs")
    if ranks < 2:
        raise PlanError(f"a collective takes two ranks, and here is {ranks} GPU")
    backend = "nccl" if device == "cuda" else "gloo"
    if not dist.is_available() or not dist.is_backend_available(backend):
        raise PlanError(f"torch {torch.__version__} was built without {backend}")
    if plan.factor == 1 or plan.factor < 0:
        raise PlanError(f"factor {plan.factor}: expected 2 or more")
    return replace(plan, device=device, ranks=ranks)


def _among(plan: Plan) -> Among:
    """On one host nothing has to be resolved, and nothing leaves it."""
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    if plan.interface:
        return Among(environment=dict.fromkeys(names, plan.interface))
    return Among(environment={} if names[0] in os.environ else {names[0]: "lo"})


def _about(plan: Plan) -> dict[str, Any]:
    gpu = plan.device == "cuda"
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if gpu else None
    return {
        "plan": asdict(plan), "world": plan.ranks, "torch": torch.__version__,
        "backend": "nccl" if gpu else "gloo", "nccl": nccl, "python": sys.version.split()[0],
        "environment": {
            name: value for name, value in os.environ.items() if name.startswith("NCCL_")
        },
    }  # fmt: skip
