"""Several hosts that train together: asked first what they have, then started as one job.

The first healthy host is where the ranks meet; a host that can be no part of it is told as that,
and the others train without it.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.cli.hosts import Fleet
from preflight.faults import CONNECTION, fault
from preflight.model import Command, Missing, Raw
from preflight.ship import SITE, TRAINS, site_command, train_command

_FORM = "micro-train/1"
#: What a host that was not asked to train answers.
_UNASKED = (TRAINS, CONNECTION)
Answered = Iterator[tuple[str, list[Raw]]]


class Site(Struct):
    """What one host told of itself, or in `line` why it is no part of the job."""

    host: str
    told: dict[str, Any] = {}
    line: dict[str, Any] | None = None
    raws: list[Raw] = []


class OneJob(Struct):
    """A fleet of which one question is put to all hosts as to one."""

    fleet: Any  # a Fleet with `hosts`, which can be made fewer
    interrupted: threading.Event
    python: tuple[str, ...] = ("python3",)

    def run(self, commands: Sequence[Command]) -> Answered:
        """Each host with its answers; of those that do not train why."""
        train = next(one for one in commands if one.probe == TRAINS)
        asked = _plan_in(train)
        plan = {**asked, "job": secrets.token_hex(8)}
        sites = list(self._sites(plan))
        order = {name: at for at, name in enumerate(self.fleet.hosts)}
        # Hosts that Slurm chose answer in any order: n2 before n10.
        sites.sort(key=lambda one: (order.get(one.host, len(order)), len(one.host), one.host))
        _hold_alike(sites)
        healthy = [one for one in sites if one.line is None and one.told]
        if self.interrupted.is_set():
            missing = fault("interrupted", "interrupted before it trained")
            for one in healthy:
                one.raws = [Raw(one.host, name, rc=None, missing=missing) for name in _UNASKED]
            healthy = []
        for one in sites:
            if one not in healthy:
                yield one.host, _left_out(one, train)
        if healthy:
            yield from self._train(commands, train, joined(plan, healthy), healthy)

    def _sites(self, plan: dict[str, Any]) -> Iterator[Site]:
        question = {
            "job": plan["job"], "interface": plan.get("interface", ""),
            "even_if_busy": plan.get("even_if_busy", False),
        }  # fmt: skip
        for name, raws in self.fleet.run([site_command(question, self.python)]):
            yield read_site(name, raws)

    def _train(
        self, commands: Sequence[Command], train: Command, plan: dict[str, Any],
        healthy: Sequence[Site],
    ) -> Answered:  # fmt: skip
        shipped = replace(train_command(plan, self.python), timeout_s=train.timeout_s)
        questions = [shipped if one is train else one for one in commands]
        fewer: Fleet = replace(self.fleet, hosts=tuple(one.host for one in healthy))
        yield from fewer.run(questions)


def _plan_in(train: Command) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(train.argv[-1])
    return found


def read_site(host: str, raws: list[Raw]) -> Site:
    """What a host answered to the first question."""
    answer = next((raw for raw in raws if raw.probe == SITE), None)
    told = _decoded(answer)
    if not told:
        return Site(host, raws=raws)
    for kind in ("cannot", "busy"):
        if told.get(kind):
            why = {"why": "no-torch"} if kind == "cannot" and not told.get("torch") else {}
            return Site(host, told, {"kind": kind, **why, "text": told[kind]}, raws)
    return Site(host, told, raws=raws)


def _decoded(raw: Raw | None) -> dict[str, Any]:
    if raw is None or raw.missing or not isinstance(raw.stdout, str):
        return {}
    try:
        found = json.loads(raw.stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _hold_alike(sites: Sequence[Site]) -> None:
    """Where some have GPUs, those without are no part of the job."""
    with_gpus = [one for one in sites if one.line is None and one.told.get("gpus")]
    for one in sites:
        if with_gpus and one.line is None and one.told and not one.told["gpus"]:
            text = f"it has no GPU, and {with_gpus[0].host} has {with_gpus[0].told['gpus']}"
            one.line = {"kind": "cannot", "text": text}


def joined(plan: dict[str, Any], sites: Sequence[Site]) -> dict[str, Any]:
    """The plan of the job over these hosts: the same number of ranks on each, and where they meet.
    Over several hosts a run is resumed from a folder that all of them share, or not at all."""
    if len(sites) == 1:
        return plan
    first = sites[0].told
    interfaces = {one.told["interface"] for one in sites}
    gpus = min(one.told["gpus"] for one in sites)
    cores = min(one.told["cores"] for one in sites)
    return {
        **plan,
        "hosts": [one.host for one in sites],
        "master": first["address"],
        "port": first["port"],
        "interface": interfaces.pop() if len(interfaces) == 1 else "",
        "ranks": plan.get("ranks") or gpus or min(2, cores),
        "resume": plan.get("resume", True) and bool(plan.get("folder")),
    }


def _left_out(site: Site, train: Command) -> list[Raw]:
    """The answers of a host that does not train."""
    if site.raws and site.raws[0].probe == TRAINS:
        return site.raws
    if site.line is not None:
        line = json.dumps({"preflight": _FORM, **site.line}, separators=(",", ":"))
        return [Raw(site.host, TRAINS, train.argv, 0, stdout=f"{line}\n")]
    answer = next((raw for raw in site.raws if raw.probe == SITE), None)
    closing = [raw for raw in site.raws if raw.probe == CONNECTION]
    if answer is None:
        return closing
    missing = answer.missing or (None if answer.rc else Missing("unreadable", "it told nothing"))
    return [replace(answer, probe=TRAINS, missing=missing), *closing]
