"""What hosts of one job told, set side by side: who took the others with it, who is slow."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from preflight.cli import together
from preflight.cli.together import benched, gathered, told_of_others
from preflight.collect import examine
from preflight.faults import CONNECTION, fault
from preflight.judge.load import load
from preflight.model import Action, Command, Raw, Result, Status
from preflight.redact.redactor import Redactor
from preflight.ship import BENCHES, TRAINS
from tests.training_lines import lines

CHECKS = load(("training",)).checks
OF: dict[str, Any] = {
    "hosts": ["a", "b", "c"], "master": "10.0.0.1:40000", "ranks": 1, "interface": "ib0",
    "without": [{"host": "d", "text": "GPU 3 holds process 4711 (alice)"}],
}  # fmt: skip
Lines = list[dict[str, Any]]

_CLOSED = {"launch": "whole", "kind": "failed", "error": "RuntimeError",
           "text": "gloo: Connection closed by peer"}  # fmt: skip
_ABORTED = {"launch": "whole", "kind": "died", "status": -6, "step": 3, "first": True}
_KILLED = {"launch": "whole", "kind": "died", "status": -9, "step": 3, "first": True}
#: What a host ends with that was ended because of another.
_CUT = {"kind": "interrupted", "by": "job"}
_SILENT = {"launch": "whole", "kind": "silent", "after_s": 20.0, "stopped": []}


def part(rank: int, *then: dict[str, Any], steps: int | None = None, slow: float = 1.0) -> Raw:
    """The lines of the host whose only rank this is: some steps and then these, or all of it."""
    told: Lines = []
    for one in lines():
        if one.get("launch", "whole") != "whole" or one.get("rank", 0) != 0:
            continue
        if one["kind"] == "begin":
            plan = {**one["plan"], "ranks": 1, "hosts": OF["hosts"], "resume": False}
            told.append({**one, "plan": plan})
        elif one["kind"] != "step":
            told += [one] if steps is None else []
        elif steps is None or one["step"] < steps:
            parts = {name: slow * spent for name, spent in one["seconds"].items()}
            told.append({**one, "seconds": parts})
    told = [one if one["kind"] in ("begin", "end") else {**one, "rank": rank} for one in told]
    told += [{"rank": rank, **one} for one in then]
    told += [{"kind": "end", "elapsed_s": 1.0}] if then and told[-1]["kind"] != "end" else []
    return raw(rank, told)


def raw(rank: int, told: Lines, **more: Any) -> Raw:
    text = "".join(f"{json.dumps(one)}\n" for one in told)
    return replace(Raw(OF["hosts"][rank], TRAINS, ("python3",), rc=0, stdout=text), **more)


def gone(rank: int, name: str = "died") -> list[Raw]:
    """A host whose connection ended in the middle of its answer."""
    missing = fault(name, "the connection broke off")
    cut = str(part(rank, steps=4).stdout) + '{"kind":"ste'
    host = OF["hosts"][rank]
    who = Raw(host, "identity", ("sh",), rc=0, stdout=f"hostname {host}\nuid 0\n")
    return [who, Raw(host, TRAINS, ("python3",), rc=None, stdout=cut, missing=missing),
            Raw(host, CONNECTION, rc=None, missing=missing)]  # fmt: skip


def judged(*hosts: list[Raw], of: Mapping[str, Any] = OF) -> dict[str, dict[str, Result]]:
    """Of each host its results by check."""
    found = {raws[0].host: raws for raws in hosts}
    told = told_of_others(found, of, interrupted=False)
    return {
        host: {one.check: one for one in examine(host, raws, CHECKS).results}
        for host, raws in told.items()
    }


def test_a_sound_job_passes_and_all_of_its_ranks_are_compared() -> None:
    for found in judged([part(0)], [part(1)], [part(2)]).values():
        assert {one.status for one in found.values()} <= {Status.PASS, Status.SKIP}
        assert found["training.straggler"].status is Status.PASS


def test_the_slow_one_of_three_hosts_is_named() -> None:
    found = judged([part(0)], [part(1, slow=4.0)], [part(2)])
    slow = {host: one["training.straggler"].status for host, one in found.items()}
    assert slow == {"a": Status.PASS, "b": Status.WARN, "c": Status.PASS}
    assert found["b"]["training.straggler"].subject == "rank 1"
    told = found["b"]["training.straggler"]
    assert told.action is Action.WATCH
    assert "nr_throttled" in told.fix[0] and not any("gpu-health" in one for one in told.fix)


@pytest.mark.parametrize(
    ("hosts", "failed", "named"),
    [
        # A killed rank; the others say that their peer is gone, or NCCL aborts them.
        ([part(0, _CLOSED, steps=4), part(1, _KILLED, steps=4), part(2, _ABORTED, steps=4)], "b",
         "b, rank 1, which is why: ended by signal 9 after step 3"),
        # All that abort are alike; an error of its own is the cause of an abort elsewhere.
        ([part(0, _ABORTED, steps=4), part(1, _CLOSED, steps=4),
          part(2, {**_CLOSED, "error": "OutOfMemoryError", "text": "no memory"}, steps=4)], "c",
         "c, rank 2, which is why: OutOfMemoryError: no memory"),
        # A rank that hangs is behind the others, and no host knows it by itself.
        ([part(0, {**_SILENT, "suspects": [0], "steps": {"0": 4}}, steps=5),
          part(1, {**_SILENT, "suspects": [1], "steps": {"1": 3}}, steps=4),
          part(2, {**_SILENT, "suspects": [2], "steps": {"2": 4}}, steps=5)], "b",
         "b, rank 1, which is why: said nothing for 20 s after step 3, behind the others"),
    ],
)  # fmt: skip
def test_who_went_first_is_named_on_all_hosts(hosts: list[Raw], failed: str, named: str) -> None:
    found = judged(*([one] for one in hosts))
    of_ranks = {host: one["training.ranks"] for host, one in found.items()}
    assert of_ranks.pop(failed).status is Status.FAIL
    for one in of_ranks.values():
        assert (one.status, one.reason) == (Status.ERROR, f"it waited for {named}")


def test_a_host_that_was_lost_is_the_cause_and_no_rank_fails() -> None:
    found = judged([part(0, _ABORTED, steps=4)], gone(1), [part(2, _CLOSED, steps=4)])
    of_ranks = {host: one["training.ranks"] for host, one in found.items()}
    assert {one.status for one in of_ranks.values()} == {Status.ERROR}
    assert of_ranks["a"].reason == "it waited for b, which is why: the connection broke off"
    assert of_ranks["b"].reason == "the connection broke off"


@pytest.mark.parametrize(
    ("then", "more", "text"),
    [
        ({"kind": "interrupted"}, {"rc": 130}, "its run was ended from outside"),
        ({"kind": "met"}, {"rc": 124, "elapsed_s": 600.0}, "its run did not end within 600 s"),
        (
            {"kind": "met"},
            {"rc": 137, "elapsed_s": 9.0, "limit_s": 600},
            "its run was killed by signal 9 after 9 s (memory?)",
        ),
        (
            {"kind": "met"},
            {"rc": 1, "stderr": "a\nKeyError: b\n"},
            "its run ended with 1: KeyError: b",
        ),
    ],
)
def test_a_run_that_ended_without_its_end_is_the_cause(
    then: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    found = judged([part(0, _CLOSED, steps=4)], [raw(1, [then], **more)])
    assert found["a"]["training.ranks"].reason == f"it waited for b, which is why: {text}"


def test_where_it_is_lost_before_the_first_step_that_is_told_once() -> None:
    found = judged([part(0, _CUT, steps=0)], gone(1))["a"]
    errors = {check for check, one in found.items() if one.status is Status.ERROR}
    assert errors == {"training.ranks"}
    assert found["training.straggler"].reason == "b was lost before it"


def test_a_host_that_could_not_begin_is_the_cause() -> None:
    busy = raw(1, [{"preflight": "micro-train/1", "kind": "busy", "text": "GPU 3 holds 4711"}])
    found = judged([part(0, _CUT, steps=0)], [busy])
    assert "it waited for b, which is why: GPU 3 holds 4711" in found["a"]["training.ranks"].reason


def test_hosts_that_do_not_reach_each_other_are_no_ranks_fault() -> None:
    text = "b does not reach 10.0.0.1, where the ranks meet (a): nothing answers within 6 s"
    unmet = {"preflight": "micro-train/1", "kind": "unmet", "own": True, "text": text}
    found = judged([raw(0, [_CUT], rc=130)], [raw(1, [unmet])])
    assert found["b"]["training.meet"].status is Status.FAIL
    assert found["b"]["training.meet"].runbook == "rendezvous"
    assert {one.status for check, one in found["b"].items() if check != "training.meet"} == {
        Status.SKIP
    }
    assert found["a"]["training.ranks"].reason == f"the hosts did not come together: {text}"


def test_what_was_left_out_and_where_they_met_is_told_once() -> None:
    from preflight.collect import examine_one_of_many

    told = told_of_others({"a": [part(0)], "b": [part(1)]}, OF, interrupted=False)
    tables = [examine_one_of_many(host, raws, CHECKS).measured for host, raws in told.items()]
    jobs = [table["rows"] for each in tables for table in each if table["table"] == "one job"]
    assert jobs == [[
        {"measure": "trained as one job",
         "value": "3 hosts x 1 rank over ib0, rendezvous a (10.0.0.1:40000)"},
        {"measure": "trained without", "value": "d: GPU 3 holds process 4711 (alice)"},
    ]]  # fmt: skip


class Endless(Struct):
    """A fleet of which one host answers, and the others only once they are interrupted."""

    hosts: tuple[str, ...]
    answers: Mapping[str, list[Raw]]
    interrupted: threading.Event = field(default_factory=threading.Event)

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        for host, raws in self.answers.items():
            yield host, raws
        while not self.interrupted.is_set():
            time.sleep(0.01)
        for host in self.hosts:
            if host not in self.answers:
                yield host, gone(OF["hosts"].index(host), "interrupted")


def test_once_one_is_lost_the_others_are_ended_and_tell_how_far_they_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(together, "LAST_WORDS_S", 0.05)
    user = threading.Event()
    found = gathered(Endless(("a", "b", "c"), {"b": gone(1)}), [], user)
    assert not user.is_set()
    assert [one.probe for one in found["a"]] == ["identity", TRAINS]
    of_ranks = {host: one["training.ranks"] for host, one in judged(*found.values()).items()}
    assert of_ranks["c"].reason == "it waited for b, which is why: the connection broke off"


def test_what_the_user_interrupts_is_nobodys_fault() -> None:
    user = threading.Event()
    user.set()
    found = gathered(Endless(("a", "b"), {}), [], user)
    told = told_of_others(found, OF, interrupted=True)
    assert [one.probe for one in told["a"]] == ["identity", TRAINS, CONNECTION]
    report = examine("a", told["a"], CHECKS)
    assert not any("which is why" in one.reason for one in report.results)


@pytest.mark.parametrize("odd", [
    {"kind": "died", "launch": "whole"}, {"kind": "unmet"}, {"kind": "silent", "launch": "whole"},
    {"kind": "step", "launch": "whole", "rank": "x"}, {"kind": 7}, {"kind": "begin", "plan": 1},
])  # fmt: skip
def test_what_one_host_tells_wrong_costs_the_others_nothing(odd: dict[str, Any]) -> None:
    found = judged([part(0)], [raw(1, [odd])])
    assert found["a"]["training.finite"].status is Status.PASS


def test_names_of_its_hosts_are_redacted() -> None:
    of = {**OF, "hosts": ["zeus", "hera"], "without": [{"host": "ares", "text": "no torch"}]}
    told = told_of_others({"zeus": [part(0)], "hera": [part(1)]}, of, interrupted=False)
    clean = Redactor().full(str(told["hera"][0].stdout))
    assert not any(name in clean for name in ("zeus", "hera", "ares", "10.0.0.1"))


_PLACES = {host: (f"10.0.0.{at}", 40003) for at, host in enumerate(OF["hosts"], 1)}
_CUT_OFF = "nothing answers within 6 s"


def ways(at: int, closed: str = "", **more: Any) -> dict[str, Any]:
    """What the host says of its ways to the others."""
    address, port = _PLACES[OF["hosts"][at]]
    told = [
        {"host": one, "why": _CUT_OFF if one in closed else ""}
        for one in OF["hosts"]
        if one != OF["hosts"][at]
    ]
    return {"kind": "ways", "address": address, "port": port, "ways": told, **more}


_UNMET = {"kind": "unmet", "own": False, "text": "not all hosts reach each other"}


def test_a_host_that_none_of_the_others_reaches_fails_and_they_do_not() -> None:
    raws = [raw(0, [ways(0, "c"), _UNMET]), raw(1, [ways(1, "c"), _UNMET]),
            raw(2, [ways(2), _UNMET])]  # fmt: skip
    found = judged(*([one] for one in raws), of={**OF, "places": _PLACES})
    of_meet = {host: one["training.meet"] for host, one in found.items()}
    assert [one.status for one in of_meet.values()] == [Status.SKIP, Status.SKIP, Status.FAIL]
    text = f"c (10.0.0.3) accepts nothing from a, b: {_CUT_OFF}"
    # Its row has its name already.
    assert f"10.0.0.3 accepts nothing from a, b: {_CUT_OFF}; on c: `python3 -m" in str(of_meet["c"])
    assert of_meet["a"].reason == text
    assert found["a"]["training.ranks"].reason == f"the hosts did not come together: {text}"


def test_a_way_that_is_cut_while_they_train_is_one_cause_on_both_of_its_hosts() -> None:
    silent = [{**_SILENT, "steps": {str(at): 3}, "suspects": [at]} for at in range(3)]
    left = [ways(at, closed, launch="whole") for at, closed in enumerate(("", "c", "b"))]
    found = judged(
        *([part(at, silent[at], left[at], steps=4)] for at in range(3)),
        of={**OF, "places": _PLACES},
    )
    of_ranks = {host: one["training.ranks"] for host, one in found.items()}
    assert [one.status for one in of_ranks.values()] == [Status.ERROR, Status.FAIL, Status.FAIL]
    assert "b (10.0.0.2) and c (10.0.0.3) do not reach each other" in str(of_ranks["b"])
    assert of_ranks["a"].reason.startswith("it waited for b, which is why: b (10.0.0.2) and c")


def test_where_all_say_nothing_and_all_ways_are_open_none_is_named_as_behind() -> None:
    silent = [{**_SILENT, "steps": {str(at): 3}, "suspects": [at]} for at in range(2)]
    found = judged(*([part(at, silent[at], ways(at, launch="whole"), steps=4)] for at in range(2)))
    for one in found.values():
        assert one["training.ranks"].status is Status.FAIL
        assert "none is behind, none is stopped" in str(one["training.ranks"])


def test_a_rank_that_never_came_to_the_rendezvous_is_named() -> None:
    joined = {"launch": "whole", "kind": "joined"}
    waited = {"launch": "whole", "kind": "failed", "error": "JoinError",
              "text": "rank 0 of 3: Timed out after 61 seconds waiting for clients. 2/3 clients "
                      "joined."}  # fmt: skip
    lost = {**waited, "text": "rank 2 of 3: gloo cannot start: wait timeout after 60000ms"}
    found = judged(
        [part(0, waited, steps=0)], [part(1, _CUT, steps=0)], [part(2, joined, lost, steps=0)]
    )
    of_ranks = {host: one["training.ranks"] for host, one in found.items()}
    assert [one.status for one in of_ranks.values()] == [Status.ERROR, Status.FAIL, Status.ERROR]
    assert "it waited for b, rank 1, which is why: never came" in of_ranks["c"].reason


def test_a_host_that_is_stopped_is_given_up_once_the_bench_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(together, "LEFT_S", 0.05)
    told = Raw("a", BENCHES, rc=0, stdout='{"preflight":"nccl-bench/1","kind":"begin"}\n')
    stopped = [
        Raw("b", BENCHES, rc=None, missing=fault("interrupted", "interrupted")),
        Raw("b", CONNECTION, rc=None, missing=fault("interrupted", "interrupted")),
    ]
    fleet = Endless(("a", "b"), {"a": [told]})
    monkeypatch.setattr("tests.cli.test_together.gone", lambda *_: stopped)
    found = benched(fleet, [], threading.Event())
    assert found["a"] == [told]
    (given_up,) = found["b"]
    assert given_up.missing is None
    assert "it did not end" in str(given_up.stdout)
