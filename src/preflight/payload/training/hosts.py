"""One run over several hosts: where its ranks stand, and the folder they share."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..ranks import Among
from ..scratch import sweep
from ..site import address_of, interface_of
from .plan import Plan, PlanError

#: Attributes of a folder on NFS are kept for up to 60 s by default (nfs(5), acdirmax); a name that
#: is looked up for the first time is asked for at once.
_SHARED_S = 30.0


def among(plan: Plan, at: int, launch: int) -> Among:
    """Where this host's ranks stand in a launch, and through what they talk."""
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    # Hosts may call theirs by other names. Left alone, gloo takes what the host's name resolves to,
    # and on many that is 127.0.1.1.
    own = interface_of(address_of("")) if plan.hosts and not plan.interface else ""
    interface = plan.interface or own
    chosen = dict.fromkeys(names, interface) if interface else {}
    if not plan.hosts:
        # On one host nothing has to be resolved, and nothing leaves it.
        alone = {} if plan.interface or names[0] in os.environ else {names[0]: "lo"}
        return Among(environment={**_SETTINGS, **alone, **chosen})
    return Among(
        first=at * plan.ranks, world=plan.world, master=plan.master, port=plan.port + launch,
        environment={**_SETTINGS, **chosen},
    )  # fmt: skip


@contextmanager
def checkpoints(plan: Plan, at: int, own: str) -> Iterator[str]:
    """The folder for checkpoints: our own, or one that the first host makes and all see; "" where
    several hosts share none. Raises PlanError where they do not see it."""
    if len(plan.hosts) > 1 and not plan.folder:
        yield ""
        return
    if len(plan.hosts) < 2:
        folder = Path(own) / "checkpoints"
        folder.mkdir()
        yield str(folder)
        return
    folder = Path(plan.folder) / f".preflight-train-checkpoints-{plan.port}"
    if at:
        _seen(folder, plan)
        yield str(folder)
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sweep(str(folder))
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _seen(folder: Path, plan: Plan) -> None:
    until_s = time.monotonic() + _SHARED_S
    while not folder.is_dir():
        if time.monotonic() > until_s:
            raise PlanError(
                f"{plan.folder} is not the same folder as on {plan.hosts[0]}: what was made there "
                f"is not seen here within {_SHARED_S:g} s; `df -T {plan.folder}` on both"
            )
        time.sleep(0.1)


#: cuBLAS repeats its results bit for bit only with a workspace of its own (cuBLAS, "Results
#: reproducibility"); the size is its default on Hopper.
_SETTINGS = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
