"""Hosts of one run come together before torch is loaded, or say within seconds why not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from preflight.payload import meet as meeting
from preflight.payload.meet import meet, tried
from preflight.payload.site import free_port

HERE = "127.0.0.1"
Lines = list[dict[str, Any]]


def plan(**more: Any) -> dict[str, Any]:
    ports = [free_port(HERE) for _ in range(3)]
    return {"hosts": ["a", "b", "c"], "master": HERE, "port": ports[0],
            "addresses": [HERE] * 3, "ports": ports, **more}  # fmt: skip


def come(asked: dict[str, Any], places: Sequence[int]) -> dict[int, Lines]:
    """What the hosts at these places tell."""
    with ThreadPoolExecutor(len(places)) as pool:
        return dict(zip(places, pool.map(lambda at: held(asked, at), places), strict=True))


def held(asked: dict[str, Any], at: int) -> Lines:
    told: Lines = []
    assert meet(asked, at, told.append) is (told[-1]["kind"] == "met")
    return told


def ways(told: Lines) -> dict[str, str]:
    return {one["host"]: one["why"] for one in told[0]["ways"]}


def kinds(found: dict[int, Lines]) -> set[str]:
    return {one[-1]["kind"] for one in found.values()}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(meeting, "_TOGETHER_S", 0.5)
    monkeypatch.setattr(meeting, "_CONNECT_S", 0.5)
    yield


def test_all_come_in_any_order_and_each_reaches_the_others() -> None:
    for order in ((0, 1, 2), (2, 1, 0)):
        found = come(plan(), order)
        assert kinds(found) == {"met"}
        assert [ways(found[at]) for at in range(3)] == [
            {"b": "", "c": ""}, {"a": "", "c": ""}, {"a": "", "b": ""},
        ]  # fmt: skip


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
    assert kinds(found) == {"met"}


@pytest.mark.usefixtures("soon")
def test_one_that_does_not_come_is_not_reached_and_the_others_are() -> None:
    found = come(plan(), (0, 1))
    assert kinds(found) == {"unmet"}
    refused = "connection refused: nobody listens there"
    assert [ways(found[at]) for at in range(2)] == [
        {"b": "", "c": refused}, {"a": "", "c": refused},
    ]  # fmt: skip


@pytest.mark.usefixtures("soon")
def test_a_way_between_two_others_that_is_closed_keeps_all_from_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = plan()
    closed = asked["ports"][2] + 3
    real = asyncio.open_connection

    async def open_connection(host: str, port: int) -> Any:
        if port == closed and asyncio.current_task() is not None:
            raise OSError(113, "No route to host")
        return await real(host, port)

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    found = come(asked, (0, 1, 2))
    assert kinds(found) == {"unmet"}
    assert ways(found[1]) == {"a": "", "c": "No route to host"}
    assert ways(found[2]) == {"a": "", "b": ""}
    assert all(one[-1]["own"] is False for one in found.values())


@pytest.mark.usefixtures("soon")
def test_one_that_accepts_and_says_nothing_is_not_reached() -> None:
    asked = plan()
    with socket.create_server((HERE, asked["ports"][2] + 3)):
        found = come(asked, (0, 1))
    assert ways(found[0]) == {"b": "", "c": "nothing answers within 0.5 s"}
    assert ways(found[1]) == {"a": "", "c": "nothing answers within 0.5 s"}


def test_an_address_that_is_not_here_cannot_be_listened_at() -> None:
    told = held(plan(addresses=["192.0.2.1", HERE, HERE]), 0)
    assert told[-1]["own"] is True
    assert "a (192.0.2.1) cannot listen at port" in told[-1]["text"]


def test_of_many_hosts_each_tries_its_neighbours_and_the_first_that_tries_all() -> None:
    many = [str(at) for at in range(40)]
    asked = plan(hosts=many, addresses=[HERE] * 40, ports=[1] * 40)
    assert tried(asked, 0) == list(range(1, 40))
    assert tried(asked, 1) == [0, 2]
    assert tried(asked, 20) == [0, 19, 21]
    assert tried(asked, 39) == [0, 38]
    assert len(tried({**asked, "hosts": many[:32]}, 20)) == 31


def test_a_plan_without_addresses_has_all_try_the_first() -> None:
    asked = {"hosts": ["a", "b"], "master": HERE, "port": free_port(HERE)}
    found = come(asked, (0, 1))
    assert kinds(found) == {"met"}
    assert (ways(found[0]), ways(found[1])) == ({}, {"a": ""})
