"""Timelines of pipelines: which worker, stage and step an operation belongs to.

The real one is of 8 GPUs, 2 of data and 4 stages of pipeline parallelism: data/timeline_ST of
ByteDance-Seed/StragglerAnalysis (Apache-2.0), unedited.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.facts.traces import Timeline
from preflight.traces import kineto, timeline
from tests.conftest import SAMPLES, sample_bytes

REAL = SAMPLES / "op_timeline" / "timeline_ST.json.gz"


def read(path: Path) -> Timeline:
    return timeline.read(path, lambda told: None)


def test_a_real_job_of_eight_workers() -> None:
    found = read(REAL)
    assert len(found.operations) == 6784
    assert found.damage == ()
    places = {(one.worker, one.dp_rank, one.stage) for one in found.operations}
    assert places == {(4 * dp + stage, dp, stage) for dp in range(2) for stage in range(4)}
    kinds = Counter(one.kind for one in found.operations)
    assert (kinds["forward-compute"], kinds["backward-send"], kinds["gc"]) == (1024, 768, 256)
    first = found.operations[0]
    assert (first.kind, first.step, first.micro_batch, first.chunk) == (
        "backward-compute",
        23,
        0,
        0,
    )
    assert (first.start_us, first.duration_us) == (848671.6747283936, 138679.68320846558)


def test_it_is_a_timeline_and_no_trace_of_a_rank() -> None:
    head = gzip.decompress(sample_bytes("op_timeline/timeline_ST.json.gz"))[:65536]
    assert timeline.sniff(head, "x.json")
    kernel = b'[{"name":"gemm","ph":"X","pid":1,"ts":1}]'
    assert not timeline.sniff(kernel, "x.json")
    assert kineto.sniff(kernel, "x.json")
    assert not timeline.sniff(b'the forward-compute "forward-compute" of a log', "x.log")


def operation(pid: int, tid: int, start: float) -> dict[str, object]:
    return {"name": "forward-compute", "cat": "forward-compute", "ph": "X", "pid": pid, "tid": tid,
            "ts": start, "dur": 5.0, "args": {"step": 1, "mb_id": 2, "model_chunk": 1}}  # fmt: skip


def test_without_names_of_threads_a_process_is_a_worker(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"traceEvents": [operation(pid, 0, pid) for pid in (5, 3, 11)]}))
    found = read(file)
    assert [(one.worker, one.stage, one.dp_rank) for one in found.operations] == [
        (1, None, None), (0, None, None), (2, None, None),
    ]  # fmt: skip
    assert (found.operations[0].micro_batch, found.operations[0].chunk) == (2, 1)


def test_a_timeline_that_is_cut_says_so(tmp_path: Path) -> None:
    text = gzip.decompress(sample_bytes("op_timeline/timeline_ST.json.gz"))
    file = tmp_path / "t.json"
    file.write_bytes(text[: len(text) // 2])
    found = read(file)
    assert 3000 < len(found.operations) < 4000
    assert found.damage[-1] == f"cut after {len(text) // 2:,} bytes: its end is missing"


def test_absurd_times_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps([operation(0, 0, 5), operation(0, 0, 2**63)]))
    assert len(read(file).operations) == 1
    assert read(file).damage == ("1 events with times that no clock gives are left out",)


@pytest.mark.parametrize("text", ["[]", "{}", "", "[1, 2]", '{"traceEvents": [{}]}'])
def test_nothing_of_a_pipeline_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(ParseError):
        read(file)
