"""Real traces: what is in them, and sums that HolisticTraceAnalysis 0.5 finds too.

The traces are from its tests/data (facebookresearch/HolisticTraceAnalysis, MIT), unedited: a
start that allocates on an A100, AMD MI250, ranks of processors with gloo, NCCL 2.17.1 with its
arguments on A100, V100 with a display unit of nanoseconds, 2 of the 128 ranks of one job, and one
kernel of Triton.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from preflight.facts.traces import TRACE_LACKS, RankTrace, TraceStep
from preflight.traces import kineto
from tests.conftest import SAMPLES, sample_bytes

ALL = sorted((SAMPLES / "kineto").glob("*.gz"))


def read(name: str) -> RankTrace:
    return kineto.read(SAMPLES / "kineto" / f"{name}.json.gz", lambda told: None)


#: Sample -> events, rank, world, backend, device, numbers of steps, has a device, what it lacks.
TABLE = {
    "alexnet_cudamalloc_start": (
        1408, 0, None, "", "NVIDIA A100-PG509-200", [-1], True, ("steps", "python stacks"),
    ),
    "amd_mi250_minitoy": (
        220, None, None, "", "AMD Radeon Graphics", [1], True, ("python stacks", "rank"),
    ),
    "cpu_only_rank34": (
        30, 34, 300, "gloo", "", [551], False,
        ("kernels", "python stacks", "group names", "sequence numbers"),
    ),
    "nccl_args": (
        40573, 0, 2, "nccl", "NVIDIA A100-PG509-200", [4, 5, 6], True,
        ("python stacks", "sequence numbers"),
    ),
    "ns_resolution_rank0": (
        68692, 0, 1, "nccl", "Tesla V100-SXM2-32GB", [101, 102, 103, 104, 105], True,
        ("python stacks", "group names", "sequence numbers"),
    ),
    "rank_non_gpu": (2467, 0, None, "", "", [1009], False, ("kernels", "python stacks")),
    "sampled_rank0": (
        4855, 0, 128, "nccl", "", [551, 552], True,
        ("python stacks", "group names", "sequence numbers"),
    ),
    "sampled_rank1": (
        4720, 1, 128, "nccl", "", [551, 552], True,
        ("python stacks", "group names", "sequence numbers"),
    ),
    "triton_small": (
        71, None, None, "", "NVIDIA A100-PG509-200", [1], True, ("python stacks", "rank"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_real_traces_are_read_whole(name: str) -> None:
    trace = read(name)
    assert (
        trace.events, trace.rank, trace.world, trace.backend, trace.device,
        [one.number for one in trace.steps], trace.has_device, trace.lacks,
    ) == TABLE[name]  # fmt: skip
    assert (trace.damage, trace.lost_events, trace.truncated) == ((), 0, False)
    assert set(trace.lacks) <= set(TRACE_LACKS)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_each_is_in_the_table_and_recognised(path: Path) -> None:
    assert path.name.removesuffix(".json.gz") in TABLE
    head = gzip.decompress(path.read_bytes())[:65536]
    assert kineto.sniff(head, path.name)


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row[6]])
def test_busy_and_idle_time_are_the_step(name: str) -> None:
    for step in read(name).steps:
        assert step.busy_us + sum(step.idle_us.values()) == pytest.approx(step.wall_us)
        assert step.compute_us <= step.busy_us <= step.wall_us
        assert step.exposed_comm_us <= step.comm_us
        assert step.loader_idle_us == pytest.approx(step.idle_us.get("loader", 0.0))


def sums(trace: RankTrace) -> tuple[float, float, float]:
    """Idle, compute and other time of the device from its first work to its last."""
    busy = sum(step.busy_us for step in trace.steps)
    compute = sum(step.compute_us for step in trace.steps)
    return trace.device_last_us - trace.device_first_us - busy, compute, busy - compute


def test_sums_are_those_of_holistic_trace_analysis() -> None:
    """Its idle_time, compute_time and non_compute_time with include_last_profiler_step. It rounds
    to whole microseconds, which these two traces have anyway."""
    assert sums(read("sampled_rank0")) == (675191, 210320, 337336)
    assert sums(read("sampled_rank1")) == (651136, 271973, 308077)


@pytest.mark.parametrize(
    ("name", "theirs", "works"),
    [
        ("nccl_args", (506512, 113012, 41026), 3774),
        ("ns_resolution_rank0", (12143, 464915, 2971), 6095),
        ("amd_mi250_minitoy", (8780, 96, 35), 16),
    ],
)
def test_sums_are_within_the_rounding_of_holistic_trace_analysis(
    name: str, theirs: tuple[int, int, int], works: int
) -> None:
    """Of these it rounds to whole microseconds, begins up and ends down: one in the mean for each
    kernel and copy."""
    ours = sums(read(name))
    assert sum(ours) == pytest.approx(sum(theirs), abs=2)
    for mine, other in zip(ours, theirs, strict=True):
        assert abs(mine - other) < 1.2 * works


def of(trace: RankTrace, number: int) -> TraceStep:
    return next(one for one in trace.steps if one.number == number)


def test_a_start_that_allocates() -> None:
    (whole,) = read("alexnet_cudamalloc_start").steps
    assert whole.idle_us["allocator"] == pytest.approx(8.51e6, rel=0.001)
    assert (whole.allocs, whole.kernels, whole.launches) == (40, 79, 79)
    assert whole.pageable_bytes == whole.h2d_bytes == 244403360


def test_the_loader_of_a_run_without_device_events() -> None:
    step = of(read("rank_non_gpu"), 1009)
    assert (step.wall_us, step.loader_us, step.optimizer_us) == (75473, 1171, 2906)
    assert step.busy_us == 0
    assert step.idle_us == {}


def test_collectives_of_gloo_are_communication_of_the_host() -> None:
    trace = read("cpu_only_rank34")
    step = of(trace, 551)
    assert step.comm_us == pytest.approx(178777.4, abs=0.1)
    assert [one.name for one in trace.collectives] == ["all_reduce"] * 10
    assert {one.step for one in trace.collectives} == {551, -1}


def test_collectives_with_their_arguments() -> None:
    trace = read("nccl_args")
    assert {(one.group, one.ranks) for one in trace.collectives} == {("0", 2)}
    largest = max(trace.collectives, key=lambda one: one.bytes)
    assert (largest.name, largest.bytes) == ("all_reduce", 4 * 7875584)
    first = [one for one in trace.collectives if one.step == 4]
    assert [(one.name, one.seq) for one in first] == [
        ("broadcast", 0), ("broadcast", 1), *(("all_reduce", n) for n in range(5)),
    ]  # fmt: skip


def test_a_host_that_launches_too_slowly_and_one_that_is_ahead() -> None:
    slow, ahead = of(read("nccl_args"), 5), of(read("ns_resolution_rank0"), 104)
    assert slow.idle_us["host"] / slow.wall_us > 0.7
    assert slow.queue_median == 1
    assert ahead.busy_us / ahead.wall_us > 0.98
    assert ahead.queue_median > 500
    assert ahead.kernels == 870
    assert ahead.classes_us["gemm"] == pytest.approx(59803, abs=1)


def test_amd_tells_the_size_of_a_copy_on_its_call() -> None:
    step = of(read("amd_mi250_minitoy"), 1)
    assert (step.h2d_bytes, step.pageable_bytes, step.launches) == (5120, 0, 14)
    assert {"gemm", "elementwise", "optimizer", "copy"} <= set(step.classes_us)


def test_the_rank_may_be_in_the_name_of_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "job_rank-17.pt.trace.json.gz"
    file.write_bytes(sample_bytes("kineto/triton_small.json.gz"))
    assert kineto.read(file, lambda told: None).rank == 17
