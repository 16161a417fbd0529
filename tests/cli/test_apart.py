"""Hosts that cannot be reached are left out of a bench, told as failed, and the others go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from preflight.cli.one_job import BENCH, OneJob
from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Command, Raw, Result, Status
from preflight.ship import BENCHES, SITE, bench_command

CHECKS = load(("collectives",)).checks
NAMES = ("a", "b", "c", "d")
ADDRESS = {name: f"10.0.0.{at}" for at, name in enumerate(NAMES, 1)}


class Fleet(Struct):
    """Hosts of which those in `closed` are reached by nobody, and those in `stopped` say nothing;
    `sites`: what else a host tells at first."""

    hosts: tuple[str, ...] = NAMES
    closed: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    sites: dict[str, dict[str, Any]] = {}
    asked: list[tuple[str, ...]] = field(default_factory=list)
    interrupted: threading.Event = field(default_factory=threading.Event)

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        site = any(one.probe == SITE for one in commands)
        if not site:
            self.asked.append(self.hosts)
        for name in self.hosts:
            yield name, [self._site(name) if site else self._benched(name)]

    def _site(self, name: str) -> Raw:
        told = {
            "cannot": "", "busy": "", "torch": "2.9.0", "gpus": 0, "cores": 8, "port": 40000,
            "address": ADDRESS[name], "interface": "eth0", **self.sites.get(name, {}),
        }  # fmt: skip
        return Raw(name, SITE, stdout=json.dumps(told))

    def _benched(self, name: str) -> Raw:
        if name in self.stopped:
            return Raw(name, BENCHES, elapsed_s=44.6)
        apart = {*self.closed, *self.stopped}
        ways = [
            {"host": one, "why": "nothing answers within 6 s" if one in apart else ""}
            for one in self.hosts if one != name
        ]  # fmt: skip
        met: dict[str, Any] = {"kind": "met"}
        if apart.intersection(self.hosts):
            met = {"kind": "unmet", "own": False, "text": "not all hosts reach each other"}
        lines: list[dict[str, Any]] = [
            {"kind": "ways", "address": ADDRESS[name], "port": 40003, "ways": ways}, met,
        ]  # fmt: skip
        text = "".join(f"{json.dumps({'preflight': 'nccl-bench/1', **one})}\n" for one in lines)
        return Raw(name, BENCHES, stdout=text)


def answers(fleet: Fleet) -> dict[str, list[Raw]]:
    return dict(OneJob(fleet, threading.Event(), work=BENCH).run([bench_command({})]))


def ended(raws: Sequence[Raw]) -> Result:
    (one,) = (
        one
        for one in examine(raws[0].host, raws, CHECKS).results
        if one.check == "collectives.ended"
    )
    return one


def test_a_host_that_others_do_not_reach_fails_and_they_go_on() -> None:
    fleet = Fleet(closed=("c",))
    found = answers(fleet)
    assert fleet.asked == [NAMES, ("a", "b", "d")]
    assert list(found) == list(NAMES)
    failed = ended(found["c"])
    assert failed.status is Status.FAIL
    assert failed.reason.startswith("c (10.0.0.3) accepts nothing from a, b, d: nothing answers")
    assert any("nft list ruleset" in one for one in failed.fix)
    others = examine("c", found["c"], CHECKS).results
    assert {one.status for one in others if one is not failed} <= {Status.SKIP, Status.FAIL}
    job = json.loads(str(found["a"][0].stdout).splitlines()[-1])
    assert (job["hosts"], [one["host"] for one in job["without"]]) == (["a", "b", "d"], ["c"])


def test_the_first_of_them_may_be_the_one() -> None:
    fleet = Fleet(closed=("a",))
    found = answers(fleet)
    assert fleet.asked == [NAMES, ("b", "c", "d")]
    assert ended(found["a"]).status is Status.FAIL


def test_of_two_neither_goes_on_alone() -> None:
    fleet = Fleet(hosts=NAMES[:2], closed=("b",))
    found = answers(fleet)
    assert fleet.asked == [("a", "b")]
    assert ended(found["b"]).status is Status.FAIL
    assert ended(found["a"]).status is Status.ERROR
    assert "does not reach b" in ended(found["a"]).reason


def test_one_that_is_stopped_is_told_as_that() -> None:
    found = answers(Fleet(stopped=("b",)))
    failed = ended(found["b"])
    assert failed.status is Status.FAIL
    assert failed.reason == "it gave no sign for 45 s while the others were there and called it"
    assert any("ps -eo pid,stat" in one for one in failed.fix)
    assert not any("nft" in one for one in failed.fix)


def test_an_interface_that_does_not_work_is_a_fault_of_its_host() -> None:
    down = {"cannot": "eth1 is down; there are: eth0 (10.0.0.2): --interface NAME",
            "fault": "interface"}  # fmt: skip
    fleet = Fleet(sites={"b": down})
    found = answers(fleet)
    assert fleet.asked == [("a", "c", "d")]
    failed = ended(found["b"])
    assert (failed.status, failed.reason) == (Status.FAIL, down["cannot"])
    assert any("ip link set" in one for one in failed.fix)


def test_what_is_no_fault_of_the_host_fails_nobody() -> None:
    found = answers(Fleet(sites={"b": {"busy": "GPU 3 holds process 4711 (alice)"}}))
    assert ended(found["b"]).status is Status.SKIP
