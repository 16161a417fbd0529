"""Lines between the steps: what kind each is, and what it tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.facts.series import LogEvent
from preflight.logs.training import events
from tests.conftest import sample_bytes
from tests.logs.training.reading import read
from tests.logs.training.styles_text import written

#: A line -> its kind, and the step, seconds and values that it tells.
LINES: dict[str, tuple[str, int | None, float | None, dict[str, float]]] = {
    "  saving checkpoint at iteration   500 to /ckpt in torch_dist format":
        ("save-begins", 500, None, {}),
    "Saving model checkpoint to /out/checkpoint-500": ("save-begins", 500, None, {}),
    "scheduled an async checkpoint save at iteration     500 to /ckpt":
        ("saved-async", 500, None, {}),
    "  successfully saved checkpoint from iteration     500 to /ckpt [ t 1/8, p 1/4 ]":
        ("save-ends", 500, None, {}),
    "Finished saving the checkpoint (or staging if async is enabled) in 2.31 seconds.":
        ("save-ends", 9, 2.31, {}),
    " successfully loaded checkpoint from /ckpt [ t 1/8, p 1/4 ] at iteration 120":
        ("loaded", 120, None, {}),
    "Resuming training from checkpoint /out/checkpoint-500": ("loaded", 500, None, {}),
    "***** Running Evaluation *****": ("eval-begins", 9, None, {}),
    "***** Running training *****": ("started", 9, None, {}),
    "[titan] 2026-01-02 03:04:05,678 - root - INFO - Training completed": ("ended", 9, None, {}),
    "[GC] Performing periodic GC collection took 0.21 seconds": ("gc", 9, 0.21, {}),
    "3 pytorch allocator cache flushes since last step. this happens when memory is short":
        ("allocator-flush", 9, None, {"count": 3}),
    "12 CUDA memory allocation retries.": ("alloc-retry", 9, None, {"count": 12}),
    "torch._dynamo hit config.recompile_limit (8)": ("recompile", 9, None, {}),
    "W0102 03:04:05.000 torch/_dynamo/convert_frame.py:906] torch._dynamo hit "
    "config.cache_size_limit (8)": ("recompile", 9, None, {}),
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768":
        ("overflow", 9, None, {"scale": 65536, "to": 32768}),
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.":
        ("out-of-memory", 9, None, {}),
    "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.": ("out-of-memory", 9, None, {}),
    "srun: error: node-03: task 5: Killed": ("killed", 9, None, {}),
    "ERROR torch.distributed.elastic: failed (exitcode: -9) local_rank: 3": ("killed", 9, None, {}),
    "srun: error: node-03: task 5: Exited with exit code 1": ("error", 9, None, {}),
    "[rank0]: ValueError: a batch of 3 is none of 4": ("error", 9, None, {}),
    "node-01:123:456 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>":
        ("transport", 9, None, {}),
    "node-01:123:456 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct":
        ("transport", 9, None, {}),
    "[2026-01-02 03:04:05] | MnRtt/Rnk: 1.10s/3 | MxRtt/Rnk: 1.32s/7 | MnClk/Rnk: 1200MHz/7 | "
    "MxEtpt/Rnk: 410.10TF/2": ("straggler", 9, None, {
        "MnRtt": 1.1, "MnRtt/rank": 3, "MxRtt": 1.32, "MxRtt/rank": 7, "MnClk": 1200,
        "MnClk/rank": 7, "MxEtpt": 410.1, "MxEtpt/rank": 2}),
}  # fmt: skip
SILENT = (
    "[INFO] Loading extension module utils...",
    "Traceback (most recent call last):",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x42",
    "time to initialize megatron (seconds): 12.3",
    "NCCL_DEBUG=INFO and no more",
    "validation samples: 20480",
)


def told(tmp_path: Path, line: str) -> list[LogEvent]:
    return list(read(tmp_path, f"{written('nanogpt', 10)}{line}\n").events)


@pytest.mark.parametrize("line", list(LINES))
def test_a_line_is_of_its_kind_and_tells_what_it_says(tmp_path: Path, line: str) -> None:
    (event,) = told(tmp_path, line)
    kind, step, seconds, values = LINES[line]
    assert (event.kind, event.line, event.step, event.seconds) == (kind, 10, step, seconds)
    assert event.values == values and event.text == line.strip()


@pytest.mark.parametrize("line", SILENT)
def test_other_words_are_no_events(tmp_path: Path, line: str) -> None:
    assert told(tmp_path, line) == []


def test_an_event_has_the_time_and_the_rank_that_its_line_tells(tmp_path: Path) -> None:
    (event,) = told(tmp_path, "[rank3]: 2026-01-02 03:04:05,678 ValueError: none")
    assert (event.time_s, event.rank) == (1767323045.678, 3)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("deepspeed_2rank_broadcast_seq1_init_hang", ["watchdog"] * 5),
        ("desync_report_rank1_missed_collective3", ["watchdog", *["desync"] * 6]),
        ("lightning_metric_allreduce_numel1_seq6463", ["watchdog"] * 5),
    ],
)
def test_words_of_watchdogs_reach_the_reader_of_hangs(
    tmp_path: Path, name: str, kinds: list[str]
) -> None:
    found = read(tmp_path, sample_bytes(f"nccl_watchdog/{name}.log"))
    assert [one.kind for one in found.events] == kinds


def test_of_very_many_events_some_are_kept_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_EVENTS", 20)
    text = written("nanogpt", 10) + "12 CUDA memory allocation retries.\n" * 50
    found = read(tmp_path, text + "srun: error: node-03: task 5: Killed\n")
    assert len(found.events) == 21 and found.more_events == {"alloc-retry": 30}
    assert found.events[-1].kind == "killed"
