"""The payload's lines as facts: whole, cut anywhere, interrupted, and lines that are none."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.facts.watch import Watch, WatchedGpu
from preflight.model import Missing
from preflight.probes.watch import watch
from tests.lab.watch_lines import COUNTERS, SAMPLE, WATCHES, watch_lines


def gpus(text: str) -> tuple[WatchedGpu, ...]:
    found = watch(text).gpus
    assert not isinstance(found, Missing), found
    return found


def kind(value: Any) -> str:
    assert isinstance(value, Missing), value
    return value.kind


def test_a_whole_watch() -> None:
    text = watch_lines(grown={2: {"pcie_replays": 127}})
    told = watch(text)
    assert (told.ended, told.interval_s, told.interval_basis) == ("done", 10, "measured")
    found = gpus(text)
    assert [gpu.name for gpu in found] == [f"gpu{n}" for n in range(8)]
    gpu = found[2]
    assert (gpu.bus_id, gpu.product) == ("00000000:12:00.0", "NVIDIA H100 80GB HBM3")
    assert (gpu.samples, gpu.watched_s, gpu.busy_percent) == (7, 60, 99)
    assert (gpu.answers, gpu.hangs, gpu.power_limit_w) == (True, False, 700)
    assert not isinstance(gpu.power_w, Missing)
    assert (gpu.power_w.median, gpu.power_w.mean) == (692, 692)
    assert (gpu.pcie_gen, gpu.pcie_width) == (5, 16)
    assert gpu.throttle.sw_power_cap_percent == 100
    assert gpu.throttle.hw_slowdown_percent == 0
    assert (gpu.growth.pcie_replays, gpu.growth.pcie_replays_per_min) == (120, 120)
    assert gpu.growth.ecc_uncorrected == 0
    assert json.loads(text.splitlines()[gpu.line - 1])["gpu"] == 2


def test_a_combined_mask_is_every_reason_in_it() -> None:
    shares = gpus(WATCHES["watch-brake"]["watch"])[2].throttle
    assert (shares.sw_power_cap_percent, shares.hw_slowdown_percent) == (100, 100)
    assert (shares.hw_power_brake_percent, shares.hw_unnamed_percent) == (100, 0)
    assert shares.hw_thermal_percent == 0
    assert gpus(WATCHES["watch-unnamed"]["watch"])[3].throttle.hw_unnamed_percent == 100


def test_the_distance_to_a_limit_where_the_card_tells_only_the_limit() -> None:
    text = watch_lines(every={"margin_c": None})
    margin = gpus(text)[0].margin_c
    assert not isinstance(margin, Missing)
    assert margin.min == 89 - 61


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("NVML_ERROR_NOT_SUPPORTED", "not-applicable"),
        ("NVML_ERROR_FUNCTION_NOT_FOUND", "not-applicable"),
        ("NVML_ERROR_NO_PERMISSION", "denied"),
        ("NVML_ERROR_UNKNOWN", "unreadable"),
    ],
)
def test_what_a_card_lacks_is_missing_with_nvmls_word(error: str, expected: str) -> None:
    text = watch_lines(every={"memory_c": None, "errors": {"memory_c": error}})
    value = gpus(text)[0].memory_c
    assert kind(value) == expected
    assert isinstance(value, Missing)
    assert error in value.text
    assert kind(gpus(text)[0].memory_margin_c) == expected


def test_a_gpu_that_is_lost_and_one_that_hangs_keep_what_was_seen_of_them() -> None:
    lost = gpus(WATCHES["watch-lost"]["watch"])[3]
    assert (lost.answers, lost.hangs, lost.samples) == (False, False, 3)
    assert lost.trouble == "after 30 s: NVML_ERROR_GPU_IS_LOST in the call for sm_mhz"
    assert kind(lost.growth.ecc_uncorrected) == "not-applicable"
    text = WATCHES["watch-hung"]["watch"]
    hung = gpus(text)[5]
    assert hung.hangs is True
    assert kind(hung.answers) == "not-applicable"
    assert hung.trouble.endswith("in uninterruptible sleep")
    assert "silent_s" in text.splitlines()[hung.line - 1]
    assert [gpu.growth.ecc_uncorrected for gpu in gpus(text) if gpu.index != 5] == [0] * 7


def test_a_gpu_that_hung_from_the_start_has_no_sample() -> None:
    lines = watch_lines(gpus=2).splitlines()
    first = [line for line in lines if '"gpu":1' not in line]
    silent = '{"gpu":1,"t":0,"silent_s":20,"call":"nvmlInit_v2","state":"D"}'
    gpu = gpus("\n".join([*first[:-1], silent, first[-1], ""]))[1]
    assert (gpu.samples, gpu.hangs) == (0, True)
    assert kind(gpu.power_w) == "not-in-input"


@pytest.mark.parametrize("keep", [0.25, 0.5, 0.9])
def test_a_cut_recording_is_read_to_its_last_whole_line_and_says_so(keep: float) -> None:
    whole = watch_lines()
    told = watch(whole[: int(len(whole) * keep)])
    assert told.ended == "cut"
    assert isinstance(told.gpus, tuple)
    assert {kind(gpu.growth.ecc_uncorrected) for gpu in told.gpus} == {"unreadable"}


def test_an_interrupted_watch_has_no_growth() -> None:
    lines = [line for line in watch_lines(gpus=1).splitlines() if '"last"' not in line]
    lines[-1] = '{"end":"interrupted","t":31.5,"samples":4}'
    told = watch("\n".join(lines) + "\n")
    assert told.ended == "interrupted"
    assert isinstance(told.gpus, tuple)
    assert kind(told.gpus[0].growth.ecc_corrected) == "exited"


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ({"error": "NVML_ERROR_LIBRARY_NOT_FOUND", "text": "x"}, "no-tool"),
        ({"error": "NVML_ERROR_NO_PERMISSION", "text": "x"}, "denied"),
        ({"error": "NVML_ERROR_DRIVER_NOT_LOADED", "text": "x"}, "exited"),
        ({"error": "", "text": "no answer of nvmlInit_v2 within 20 s"}, "timeout"),
    ],
)
def test_why_nvml_told_nothing(end: dict[str, str], expected: str) -> None:
    head = watch_lines().splitlines()[0]
    text = f"{head}\n{json.dumps({'end': 'no-answer', 't': 0, **end})}\n"
    assert kind(watch(text).gpus) == expected


def test_no_gpu() -> None:
    text = watch_lines(gpus=0)
    assert kind(watch(text).gpus) == "not-applicable"


def test_a_counter_that_went_back() -> None:
    growth = gpus(watch_lines(grown={0: {"ecc_corrected": 0}}))[0].growth
    assert kind(growth.ecc_corrected) == "unreadable"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{}\n",
        "[1]\n",
        '{"preflight":"watch/2"}\n',
        "Traceback (most recent call last):\n",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        watch(text)


_VALUES = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["name", "sm_max_mhz", "ecc_corrected"]), st.integers()),
)  # fmt: skip
_KEYS = st.sampled_from(
    ["gpu", "gpus", "t", "card", "counters", "errors", "last", "lost", "silent_s", "end", *SAMPLE]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=6), max_size=8))
def test_nothing_but_a_parse_error_is_raised(lines: list[dict[str, Any]]) -> None:
    head = [{"preflight": "watch/1", "interval_s": 1}, {"gpus": 2}]
    try:
        told = watch("".join(json.dumps(line) + "\n" for line in [*head, *lines]))
    except ParseError:
        return
    assert isinstance(told, Watch)


def test_a_megabyte_takes_less_than_a_second() -> None:
    sample = json.dumps({"gpu": 0, "t": 1.0, **SAMPLE}) + "\n"
    lines = watch_lines(gpus=1).splitlines(keepends=True)
    text = "".join([*lines[:3], sample * (1_000_000 // len(sample)), *lines[-2:]])
    began = time.process_time()
    assert gpus(text)[0].growth.ecc_corrected == COUNTERS["ecc_corrected"] - 3
    assert time.process_time() - began < 1


def test_a_gpu_whose_samples_end_while_others_go_on_was_lost() -> None:
    lines = watch_lines().splitlines()
    told = [json.loads(line) for line in lines]
    kept = [
        line
        for line, one in zip(lines, told, strict=True)
        if one.get("gpu") != 3 or not ("last" in one or one.get("t", 0) > 20)
    ]
    lost = {gpu.index: gpu.trouble for gpu in gpus("\n".join(kept) + "\n") if not gpu.answers}
    assert lost == {3: "no sample of it after 20 s; those of others go on"}


def test_a_gpu_that_lacks_a_sample_or_two_was_not_lost() -> None:
    lines = watch_lines().splitlines()
    told = [json.loads(line) for line in lines]
    kept = [
        line
        for line, one in zip(lines, told, strict=True)
        if one.get("gpu") != 3 or not ("last" in one or one.get("t", 0) > 40)
    ]
    assert all(gpu.answers is True for gpu in gpus("\n".join(kept) + "\n"))


def test_a_number_beyond_all_counters_is_none() -> None:
    text = watch_lines(every={"power_w": 10**400})
    assert kind(gpus(text)[0].power_w)
