"""Who is named where hosts of a job do not reach each other: never one that is well."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from preflight.probes.training.ways import Row, faults

_WHY = "nothing answers within 6 s"
_PLACES = {f"h{at}": (f"10.0.0.{at}", 40003) for at in (1, 2, 3, 4)}


def rows(closed: Mapping[str, str], hosts: str = "h1 h2 h3") -> list[Row]:
    """`closed`: by host those that it does not reach. One that is not in it told nothing."""
    names = hosts.split()
    return [
        Row(one, *_PLACES[one], {to: _WHY * (to in closed[one]) for to in names if to != one})
        for one in names
        if one in closed
    ]


_PAIR = "h2 (10.0.0.2) and h3 (10.0.0.3) do not reach each other"


@pytest.mark.parametrize(
    ("closed", "named"),
    [
        ({"h1": "", "h2": "", "h3": ""}, []),
        # a firewall on the last, the first, all of whose own connections are answered
        ({"h1": "h3", "h2": "h3", "h3": ""}, ["h3 (10.0.0.3) accepts nothing from h1, h2"]),
        ({"h1": "", "h2": "h1", "h3": "h1"}, ["h1 (10.0.0.1) accepts nothing from h2, h3"]),
        # one that cannot leave; one that is cut off both ways
        ({"h1": "", "h2": "h1 h3", "h3": ""}, ["h2 (10.0.0.2) does not reach h1, h3"]),
        (
            {"h1": "h2", "h2": "h1 h3", "h3": "h2"},
            [f"h2 (10.0.0.2) accepts nothing from h1, h3: {_WHY} and does not reach h1, h3"],
        ),
        # between two workers: both ways, and one
        ({"h1": "", "h2": "h3", "h3": "h2"}, [_PAIR]),
        ({"h1": "", "h2": "h3", "h3": ""}, ["h3 (10.0.0.3) accepts nothing from h2"]),
        # one that never began, and tells nothing
        ({"h1": "h3", "h2": "h3"}, ["h3 (10.0.0.3) accepts nothing from h1, h2"]),
    ],
)
def test_the_one_that_is_why_is_named(closed: dict[str, str], named: list[str]) -> None:
    assert [one["text"] for one in faults(rows(closed), _PLACES)] == [
        f"{one}: {_WHY}" for one in named
    ]


def test_two_faults_apart_are_both_named() -> None:
    closed = {"h1": "h3 h4", "h2": "h3 h4", "h3": "h4", "h4": "h3"}
    found = faults(rows(closed, "h1 h2 h3 h4"), _PLACES)
    assert [one["hosts"] for one in found] == [["h3"], ["h4"]]


def test_what_is_typed_says_on_which_host_and_has_the_port_that_was_tried() -> None:
    (one,) = faults(rows({"h1": "", "h2": "h3", "h3": "h2"}), _PLACES)
    assert one["hosts"] == ["h2", "h3"]
    assert one["type"] == (
        "on h3: `python3 -m http.server 40003 --bind 10.0.0.3`, "
        "on h2: `timeout 3 bash -c '</dev/tcp/10.0.0.3/40003' && echo open`"
    )
