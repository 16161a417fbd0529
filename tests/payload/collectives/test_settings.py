"""Values of a variable in turns: real ranks on processors; what fails is told and left out."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from preflight.payload.collectives import paired, setting, settings
from preflight.payload.collectives.harness import harness
from preflight.payload.collectives.plan import Plan

Line = dict[str, Any]
NAME = "GLOO_SOCKET_IFNAME"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "LOOKS", (2, 3))
    monkeypatch.setattr(setting, "_SIZE_S", 0.0)


def told(*sweep: list[str], **asked: Any) -> list[Line]:
    lines: list[Line] = []
    plan = Plan(device="cpu", ranks=2, collectives=["all_reduce"], begin_bytes=64, end_bytes=4096,
                factor=64, size_s=0.01, sweep=list(sweep), **asked)  # fmt: skip
    harness(plan, lines.append)
    return lines


def of(lines: list[Line], kind: str) -> list[Line]:
    return [one for one in lines if one["kind"] == kind]


def test_values_take_turns_and_one_that_fails_is_left_out() -> None:
    lines = told([NAME, "", "lo", "none7"])
    (swept,) = of(lines, "swept")
    assert [one["value"] for one in swept["failed"]] == ["none7"]
    assert "none7" in swept["failed"][0]["text"]
    assert {(one["value"], one["bytes"]) for one in swept["gains"]} == {("lo", 64), ("lo", 4096)}
    counted = [one["value"] for one in of(lines, "setting") if one["turn"] >= 0]
    assert counted[:4] == ["", "lo", "lo", ""]
    assert lines[-1]["kind"] == "end"


def test_where_what_is_usual_fails_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "none7")
    (swept,) = of(told(["GLOO_SOCKET_FAMILY", "", "AF_INET"]), "swept")
    assert (swept["gains"], swept["turns"]) == ([], 0)
    assert swept["failed"][0]["value"] == ""


def test_a_variable_is_set_or_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the ranks see, told by the ranks."""
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    seen: list[Line] = []
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)

    def look(name: str) -> Any:
        return lambda *_: seen.append({name: os.environ.get(name)})

    for value in ("", "Ring"):
        monkeypatch.setattr(setting, "join", look("NCCL_ALGO"))
        order: Line = {"unset": "NCCL_ALGO", "environment": {"NCCL_ALGO": value} if value else {},
                 "sizes": [], "collective": "all_reduce"}  # fmt: skip
        os.environ.update(order["environment"])
        setting.setting(Plan(device="cpu"), order, seen.append)
    assert seen == [{"NCCL_ALGO": None}, {"NCCL_ALGO": "Ring"}]


def test_one_that_hangs_is_told_as_that() -> None:
    silent = {"kind": "died", "status": -9, "rank": 0}
    assert settings._why([silent], ended=True, limit_s=20.0) == "it came to no end within 20 s"
    failed = {"kind": "failed", "text": "no such index\nmore", "of": "h2"}
    assert settings._why([silent, failed], ended=False, limit_s=20.0) == "h2: no such index"


@pytest.mark.parametrize(
    ("begin", "end", "sizes"),
    [(0, 0, [4096, 1 << 22]), (64, 1024, [64, 1024]), (0, 64, [64]), (1 << 23, 0, [1 << 23])],
)
def test_sizes_are_those_that_were_asked_for(begin: int, end: int, sizes: list[int]) -> None:
    assert settings.sizes_of(Plan(device="cpu", begin_bytes=begin, end_bytes=end)) == sizes
