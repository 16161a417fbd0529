"""What a step is said to have spent its time with, and who owns the time that the device stood
idle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traces.built import (
    AUTOGRAD,
    copied,
    launched,
    on_device,
    only_step,
    span,
    step,
    trace_of,
)

GEMM, ADD = "ampere_sgemm_128x64_tn", "void at::native::vectorized_elementwise_kernel<4>(int)"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def test_a_loader_that_is_waited_for_owns_the_idle_time_under_it(tmp_path: Path) -> None:
    found = only_step(
        tmp_path,
        [step(1, 0, 1000), span(LOADER, 0, 600), launched(GEMM, 610, 620, 380)],
    )
    assert found.idle_us == {"loader": 600, "host": 20}
    assert (found.loader_us, found.loader_idle_us, found.busy_us) == (600, 600, 380)
    assert found.wall_us == 1000


def test_a_loader_beside_a_busy_device_owns_nothing(tmp_path: Path) -> None:
    events = [step(1, 0, 1000), launched(GEMM, 2, 5, 995), span(LOADER, 100, 600)]
    found = only_step(tmp_path, events)
    assert (found.loader_us, found.loader_idle_us) == (600, 0)
    assert found.idle_us == {"host": 5}


def test_late_launches_are_the_hosts_and_gaps_between_queued_kernels_are_not(
    tmp_path: Path,
) -> None:
    found = only_step(
        tmp_path,
        [
            step(1, 0, 1000), launched(GEMM, 0, 0, 100), launched(GEMM, 10, 103, 100),
            launched(GEMM, 500, 510, 490),
        ],
    )  # fmt: skip
    assert found.idle_us == {"kernel-gap": 3, "host": 307}


def test_a_gap_after_the_host_waited_for_the_device_is_the_syncs(tmp_path: Path) -> None:
    found = only_step(
        tmp_path,
        [
            step(1, 0, 1000), launched(GEMM, 0, 0, 400),
            span("cudaStreamSynchronize", 20, 385, "cuda_runtime"),
            launched(GEMM, 500, 505, 495),
        ],
    )  # fmt: skip
    assert found.idle_us == {"sync": 105}
    assert (found.syncs, found.sync_us) == (1, 385)


@pytest.mark.parametrize(
    ("cat", "name", "owner", "field"),
    [
        ("cuda_runtime", "cudaMalloc", "allocator", "alloc_us"),
        ("cuda_runtime", "cudaFree", "allocator", "alloc_us"),
        ("cuda_runtime", "hipMalloc", "allocator", "alloc_us"),
        ("cuda_driver", "cuMemCreate", "allocator", "alloc_us"),
        ("user_annotation", "## save_checkpoint ##", "save", "save_us"),
        ("python_function", "torch/serialization.py(944): save", "save", "save_us"),
        ("python_function", "<built-in function collect>", "gc", "gc_us"),
        ("user_annotation", "gc.collect", "gc", "gc_us"),
        ("user_annotation", "_compile.compile_inner (dynamo_timed)", "compile", "compile_us"),
        ("user_annotation", "gloo:all_reduce", "communication", None),
        ("user_annotation", "## data_load ##", "loader", "loader_us"),
        ("user_annotation", "[pl][profile][_TrainingEpochLoop].train_dataloader_next", "loader",
         "loader_us"),
        ("python_function", "torch/utils/data/dataloader.py(720): __next__", "loader", "loader_us"),
    ],
)  # fmt: skip
def test_what_the_host_is_seen_to_do_owns_the_idle_time(
    tmp_path: Path, cat: str, name: str, owner: str, field: str | None
) -> None:
    events = [
        step(1, 0, 1000), launched(GEMM, 0, 0, 200), span(name, 250, 500, cat),
        launched(GEMM, 760, 760, 240),
    ]  # fmt: skip
    found = only_step(tmp_path, events)
    assert found.idle_us == {owner: 500, "host": 60}
    assert field is None or getattr(found, field) == 500
    assert found.allocs == (1 if owner == "allocator" else 0)


@pytest.mark.parametrize(
    "name",
    ["cudaMallocAsync", "TorchDynamo Cache Lookup", "Torch-Compiled Region: 0/0", "aten::linear",
     "Optimizer.zero_grad#AdamW.zero_grad", "## all2all_data:lengths ##"],
)  # fmt: skip
def test_other_spans_own_nothing(tmp_path: Path, name: str) -> None:
    cat = "cuda_runtime" if name.startswith("cuda") else "user_annotation"
    events = [step(1, 0, 1000), launched(GEMM, 0, 0, 200), span(name, 250, 500, cat),
              launched(GEMM, 760, 760, 240)]  # fmt: skip
    found = only_step(tmp_path, events)
    assert found.idle_us == {"host": 560}
    assert found.forward_us == found.loader_us == found.optimizer_us == 0


def test_kernels_whose_launch_was_not_recorded_leave_idle_time_unowned(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [step(1, 0, 100), on_device(GEMM, 0, 40), on_device(GEMM, 60, 40)])
    assert trace.steps[0].idle_us == {"unknown": 20}
    assert "launches" in trace.lacks


def test_a_device_that_lags_gives_its_work_to_the_step_that_launched_it(tmp_path: Path) -> None:
    """Each step on the host takes 100; its kernel begins when the one before ends."""
    events = [
        one
        for number in range(4)
        for one in (step(number, 100 * number, 100),
                    *launched(GEMM, 100 * number + 10, 50 + 300 * number, 300))
    ]  # fmt: skip
    trace = trace_of(tmp_path, events)
    assert [one.busy_us for one in trace.steps] == [300] * 4
    assert [one.wall_us for one in trace.steps] == [350, 300, 300, 300]
    assert [one.idle_us for one in trace.steps] == [{"host": 50}, {}, {}, {}]
    assert [one.host_us for one in trace.steps] == [100] * 4


def test_communication_is_exposed_where_nothing_computes_on_another_stream(tmp_path: Path) -> None:
    found = only_step(
        tmp_path,
        [
            step(1, 0, 1000), launched(GEMM, 0, 0, 500), launched(REDUCE, 5, 300, 600, stream=20),
            launched(ADD, 10, 800, 50), launched(GEMM, 15, 900, 100),
        ],
    )  # fmt: skip
    assert (found.comm_us, found.exposed_comm_us, found.compute_us) == (600, 350, 650)
    assert found.classes_us == {"gemm": 600, "elementwise": 50, "communication": 600}
    assert (found.busy_us, found.idle_us) == (1000, {})


def test_copies_tell_how_much_was_pinned_and_what_was_not_hidden(tmp_path: Path) -> None:
    found = only_step(
        tmp_path,
        [
            step(1, 0, 1000), copied("HtoD (Pageable -> Device)", 0, 10, 190, 1000),
            copied("HtoD (Pinned -> Device)", 20, 300, 100, 5000), launched(GEMM, 25, 250, 750),
            copied("DtoH (Device -> Pageable)", 30, 400, 10, 7),
        ],
    )  # fmt: skip
    assert (found.h2d_us, found.exposed_h2d_us) == (290, 190)
    assert (found.h2d_bytes, found.pageable_bytes) == (6000, 1000)


def test_short_kernels_and_the_queue(tmp_path: Path) -> None:
    starved = [launched(ADD, 100 * n, 100 * n + 6, 2, call_us=5) for n in range(9)]
    found = only_step(tmp_path, [step(1, 0, 1000), *starved])
    assert (found.kernels, found.launches, found.short_kernels) == (9, 9, 9)
    assert (found.kernel_median_us, found.queue_median) == (2, 1)
    fed = [launched(GEMM, 5 * n, 100 * n + 10, 100, call_us=4) for n in range(9)]
    found = only_step(tmp_path, [step(1, 0, 1000), *fed])
    assert (found.short_kernels, found.queue_median) == (0, 4)


def test_one_launch_of_a_graph_is_many_kernels(tmp_path: Path) -> None:
    events = [
        step(1, 0, 1000), span("cudaGraphLaunch", 10, 8, "cuda_runtime", args={"correlation": 77}),
        *(on_device(GEMM, 20 + 100 * n, 100, args={"correlation": 77}) for n in range(5)),
    ]  # fmt: skip
    trace = trace_of(tmp_path, events)
    assert trace.launch_limited
    assert (trace.steps[0].launches, trace.steps[0].kernels) == (1, 5)
    assert trace.steps[0].idle_us == {"host": 500}


def test_a_kernel_may_stand_before_its_launch(tmp_path: Path) -> None:
    call, kernel = launched(GEMM, 5, 150, 50)
    trace = trace_of(tmp_path, [step(1, 0, 100), step(2, 100, 100), kernel, call])
    assert [one.busy_us for one in trace.steps] == [50, 0]


def test_annotations_mirrored_on_the_device_count_once(tmp_path: Path) -> None:
    events = [
        step(1, 0, 1000), launched(GEMM, 0, 0, 900),
        on_device("ProfilerStep#1", 0, 900, "gpu_user_annotation"),
        on_device("Optimizer.step#SGD.step", 800, 100, "gpu_user_annotation"),
        span("Optimizer.step#SGD.step", 400, 50),
    ]  # fmt: skip
    found = only_step(tmp_path, events)
    assert (found.wall_us, found.optimizer_us, found.busy_us) == (1000, 50, 900)


def test_of_several_devices_the_one_with_most_work_is_told(tmp_path: Path) -> None:
    events = [step(1, 0, 1000), launched(GEMM, 0, 0, 100, device=0),
              launched(GEMM, 5, 5, 700, device=1)]  # fmt: skip
    trace = trace_of(tmp_path, events)
    assert trace.steps[0].busy_us == 700
    assert trace.damage == ("work of 2 devices: the one with most is told",)


def test_the_profilers_last_empty_step_is_none(tmp_path: Path) -> None:
    events = [step(1, 0, 1000), launched(GEMM, 0, 0, 1000), step(2, 1001, 4)]
    assert [one.number for one in trace_of(tmp_path, events).steps] == [1]


def test_a_step_ends_where_the_profiler_stopped_to_look(tmp_path: Path) -> None:
    events = [step(1, 0, 90_000), launched(GEMM, 0, 0, 400),
              span("PyTorch Profiler (0)", 0, 500, "Trace")]  # fmt: skip
    assert only_step(tmp_path, events).wall_us == 500


def test_begin_and_end_may_be_two_events(tmp_path: Path) -> None:
    begin = {"ph": "B", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1,
             "ts": 0}  # fmt: skip
    loader = {**begin, "name": LOADER, "ts": 10}
    ends = [{"ph": "E", "pid": 1, "tid": 1, "ts": at} for at in (310, 1000)]
    found = only_step(tmp_path, [begin, loader, *ends, launched(GEMM, 320, 320, 680)])
    assert (found.number, found.wall_us, found.loader_us) == (4, 1000, 300)


def test_categories_as_older_profilers_wrote_them(tmp_path: Path) -> None:
    events = [
        {**step(1, 0, 1000), "cat": "Operator"},
        {**span(LOADER, 0, 200), "cat": "Operator"},
        span("cudaLaunchKernel", 200, 5, "Runtime", args={"correlation": 9}),
        on_device(GEMM, 210, 700, "Kernel", args={"correlation": 9}),
        on_device("Memcpy HtoD (Pageable -> Device)", 910, 40, "Memcpy", args={"bytes": 64}),
        on_device("Memset (Device)", 950, 50, "Memset"),
    ]
    found = only_step(tmp_path, events)
    assert found.classes_us == {"gemm": 700, "copy": 40, "set": 50}
    assert (found.loader_us, found.pageable_bytes, found.wall_us) == (200, 64, 1000)


def test_a_run_without_a_device_has_its_parts_on_the_host(tmp_path: Path) -> None:
    events = [
        step(1, 0, 1000), span(LOADER, 0, 300), span("aten::linear", 300, 150, "cpu_op"),
        span("aten::addmm", 310, 100, "cpu_op"),
        span("autograd::engine::evaluate_function: AddmmBackward0", 450, 250, "cpu_op"),
        span("gloo:all_reduce", 600, 200, tid=AUTOGRAD),
        span("Optimizer.step#AdamW.step", 800, 100), span("aten::_foreach_add_", 810, 50, "cpu_op"),
    ]  # fmt: skip
    trace = trace_of(tmp_path, events)
    (found,) = trace.steps
    assert not trace.has_device and "kernels" in trace.lacks
    assert (found.loader_us, found.forward_us, found.backward_us) == (300, 150, 250)
    assert (found.comm_us, found.exposed_comm_us, found.optimizer_us) == (200, 100, 100)


def test_a_trace_without_steps_is_one(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [span("aten::linear", 0, 50, "cpu_op"), launched(GEMM, 10, 20, 80)])
    (found,) = trace.steps
    assert (found.number, found.wall_us, found.busy_us) == (-1, 100, 80)
    assert "steps" in trace.lacks


def test_times_that_no_clock_gives_are_left_out_and_told(tmp_path: Path) -> None:
    week = 7 * 86400e6
    events = [
        step(1, 1e9, 1000), launched(GEMM, 1e9, 1e9, 400), on_device(GEMM, 1e9, week + 1),
        on_device(GEMM, 9.3e18, 5), on_device(GEMM, 1e9, -3), launched(GEMM, 1e9 + 5, 12.0, 3),
        {"ph": "i", "name": "Record Window End", "ts": 2**63, "pid": "", "tid": ""},
    ]  # fmt: skip
    trace = trace_of(tmp_path, events)
    assert trace.damage == ("4 events with times that no clock gives are left out",)
    assert (trace.steps[0].busy_us, trace.steps[0].wall_us) == (400, 1000)


def test_what_was_not_recorded_is_told(tmp_path: Path) -> None:
    bare = trace_of(tmp_path, [launched(GEMM, 0, 5, 80)], distributedInfo={})
    assert bare.lacks == ("steps", "operators", "python stacks", "rank")
    full = [
        step(1, 0, 100), span("aten::add", 0, 5, "cpu_op"),
        span("f.py(1): f", 0, 9, "python_function"),
        launched(REDUCE, 0, 5, 80, args={"Process Group Name": "0", "Seq": 4}),
    ]  # fmt: skip
    assert trace_of(tmp_path, full).lacks == ()
