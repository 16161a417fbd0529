"""What a log of a framework leaves out, and what makes it tell."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.diagnosis.reading import Lack
from preflight.diagnosis.step_time.log_parts import told_causes
from preflight.diagnosis.step_time.log_run import Run

_TRACE = (
    "a trace of each rank: torch.profiler.profile(schedule=schedule(wait=10, warmup=2, active=10), "
    "on_trace_ready=tensorboard_trace_handler(DIR)), then preflight diagnose-step-time DIR"
)
_LIVE = "while it runs: preflight diagnose-step-time PID"
#: Style of a log -> what makes the framework tell where a step goes.
_SUPPLY = {
    "megatron": "--timing-log-level 2 --timing-log-option minmax (Megatron-LM), or "
                '"wall_clock_breakdown": true in DeepSpeed\'s configuration',
    "deepspeed": '"wall_clock_breakdown": true in DeepSpeed\'s configuration',
    "deepspeed-pipe": '"wall_clock_breakdown": true in DeepSpeed\'s configuration',
    "torchtitan": "--metrics.enable_tensorboard: time_metrics/data_loading(%) and end_to_end(s)",
    "olmo-core": "the console logger's throughput/device/data loading (%)",
    "verl": "its timing_s/* figures",
    "composer": "SpeedMonitor(window_size=1) and DataloaderSpeed in callbacks",
}  # fmt: skip
_WHERE = ("data-wait", "host", "exposed-communication", "straggler", "h2d")
#: Rows of which each is one step, and so many of them.
_SERIES = 20


def lacks_of(run: Run) -> Iterator[Lack]:
    """Causes that nothing in this log can show."""
    told = told_causes(run)
    open_ = tuple(one for one in _WHERE if one not in told)
    if open_:
        supply = _SUPPLY.get(run.series.style, "")
        text = "where a step goes is not in this log"
        if told:
            text = "a part of where a step goes is not in this log"
        for one in filter(None, (supply, _TRACE, _LIVE)):
            yield Lack(open_, text, one)
    if not run.each_step and len(run.kept) >= _SERIES:
        steps = sorted(run.times.steps[at] for at in run.kept)[len(run.kept) // 2]
        yield Lack(("data-wait-periodic",), f"a line stands for {steps:,.0f} steps, so that single "
                   "slow steps are not seen", "a line for each step: log interval 1")  # fmt: skip
    if len(run.kept) < _SERIES:
        yield Lack(("drift", "irregular"), f"the lengths of only {len(run.kept)} steps are in it",
                   "a longer piece of the log")  # fmt: skip
