"""`gpu-health --stress`: its options, and real runs on processors in which each fault is named and
the other device judged. There rates are shown and never judged: a slow one is no failure."""

from __future__ import annotations

import ast
import dataclasses
import fcntl
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from preflight.cli.options import STRESS, Options
from preflight.cli.plan import Question, make_plan
from preflight.cli.stress import FAULTS, SECONDS, estimate, level_of, plan_of, told_of
from preflight.errors import UsageError
from preflight.payload.stress import plan as payload_plan
from preflight.payload.stress.plan import Plan
from tests.cli.command import Ran, preflight, with_tool
from tests.conftest import require

PAYLOAD = Path(payload_plan.__file__).parent
#: One worker makes the runs of all tests here.
pytestmark = pytest.mark.xdist_group("stress runs")


def stressed(*arguments: str, lock: str = "") -> tuple[Ran, dict[str, Any]]:
    """A run on two parts of the processors, with its report."""
    require("torch", importlib.util.find_spec("torch") is not None)
    ran = preflight("gpu-health", "--stress", "--devices", "2", "--only", "stress.*",
                    "--python", sys.executable, "--format", "json", *arguments,
                    PREFLIGHT_LOCK=lock or os.environ["PREFLIGHT_LOCK"])  # fmt: skip
    assert ran.out, ran.err
    return ran, json.loads(ran.out)


def results(report: dict[str, Any], status: str) -> Iterator[tuple[str, str]]:
    for one in report["hosts"][0]["results"]:
        if one["status"] == status:
            yield one["check"], one["subject"]


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFLIGHT_LOCK", str(tmp_path / "lock"))


def test_a_sound_run_with_a_soak_raises_nothing() -> None:
    ran, report = stressed("--duration", "2s")
    assert ran.rc == 0 and report["verdict"] == "PASS" and report["level"] == "full"
    passed = set(results(report, "PASS"))
    for device in ("processors 0", "processors 1"):
        assert ("stress.ended", device) in passed
        assert {("stress.gemm.right", f"{device} {one}") for one in ("fp32", "bf16")} <= passed
        assert ("stress.memory.pattern", f"{device} address") in passed
        assert ("stress.attention.right", device) in passed
    assert ("stress.soak.right", "processors 1") in passed
    assert "stress.soak.fading" in {check for check, _ in results(report, "SKIP")}
    judged = {check for check, _ in passed}
    assert not judged & {"stress.gemm.rate", "stress.memory.rate", "stress.copy.rate"}
    tables = {one["table"] for one in report["measurements"]}
    assert any(name.startswith("stress: products") for name in tables)


def test_faults_are_named_and_the_other_device_judged() -> None:
    """Those that end a device, or keep it from work, are judged as recorded and tried in the
    payload's own tests (tests/judge/test_stress_judged.py, tests/payload/stress)."""
    ran, report = stressed("--inject", "corrupt:1", "--inject", "memory:1")
    failed = set(results(report, "FAIL"))
    assert ("stress.gemm.right", "processors 1 fp32") in failed
    assert ("stress.memory.pattern", "processors 1 address") in failed
    assert all("processors 0" not in subject for _, subject in failed)
    assert ("stress.ended", "processors 0") in set(results(report, "PASS"))
    assert ran.rc == 1 and not list(results(report, "ERROR"))
    drills = {("stress.drill", "corrupt:1"), ("stress.drill", "memory:1")}
    assert drills <= set(results(report, "PASS"))
    assert "injected corrupt:1: seen as stress.gemm.right" in report["hints"]
    shown = [row for one in report["measurements"] for row in one["rows"]]
    assert any("corrupt:1" in str(row.get("value")) for row in shown)


def test_who_asks_for_it_without_torch_is_told_how_to_get_it(tmp_path: Path) -> None:
    path = with_tool(tmp_path / "bin", "python3", f'exec {sys.executable} -S "$@"')
    asked = ("--only", "stress.*", "--format", "json")
    ran = preflight("gpu-health", "--stress", *asked, PATH=path)
    report = json.loads(ran.out)
    reasons = {one["reason"] for one in report["hosts"][0]["results"]}
    assert ran.rc != 0 and {one["status"] for one in report["hosts"][0]["results"]} == {"ERROR"}
    assert all("torch" in reason for reason in reasons)
    ran = preflight("run", "--level", "standard", *asked, PATH=path)
    told = json.loads(ran.out)["hosts"][0]["results"]
    assert {one["status"] for one in told} == {"SKIP"}
    assert any("pip install torch" in one["reason"] or "--python" in one["reason"] for one in told)


def test_it_never_runs_beside_other_active_work(tmp_path: Path) -> None:
    lock = tmp_path / "taken"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _, report = stressed(lock=str(lock))
    told = report["hosts"][0]["results"]
    assert {one["status"] for one in told} == {"ERROR"}  # it was asked for by name
    assert all("active work of preflight holds" in one["reason"] for one in told)


def test_what_is_not_asked_for_is_left_open() -> None:
    assert plan_of(Options(stress=True)) == {}


def test_each_option_is_in_the_plan_and_the_payload_knows_it() -> None:
    given = Options(stress=True, devices=2, attention="1x4x2x64x64", even_if_busy=True,
                    drill=["corrupt:1", "wedge"], duration="10m")  # fmt: skip
    plan = plan_of(given)
    assert plan["inject"] == {"corrupt": 1, "wedge": 0} and plan["soak_s"] == 600
    assert set(plan) <= {one.name for one in dataclasses.fields(Plan)}
    assert plan["silent_s"] < Plan().silent_s  # a drill
    assert all(getattr(given, name) for name in STRESS)


