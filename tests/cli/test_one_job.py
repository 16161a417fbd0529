"""Several hosts as one job: who trains, where the ranks meet, what is told of the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from msgspec import Struct, field

from preflight.cli import one_job
from preflight.cli.one_job import BENCH, OneJob
from preflight.errors import UsageError
from preflight.faults import CONNECTION, fault
from preflight.model import Command, Missing, Raw
from preflight.ship import SITE, TRAINS, bench_command, train_command
from tests.cli.command import preflight

SOUND = {
    "preflight": "micro-train-site/1", "cannot": "", "busy": "", "torch": "2.9.0", "gpus": 8,
    "cores": 64, "address": "10.0.0.1", "interface": "ib0", "port": 40000,
}  # fmt: skip


class Hosts(Struct):
    """A fleet that answers the first question as told; notes what it is asked."""

    hosts: tuple[str, ...]
    sites: Mapping[str, list[Raw]]
    asked: list[tuple[tuple[str, ...], list[Command]]] = field(default_factory=list)
    interrupted: threading.Event = field(default_factory=threading.Event)
    #: The answers of a host to the second question.
    then: Mapping[str, list[Raw]] = {}

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        self.asked.append((self.hosts, list(commands)))
        for name in reversed(self.hosts):  # they answer in an order of their own
            first = any(one.probe == SITE for one in commands)
            yield name, self.sites[name] if first else self._trained(name, commands)

    def _trained(self, name: str, commands: Sequence[Command]) -> list[Raw]:
        return list(self.then.get(name, [Raw(name, one.probe, rc=0) for one in commands]))


def site(name: str, **more: Any) -> list[Raw]:
    return [Raw(name, SITE, stdout=json.dumps({**SOUND, **more}))]


def trained(sites: Mapping[str, list[Raw]], **plan: Any) -> tuple[dict[str, list[Raw]], Hosts]:
    """The answers, and the fleet that was asked."""
    fleet = Hosts(tuple(sites), sites)
    job = OneJob(fleet, threading.Event())
    commands = [Command("identity", ("true",)), train_command(plan)]
    return dict(job.run(commands)), fleet


def plan_of(fleet: Hosts) -> dict[str, Any]:
    """The plan that the hosts got which train."""
    _, commands = fleet.asked[-1]
    found: dict[str, Any] = json.loads(commands[-1].argv[-1])
    return found


def told(raws: Sequence[Raw]) -> dict[str, Any]:
    (raw,) = raws
    assert raw.probe == TRAINS and isinstance(raw.stdout, str)
    found: dict[str, Any] = json.loads(raw.stdout)
    return found


def test_all_hosts_get_one_plan_in_the_order_of_their_names() -> None:
    sites = {"a": site("a", address="10.0.0.7", port=41000), "b": site("b"), "c": site("c")}
    answers, fleet = trained(sites, preset="gpu-1b")
    plan = plan_of(fleet)
    assert plan["hosts"] == ["a", "b", "c"]
    assert (plan["master"], plan["port"], plan["interface"]) == ("10.0.0.7", 41000, "ib0")
    assert (plan["ranks"], plan["preset"]) == (8, "gpu-1b")
    # Each machine finds ports of its own.
    assert plan["addresses"] == ["10.0.0.7", "10.0.0.1", "10.0.0.1"]
    assert plan["ports"] == [41000, 40000, 40000]
    assert list(answers) == ["a", "b", "c"]
    (_, first), (_, second) = fleet.asked
    assert [one.probe for one in first] == ["identity", SITE]
    assert [one.probe for one in second] == ["identity", TRAINS]
    assert json.loads(first[1].argv[-1])["job"] == plan["job"]


def test_answers_are_in_the_order_of_their_names_with_who_does_not_train() -> None:
    sites = {"a": site("a"), "b": site("b", cannot="no torch"), "c": site("c")}
    assert list(trained(sites)[0]) == ["a", "b", "c"]


def test_a_host_that_cannot_is_told_and_the_others_train() -> None:
    sites = {
        "a": site("a", cannot="python3 has no torch; --python /x", torch=""),
        "b": site("b", busy="GPU 3 holds process 4711 (alice), 71.0 GB"),
        "c": site("c", address="10.0.0.3"),
        "d": site("d"),
    }
    answers, fleet = trained(sites)
    assert plan_of(fleet)["hosts"] == ["c", "d"]
    assert plan_of(fleet)["master"] == "10.0.0.3"
    assert told(answers["a"]) == {
        "preflight": "micro-train/1", "kind": "cannot", "why": "no-torch",
        "text": "python3 has no torch; --python /x",
    }  # fmt: skip
    assert told(answers["b"])["kind"] == "busy"
    assert fleet.asked[-1][0] == ("c", "d")


def test_hosts_that_did_not_answer_are_there_with_why() -> None:
    gone = fault("refused", "connection refused")
    late = Missing("timeout", "the limit was reached")
    sites = {
        "a": [Raw("a", SITE, rc=None, missing=gone), Raw("a", CONNECTION, rc=None, missing=gone)],
        "b": [Raw("b", SITE, rc=None, missing=late)],
        "c": [Raw("c", SITE, rc=0, stdout="")],
        "d": [Raw("d", SITE, rc=4, stderr="Python 3.9 or later is needed")],
        "e": site("e"),
    }
    answers, fleet = trained(sites)
    assert [raw.probe for raw in answers["a"]] == [TRAINS, CONNECTION]
    assert answers["b"][0].missing == late
    assert answers["c"][0].missing == Missing("unreadable", "it told nothing")
    assert (answers["d"][0].rc, answers["d"][0].missing) == (4, None)
    assert "hosts" not in plan_of(fleet)  # one is left: it trains by itself


def test_where_no_host_can_nothing_is_begun() -> None:
    answers, fleet = trained({"a": site("a", cannot="no"), "b": site("b", busy="yes")})
    assert (len(fleet.asked), set(answers)) == (1, {"a", "b"})


def test_a_host_without_gpus_is_no_part_of_a_job_on_gpus() -> None:
    answers, fleet = trained({"a": site("a", gpus=0), "b": site("b"), "c": site("c", gpus=4)})
    assert told(answers["a"])["text"] == "it has no GPU, and b has 8"
    assert (plan_of(fleet)["hosts"], plan_of(fleet)["ranks"]) == (["b", "c"], 4)


def test_a_host_with_fewer_gpus_than_ranks_is_left_out_of_a_bench() -> None:
    sites = {"a": site("a"), "b": site("b", gpus=7), "c": site("c")}
    fleet = Hosts(tuple(sites), sites)
    job = OneJob(fleet, threading.Event(), work=BENCH)
    answers = dict(job.run([Command("identity", ("true",)), bench_command({"ranks": 8})]))
    (left,) = answers["b"]
    assert json.loads(str(left.stdout))["text"] == "8 ranks are asked for, and it has 7 GPUs"
    assert plan_of(fleet)["hosts"] == ["a", "c"]


def test_hosts_without_gpus_train_on_their_cores() -> None:
    sites = {name: site(name, gpus=0, cores=1, interface=f"eth{name}") for name in "ab"}
    _, fleet = trained(sites)
    assert (plan_of(fleet)["ranks"], plan_of(fleet)["interface"]) == (1, "")


def identity(host: str) -> Raw:
    return Raw(host, "identity", stdout="hostname h\nkernel 6\nboot_id 1-2\nuid 0\n")


def test_one_machine_under_two_names_is_one_host_under_the_first() -> None:
    sites = {name: [identity(name), *site(name)] for name in ("b", "a")}
    answers, fleet = trained({**sites, "c": site("c")})
    assert plan_of(fleet)["hosts"] == ["b", "c"]
    (twice,) = answers["a"]
    assert twice.missing and twice.missing.fault == "same-host"
    assert '"without":[{"host":"a","text":"it is b under' in str(answers["b"][-1].stdout)


def test_a_loopback_leads_to_no_other_container() -> None:
    here = {"address": "127.0.0.1", "interface": "lo", "boot": "x"}
    sites = {"a": site("a", **here, network="net:[1]"), "b": site("b", **here, network="net:[2]")}
    with pytest.raises(UsageError, match="reaches only itself"):
        trained(sites)


def test_a_loopback_leads_to_no_other_machine() -> None:
    here = {"address": "127.0.0.1", "interface": "lo"}
    with pytest.raises(UsageError, match="reaches only itself"):
        trained({"a": site("a", **here, boot="1"), "b": site("b", **here, boot="2")})
    _, fleet = trained({"a": site("a", **here, boot="1"), "b": site("b", **here, boot="1")})
    assert plan_of(fleet)["master"] == "127.0.0.1"
    beside = {"interface": "eth0,lo", "loopbacks": ["lo"]}
    with pytest.raises(UsageError, match="--interface lo leads from each of the 2 machines"):
        trained({"a": site("a", **beside, boot="1"), "b": site("b", **beside, boot="2")})


def test_it_is_killed_and_resumed_only_where_a_folder_is_shared() -> None:
    sites = {name: site(name) for name in "ab"}
    assert plan_of(trained(sites)[1])["resume"] is False
    assert plan_of(trained(sites, folder="/scratch")[1])["resume"] is True
    assert plan_of(trained(sites, folder="/scratch", resume=False)[1])["resume"] is False


def test_once_interrupted_nothing_is_begun() -> None:
    fleet = Hosts(("a", "b"), {name: site(name) for name in "ab"})
    job = OneJob(fleet, threading.Event())
    job.interrupted.set()
    answers = dict(job.run([train_command({})]))
    assert len(fleet.asked) == 1
    assert {raws[0].missing.kind for raws in answers.values() if raws[0].missing} == {"timeout"}
    assert set(answers) == {"a", "b"}


def test_what_would_be_asked_first_is_told_too() -> None:
    ran = preflight("micro-train", "--hosts", "a,b", "--dry-run")
    first, _, then = ran.out.partition("then those that can, as one job")
    assert (ran.rc, SITE in first, SITE in then) == (0, True, False)
    assert "on 2 hosts over SSH (a,b), on each one after another" in then
    assert then.endswith("would write nothing that stays\n")


def test_slurm_chooses_nodes_once() -> None:
    class Nodes(Hosts):
        args: tuple[str, ...] = ()

    fleet = Nodes((), {name: site(name) for name in ("n1", "n2")}, args=("-p", "gpu", "-N", "2"))
    fleet.hosts = ("n1", "n2")
    again = one_job.only(fleet, ["n1"])
    assert (again.hosts, again.args) == (("n1",), ("-p", "gpu"))
