"""Hosts of one run come together before torch is loaded, or say within seconds why not."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from preflight.payload.site import free_port
from preflight.payload.training import meet as meeting
from preflight.payload.training.meet import meet

HERE = "127.0.0.1"


def plan(**more: Any) -> dict[str, Any]:
    return {"hosts": ["a", "b", "c"], "master": HERE, "port": free_port(HERE), **more}


def come(asked: dict[str, Any], places: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What the hosts at these places tell."""
    with ThreadPoolExecutor(len(places)) as pool:
        return dict(zip(places, pool.map(lambda at: meet(asked, at), places), strict=True))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(meeting, "_TOGETHER_S", 0.5)
    monkeypatch.setattr(meeting, "_CONNECT_S", 0.5)
    yield


def test_all_come_in_any_order() -> None:
    for order in ((0, 1, 2), (2, 1, 0)):
        assert {one["kind"] for one in come(plan(), order).values()} == {"met"}


def test_what_else_connects_there_is_none_of_them() -> None:
    asked = plan()

    def stray() -> None:
        for _ in range(100):
            try:
                with socket.create_connection((HERE, asked["port"] + 3), 1) as one:
                    one.sendall(b"GET / HTTP/1.0\n")
                    return
            except OSError:
                continue

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(stray)
        found = come(asked, (0, 1, 2))
        done.result()
    assert {one["kind"] for one in found.values()} == {"met"}


@pytest.mark.usefixtures("soon")
def test_one_that_does_not_come_is_named_and_the_others_are_not_at_fault() -> None:
    found = come(plan(), (0, 1))
    assert (found[0]["kind"], found[0]["own"]) == ("unmet", True)
    assert found[0]["text"].startswith("a (127.0.0.1), where the ranks meet: c did not come")
    assert (found[1]["kind"], found[1]["own"]) == ("unmet", False)


@pytest.mark.usefixtures("soon")
def test_who_reaches_nobody_says_where_and_what_to_type() -> None:
    asked = plan()
    told = meet(asked, 1)
    assert told["own"] is True
    assert (
        "b does not reach 127.0.0.1, where the ranks meet (a): connection refused" in told["text"]
    )
    assert f"`nc -zv 127.0.0.1 {asked['port']}`" in told["text"]


def test_a_way_that_leads_nowhere_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> None:
        raise OSError(113, "No route to host")

    monkeypatch.setattr(socket, "create_connection", nowhere)
    assert "No route to host" in meet(plan(), 2)["text"]


def test_an_address_that_is_not_here_cannot_be_listened_at() -> None:
    told = meet(plan(master="192.0.2.1"), 0)
    assert told["own"] is True
    assert "cannot listen" in told["text"]
