"""What a training log tells, step by step, and what else it says between the steps."""

from __future__ import annotations

from array import array
from typing import Literal

from msgspec import Struct, field

from preflight.facts.hangs import StackProcess

#: How a value stands for its step: of it alone, a mean since the start, smoothed, a sum since.
Way = Literal["now", "mean-so-far", "smoothed", "sum"]

#: Names that readers give to what frameworks call differently, with their units. What is not here
#: keeps the framework's own name (`timing_s/gen`).
NAMES = {
    "step": "optimizer step",
    "loss": "nats; where a framework tells bits, converted",
    "lr": "learning rate",
    "grad_norm": "before clipping",
    "param_norm": "of all parameters",
    "loss_scale": "of fp16; -1 and 1 are none",
    "step_s": "of one step, seconds",
    "data_s": "waited for data in a step, seconds",
    "data_percent": "the same, of the step",
    "forward_s": "of a step",
    "backward_s": "of a step, communication within it included",
    "comm_s": "communication that is not hidden, of a step",
    "optimizer_s": "of a step",
    "save_s": "of a checkpoint, where it stands beside the step",
    "tokens_per_s": "of all devices",
    "tokens_per_s_gpu": "of one",
    "samples_per_s": "of all devices",
    "tflops_gpu": "model FLOP/s of one device, 1e12",
    "mfu_percent": "as the framework reckons it",
    "skipped": "steps left out since the line before",
    "nan_steps": "steps not finite since the line before",
    "samples": "seen since the start",
    "tokens": "seen since the start",
    "batch_samples": "of one step, all devices",
    "memory_bytes": "of a device",
    "epoch": "may be a fraction",
    "val_loss": "nats",
    "time_s": "when the line was written, Unix seconds; of a log without a date: since its start",
    "elapsed_s": "of the run, as it tells itself",
    "worst_loss": "of the rank with the largest, where that is told",
    "alloc_retries": "of the device's allocator, since the start",
}


class Column(Struct):
    """One value over the rows of a series. NaN where a row lacks it; see `bad` for what is no
    number. With `fold` 1 the three arrays are one."""

    mean: array[float]  # of what is finite in a row
    low: array[float]
    high: array[float]
    #: Row -> how many values in it were written as nan or inf; rows without any are left out.
    bad: dict[int, int] = field(default_factory=dict)
    way: Way = "now"


class Series(Struct):
    """Lines of steps, in the order of the log. Of a log with very many, neighbours are folded into
    one row, so that no more than some 200,000 rows are kept: `fold` says how many lines a row is,
    and extremes are kept. `offset` finds the lines again."""

    source: str  # the file
    style: str  # megatron, hf-trainer, ... ; `learned` where no style is known
    fold: int = 1
    line: array[int] = field(default_factory=lambda: array("q"))  # of the first, from 1
    offset: array[int] = field(default_factory=lambda: array("q"))  # its byte
    columns: dict[str, Column] = field(default_factory=dict)
    lines: int = 0  # of steps, in all
    rank: int | None = None  # whose lines these are, where several ranks write
    host: str = ""
    total_steps: int | None = None  # that the run is to have, where it is told

    def values(self, name: str) -> array[float]:
        """The means of a column; all NaN where there is none."""
        if name in self.columns:
            return self.columns[name].mean
        return array("d", [float("nan")]) * len(self.line)


class LogEvent(Struct, frozen=True, omit_defaults=True):
    """A line that says something else. `kind`: a row of logs/events (save-begins, save-ends,
    saved-async, eval-begins, eval-ends, loaded, started, gc, allocator-flush, alloc-retry,
    recompile, overflow, watchdog, error, out-of-memory, killed, ended, straggler, transport ...).
    """

    kind: str
    line: int
    text: str
    step: int | None = None
    time_s: float | None = None
    seconds: float | None = None  # that it says it took
    rank: int | None = None
    values: dict[str, float] = {}  # others that it tells: MxRtt, MxRtt/rank


class Log(Struct):
    """One log. `unread`: kinds of lines that look like figures of steps and were not understood,
    with one of each."""

    source: str
    series: tuple[Series, ...] = ()
    events: tuple[LogEvent, ...] = ()
    #: Events of a kind beyond the first some thousand are counted only.
    more_events: dict[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    lines: int = 0
    bytes: int = 0
    truncated: bool = False
    #: That faulthandler wrote into it.
    stacks: tuple[StackProcess, ...] = ()
    #: What it tells of the run once: gpu, gpus, params, layers, sequence, precision, nccl ...
    told: dict[str, str] = field(default_factory=dict)
