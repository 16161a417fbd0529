"""A stress run of eight GPUs, judged: what is sound raises nothing, what follows from another thing
is told under it, and one device that is ill leaves the others judged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from preflight.collect import examine
from preflight.expect.drills import STRESS_SEEN_BY
from preflight.judge.load import load
from preflight.model import Raw, Result, Status
from preflight.probes.stress.run import stress
from preflight.recognise import recognise
from preflight.reports.groups import gather
from tests import topology_text as topology
from tests.conftest import sample
from tests.lab.watch_lines import watch_lines
from tests.stress_lines import GPUS, lines, on_processors, text

_OF_DRILLS = {"stress.drill", "stress.gemm.right"}
_SMI = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")


def judged(told: str, domains: tuple[str, ...] = ("stress", "live")) -> list[Result]:
    raws = [Raw("n1", "stress", ("python3",), 0, told),
            Raw("n1", "nvidia-smi-q", ("nvidia-smi",), 0, _SMI),
            Raw("n1", "nvidia-smi-topo", ("nvidia-smi",), 0, topology.hgx())]  # fmt: skip
    return list(examine("n1", raws, load(domains).checks).results)


def bad(results: list[Result]) -> list[tuple[str, str, str]]:
    return [
        (one.check, one.subject, one.cause) for one in results if one.status
        in (Status.FAIL, Status.WARN, Status.ERROR)
    ]  # fmt: skip


def test_eight_sound_gpus_raise_nothing() -> None:
    results = judged(text())
    assert bad(results) == []
    passed = {one.check for one in results if one.status is Status.PASS}
    left = {check.id for check in load(("stress",)).checks} - passed
    # Those of few GPUs, of what the BMC tells, and of a drill.
    assert left == {
        "stress.pair.far",
        "stress.gemm.few",
        "stress.soak.few",
        "stress.heat",
        "stress.drill",
    }


def test_all_gpus_slower_by_what_is_normal_raise_nothing() -> None:
    usual = {"n": 9, "median": 660e12, "low": 640e12, "high": 670e12}
    told = [
        {**one, "flops_per_s": usual} if one.get("precision") == "bf16" and one["kind"] == "gemm"
        else one for one in lines()
    ]  # fmt: skip
    assert bad(judged(text(iter(told)))) == []


def throttled(number: int) -> Iterator[dict[str, Any]]:
    """A GPU that heat holds back, by its watch and by its rates."""
    hot = {number: {"throttle": ["hw_thermal"], "reasons": 64, "sm_mhz": 900}}
    places = re.findall(r"^GPU (\S+)", _SMI, re.MULTILINE)
    for one in lines():
        kind = one.get("kind")
        if kind == "end":
            for each in map(json.loads, watch_lines(seconds=50, one=hot).splitlines()):
                yield {**each, "bus_id": places[each["gpu"]]} if "bus_id" in each else each
        if kind == "gemm" and one["device"] == number:
            rates = {key: value * 0.5 for key, value in one["flops_per_s"].items()}
            yield {**one, "flops_per_s": rates}
        elif kind:
            yield one


def test_a_gpu_that_heat_holds_back_is_slow_for_that_reason() -> None:
    found = bad(judged(text(throttled(3))))
    slow = [one for one in found if one[0].startswith("stress.")]
    assert slow and all(subject.startswith("gpu3") for _, subject, _ in slow)
    assert {cause for *_, cause in slow} == {"live.throttle.hw_thermal"}


def test_a_wedged_gpu_leads_and_the_others_are_judged() -> None:
    wedged = {"kind": "wedged", "doing": "gemm", "state": "D", "after_s": 60.0, "device": 3}
    kept = [
        one for one in lines()
        if one.get("device") != 3 or one["kind"] in ("device", "done")
    ]  # fmt: skip
    told = [wedged if one.get("kind") == "done" and one["device"] == 3 else one for one in kept]
    results = judged(text(iter(told)))
    assert bad(results) == [("stress.ended", "gpu3", "")]
    ended = {one.subject for one in results if one.check == "stress.ended"}
    assert ended == {f"gpu{number}" for number in range(GPUS)}
    right = {one.subject for one in results if one.check == "stress.gemm.right"
             and one.status is Status.PASS}  # fmt: skip
    assert right >= {f"gpu{number} bf16" for number in range(GPUS) if number != 3}
    assert "gpu3 bf16" not in right


def test_no_work_leads_over_wrong_products_and_other_bits() -> None:
    told = [
        {**one, "worst": 4.8, "block_worst": 3.7, "digest": "0"}
        if one.get("kind") == "gemm" and one["device"] == 3 else one
        for one in lines()
    ]  # fmt: skip
    found = bad(judged(text(iter(told))))
    roots = {check for check, _, cause in found if not cause}
    assert roots == {"stress.worked"}
    assert {check for check, _, cause in found if cause} == {
        "stress.gemm.right", "stress.answers.same",
    }  # fmt: skip


def test_a_device_that_ended_and_told_no_product_is_undetermined() -> None:
    told = [
        one for one in lines() if one.get("kind") != "gemm" or one["device"] != 3
    ]  # fmt: skip
    found = [one for one in judged(text(iter(told))) if one.status is Status.ERROR]
    assert {"stress.worked", "stress.gemm.right", "stress.gemm.repeats"} <= {
        one.check for one in found
    }
    assert {one.subject for one in found} == {"gpu3"}


def test_processors_of_a_host_with_gpus_are_no_answer() -> None:
    results = judged(text(on_processors()), ("stress",))
    assert {one.status for one in results} == {Status.ERROR}
    assert all("finds none of the 8 GPUs" in one.reason for one in results)


def drilled(inject: dict[str, int]) -> dict[str, Status]:
    """What is said of drills where GPU 3 has a wrong product."""
    began, *rest = (
        {**one, "worst": 4.0} if one.get("kind") == "gemm" and one["device"] == 3 else one
        for one in lines(soak_s=1)
    )
    began["plan"]["inject"] = inject
    run = Raw("n1", "stress", ("python3",), 0, text(iter([began, *rest])))
    checks = [one for one in load(("stress",)).checks if one.id in _OF_DRILLS]
    found = examine("n1", [run], checks).results
    return {one.subject: one.status for one in found if one.check == "stress.drill"}


def test_a_drill_that_nothing_saw_on_its_device_does_not_pass() -> None:
    assert drilled({"corrupt": 3}) == {"corrupt:3": Status.PASS}
    assert drilled(dict.fromkeys(STRESS_SEEN_BY, 2)) == {
        f"{fault}:2": Status.WARN for fault in STRESS_SEEN_BY
    }


def test_a_file_is_judged_as_a_capture_is_whatever_stands_behind_its_watch() -> None:
    *told, end = lines(soak_s=1)
    for last in (
        {"kind": "failed", "device": 3, "error": "RuntimeError", "text": "CUDA error"},
        {"kind": "wedged", "device": 3, "doing": "copies", "state": "D", "after_s": 60.0},
        {"kind": "died", "device": 3, "doing": "copies", "status": -11},
    ):
        lying = text(iter([*told, last, end]))
        (raw,) = recognise(lying.encode(), "a.jsonl")
        assert (raw.probe, raw.stdout) == ("stress", lying)
        run = stress(str(raw.stdout))
        assert isinstance(run.devices, tuple) and run.devices[3].ended is False


def test_advice_is_for_the_device_that_is_at_fault() -> None:
    def steps(told: Iterator[dict[str, Any]]) -> tuple[str, ...]:
        checks = [one for one in load(("stress",)).checks if one.id == "stress.worked"]
        change = {"block_worst": 9.0}
        run = Raw("n1", "stress", ("python3",), 0, text(told, gemm1=change))
        results = examine("n1", [run], checks).results
        (group,) = gather(("n1", one) for one in results if one.status is Status.FAIL)
        assert not group.by_device  # the subject names it
        return group.advice

    on_gpu, on_cpu = steps(lines(soak_s=1)), steps(on_processors())
    assert any("--gpu-reset -i 1" in one for one in on_gpu)
    assert not any("GPU: " in one or "nvidia-smi" in one for one in on_cpu)
    assert not any("processors: " in one or "memtest" in one for one in on_gpu)
