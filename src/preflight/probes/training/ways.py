"""Which hosts of a job are why not all of them reach each other.

Each host tells whom it reached (`ways`). Side by side they show whom most others do not reach, or
who reaches nobody: that one is named, and none of those that are well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from preflight.probes.training.lines import Line

Pair = tuple[str, str]


class Row(Struct):
    """What one host told: where it listens, and by host that it tried why it did not reach it."""

    host: str
    address: str
    port: int
    ways: dict[str, str]


def row(host: str, lines: Sequence[Line]) -> Row | None:
    """The row of a host; None where it has told none."""
    if not lines:
        return None
    one = lines[-1]
    ways = {str(each["host"]): str(each["why"]) for each in one["ways"]}
    return Row(host, str(one["address"]), int(one["port"]), ways)


def faults(rows: Sequence[Row], places: Mapping[str, Any]) -> list[Line]:
    """Each host, or each two, that are why: `hosts`, `text`, and what to `type`. `places`: address
    and port at which each host of the job listens, as the plan had it."""
    closed = {(one.host, to): why for one in rows for to, why in one.ways.items() if why}
    found: list[Line] = []
    while closed:
        worst = _worst(closed)
        two = len(worst) == 2 and all(
            set(pair) == set(worst) for pair in closed if set(pair) & set(worst)
        )
        named = [worst] if two else [[one] for one in worst]
        found += [{"hosts": hosts, **_told(hosts, closed, places)} for hosts in named]
        closed = {pair: why for pair, why in closed.items() if not set(pair) & set(worst)}
    return found


def _worst(closed: Mapping[Pair, str]) -> list[str]:
    """With most closed ways; of as many those that are not reached."""
    score: dict[str, list[int]] = {}
    for source, target in closed:
        for host in (source, target):
            score.setdefault(host, [0, 0])[0] += 1
        score[target][1] += 1
    most = max(score.values())
    return [host for host, one in score.items() if one == most]


def _told(hosts: list[str], closed: Mapping[Pair, str], places: Mapping[str, Any]) -> Line:
    if len(hosts) == 2:
        first, second = sorted(hosts)
        pair = (first, second) if (first, second) in closed else (second, first)
        two = f"{_at(first, places)} and {_at(second, places)}"
        why = f"{two} do not reach each other: {closed[pair]}"
        return {"text": why, "type": _typed(pair, places)}
    host = hosts[0]
    into = {source: why for (source, target), why in closed.items() if target == host}
    out = {target: why for (source, target), why in closed.items() if source == host}
    said = [f"accepts nothing from {_and_why(into)}"] if into else []
    said += [f"does not reach {_and_why(out)}"] if out else []
    pair = (next(iter(into)), host) if into else (host, next(iter(out)))
    return {"text": f"{_at(host, places)} {' and '.join(said)}", "type": _typed(pair, places)}


def _and_why(closed: Mapping[str, str]) -> str:
    hosts = sorted(closed, key=lambda one: (len(one), one))
    more = f" and {len(hosts) - 8} more" if len(hosts) > 8 else ""
    return f"{', '.join(hosts[:8])}{more}: {closed[hosts[0]]}"


def _at(host: str, places: Mapping[str, Any]) -> str:
    return f"{host} ({places[host][0]})" if host in places else host


def _typed(pair: Pair, places: Mapping[str, Any]) -> str:
    """What shows it by hand, on which host; with what every Python and bash has."""
    source, target = pair
    if target not in places:
        return ""
    address, port = places[target]
    listen = f"python3 -m http.server {port} --bind {address}"
    dial = f"timeout 3 bash -c '</dev/tcp/{address}/{port}' && echo open"
    return f"on {target}: `{listen}`, on {source}: `{dial}`"
