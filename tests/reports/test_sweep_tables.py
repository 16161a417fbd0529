"""The table of a sweep: reasons stand beside it, and what it cannot tell above it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from preflight.facts.training import Training
from preflight.model import Counts, HostReport, Report, Status
from preflight.probes.training.run import training
from preflight.reports import render
from preflight.reports.sweeps import sweep_tables
from tests.training_lines import swept

_LONG = (
    "rank 1 said nothing for 20 s after step 4: it is stopped by a signal (PID 4711); rank 0 " * 3
)


def edited(**changes: dict[str, Any]) -> Training:
    """A sweep some of whose settings (by the beginning of their names) tell something else."""
    lines = [json.loads(one) for one in swept().splitlines()]
    lines.insert(1, {"kind": "sweep", "axis": "loader", "left_out": "not tried: 8 workers"})
    for one in lines:
        for name, told in changes.items():
            if str(one.get("setting", "")).replace(" ", "_").startswith(name):
                one |= told
    return training("\n".join([*map(json.dumps, lines), ""]))


def shown(run: Training, form: str = "text") -> str:
    report = Report(
        "micro-train", (), "standard", "2026-01-02T03:04:05Z", 40.0, Status.PASS, Counts(),
        (HostReport("node-07", Status.PASS),), measurements=sweep_tables(run, "node-07"),
    )  # fmt: skip
    return "".join(render(report, form))


def test_a_long_reason_leaves_the_table_aligned() -> None:
    told = shown(edited(workers_0={"failed": _LONG, "tokens_per_s": None}))
    assert "  setting            n  tokens/s" in told
    assert re.search(r"^  workers 0, pinned +failed", told, re.MULTILINE)
    assert "workers 0, pinned: rank 1 said nothing for 20 s" in told
    assert "not tried: 8 workers" in told
    assert max(map(len, told.split("\n"))) <= 100


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_what_cannot_be_told_stands_above_the_rows(form: str) -> None:
    lines = swept()
    for old, new in (("995.0", "500.0"), ("1194.0", "400.0"), ("796.0", "300.0")):
        lines = lines.replace(f'"tokens_per_s":{old}', f'"tokens_per_s":{new}')
    told = shown(training(lines), form)
    said = told.index("nothing can be told")
    assert said < told.index("workers 0, pinned", told.index("sweep: loader"))
    assert "take this" not in told


def test_a_setting_that_failed_says_what_to_type_for_it() -> None:
    run = edited(workers_2={"failed": "rank 1 ended with -9", "tokens_per_s": None})
    assert isinstance(run.sweeps, tuple)
    (broken,) = run.sweeps[1].broken  # type: ignore[misc]
    assert broken.startswith("workers 2, pinned: rank 1 ended with -9; by itself: `preflight micro")
    assert broken.endswith("--preset gpu-small --ranks 4 --workers 2 --prefetch 2`")


@pytest.mark.parametrize(
    ("asked", "shown_there", "not_there"),
    [
        ({"launches": 1204, "launch_bound_percent": 35.0}, ("1,204", "35.0 %"), ("operators",)),
        ({"operators": 625}, ("operators", "625"), ("launches", "launch-bound")),
    ],
)
def test_what_a_step_asks_of_its_device_stands_beside_its_cache(
    asked: dict[str, Any], shown_there: tuple[str, ...], not_there: tuple[str, ...]
) -> None:
    lines = [json.loads(one) for one in swept().splitlines()]
    lines[0]["plan"]["sweep"] = {"kv-heads": []}
    for one in lines:
        if one.get("axis") == "loader":
            values = {"kv_heads": one["values"]["workers"] + 1}
            one |= {"axis": "kv-heads", "values": values, "kv_cache_bytes": 3 << 20}
            one |= asked if one["round"] == 0 else {}
    told = shown(training("\n".join([*map(json.dumps, lines), ""])))
    for word in ("KV cache", "3 MiB", *shown_there):
        assert word in told
    assert not [word for word in not_there if word in told]


def test_checkpointing_by_operator_is_named_as_torch_calls_it() -> None:
    lines = [json.loads(one) for one in swept().splitlines()]
    lines[0]["plan"]["sweep"] = {"recompute": []}
    for one in lines:
        if one.get("axis") == "loader":
            at = int(one["values"]["workers"])
            values = {"blocks": 4, "of": 8, **({"operators": True} if at == 2 else {})}
            one |= {"axis": "recompute", "values": values}
    told = " ".join(shown(training("\n".join([*map(json.dumps, lines), ""]))).split())
    assert "create_selective_checkpoint_contexts): +20.0 % tokens/s" in told
