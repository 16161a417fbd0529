"""Several hosts that work together: asked first what they have, then started as one job.

The first healthy host is where the ranks meet; a host that can be no part of it is told as that,
and the others work without it. One machine under two names is one host.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.assemble.same_host import told_apart
from preflight.cli.apart import left_out, shut_off
from preflight.cli.bench_settings import hold_sweep
from preflight.cli.hosts import Asking
from preflight.cli.together import as_told, benched, gathered, told_of_others
from preflight.errors import UsageError
from preflight.faults import CONNECTION, fault
from preflight.model import Command, Missing, Raw
from preflight.ship import BENCHES, SITE, TRAINS, bench_command, site_command, train_command
from preflight.transports.slurm.arguments import without_nodes

#: Where hosts meet, behind the first of their ports (payload/meet.py).
_MEET_PORT = 3
_WHO = "identity"
Answered = Iterator[tuple[str, list[Raw]]]


class Site(Struct):
    """What one host told of itself, or in `line` why it is no part of the job."""

    host: str
    told: dict[str, Any] = {}
    line: dict[str, Any] | None = None
    raws: list[Raw] = []


class Work(Struct, frozen=True):
    """What the hosts do as one: the question, the form of its lines, the question by a plan, how
    their answers are gathered, and what each is told of the others."""

    probe: str
    form: str
    command: Callable[[Mapping[str, Any], tuple[str, ...]], Command]
    gather: Callable[[Any, Sequence[Command], threading.Event], dict[str, list[Raw]]]
    #: By the answers and what is known of the job; whether the user interrupted it.
    told: Callable[[Mapping[str, list[Raw]], Mapping[str, Any], bool], dict[str, list[Raw]]]
    #: What of its plan depends on the hosts: by the plan, and the GPUs and cores of the least.
    joined: Callable[[Mapping[str, Any], int, int], dict[str, Any]]
    #: Whether the others go on without a host that they do not reach.
    goes_on: bool = False


def _of_training(plan: Mapping[str, Any], gpus: int, cores: int) -> dict[str, Any]:
    """Over several hosts a run is resumed from a folder that all of them share, or not at all."""
    return {
        "ranks": plan.get("ranks") or gpus or min(2, cores),
        "resume": plan.get("resume", True) and bool(plan.get("folder")),
    }


def _of_bench(plan: Mapping[str, Any], gpus: int, _cores: int) -> dict[str, Any]:
    """On processors one rank fills the network."""
    return {"ranks": plan.get("ranks") or gpus or 1}


def _trained(
    found: Mapping[str, list[Raw]], of: Mapping[str, Any], interrupted: bool
) -> dict[str, list[Raw]]:
    return told_of_others(found, of, interrupted=interrupted)


TRAINING = Work(TRAINS, "micro-train/1", train_command, gathered, _trained, _of_training)
BENCH = Work(
    BENCHES, "nccl-bench/1", bench_command, benched, as_told, _of_bench, goes_on=True,
)  # fmt: skip


def as_one_job(many: Asking, python: tuple[str, ...], work: Work = TRAINING) -> None:
    """Have the hosts asked as one."""
    many.fleet = OneJob(many.fleet, many.interrupted, python, work)


def first_questions(
    commands: Sequence[Command], plan: dict[str, Any], python: tuple[str, ...]
) -> list[Command]:
    """What each host is asked before it is known who trains."""
    question = {
        "job": plan.get("job", ""), "interface": plan.get("interface", ""),
        "even_if_busy": plan.get("even_if_busy", False),
        **({"tests": plan["tests"]} if "tests" in plan else {}),
    }  # fmt: skip
    return [*(one for one in commands if one.probe == _WHO), site_command(question, python)]


def sites_of(
    fleet: Any, commands: Sequence[Command], plan: dict[str, Any], python: tuple[str, ...]
) -> list[Site]:
    """What each host has, in the order in which they were named, and each machine once."""
    found = list(fleet.run(first_questions(commands, plan, python)))
    order = {name: at for at, name in enumerate(fleet.hosts)}
    # Hosts that Slurm chose answer in any order: n2 before n10.
    found.sort(key=lambda one: (order.get(one[0], len(order)), len(one[0]), one[0]))
    return [read_site(name, raws) for name, raws in told_apart(found)]


class OneJob(Struct):
    """A fleet of which one question is put to all hosts as to one."""

    fleet: Any  # a Fleet with `hosts`, which can be made fewer
    interrupted: threading.Event
    python: tuple[str, ...] = ("python3",)
    work: Work = TRAINING

    def run(self, commands: Sequence[Command]) -> Answered:
        """Each host with its answers; of those that do not train why."""
        train = next(one for one in commands if one.probe == self.work.probe)
        asked = _plan_in(train)
        plan = {**asked, "job": secrets.token_hex(8)}
        sites = sites_of(self.fleet, commands, plan, self.python)
        _hold_alike(sites, plan.get("ranks", 0) if self.work is BENCH else 0)
        healthy = [one for one in sites if one.line is None and one.told]
        if self.interrupted.is_set():
            missing = fault("interrupted", "interrupted before it trained")
            for one in healthy:
                one.raws = [
                    Raw(one.host, name, rc=None, missing=missing)
                    for name in (self.work.probe, CONNECTION)
                ]
            healthy = []
        left = [one for one in sites if one not in healthy]
        found = {one.host: _left_out(one, train, self.work) for one in left}
        if healthy:
            _hold_way(healthy)
            if self.work is BENCH:
                gpus = any(one.told.get("gpus") for one in healthy)
                hold_sweep(plan.get("sweep", ()), on_gpus=gpus)
            found |= self._together(commands, train, plan, healthy, left)
        # As they were named, and not as they answered: what is saved is read in this order again.
        order = dict.fromkeys([*(one.host for one in sites), *found])
        yield from ((name, found[name]) for name in order if name in found)

    def _together(
        self, commands: Sequence[Command], train: Command, asked: dict[str, Any],
        healthy: list[Site], left: list[Site],
    ) -> dict[str, list[Raw]]:  # fmt: skip
        """As one job, and again without those that the others do not reach, as long as there are
        two."""
        apart: dict[str, list[Raw]] = {}
        while True:
            plan = joined(asked, healthy, self.work)
            found = self._gathered(commands, train, plan, healthy)
            of = _of_job(plan, healthy, left)
            whys = self._shut_off(found, of["places"])
            apart |= {
                host: left_out(found.pop(host), self.work.probe, self.work.form, why)
                for host, why in whys.items()
            }
            gone = [one for one in healthy if one.host in whys]
            healthy = [one for one in healthy if one.host not in whys]
            for one in gone:
                one.line = {"kind": "cannot", "text": whys[one.host]}
            left = [*left, *gone]
            if gone and len(healthy) > 1:
                continue
            if len(of["hosts"]) > 1 or left:
                found = self.work.told(found, of, self.interrupted.is_set())
            return found | apart

    def _shut_off(self, found: dict[str, list[Raw]], places: Mapping[str, Any]) -> dict[str, str]:
        if not self.work.goes_on or self.interrupted.is_set():
            return {}
        whys = shut_off(found, self.work.probe, places)
        return {host: why for host, why in whys.items() if host in found}

    def _gathered(
        self, commands: Sequence[Command], train: Command, plan: dict[str, Any],
        healthy: Sequence[Site],
    ) -> dict[str, list[Raw]]:  # fmt: skip
        shipped = replace(self.work.command(plan, self.python), timeout_s=train.timeout_s)
        questions = [shipped if one is train else one for one in commands]
        fewer = only(self.fleet, [one.host for one in healthy])
        return self.work.gather(fewer, questions, self.interrupted)


def only(fleet: Any, hosts: Sequence[str]) -> Any:
    """The fleet with these hosts; what chose them before has done its part."""
    args = getattr(fleet, "args", ())
    return replace(fleet, hosts=tuple(hosts), **({"args": without_nodes(args)} if args else {}))


def _of_job(plan: dict[str, Any], healthy: Sequence[Site], left: Sequence[Site]) -> dict[str, Any]:
    """What the hosts are told of their job when it is over."""
    return {
        "hosts": [one.host for one in healthy],
        "master": f"{plan['master']}:{plan['port']}" if len(healthy) > 1 else "",
        "ranks": plan.get("ranks", 0),
        "gpus": {one.host: one.told["gpus"] for one in healthy},
        "places": {
            one.host: (one.told["address"], one.told["port"] + _MEET_PORT) for one in healthy
        },
        "interface": ", ".join(dict.fromkeys(str(one.told["interface"]) for one in healthy)),
        "without": [{"host": one.host, "text": why_left(one)} for one in left],
    }


def why_left(site: Site) -> str:
    """Why a host is no part of the job."""
    if site.line is not None:
        return str(site.line["text"])
    missing = [raw.missing.text for raw in site.raws if raw.missing]
    said = [str(raw.stderr).strip() for raw in site.raws if raw.probe == SITE]
    return next((one for one in (*reversed(missing), *said) if one), "it told nothing")


def _hold_way(sites: Sequence[Site]) -> None:
    """A loopback leads from each machine to itself."""
    first = sites[0].told
    machines = {(one.told.get("boot") or one.host, one.told.get("network", "")) for one in sites}
    looped = first.get("loopbacks")
    if len(machines) > 1 and looped:
        raise UsageError(
            f"--interface {','.join(looped)} leads from each of the {len(machines)} machines to "
            "itself alone", "`ip -brief address` on the hosts: --interface eth0",
        )  # fmt: skip
    if len(machines) > 1 and str(first["address"]).startswith("127."):
        raise UsageError(
            f"the ranks would meet at {first['address']} ({first['interface']}), and each of the "
            f"{len(machines)} machines reaches only itself there",
            "`ip -brief address` on the hosts names an interface that leads to the others: "
            "--interface eth0",
        )


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
            why = {"why": told["fault"]} if told.get("fault") else {}
            if kind == "cannot" and not why and not told.get("torch"):
                why = {"why": "no-torch"}
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


def _hold_alike(sites: Sequence[Site], ranks: int) -> None:
    """Where some have GPUs, those without are no part of the job, nor those with fewer than it is
    to have ranks on each host."""
    with_gpus = [one for one in sites if one.line is None and one.told.get("gpus")]
    for one in sites:
        if with_gpus and one.line is None and one.told and not one.told["gpus"]:
            text = f"it has no GPU, and {with_gpus[0].host} has {with_gpus[0].told['gpus']}"
            one.line = {"kind": "cannot", "text": text}
        elif with_gpus and one.line is None and one.told and one.told["gpus"] < ranks:
            text = f"{ranks} ranks are asked for, and it has {one.told['gpus']} GPUs"
            one.line = {"kind": "cannot", "text": text}


def joined(plan: dict[str, Any], sites: Sequence[Site], work: Work = TRAINING) -> dict[str, Any]:
    """The plan of the job over these hosts: the same number of ranks on each, and where they
    meet."""
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
        "addresses": [one.told["address"] for one in sites],
        "ports": [one.told["port"] for one in sites],
        "interface": interfaces.pop() if len(interfaces) == 1 else "",
        **work.joined(plan, gpus, cores),
    }


def _left_out(site: Site, train: Command, work: Work) -> list[Raw]:
    """The answers of a host that is no part of it."""
    if site.raws and site.raws[0].probe == work.probe:
        return site.raws
    if site.line is not None:
        line = json.dumps({"preflight": work.form, **site.line}, separators=(",", ":"))
        return [Raw(site.host, work.probe, train.argv, 0, stdout=f"{line}\n")]
    answer = next((raw for raw in site.raws if raw.probe == SITE), None)
    closing = [raw for raw in site.raws if raw.probe == CONNECTION]
    if answer is None:
        return closing
    missing = answer.missing or (None if answer.rc else Missing("unreadable", "it told nothing"))
    return [replace(answer, probe=work.probe, missing=missing), *closing]
