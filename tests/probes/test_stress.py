"""The lines of a stress run as facts: whole, cut short, odd, with a device that was lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.errors import ParseError
from preflight.facts.host import Host
from preflight.facts.stress import Stress
from preflight.model import Missing, Raw
from preflight.probes.stress.run import stress
from tests import topology_text as topology
from tests.conftest import sample
from tests.stress_lines import GPUS, lines, on_processors, text

SAMPLES = Path(__file__).parents[1] / "samples" / "stress"
RECORDED = sorted(path.stem for path in SAMPLES.glob("*.jsonl"))


def of(name: str) -> Stress:
    return stress((SAMPLES / f"{name}.jsonl").read_text(encoding="utf-8"))


def listed(found: Any) -> tuple[Any, ...]:
    assert isinstance(found, tuple)
    return found


def host(*more: Raw, told: str = "") -> Host:
    return assemble("n1", [Raw("n1", "stress", stdout=told or text()), *more]).host


def smi() -> Raw:
    name = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"
    return Raw("n1", "nvidia-smi-q", stdout=sample(name))


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("cpu")])
def test_a_sound_run_on_processors_is_read_whole(name: str) -> None:
    run = of(name)
    assert not run.cannot and not run.busy and not run.interrupted and run.device == "cpu"
    devices = listed(run.devices)
    names = ["processors"] if name == "cpu_x1" else ["processors 0", "processors 1"]
    assert [one.name for one in devices] == names
    assert all(one.ended is True and one.repeats is True for one in devices)
    assert {one.precision for one in listed(run.gemms)} == {"fp32", "bf16"}
    assert all(one.differing == 0 and one.worst < 0.05 for one in listed(run.gemms))
    assert all(one.errors == 0 and one.tested_bytes > 0 for one in listed(run.patterns))
    assert isinstance(run.copies, Missing) and isinstance(run.pairs, Missing)


def test_what_processors_do_is_never_held_against_a_model() -> None:
    for one in listed(of("cpu_x2_soak").gemms):
        assert isinstance(one.product, Missing) and one.product.kind == "not-applicable"
        assert isinstance(one.behind_percent, Missing)
    for one in listed(of("cpu_x2_soak").devices):
        assert isinstance(one.fading_percent, Missing) and one.soak_differing == 0


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("injected_lost", "failed in gemm: RuntimeError: CUDA error: unspecified launch failure"),
        ("injected_wedge", "wedged in gemm: it said nothing for 10 s"),
    ],
)
def test_a_device_that_is_lost_is_named_with_its_test(name: str, trouble: str) -> None:
    run = of(name)
    well, ill = listed(run.devices)
    assert well.ended is True and well.trouble == ""
    assert ill.ended is False and ill.trouble.startswith(trouble)
    (told,) = (one for one in listed(run.gemms) if one.device == ill.name)
    assert isinstance(told.worst, Missing) and told.worst.kind == "not-applicable"
    # What is left has nobody to be compared with.
    assert isinstance(well.peer_digest, Missing)


def test_a_device_that_works_on_nothing_is_far_from_right() -> None:
    far = [one.block_worst > 1 for one in listed(of("injected_zero_work").gemms)]
    assert far == [False, False, True, True]


def test_a_wrong_element_is_told_apart_from_no_work() -> None:
    wrong = [one for one in listed(of("injected_corrupt").gemms) if one.device == "processors 1"]
    assert all(one.worst > 0.15 and one.block_worst < 0.05 for one in wrong)
    one, other = listed(of("injected_corrupt").devices)
    assert one.peer_digest != other.peer_digest
    assert one.peer_digest.split(", ")[:2] == other.peer_digest.split(", ")[:2]


def test_a_stuck_bit_is_told_with_its_address() -> None:
    wrong = [one for one in listed(of("injected_memory").patterns) if one.errors]
    assert {one.device for one in wrong} == {"processors 1"}
    assert all("0x" in one.where and one.where.endswith("bit 13") for one in wrong)
    assert all(one.where == "" for one in listed(of("cpu_x1").patterns))


def test_eight_gpus_are_read_whole() -> None:
    run = stress(text())
    assert len(listed(run.devices)) == GPUS and len(listed(run.gemms)) == 5 * GPUS
    assert len(listed(run.pairs)) == GPUS * (GPUS - 1)
    first = listed(run.gemms)[2]
    assert first.name == "gpu0 bf16" and first.median_tflops == pytest.approx(720)
    assert first.peers == GPUS and abs(first.behind_percent) < 2
    assert listed(run.devices)[0].pinned_gbps == pytest.approx(53)
    assert not isinstance(run.watch, Missing) and len(listed(run.watch.gpus)) == GPUS


def test_gpus_are_named_as_nvidia_smi_lists_them() -> None:
    swapped = {0: "gpu1", 1: "gpu0"}
    told = text(device0={"uuid": uuid_of(1)}, device1={"uuid": uuid_of(0)})
    run = host(smi(), told=told).stress
    assert not isinstance(run, Missing)
    names = [one.name for one in listed(run.devices)]
    assert names == [swapped.get(number, f"gpu{number}") for number in range(GPUS)]
    assert listed(run.gemms)[0].name == "gpu1 fp32" and listed(run.gemms)[0].device == "gpu1"
    assert listed(run.devices)[0].bus_id.endswith(":00.0")
    assert listed(run.pairs)[0].name == "gpu1 to gpu0"


def uuid_of(number: int) -> str:
    (one,) = (line for line in lines() if line.get("kind") == "device" and line["device"] == number)
    return str(one["uuid"])


def test_without_nvidia_smi_gpus_have_their_numbers_in_torch() -> None:
    run = host().stress
    assert not isinstance(run, Missing)
    assert [one.name for one in listed(run.devices)] == [f"gpu{number}" for number in range(GPUS)]


def test_pairs_are_held_against_those_that_are_linked_alike() -> None:
    matrix = Raw("n1", "nvidia-smi-topo", stdout=topology.hgx())
    run = host(smi(), matrix).stress
    assert not isinstance(run, Missing)
    assert all(one.link == "NV18" and one.peers == 56 for one in listed(run.pairs))
    over_pcie = host(smi(), Raw("n1", "nvidia-smi-topo", stdout=topology.pcie())).stress
    assert not isinstance(over_pcie, Missing)
    assert all(isinstance(one.behind_percent, Missing) for one in listed(over_pcie.pairs))
    alone = host(smi()).stress
    assert not isinstance(alone, Missing)
    assert all(isinstance(one.behind_percent, Missing) for one in listed(alone.pairs))


def test_what_was_seen_beside_the_tests_is_the_hosts_watch() -> None:
    found = host()
    assert not isinstance(found.watch, Missing)
    assert all(one.probe == "stress" for one in listed(found.watch.gpus))
    line = listed(found.watch.gpus)[0].line
    assert '"gpu":0' in text().split("\n")[line - 1]


def test_a_watch_of_its_own_counts_before() -> None:
    from tests.lab.watch_lines import watch_lines

    found = host(Raw("n1", "watch", stdout=watch_lines(gpus=8, seconds=60)))
    assert not isinstance(found.watch, Missing)
    assert all(one.probe == "watch" for one in listed(found.watch.gpus))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_as_far_from_right_as_can_be(value: float) -> None:
    run = stress(text(gemm3={"worst": value, "block_worst": value}, attention3={"apart": value}))
    wrong = [one for one in listed(run.gemms) if one.device == "gpu3"]
    assert all(one.worst == one.block_worst == float("inf") for one in wrong)
    assert listed(run.attention)[3].apart == float("inf")


def test_a_device_that_ended_without_a_product_cannot_pass() -> None:
    run = stress(text(without="gemm"))
    assert len(listed(run.gemms)) == GPUS
    for one in listed(run.gemms):
        for value in (one.worst, one.block_worst, one.differing, one.median_tflops):
            assert isinstance(value, Missing) and value.kind == "unreadable"


def test_a_shape_that_does_not_fit_is_no_fault_of_the_device() -> None:
    run = stress(text(attention3={"beyond": "the device has not the memory for 9x9x9x9x9"}))
    odd = listed(run.attention)[3]
    for told in (odd.apart, odd.kernel):
        assert isinstance(told, Missing) and told.kind == "exited"
        assert "smaller --attention" in told.text
    assert listed(run.devices)[3].ended is True
    assert not isinstance(listed(run.attention)[2].apart, Missing)


@pytest.mark.parametrize("without", ["memory", "pattern", "attention", "answers", "copy", "soak"])
def test_what_an_ended_device_did_not_tell_is_unreadable(without: str) -> None:
    run = stress(text(without=without))
    fields = {
        "memory": [one.memory_gbps for one in listed(run.devices)],
        "copy": [one.pinned_gbps for one in listed(run.devices)],
        "answers": [one.repeats for one in listed(run.devices)],
        "soak": [one.soak_differing for one in listed(run.devices)],
        "pattern": [one.errors for one in listed(run.patterns)],
        "attention": [one.apart for one in listed(run.attention)],
    }[without]
    assert len(fields) == GPUS
    assert all(isinstance(one, Missing) and one.kind == "unreadable" for one in fields)


def test_gpus_of_two_models_are_not_compared_with_each_other() -> None:
    told = text(device0={"name": "NVIDIA A100-SXM4-80GB"}, gemm0={"digest": "other"})
    run = stress(told)
    odd, *others = listed(run.devices)
    assert isinstance(odd.peer_digest, Missing) and not isinstance(odd.digest, Missing)
    assert len({one.peer_digest for one in others}) == 1
    peers = {one.device: one.peers for one in listed(run.gemms)}
    assert peers["gpu0"] == 1 and peers["gpu1"] == GPUS - 1


def test_a_wedged_copy_between_gpus_is_named() -> None:
    told = text(without="pair").splitlines()
    line = {"kind": "wedged", "device": -1, "doing": "copy 0 to 3", "state": "D", "after_s": 30.0}
    run = stress("\n".join([*told[:-1], json.dumps(line), told[-1], ""]))
    last = listed(run.devices)[-1]
    assert last.name == "copies between GPUs" and last.ended is False
    assert "copy 0 to 3" in last.trouble and "uninterruptible" in last.trouble
    assert isinstance(run.pairs, Missing)


def test_a_soak_that_fades_tells_by_how_much() -> None:
    run = stress(text(lines(fades=0.1)))
    assert all(8 < one.fading_percent < 10 for one in listed(run.devices))
    short = stress(text(lines(soak_s=5)))
    assert all(isinstance(one.fading_percent, Missing) for one in listed(short.devices))


def test_an_interrupted_run_is_no_recording_that_was_cut() -> None:
    told = text(on_processors()).splitlines()[:6]
    cut = stress("\n".join([*told, ""]))
    stopped = stress("\n".join([*told, '{"kind":"interrupted"}', ""]))
    assert stopped.interrupted and not cut.interrupted
    kinds = [listed(run.devices)[1].ended.kind for run in (cut, stopped)]
    assert kinds == ["unreadable", "exited"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"kind": "cannot", "why": "no-torch", "text": "no torch"}, "no-tool"),
        ({"kind": "cannot", "text": "2 devices are asked for, and torch finds 1"}, "exited"),
        ({"kind": "busy", "text": "GPU 0 holds process 1"}, "busy"),
    ],
)
def test_a_run_that_could_not_be_is_missing_with_its_reason(
    line: dict[str, Any], kind: str
) -> None:
    told = json.dumps({"preflight": "stress/1", **line}) + "\n"
    found = host(told=told).stress
    assert isinstance(found, Missing) and found.kind == kind and found.text == line["text"]


def cuts(told: str) -> Iterator[str]:
    ends = [at + 1 for at, letter in enumerate(told) if letter == "\n"]
    return (told[:end] for end in ends)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_may_end_anywhere(name: str) -> None:
    whole = (SAMPLES / f"{name}.jsonl").read_text(encoding="utf-8")
    for told in cuts(whole):
        run = stress(told)
        assert all(one.ended is not True or one.repeats is True for one in listed(run.devices))
    assert stress(whole[:-5]) == replace(stress(whole), seconds=stress(whole[:-5]).seconds)


@pytest.mark.parametrize(
    "told",
    ["", "\n", "hello\n", "[]\n", "{}\n", '{"kind": 3}\n', "[" * 100_000 + "\n"],
)
def test_what_is_no_run_is_refused(told: str) -> None:
    with pytest.raises(ParseError):
        stress(told)


@pytest.mark.parametrize("odd", [None, [], {}, "x", 1e400, -1, True])
def test_odd_values_are_read_or_refused_and_nothing_else(odd: Any) -> None:
    for told in (list(lines(gpus=2, soak_s=2)), list(on_processors())):
        # Lines of a kind with the same keys are read alike: the last of them.
        kinds = {(line.get("kind"), *line): at for at, line in enumerate(told)}
        for at in kinds.values():
            line = told[at]
            for key in line:
                edited = [*told[:at], {**line, key: odd}, *told[at + 1 :]]
                try:
                    found = stress(text(iter(edited)))
                except ParseError:
                    continue
                assert isinstance(found, Stress)


def test_processors_under_load_are_no_proof_of_the_gpus_that_are_there() -> None:
    run = host(smi(), told=text(on_processors())).stress
    assert isinstance(run, Missing) and run.kind == "exited"
    assert "finds none of the 8 GPUs" in run.text


@pytest.mark.parametrize(
    ("begin", "kind", "said"),
    [
        ({}, "exited", "torch does not find it"),
        ({"asked": 3}, "not-asked", "--devices 3 leaves it out"),
        ({"visible": "0,1,2"}, "not-asked", "CUDA_VISIBLE_DEVICES=0,1,2 leaves it out"),
    ],
)
def test_a_gpu_that_was_not_under_load_does_not_pass(
    begin: dict[str, Any], kind: str, said: str
) -> None:
    run = host(smi(), told=text(lines(gpus=3), begin=begin)).stress
    assert not isinstance(run, Missing)
    found = listed(run.devices)
    assert [one.ended is True for one in found] == [True] * 3 + [False] * 5
    assert [one.name for one in found] == [f"gpu{number}" for number in range(GPUS)]
    for one in found[3:]:
        assert isinstance(one.ended, Missing) and one.ended.kind == kind and said in one.ended.text


def test_where_no_gpu_is_found_again_none_is_called_left_out() -> None:
    told = text(lines(gpus=2), device={"uuid": ""})
    run = host(smi(), told=told).stress
    assert not isinstance(run, Missing) and len(listed(run.devices)) == 2


def kinds(found: Any) -> set[str]:
    return {one.kind for one in found if isinstance(one, Missing)}


def test_pairs_that_were_not_copied_are_counted() -> None:
    told = list(lines())
    some = [one for one in told if one.get("kind") != "pair" or one["from"] < 3 or one["to"] == 0]
    run = stress(text(iter(some)))
    *_, last = listed(run.pairs)
    assert isinstance(last.same, Missing) and last.same.kind == "exited"
    assert last.same.text.startswith("30 of 56 pairs were not copied, the first gpu3 to gpu1")
    joined = host(smi(), told=text(iter(some))).stress
    assert not isinstance(joined, Missing) and listed(joined.pairs)[-1].name == last.name
    none = stress(text(without="pair")).pairs
    assert isinstance(none, Missing) and none.kind == "exited"
    stopped = [*some[:-1], {"kind": "interrupted"}]
    assert "interrupted" in listed(stress(text(iter(stopped))).pairs)[-1].same.text
    # Nobody copies from a GPU that was lost.
    lost = {"kind": "died", "device": 5, "doing": "gemm", "status": -11}
    well = [
        one for one in [*told[:-1], lost, told[-1]]
        if 5 not in (one.get("from"), one.get("to")) and one != {"kind": "done", "device": 5}
    ]  # fmt: skip
    assert len(listed(stress(text(iter(well))).pairs)) == 7 * 6


def soaked(change: dict[str, Any], keep: int = 60) -> Stress:
    """GPU 3 with other lines of its soak, and so many of them."""
    told, left = [], keep
    for one in lines():
        if one.get("kind") == "soak" and one["device"] == 3:
            left -= 1
            if left < 0:
                continue
            one |= change
        told.append(one)
    return stress(text(iter(told)))


def test_a_soak_that_was_short_or_did_nothing_does_not_pass() -> None:
    short = listed(soaked({}, keep=12).devices)[3]
    for told in (short.soak_differing, short.fading_percent, short.soak_least_tflops):
        assert isinstance(told, Missing) and told.kind == "unreadable"
        assert told.text.startswith("12 of 60 s were soaked")
    wrong = listed(soaked({"differing": 2}, keep=12).devices)[3]
    assert wrong.soak_differing == 24
    idle = listed(soaked({"flops_per_s": 0}).devices)[3]
    assert idle.soak_least_tflops == 0 and idle.soak_behind_percent == pytest.approx(100)
    slow = listed(soaked({"flops_per_s": 357e12}).devices)
    assert slow[3].soak_behind_percent == pytest.approx(50, abs=1) and slow[3].soak_peers == 8
    assert abs(slow[2].soak_behind_percent) < 1
    odd = listed(soaked({"flops_per_s": None}).devices)[3]
    assert kinds([odd.soak_differing, odd.soak_tflops]) == {"unreadable"}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"bytes": 1}, "exited"),
        ({"bytes": 5}, "exited"),
        ({"bytes": -5}, "unreadable"),
        ({"bytes": None}, "unreadable"),
        ({"errors": 0.5}, "unreadable"),
        ({"errors": -1}, "unreadable"),
        ({"first": [{"address": "0x1", "offset": 8, "bits": [3]}]}, "unreadable"),
    ],
)
def test_a_pattern_of_nothing_or_nonsense_does_not_pass(change: dict[str, Any], kind: str) -> None:
    run = stress(text(pattern3=change))
    assert {one.errors.kind for one in listed(run.patterns) if one.device == "gpu3"} == {kind}
    assert all(one.errors == 0 for one in listed(run.patterns) if one.device != "gpu3")


def test_a_pattern_or_precision_that_no_device_told_is_missing_on_each() -> None:
    told = [
        one for one in lines()
        if one.get("precision") != "fp8" and one.get("name") != "walking ones"
    ]  # fmt: skip
    run = stress(text(iter(told)))
    gone = [one for one in listed(run.gemms) if one.precision == "fp8"]
    assert len(gone) == GPUS and kinds(one.worst for one in gone) == {"unreadable"}
    assert gone[3].name == "gpu3 fp8"
    lost = [one for one in listed(run.patterns) if one.name == "gpu3 walking ones"]
    assert kinds(one.errors for one in lost) == {"unreadable"}
    older = stress(text(iter(told), device={"capability": "8.0"}))
    assert not [one for one in listed(older.gemms) if one.precision == "fp8"]


def test_what_one_device_did_not_tell_is_no_other_answer() -> None:
    told = [
        one for one in lines()
        if (one.get("kind"), one.get("precision"), one.get("device")) != ("gemm", "bf16", 3)
    ]  # fmt: skip
    found = listed(stress(text(iter(told))).devices)
    assert len({one.peer_digest for one in found}) == 1
    assert isinstance(found[3].digest, Missing) and "bf16" in found[3].digest.text
    odd = listed(stress(text(iter(told), answers3={"digests": ["beef", "beef"]})).devices)
    assert odd[3].peer_digest != odd[2].peer_digest


@pytest.mark.parametrize(
    "change",
    [{"worst": -1, "block_worst": -1}, {"sides": []}, {"sides": [0, 1, 1]},
     {"flops_per_s": {"n": 0, "median": 7e14, "low": 7e14, "high": 7e14}},
     {"flops_per_s": {"n": 9, "median": 0, "low": 0, "high": 0}}],
)  # fmt: skip
def test_a_product_of_nonsense_is_unreadable(change: dict[str, Any]) -> None:
    odd = [one for one in listed(stress(text(gemm3=change)).gemms) if one.device == "gpu3"]
    assert all("unreadable" in kinds([one.worst, one.median_tflops]) for one in odd)


def test_two_devices_of_one_uuid_are_not_both_tested() -> None:
    found = listed(stress(text(device1={"uuid": uuid_of(0)})).devices)
    assert kinds(one.ended for one in found[:2]) == {"unreadable"}
    assert all(one.ended is True for one in found[2:])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"kind": "died", "status": -9, "oom_kills": 1, "limit_bytes": 500 << 20}, "has 500 MiB"),
        ({"kind": "died", "status": -9, "oom_kills": 0}, "SIGKILL ended it in gemm"),
        ({"kind": "died", "status": -15}, "SIGTERM ended it in gemm"),
        ({"kind": "wedged", "state": "T", "after_s": 60.0}, "state T"),
        ({"kind": "wedged", "state": "R", "after_s": 60.0, "doing": "attention"}, "--attention 9x"),
        ({"kind": "wedged", "state": "D", "after_s": 60.0, "doing": "attention"}, ""),
        (
            {
                "kind": "failed",
                "error": "OutOfMemoryError",
                "text": "CUDA out of memory. Tried to ",
            },
            "others may hold the memory",
        ),
        ({"kind": "failed", "error": "RuntimeError", "text": "CUDA error: an illegal access"}, ""),
        ({"kind": "died", "status": -11}, ""),
    ],
)
def test_what_somebody_else_ended_is_no_fault_of_the_device(
    line: dict[str, Any], said: str
) -> None:
    begun, *rest = (one for one in lines() if one != {"kind": "done", "device": 3})
    begun["plan"]["attention"] = "9x8x8x64x64"
    odd = {"doing": "gemm", "device": 3, **line}
    ill = listed(stress(text(iter([begun, *rest[:-1], odd, rest[-1]]))).devices)[3]
    if said:
        assert isinstance(ill.ended, Missing) and ill.ended.kind == "exited"
        assert said in ill.ended.text
    else:
        assert ill.ended is False


def test_a_recording_of_two_runs_is_refused() -> None:
    with pytest.raises(ParseError):
        stress(text(on_processors()) * 2)


def test_a_run_without_its_end_is_told_although_all_devices_ended() -> None:
    cut = stress(text(without="end"))
    assert all(one.ended is True for one in listed(cut.devices))
    assert isinstance(cut.seconds, Missing) and cut.seconds.kind == "unreadable"
