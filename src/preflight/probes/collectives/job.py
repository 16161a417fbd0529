"""What each host of a bench is told of the search that the first of them led: whether it is one of
those that are slow, and by which tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Line = dict[str, Any]


def told_to_each(texts: Mapping[str, str]) -> dict[str, Line]:
    """A line for each host of the search, by their lines; none where no search came to its end, or
    where what was told of it is none: the probe says so."""
    try:
        return _told(texts)
    except (KeyError, TypeError, AttributeError):
        return {}


def _told(texts: Mapping[str, str]) -> dict[str, Line]:
    for text in texts.values():
        lines = list(_lines(text))
        found = next((one for one in lines if one.get("kind") == "found"), None)
        begin = next((one for one in lines if one.get("kind") == "begin"), None)
        if found and begin:
            tests = {one["test"]: one for one in lines if one.get("kind") == "test"}
            hosts = [str(one) for one in begin["plan"]["hosts"]]
            return {host: _to(host, hosts, found, tests) for host in texts if host in hosts}
    return {}


def _to(host: str, hosts: list[str], found: Line, tests: Mapping[int, Line]) -> Line:
    mine = [one for one in found["links"] if host in one]
    across = found["boundary"] if any(host in side for side in found["boundary"]) else []
    own = {
        **found, "nodes": [one for one in found["nodes"] if one == host], "links": mine,
        "boundary": across,
    }  # fmt: skip
    keys = [[host], *mine, *([["boundary"]] if across else [])]
    runs = [one for one in found["runs"] if one["culprit"] in keys]
    own |= {"runs": runs, "matrix": []}
    proving = sorted({number for one in runs for number in one["tests"]} & set(tests))
    return {"kind": "located", "host": host, "hosts": len(hosts), "tests": len(tests),
            "found": own, "proof": [tests[number] for number in proving]}  # fmt: skip


def _lines(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            yield told