def test_faults_and_seconds_are_the_payloads() -> None:
    assert tuple(value_of("inject.py", "FAULTS")) == FAULTS
    given = value_of("work.py", "SECONDS")
    # Starting, and what is done however long it takes: answers, five runs of each at least.
    assert given["cpu"] < SECONDS["processors"] <= 4 * given["cpu"]
    assert given["cuda"] < SECONDS["GPUs"] <= 4 * given["cuda"]


def value_of(file: str, name: str) -> Any:
    """What a module of the payload binds to a name; importing it takes torch."""
    for node in ast.parse((PAYLOAD / file).read_text(encoding="utf-8")).body:
        target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and getattr(target, "id", "") == name:
            return ast.literal_eval(node.value)  # type: ignore[arg-type]
    raise AssertionError(f"{file} has no {name}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stress": True, "devices": 0}, "--devices 0 is too small"),
        ({"stress": True, "attention": "2x3"}, "--attention '2x3' is no shape"),
        ({"stress": True, "attention": "0x4x2x64x64"}, "is no shape"),
        ({"stress": True, "drill": ["gremlin"]}, "--inject 'gremlin' is no fault"),
        ({"stress": True, "drill": ["corrupt:x"]}, "'x' is no device"),
        ({"stress": True, "from_": ["a.jsonl"]}, "--from reads what was recorded"),
        ({"stress": True, "attention": "2x3x2x256x64"}, "no multiple of 2 heads of keys"),
        ({"stress": True, "attention": "9999999x4x4x9999999x64"}, "fits on no device"),
        ({"stress": True, "devices": 2, "drill": ["wedge:5"]}, "there is no device 5"),
        ({"drill": ["corrupt:1"]}, "--inject is of a stress run"),
        ({"devices": 2}, "--devices is of a stress run"),
        ({"even_if_busy": True}, "--even-if-busy is of a stress run"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan_of(Options(**given))
    assert said in raised.value.what
    assert raised.value.hint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"drill": ["slow"]}, "--inject slow would not be seen"),
        ({"drill": ["corrupt:1"]}, "there is no device 1"),
        ({"devices": 4096}, "--devices 4096: there are"),
    ],
)
def test_without_a_gpu_more_is_refused(
    given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("preflight.cli.stress.has_no_gpu", lambda _: False)
    assert plan_of(Options(stress=True, **given))
    monkeypatch.setattr("preflight.cli.stress.has_no_gpu", lambda _: True)
    with pytest.raises(UsageError) as raised:
        plan_of(Options(stress=True, **given))
    assert said in raised.value.what


def test_no_gpu_is_undetermined_unless_none_is_expected() -> None:
    """However much is asked for: whoever asks about GPUs is told that there are none."""

    def present(*more: str) -> dict[str, Any]:
        return next(
            one for one in make_plan(
                Question("gpu-health", ("gpu",), ("gpu.present",)), Options(set_=list(more))
            ).checks if one.id == "gpu.present"
        ).row  # fmt: skip

    assert present() == {"asked": True}
    assert present("gpu.count=0") == {}
    assert present("gpu.count=8").get("stated")


def test_a_wrong_option_ends_the_command_before_it_begins() -> None:
    ran = preflight("gpu-health", "--stress", "--inject", "gremlin")
    assert (ran.rc, ran.out) == (2, "")
    assert ran.err.startswith("error: --inject 'gremlin' is no fault\nhint: one of wedge")
    assert preflight("gpu-health", "--devices", "0").rc == 2
    assert preflight("run", "--devices", "2").rc == 2  # options are built where they are taken


@pytest.mark.parametrize(
    ("given", "level"),
    [({}, "standard"), ({"duration": "5m"}, "full"), ({"level": "full"}, "full")],
)
def test_the_level_follows_from_what_is_asked(given: dict[str, Any], level: str) -> None:
    assert level_of(Options(**given)) == level


def test_the_seconds_are_told_before() -> None:
    ran = preflight("gpu-health", "--stress", "--duration", "5m", "--dry-run")
    assert ran.rc == 0 and f"about {300 + SECONDS['processors']} s on processors" in ran.out
    assert "stress" in preflight("run", "--level", "standard", "--dry-run").out
    assert "soak_s" in preflight("run", "--level", "full", "--dry-run").out
    assert " - stress " not in preflight("run", "--dry-run").out
    assert estimate({}).startswith(f"about {SECONDS['processors']} s on processors")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"preflight": "stress/1", "kind": "begin"}, "the devices start"),
        ({"preflight": "micro-train/1", "kind": "begin"}, ""),
        ({"kind": "gemm", "precision": "bf16", "device": 3}, "device 3: products in bf16"),
        ({"kind": "wedged", "doing": "pattern", "device": 1},
         "device 1: wedged in pattern, the others go on"),
        ({"kind": "pair", "from": 0, "to": 3, "device": -1}, "copies: 0 to 3"),
        ({"kind": "gemm"}, ""),
        ({"kind": ["x"]}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_line_as_news(line: dict[str, Any], said: str) -> None:
    assert told_of(line) == said
