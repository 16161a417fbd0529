"""What a run takes: the figures recomputed, and what is not known left out by name."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from preflight.estimate.bill import bill
from preflight.estimate.compute import (
    attention_flops,
    balance_tokens,
    best_interval_s,
    dense_flops,
)
from preflight.estimate.figures import Figure
from preflight.estimate.measured import Measured, measured
from preflight.estimate.memory import offload_bytes, states
from preflight.estimate.run import Run
from preflight.estimate.whole import estimate
from preflight.model import Counts, HostReport, Missing, Report, Status
from preflight.reports.estimate import estimate_tables
from tests.cli.command import preflight

ASKED = ("estimate", "--params", "7e9", "--tokens", "2e12", "--gpus", "64")
H100 = ("--mfu", "40", "--gpu", "NVIDIA H100 80GB HBM3")


def _run(**more: Any) -> Run:
    return Run(**{"params": 7e9, "tokens": 2e12, "gpus": 64, **more})


def _report(*tables: dict[str, Any], command: str = "micro-train") -> Report:
    return Report(command, (), "", "2026-01-02T03:04:05Z", 1.0, Status.PASS, Counts(), (),
                  measurements=tables)  # fmt: skip


def _trained(tokens_per_s: float = 80_000.0) -> Report:
    numbers = {"ranks": 8, "flops_per_token": 4e10, "tokens_per_s": tokens_per_s,
               "mfu_percent": 40.4, "step_median_s": 1.0, "step_low_s": 0.9,
               "step_high_s": 1.25}  # fmt: skip
    parts = {"table": "training: where a step's time goes", "rows": [],
             "numbers": {"communication_percent": 20.0}}  # fmt: skip
    return _report({"table": "training", "rows": [], "numbers": numbers}, parts)


def _likely(figure: object) -> float:
    assert isinstance(figure, Figure), figure
    return figure.likely


def test_attention_of_a_7b_at_32k_is_123_percent_of_the_rest() -> None:
    run = _run(layers=32, width=4096, length=32768)
    attention = attention_flops(run)
    assert isinstance(attention, float)
    assert attention / dense_flops(run) == pytest.approx(1.227, abs=0.001)


@pytest.mark.parametrize(
    ("stall_s", "mtbf_s", "interval_s"),
    [(20, 2.3 * 86400, 47 * 60), (42 * 60, 2.3 * 86400, 8.8 * 3600)],
)
def test_the_best_interval(stall_s: float, mtbf_s: float, interval_s: float) -> None:
    assert best_interval_s(stall_s, mtbf_s) == pytest.approx(interval_s, rel=0.01)


def test_tokens_at_which_communication_takes_as_long_as_computing() -> None:
    assert balance_tokens(0.4 * 989.4e12, 370) == pytest.approx(1070, rel=0.005)
    a100 = balance_tokens(0.4 * 312e12, 10.67)  # of 12.5 GB/s of one 100 Gb/s adapter
    assert a100 == pytest.approx(11_700, rel=0.005)
    assert balance_tokens(1e14, 100, "ddp") == pytest.approx(balance_tokens(1e14, 100) * 2 / 3)


def test_state_is_16_to_18_bytes_a_parameter_and_offload_asks_864_gb_for_32b() -> None:
    found = {one.sharding: one for one in states(_run())}
    assert (found["ddp"].low_bytes, found["ddp"].high_bytes) == (16 * 7e9, 18 * 7e9)
    assert found["fsdp"].low_bytes == 16 * 7e9 / 64
    assert offload_bytes(32e9) == 864e9


def test_computing_communication_saves_and_failures_add_up_to_the_wall_clock() -> None:
    told = estimate(
        _run(tokens_per_gpu=8192, busbw_gbps=100.0, write_gbps=5.0, mtbf_s=198720, restart_s=300),
        measured([("train.json", _trained())]),
    )
    # 80,000 x 4e10 / 8 of a GPU, of which 80 % of the time computes.
    compute = 6 * 7e9 * 2e12 / (64 * 4e14 / 0.8)
    assert _likely(told.compute_s) == pytest.approx(compute)
    sent = 6 * 7e9 * 2e12 / (64 * 8192) / 100e9
    assert _likely(told.exposed_s) == pytest.approx(sent / 2)
    stall = 98e9 / 5e9
    every = best_interval_s(stall, 198720)
    useful = (compute + sent / 2) * (1 + stall / every)
    wall = useful / (1 - (every / 2 + 300) / 198720)
    assert _likely(told.wall_s) == pytest.approx(wall)
    assert _likely(told.gpu_hours) == pytest.approx(wall * 64 / 3600)


def test_the_spread_of_steps_is_the_range() -> None:
    compute = estimate(_run(), measured([("train.json", _trained())])).compute_s
    assert isinstance(compute, Figure)
    assert compute.low / compute.likely == pytest.approx(0.9)
    assert compute.high / compute.likely == pytest.approx(1.25)


def test_reports_that_disagree_are_told_and_both_are_in_the_range() -> None:
    found = measured([("a.json", _trained()), ("b.json", _trained(40_000.0))])
    assert any("disagree on flops_per_s" in note for note in found.notes)
    assert isinstance(found.flops_per_s, Figure)
    assert found.flops_per_s.low < 2e14 < 4e14 < found.flops_per_s.high


def test_a_job_through_the_page_cache_is_no_speed_of_a_checkpoint() -> None:
    numbers = {"seq-write": {"bandwidth_mbps": 5000.0}, "seq-read": {"bandwidth_mbps": 9000.0}}
    table = {"table": "fio 3.36", "rows": [{"job": "seq-read", "of": "page cache"}],
             "numbers": numbers}  # fmt: skip
    found = measured([("io.json", _report(table, command="io-bench"))])
    assert _likely(found.write_gbps) == 5.0
    assert isinstance(found.read_gbps, Missing)
    assert any("page cache" in note for note in found.notes)


def test_failures_that_outrun_the_work_give_no_time() -> None:
    told = estimate(_run(mtbf_s=60, interval_s=600), measured([("train.json", _trained())]))
    assert isinstance(told.wall_s, Missing)


def test_nothing_measured_gives_no_time_and_names_what_to_run() -> None:
    told = estimate(_run(), Measured())
    assert isinstance(told.wall_s, Missing)
    assert "preflight micro-train" in told.wall_s.text


def test_the_command_tells_time_and_bill_at_the_users_prices() -> None:
    ran = preflight(*ASKED, *H100, "--price", "2.5", "--format", "json")
    assert ran.rc == 0, ran.err
    tables = {one["table"]: one for one in json.loads(ran.out)["measurements"]}
    hours = tables["estimate: time"]["numbers"]["gpu_hours_likely"]
    assert hours == pytest.approx(6 * 7e9 * 2e12 / (0.4 * 989.4e12) / 3600)
    cost = float(tables["estimate: bill"]["rows"][0]["likely"].replace(",", ""))
    assert cost == pytest.approx(2.5 * hours, abs=1)


def test_without_a_rate_the_exit_status_is_3_and_memory_is_told() -> None:
    ran = preflight(*ASKED)
    assert ran.rc == 3
    assert "INCOMPLETE" in ran.out and "estimate: memory" in ran.out


@pytest.mark.parametrize(
    "bad",
    [("--params", "0"), ("--params", "1e30"), ("--params", "nan"), ("--tokens", "-5"),
     ("--gpus", "0"), ("--mfu", "nan"), ("--mfu", "140"), ("--price", "-1"),
     ("--sharding", "tensor"), ("--optimizer", "adam9"), ("--active-params", "8e9")],
)  # fmt: skip
def test_hostile_numbers_are_refused(bad: tuple[str, str]) -> None:
    ran = preflight(*ASKED, *H100, *bad)
    assert ran.rc == 2
    assert "error:" in ran.err and "hint:" in ran.err


def test_an_old_schema_is_refused_and_a_report_of_another_kind_is_named(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"schema": "preflight.report/0"}')
    assert preflight(*ASKED, str(old)).rc == 2
    preflight(*ASKED, "--save", str(tmp_path / "other.json"))
    ran = preflight(*ASKED, *H100, str(tmp_path / "other.json"))
    assert ran.rc == 0
    assert "other.json: a report of estimate that tells nothing" in " ".join(ran.out.split())


def test_attention_has_the_width_of_its_heads_and_a_table_that_is_looked_up_takes_nothing() -> None:
    run = _run(layers=32, width=4096, length=8192, attention_width=64 * 128, vocab=128256)
    assert attention_flops(run) == 12 * 32 * 8192 * 8192
    assert dense_flops(run) == pytest.approx(6 * (7e9 - 128256 * 4096))
    ran = preflight(*ASKED, *H100, "--layers", "32", "--width", "4096", "--length", "8192",
                    "--heads", "64x128", "--vocab", "128256", "--format", "json")  # fmt: skip
    assert ran.rc == 0, ran.err
    numbers = json.loads(ran.out)["measurements"][0]["numbers"]
    assert numbers["flops_per_token"] == pytest.approx(12 * 32 * 8192 * 8192 + dense_flops(run))


@pytest.mark.parametrize(
    "bad",
    [("--heads", "64x128"), ("--vocab", "32000"), ("--heads", "64", "--width", "4096"),
     ("--heads", "0x8", "--width", "4096"), ("--vocab", "9000000", "--width", "4096"),
     ("--mtbf", "x"), ("--write-speed", "5"), ("--params", "7Q")],
)  # fmt: skip
def test_what_is_wrong_is_told_by_its_option(bad: tuple[str, ...]) -> None:
    ran = preflight(*ASKED, *H100, *bad)
    assert ran.rc == 2
    assert f"error: {bad[0]} " in ran.err
    assert "hint:" in ran.err


def test_a_number_that_is_known_only_once_has_no_range() -> None:
    ran = preflight(*ASKED, *H100, "--format", "json")
    report = json.loads(ran.out)
    assert "no range" in json.dumps(report["findings"])
    assert {(row["low"], row["high"]) for row in report["measurements"][0]["rows"]} == {("", "")}


def test_requests_of_every_save_are_billed_at_the_price_of_a_thousand() -> None:
    run = _run(write_gbps=5.0, mtbf_s=198720, restart_s=300, price_requests=0.005)
    told = estimate(run, measured([("train.json", _trained())]))
    [line] = [one for one in bill(told) if one.name == "requests"]
    saves = (_likely(told.compute_s) + _likely(told.exposed_s)) / _likely(told.interval_s)
    parts = math.ceil(98e9 / (8 << 20))
    assert _likely(line.cost) == pytest.approx(saves * parts / 1000 * 0.005)


def _watched(busy_percent: float, product: str = "NVIDIA H100 80GB HBM3") -> Report:
    gpu = {"product": product, "busy_percent": busy_percent,
           "power_w": {"median": 610.0, "min": 300.0, "max": 650.0, "mean": 600.0}}  # fmt: skip
    report = _report(command="gpu-health")
    report.hosts = (HostReport("n1", Status.PASS, facts={"watch": {"gpus": [gpu]}}),)
    return report


def test_power_is_that_of_gpus_at_work_while_they_were_watched() -> None:
    found = measured([("health.json", _watched(100.0))])
    assert isinstance(found.power_w, Figure)
    assert (found.power_w.likely, found.power_w.high) == (600.0, 650.0)
    assert found.products == ("NVIDIA H100 80GB HBM3",)
    assert not found.notes
    idle = measured([("health.json", _watched(3.0))])
    assert isinstance(idle.power_w, Missing)


@pytest.mark.parametrize(
    ("params", "says"),
    [(7e9, ("that does not fit", "it can take")), (1e9, ("that fits", "it can take")),
     (5e9, ("computed twice, or nearly", "it can take")), (32e9, ("does not fit", "cannot take"))],
)  # fmt: skip
def test_memory_is_held_against_that_of_the_reports_hosts(
    params: float, says: tuple[str, str]
) -> None:
    gpu = {"product": "NVIDIA A100-SXM4-80GB", "memory": {"total_bytes": 80 << 30}}
    facts = {"gpus": [gpu], "memory": {"available_bytes": 500_000_000_000}}
    report = _report(command="gpu-health")
    report.hosts = (HostReport("n1", Status.PASS, facts=facts),)
    told = estimate(_run(params=params, sharding="ddp"), measured([("g.json", report)]))
    [table] = [one for one in estimate_tables(told) if one["table"].startswith("estimate: memory")]
    notes = " ".join(table["notes"])
    assert all(one in notes for one in says)


def test_reports_of_two_models_are_told_and_name_none() -> None:
    reports = [("a.json", _watched(100.0)), ("b.json", _watched(100.0, "NVIDIA A100-SXM4-80GB"))]
    found = measured(reports)
    assert any("several models" in note for note in found.notes)
    told = estimate(_run(mfu_percent=40.0), found)
    assert isinstance(told.wall_s, Missing)
    assert "--gpu" in told.wall_s.text


def test_a_bus_bandwidth_of_another_model_than_the_runs_is_told() -> None:
    table = {"table": "all_reduce: 16 ranks on 2 hosts, NVIDIA A100-SXM4-80GB, by nccl-tests",
             "rows": [{"size": "1 GiB", "busbw": 182.8, "busbw in": 181.4}]}  # fmt: skip
    found = measured([("bench.json", _report(table, command="nccl-bench"))])
    assert found.products == ("NVIDIA A100-SXM4-80GB",)
    told = estimate(_run(gpu="NVIDIA H100 80GB HBM3", mfu_percent=40.0), found)
    assert any("the run is of NVIDIA H100" in note for note in told.notes)
    assert not estimate(_run(gpu="NVIDIA A100-SXM4-80GB", mfu_percent=40.0), found).notes


def test_hosts_of_one_report_save_together() -> None:
    """Patterns as training has them count before fio's jobs; what was read back is no save."""
    tables: list[dict[str, Any]] = [
        {"table": "fio 3.36", "host": host, "rows": [], "ways": {"seq-write": "write"},
         "numbers": {"seq-write": {"bandwidth_mbps": 9000.0, "block_bytes": 1 << 20}}}
        for host in ("n1", "n2")
    ] + [
        {"table": "as training does it", "host": host, "rows": [], "place": {"hosts": 2},
         "ways": {"checkpoint save": "write", "checkpoint read": "read"},
         "numbers": {"checkpoint save": {"bandwidth_mbps": mbps},
                     "checkpoint read": {"bandwidth_mbps": 1.0}}}
        for host, mbps in (("n1", 2000.0), ("n2", 1500.0))
    ]  # fmt: skip
    found = measured([("io.json", _report(*tables, command="io-bench"))])
    assert _likely(found.write_gbps) == pytest.approx(3.0)


def test_what_is_missing_is_told_once_with_all_that_it_is_for() -> None:
    ran = preflight(*ASKED, "--format", "json")
    rows = json.loads(ran.out)["measurements"][-1]["rows"]
    needs = [row["needs"] for row in rows]
    assert len(needs) == len(set(needs))
    assert any("micro-train" in row["needs"] and "computing" in row["for"] for row in rows)


def test_a_report_comes_through_a_pipe() -> None:
    report = preflight(*ASKED, "--format", "json").out
    argv = [sys.executable, "-m", "preflight", *ASKED, *H100, "-"]
    ran = subprocess.run(argv, input=report.encode(), capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert b"standard input" in ran.stdout
