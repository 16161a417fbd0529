"""Many hosts are judged on all cores, in order, few at a time, whatever becomes of one of them."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bench.inputs import gpus_like
from preflight import examiner
from preflight.collect import Examined, examine_one_of_many
from preflight.examiner import FIRST_HOSTS, Examiner, examine_all
from preflight.judge.fleet import judge_fleet
from preflight.judge.load import load
from preflight.model import Check, Raw, Status
from tests.conftest import sample
from tests.training_lines import text as trained

CHECKS = load(("kernel", "fleet")).checks
DEADLY = "deadly"


def answers(name: str, kernel: str = "5.15.0") -> list[Raw]:
    told = f"hostname {name}\nkernel {kernel}\nuid 0\n"
    return [
        Raw(name, "identity", ("sh",), 0, told),
        Raw(name, "dmesg", ("dmesg",), 0, f"[    0.000000] Linux version {kernel}\n"),
    ]


def hosts(count: int) -> Iterator[tuple[str, list[Raw]]]:
    for number in range(count):
        yield f"n{number:03}", answers(f"n{number:03}")


@pytest.mark.parametrize("count", [0, 1, FIRST_HOSTS, FIRST_HOSTS + 1, 60])
def test_every_host_is_reported_in_the_order_given(count: int) -> None:
    found = list(examine_all(hosts(count), CHECKS))
    assert [one.report.host for one in found] == [f"n{number:03}" for number in range(count)]


def test_it_is_the_same_in_a_process_of_its_own() -> None:
    told = [*answers("a"), Raw("a", "micro-train", ("python3",), 0, trained())]
    here = examine_one_of_many("a", told, CHECKS, facts=True)
    with Examiner(CHECKS, facts=True, workers=1) as examined:
        examined.put("a", told)
        ((number, there),) = examined.rest()
    assert number == 0
    assert here.measured
    assert msgspec.json.encode(there) == msgspec.json.encode(here)


def test_facts_are_kept_of_one_host_alone() -> None:
    def kept(count: int, **how: Any) -> list[bool]:
        found = examine_all(hosts(count), CHECKS, **how)
        return [one.report.facts is not None for one in found]

    assert kept(1) == [False]
    assert kept(1, one_hosts_facts=True) == [True]
    assert kept(2, one_hosts_facts=True) == [False, False]
    assert kept(FIRST_HOSTS + 2, all_facts=True) == [True] * (FIRST_HOSTS + 2)


def test_few_hosts_are_in_memory_at_a_time() -> None:
    taken = 0

    def counted() -> Iterator[tuple[str, list[Raw]]]:
        nonlocal taken
        for host in hosts(60):
            taken += 1
            yield host

    for out, _ in enumerate(examine_all(counted(), CHECKS), 1):
        assert taken <= out + 20  # as many as there are processes, and a few that came early


def test_equal_results_of_many_hosts_are_one_object() -> None:
    smi = gpus_like(sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml"), 8)
    checks = load(("gpu",)).checks
    with Examiner(checks, workers=2) as examined:
        for name in ("n1", "n2", "n3"):
            examined.put(name, [Raw(name, "nvidia-smi", ("nvidia-smi",), 0, smi)])
        found = [one.report for _, one in examined.rest()]
    of_gpus = [one for report in found for one in report.results if one.subject != report.host]
    assert len(of_gpus) > 300
    assert len({id(one) for one in of_gpus}) == len(of_gpus) / 3


def test_it_takes_hosts_from_threads_that_came_after_it() -> None:
    with Examiner(CHECKS, workers=2) as examined:
        arrived: list[tuple[str, list[Raw]]] = []
        threads = [
            threading.Thread(target=lambda host=host: arrived.append(host)) for host in hosts(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found: list[tuple[int, Examined]] = []
        for name, raws in arrived:
            examined.put(name, raws)
            found += examined.poll()
        found += examined.rest()
    assert sorted(number for number, _ in found) == list(range(20))
    assert {one.report.host for _, one in found} == {f"n{number:03}" for number in range(20)}


def deadly(name: str, raws: list[Raw], checks: list[Check], **how: Any) -> Examined:
    """Stands in for judging: one host's answers kill the process, as too large ones would."""
    if name == DEADLY and os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "faulty":
        raise ZeroDivisionError("a bug")
    return examine_one_of_many(name, raws, checks, **how)


PARENT = os.getpid()


def test_a_killed_process_costs_one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examiner, "examine_one_of_many", deadly)
    for workers in (1, 2):
        with Examiner(CHECKS, workers=workers) as examined:
            for name in ("a", DEADLY, "b", "c"):
                examined.put(name, answers(name))
            found = dict(examined.rest())
        assert [found[at].report.host for at in range(4)] == ["a", DEADLY, "b", "c"]
        assert found[1].report.verdict is Status.ERROR
        assert "was killed" in found[1].report.missing[0].text
        assert all(found[at].report.results for at in (0, 2, 3))


def test_a_bug_is_told_with_the_host_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examiner, "examine_one_of_many", deadly)
    with Examiner(CHECKS, workers=1) as examined:
        examined.put("faulty", answers("faulty"))
        with pytest.raises(RuntimeError, match=r"(?s)faulty: Traceback.*a bug"):
            list(examined.rest())


def test_its_processes_end_with_it() -> None:
    with Examiner(CHECKS, workers=2) as examined:
        examined.put("a", answers("a"))
        processes = [worker.process for worker in examined._idle]
        processes += [worker.process for worker, _, _ in examined._busy.values()]
        assert len(processes) == 2
    assert [process.exitcode for process in processes] == [0, 0]
    with pytest.raises(KeyboardInterrupt), Examiner(CHECKS, workers=1) as examined:
        processes = [worker.process for worker in examined._idle]
        raise KeyboardInterrupt
    assert not processes[0].is_alive()
    assert gc.get_freeze_count() == 0


def test_the_odd_host_among_many_is_named() -> None:
    def fleet() -> Iterator[tuple[str, list[Raw]]]:
        for name, raws in hosts(40):
            yield name, answers(name, "6.8.0") if name == "n031" else raws

    found = [one.readings for one in examine_all(fleet(), CHECKS) if one.readings]
    odd = [one for one in judge_fleet(found, CHECKS) if one.status is Status.WARN]
    assert [(one.check, one.subject) for one in odd] == [("fleet.kernel.same", "n031")]
    assert [each.text for each in odd[0].evidence] == ["n031: kernel 6.8.0"]
