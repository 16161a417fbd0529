"""What each host of a bench is told of what the first of them led: what was measured of it, and of
the search whether it is one of those that are slow, and by which tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from preflight.probes.collectives.lines import is_lost, said

Line = dict[str, Any]

#: A host says so itself: why it takes no part, or that it lost the others.
_SAYS_ITSELF = ("cannot", "gone")
#: What is of the host that stands in its `of`, and of nobody else.
OWN = ("counters", "counted", "inside", "nccl_log", "wire", "wire_site", "wire_end", "wire_link")


def split(texts: Mapping[str, str]) -> dict[str, str]:
    """The lines of each host: those that the first told of another are that one's."""
    found = dict.fromkeys(texts, "")
    for host, text in texts.items():
        for line in text.splitlines(keepends=True):
            found[_whose(line, host, found)] += line
    return found


def _whose(line: str, host: str, hosts: Mapping[str, str]) -> str:
    if not any(f'"kind":"{one}"' in line for one in OWN):
        return host
    told = next(_lines(line), {})
    of = told.get("of")
    return of if isinstance(of, str) and of in hosts and told.get("kind") in OWN else host


def told_to_each(texts: Mapping[str, str]) -> dict[str, Line]:
    """A line for each host of the search, by their lines; none where no search came to its end, or
    where what was told of it is none: the probe says so."""
    try:
        return _told(texts)
    except (KeyError, TypeError, AttributeError):
        return {}


def lost_of(texts: Mapping[str, str]) -> dict[str, Line]:
    """A line for each host that another one tells to be lost, by their lines, where it does not say
    itself why it is no part of the bench; none where lines are not as they should be."""
    try:
        return _lost(texts)
    except (KeyError, TypeError, ValueError):
        return {}


def _lost(texts: Mapping[str, str]) -> dict[str, Line]:
    lines = {host: list(_lines(text)) for host, text in texts.items()}
    found: dict[str, Line] = {}
    for host, mine in lines.items():
        for one in mine:
            of = str(one.get("of", ""))
            itself = any(each.get("kind") in _SAYS_ITSELF for each in lines.get(of, ()))
            if is_lost(one, host) and of in texts and not itself:
                text = str(one.get("text") or said(one).removeprefix(f"{of}, "))
                found.setdefault(of, {"kind": "lost", "text": text})
    return found


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
