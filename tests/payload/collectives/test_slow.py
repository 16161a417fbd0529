"""Where chance is too large to tell who is slow, a search takes more repeats, and then says why."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result, Status
from preflight.payload.collectives import slow as part
from preflight.payload.collectives.bench import Bench, Here
from preflight.payload.collectives.plan import Plan
from preflight.payload.collectives.slow import slow

Line = dict[str, Any]
HOSTS = ["h1", "h2", "h3", "h4", "h5"]


class Noisy(Here):
    """Sound hosts whose tests differ by chance; with `slow` one of them takes twice as long."""

    def __init__(self, noise: float, *, slow: int | None = None) -> None:
        super().__init__(Plan(hosts=HOSTS, ranks=1, device="cpu"))
        self.agents, self.noise, self.slow = list(range(len(HOSTS))), noise, slow
        self.random, self.repeats = random.Random(1), list[int]()

    def run(self, orders: Sequence[Line], _limit_s: float) -> Iterator[tuple[int, int, Line]]:
        for one in orders:
            number, hosts = one["test"], one["hosts"]
            if one["do"] == "load":
                yield number, hosts[0], {"kind": "load", "load": 31.5, "cpus": 2}
                continue
            usual_s = 0.2 if self.slow in hosts else 0.1
            told = [usual_s * self.random.gauss(1, self.noise) for _ in range(one["repeats"])]
            self.repeats.append(one["repeats"])
            yield number, hosts[0], {"kind": "measured", "seconds": told}


def searched(hosts: Noisy) -> list[Line]:
    lines: list[Line] = [{"kind": "begin", "plan": {"hosts": HOSTS, "ranks": 1}, "torch": "2.9",
                          "world": 5, "host": "h1"}]  # fmt: skip
    slow(Bench(hosts.plan, lines.append, hosts))
    return lines


def judged(lines: Sequence[Line]) -> Result:
    text = "".join(f"{json.dumps(one)}\n" for one in [*lines, {"kind": "end"}])
    checks = [one for one in load(("collectives",)).checks if one.id == "collectives.host"]
    (found,) = examine("h1", [Raw("h1", "nccl-bench", stdout=text)], checks).results
    return found


def test_sound_hosts_that_differ_by_chance_are_measured_until_it_is_decided() -> None:
    hosts = Noisy(0.15)
    lines = searched(hosts)
    assert min(hosts.repeats) == 7 and max(hosts.repeats) > 20
    assert judged(lines).status is Status.PASS
    tests = [one["test"] for one in lines if one["kind"] == "test"]
    assert tests == list(range(1, len(tests) + 1))  # none stands for another
    rounds = [one["round"] for one in lines if one["kind"] == "round"]
    assert rounds == list(range(1, lines[-1]["rounds"] + 1))


def test_a_slow_one_among_them_is_named_by_the_tests_of_the_last_search() -> None:
    lines = searched(Noisy(0.15, slow=3))
    found = lines[-1]
    assert found["nodes"] == ["h4"]
    tests = {one["test"]: one for one in lines if one["kind"] == "test"}
    (runs,) = found["runs"]
    assert all("h4" in tests[number]["among"] for number in runs["tests"])
    assert all(len(tests[number]["busbw_gbps"]) == found["repeats"] for number in runs["tests"])


def test_steady_hosts_are_measured_once() -> None:
    hosts = Noisy(0.01)
    assert judged(searched(hosts)).status is Status.PASS
    assert set(hosts.repeats) == {7}


def test_what_stays_open_tells_the_load_and_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "GROW_S", 0.0)
    hosts = Noisy(0.5)
    result = judged(searched(hosts))
    assert set(hosts.repeats) == {7}
    assert result.status is Status.ERROR
    assert "; 7 repeats were tried; load 31.5 on 2 processors of h[1-4]" in result.reason
    assert "--repeats" not in result.reason
    assert any(one.startswith("ps -eo") for one in result.fix)
