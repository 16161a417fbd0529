"""A training run in the report: rate, shares, ledger from peak to MFU, memory; in all formats."""

from __future__ import annotations

import json

import pytest

from preflight.assemble.host import assemble
from preflight.expect.mfu import Mfu, mfu
from preflight.expect.models import models
from preflight.facts.host import Host
from preflight.facts.training import Training
from preflight.model import Counts, HostReport, Missing, Raw, Report, Status
from preflight.reports import render
from preflight.reports.training import training_tables
from tests.conftest import sample
from tests.training_lines import text

#: GPUs of data centres: their peak is known.
_DATA_CENTRE = ("A100-SXM4-80GB", "H100 80GB HBM3", "H200", "B200", "L40S", "GB200", "H20")


def host(told: str) -> Host:
    return assemble("node-07", [Raw("node-07", "micro-train", (), 0, told)]).host


def run(told: str) -> Training:
    found = host(told).training
    assert not isinstance(found, Missing)
    return found


def rate(told: str) -> Mfu:
    found = mfu(run(told))
    assert not isinstance(found, Missing), found
    return found


def test_the_figures_are_there_as_numbers_too() -> None:
    tables = {one["table"]: one for one in training_tables(host(text(gpu=True)))}
    numbers = tables["training"]["numbers"]
    assert numbers["tokens_per_s"] == pytest.approx(102400)
    assert numbers["step_median_s"] == pytest.approx(0.02)
    assert (numbers["ranks"], numbers["resume_step"]) == (2, 16)
    memory = tables["training: memory of the rank that needs most"]["numbers"]
    assert memory["peak_bytes"] > memory["weights_bytes"] > 0


def test_what_decides_the_figures_stands_in_the_first_row() -> None:
    told = text().replace('"sharding":"ddp"', '"sharding":"ddp","mesh":"1x2","comm_hook":"fp16"')
    told = told.replace('"accumulation":1', '"accumulation":4')
    first = training_tables(host(told))[0]["rows"][0]["value"]
    assert "ddp 1x2, " in first
    assert "4 micro-batches a step, gradients averaged in fp16, " in first


def test_what_was_asked_for_and_cannot_be_of_one_rank_is_told() -> None:
    told = text().replace('"sharding":"ddp"', '"sharding":"single"')
    told = told.replace('"kind":"begin"', '"kind":"begin","sharding_asked":"fsdp"')
    first = training_tables(host(told))[0]["rows"][0]["value"]
    assert "single (one rank has nobody to share with: no fsdp), " in first


def test_mfu_is_the_rate_over_the_peak_of_all_gpus() -> None:
    found = rate(text(gpu=True))
    assert found.peak_tflops == 989.4
    assert found.percent == pytest.approx(100 * 102400 * 2e9 / (2 * 989.4e12))
    assert "989.4 TFLOP/s x 2 GPUs" in found.formula
    assert "datasheet" in found.source


def test_the_ledger_goes_from_the_peak_to_mfu_and_adds_up() -> None:
    ledger = rate(text(gpu=True)).ledger
    assert sum(one.percent for one in ledger) == pytest.approx(100)
    assert sum(one.tflops for one in ledger) == pytest.approx(989.4)
    by_name = {one.name: one.percent for one in ledger}
    # Of 20 ms 16 are forward and backward; waiting costs its share at the rate of these.
    reached = by_name["MFU"] / 0.8
    assert by_name["exposed communication"] == pytest.approx(reached * 0.05)
    assert by_name["data"] == pytest.approx(reached * 0.02)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA Z9000", "NVIDIA Z9000 has no row"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA A16", "has no half_tflops"),
        ('"precision":"fp16"', '"precision":"fp32"', "bf16 and fp16 only"),
        ('"device":"cuda"', '"device":"cpu"', "processors have no one peak"),
    ],
)
def test_without_a_peak_there_is_none_and_the_report_says_why(old: str, new: str, why: str) -> None:
    edited = text(gpu=True).replace(old, new)
    assert edited != text(gpu=True)
    found = mfu(run(edited))
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"
    assert why in found.text


def test_gpus_of_data_centres_have_a_peak() -> None:
    for name in _DATA_CENTRE:
        found = mfu(run(text(gpu=True).replace("H100 80GB HBM3", name)))
        assert isinstance(found, Mfu), name
    assert all(row.half_tflops > 50 for row in models() if isinstance(row.half_tflops, float))


def test_the_tables_of_a_recorded_run() -> None:
    found = training_tables(host(sample("micro_train/cpu_ddp_x2.jsonl")))
    tables = {one["table"]: one for one in found}
    told = {row["measure"]: row["value"] for row in tables["training"]["rows"]}
    assert told["trained"].startswith("cpu-tiny, fp32, ddp, 2 ranks on processors")
    assert told["loss"].startswith("4.1") and told["loss"].endswith("(floor 1.39)")
    assert told["resume"].startswith("killed; resumed at step 20 in ")
    assert told["MFU"] == "processors have no one peak to be held against"
    shares = tables["training: where a step's time goes"]["rows"]
    assert sum(row["rank 0 (%)"] for row in shares) == pytest.approx(100, abs=0.5)
    assert "training: from peak to MFU" not in tables


def test_a_run_without_a_step_has_no_tables() -> None:
    assert training_tables(host('{"kind":"cannot","text":"no GPU"}\n')) == ()
    assert training_tables(Host("n")) == ()


def test_all_formats_that_people_and_programs_read_have_them() -> None:
    report = Report(
        "micro-train", (), "standard", "2026-01-02T03:04:05Z", 40.0, Status.PASS, Counts(),
        (HostReport("node-07", Status.PASS),),
        measurements=training_tables(host(text(gpu=True))),
    )  # fmt: skip
    shown = {name: "".join(render(report, name)) for name in ("text", "markdown", "json")}
    for name in ("text", "markdown"):
        assert "kernels slower than the peak" in shown[name], name
        assert "10.3 %" in shown[name], name
    assert max(map(len, shown["text"].split("\n"))) <= 100
    (first, *_) = json.loads(shown["json"])["measurements"]
    assert (first["table"], first["host"]) == ("training", "node-07")


def test_a_slow_rank_is_the_rest_of_one_and_communication_of_the_other() -> None:
    tables = training_tables(host(sample("micro_train/injected_slow_rank.jsonl")))
    (rows,) = (one["rows"] for one in tables if one["table"].endswith("time goes"))
    parts = {row["part"]: row for row in rows}
    assert parts["communication"]["rank 0 (%)"] > 70 > 35 > parts["communication"]["rank 1 (%)"]
    assert parts["rest"]["rank 1 (%)"] > 40 > 10 > parts["rest"]["rank 0 (%)"]
    assert "waiting for slower ones" in parts["communication"]["what it is"]


def test_of_one_there_is_no_span_and_no_plural() -> None:
    told = "".join(
        f"{line}\n"
        for line in text(gpu=True).splitlines()
        if '"kind":"step"' not in line or '"step":0,' in line
    )
    (step,) = (
        row["value"] for row in training_tables(host(told))[0]["rows"] if row["measure"] == "step"
    )
    assert step.endswith(" ms, one step")
