"""Collectives of a trace, so that ranks can be joined without a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traces.built import launched, span, step, trace_of

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ARGS = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
        "Group size": 8, "dtype": "BFloat16", "Process Group Name": "3"}  # fmt: skip


def test_a_kernel_tells_group_number_and_bytes(tmp_path: Path) -> None:
    events = [step(7, 0, 100), launched(REDUCE, 0, 10, 80, args={**ARGS, "Seq": 41})]
    (found,) = trace_of(tmp_path, events).collectives
    assert (found.group, found.seq, found.name, found.step) == ("3", 41, "all_reduce", 7)
    assert (found.bytes, found.ranks, found.duration_us) == (2000, 8, 80)
    assert not found.counted


def test_without_numbers_they_are_counted_within_the_step(tmp_path: Path) -> None:
    events = [
        one
        for number in (4, 5)
        for one in (step(number, 100 * number, 100),
                    *launched(REDUCE, 100 * number, 100 * number + 50, 20, args=ARGS),
                    *launched(REDUCE, 100 * number, 100 * number + 10, 20, args=ARGS))
    ]  # fmt: skip
    trace = trace_of(tmp_path, events)
    assert [(one.step, one.seq, one.counted) for one in trace.collectives] == [
        (4, 0, True), (4, 1, True), (5, 0, True), (5, 1, True),
    ]  # fmt: skip
    assert trace.collectives[0].start_us == 410
    assert trace.lacks == ("operators", "python stacks", "sequence numbers")


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (REDUCE, "all_reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "send_recv"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevComm*)", "reduce_scatter"),
        ("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", "generic"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", "all_gather"),
    ],
)
def test_a_kernel_without_arguments_is_known_by_its_name(
    tmp_path: Path, kernel: str, name: str
) -> None:
    trace = trace_of(tmp_path, [step(1, 0, 100), launched(kernel, 0, 10, 80)])
    assert [(one.name, one.group) for one in trace.collectives] == [(name, "")]
    assert {"group names", "sequence numbers"} <= set(trace.lacks)


def test_gloo_spans_get_the_numbers_that_were_told_when_they_began(tmp_path: Path) -> None:
    told = {**ARGS, "dtype": "Float", "Seq": 6}
    events = [
        step(2, 0, 1000),
        span("record_param_comms", 10, 3, "cpu_op", args=told),
        span("record_param_comms", 20, 3, "cpu_op", args={**told, "Seq": 7}),
        span("gloo:all_reduce", 30, 100, tid=9), span("gloo:all_reduce", 130, 50, tid=9),
    ]  # fmt: skip
    found = trace_of(tmp_path, events).collectives
    assert [(one.seq, one.duration_us) for one in found] == [(6, 100), (7, 50)]
    assert {(one.group, one.bytes, one.step, one.ranks) for one in found} == {("3", 4000, 2, 8)}
