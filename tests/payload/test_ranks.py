"""Ranks of a launch: the environment that they get."""

from __future__ import annotations

import os
from typing import Any

import pytest

from preflight.payload.ranks import Launch, Tell


def environment() -> dict[str, Any]:
    def work(tell: Tell) -> None:
        names = ("RES_OPTIONS", "RANK", "LOCAL_RANK", "WORLD_SIZE")
        tell({"kind": "environment", **{name: os.environ.get(name) for name in names}})

    (told,) = list(Launch(1, work, silent_s=20.0).lines())
    return told


def test_no_rank_waits_for_a_server_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch asks for the name of each peer, and by default it takes 10 s until nobody answers."""
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    told = environment()
    assert told["RES_OPTIONS"] == "timeout:1 attempts:1"
    assert (told["RANK"], told["LOCAL_RANK"], told["WORLD_SIZE"]) == ("0", "0", "1")


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RES_OPTIONS", "rotate")
    assert environment()["RES_OPTIONS"] == "rotate"
