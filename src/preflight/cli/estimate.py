"""preflight estimate: time, GPU-hours, energy and cost of a run, from stored reports."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from preflight import __version__
from preflight.cli.clock import now
from preflight.cli.finishing import finish, shown
from preflight.cli.options import Options
from preflight.cli.saving import opened_targets
from preflight.cli.stored import stored
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.estimate.findings import findings
from preflight.estimate.measured import measured
from preflight.estimate.run import SHARDINGS, Run
from preflight.estimate.whole import estimate
from preflight.expect.checkpoint_bytes import held, layout
from preflight.model import Counts, Report, Status
from preflight.redact.secrets import in_arguments
from preflight.reports import RENDERERS
from preflight.reports.estimate import estimate_tables
from preflight.units import parse_count, parse_duration, parse_rate
from preflight.verdict import verdict_of

_EXAMPLE = "preflight estimate train.json --params 7e9 --tokens 2e12 --gpus 64"
#: What a number may be: at least, at most.
_BOUNDS = {
    "params": (1, 1e16), "active_params": (1, 1e16), "tokens": (1, 1e18), "gpus": (1, 1e7),
    "layers": (1, 1e5), "width": (1, 1e7), "length": (1, 1e9), "tokens_per_gpu": (1, 1e12),
    "accumulation": (1, 1e6), "mfu": (0.01, 100), "peak": (0.1, 1e5), "busbw": (1e-6, 1e6),
    "write_speed": (1e-6, 1e9), "read_speed": (1e-6, 1e9), "power": (1, 1e5), "mtbf": (1, 1e10),
    "restart": (0, 1e7), "interval": (1e-3, 1e9), "stall": (1e-6, 1e7), "wait": (0, 1e4),
    "price": (0, 1e9), "price_kwh": (0, 1e9), "price_storage": (0, 1e9), "price_transfer": (0, 1e9),
    "price_requests": (0, 1e9), "keep": (0, 1e9), "transfers": (0, 1e9), "vocab": (1, 1e9),
}  # fmt: skip
_READ: dict[str, Callable[[str], float]] = {
    **dict.fromkeys(("params", "active_params", "tokens", "tokens_per_gpu"), parse_count),
    **dict.fromkeys(("mtbf", "restart", "interval", "stall"), parse_duration),
    **dict.fromkeys(("write_speed", "read_speed"), lambda text: parse_rate(text) / 1e9),
}
#: Names of options that Run has with a unit.
_UNITS = {
    "mfu": "mfu_percent", "peak": "peak_tflops", "busbw": "busbw_gbps", "write_speed": "write_gbps",
    "read_speed": "read_gbps", "power": "power_w", "mtbf": "mtbf_s", "restart": "restart_s",
    "interval": "interval_s", "stall": "stall_s", "wait": "wait_percent",
}  # fmt: skip


def run(options: Options, streams: Streams) -> int:
    """Read the reports, reckon, print and save; 1 where the state does not fit on a GPU, 3 where
    the time of the run cannot be told."""
    if options.format not in RENDERERS:
        raise UsageError(
            f"--format {options.format!r} is no choice", f"one of {', '.join(RENDERERS)}"
        )
    asked = run_of(options)
    began, started_at = time.monotonic(), now()
    names = [*options.reports, *options.from_]
    reports = [_stored(name) for name in names]
    told = estimate(asked, measured(reports, asked.sharding))
    report = Report(
        command="estimate", argv=tuple(in_arguments(sys.argv[1:])), level="",
        started_at=started_at, elapsed_s=round(time.monotonic() - began, 2),
        verdict=Status.PASS, counts=Counts(), hosts=(), findings=findings(told),
        measurements=estimate_tables(told), preflight=__version__,
    )  # fmt: skip
    report.verdict = verdict_of(one.status for one in report.findings)
    with opened_targets(options, drawn=False) as targets:
        return finish(shown(report, options), options, streams, targets)


def _stored(name: str) -> tuple[str, Report]:
    """A report with the name that it is called by; - is standard input."""
    if name == "-":
        return "standard input", stored(Path("/dev/stdin"))
    return Path(name).name, stored(Path(name))


def run_of(options: Options) -> Run:
    """What the user states; UsageError where a number cannot be one of a run."""
    lacking = [f"--{name}" for name in ("params", "tokens", "gpus") if not _given(options, name)]
    if lacking:
        raise UsageError(f"an estimate needs {', '.join(lacking)}", _EXAMPLE)
    numbers = {name: _number(options, name) for name in _BOUNDS if _given(options, name)}
    _hold_shape(numbers, options)
    sharding, optimizer = options.sharding or "fsdp", options.optimizer or "adamw"
    if sharding not in SHARDINGS:
        raise UsageError(f"--sharding {sharding!r} is no choice", f"one of {', '.join(SHARDINGS)}")
    layout(optimizer)
    fields = {_UNITS.get(name, name): value for name, value in numbers.items()}
    fields |= _attention(options)
    return Run(**fields, sharding=sharding, optimizer=optimizer, gpu=options.gpu)  # type: ignore[arg-type]


def _hold_shape(numbers: dict[str, float], options: Options) -> None:
    """What is told of a model belongs together."""
    if numbers.get("active_params", 0) > numbers["params"]:
        raise UsageError("--active-params is above --params", _EXAMPLE)
    for name in ("heads", "vocab"):
        if _given(options, name) and not _given(options, "width"):
            raise UsageError(f"--{name} needs --width", "--width 4096, the model's hidden size")
    computing = numbers.get("active_params", numbers["params"])
    if numbers.get("vocab", 0) * numbers.get("width", 0) >= computing:
        raise UsageError("--vocab x --width is not below the parameters", _EXAMPLE)


def _attention(options: Options) -> dict[str, int]:
    """The width of all heads together."""
    if options.heads is None:
        return {}
    match = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", options.heads.strip())
    if match is None:
        raise UsageError(f"--heads {options.heads!r} is not HEADSxSIZE", "--heads 64x128")
    return {"attention_width": int(match[1]) * int(match[2])}


def _given(options: Options, name: str) -> bool:
    return getattr(options, name) is not None


def _number(options: Options, name: str) -> float:
    """The option's value in its unit; whole where it was given as a whole number."""
    said = getattr(options, name)
    try:
        value = _READ[name](said) if name in _READ else said
    except UsageError as error:
        raise UsageError(f"{_flag(name)} {error.what}", error.hint) from None
    if not math.isfinite(value):
        raise UsageError(f"{_flag(name)} {said} is no number", _EXAMPLE)
    held(_flag(name), value, *_BOUNDS[name])
    return float(value) if not isinstance(value, int) else value


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
