"""Hosts that the others do not reach: told by themselves, so that the others can go on without."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.model import Raw
from preflight.probes.training.ways import faults, row

#: How a line tells that a host is no part of the job, and that the fault is its own.
UNREACHED = "unreached"
Line = dict[str, Any]


def did_not_meet(raws: Sequence[Raw], probe: str) -> bool:
    """Whether a host tells that not all of them came together."""
    return any(one.get("kind") == "unmet" for one in _lines_of(raws, probe))


def shut_off(
    found: Mapping[str, list[Raw]], probe: str, places: Mapping[str, Any]
) -> dict[str, str]:
    """The hosts without which the others reach each other, each with the reason; none where all
    came together, or where nobody told why not. Of two that do not reach only each other it is the
    second. `places`: address and port at which each listens for the others."""
    lines = {host: _lines_of(raws, probe) for host, raws in found.items()}
    if not any(did_not_meet(raws, probe) for raws in found.values()):
        return {}
    deaf = {
        host: str(one["text"])
        for host, told in lines.items() for one in told if one.get("kind") == "unmet" and one["own"]
    }  # fmt: skip
    ways = {
        host: [one for one in told if one.get("kind") == "ways"] for host, told in lines.items()
    }
    rows = [one for host, told in ways.items() if (one := row(host, told))]
    return deaf or {
        (left := _left(one["hosts"], list(found))): _why(
            one, ways[left], _took_s(found[left], probe)
        )
        for one in faults(rows, places)
    }


def _left(hosts: Sequence[str], order: Sequence[str]) -> str:
    return max(hosts, key=order.index)


def _why(one: Line, ways: Sequence[Line], took_s: float) -> str:
    if len(one["hosts"]) == 1 and not ways:
        return f"it gave no sign for {took_s:.0f} s while the others were there and called it"
    return "; ".join(filter(None, (one["text"], one["type"])))


def _took_s(raws: Sequence[Raw], probe: str) -> float:
    return next((one.elapsed_s for one in raws if one.probe == probe), 0.0)


def left_out(raws: Sequence[Raw], probe: str, form: str, why: str) -> list[Raw]:
    """The answers of such a host: in place of what it told of the job why it is no part of it. One
    that went away says so itself."""
    line = json.dumps(
        {"preflight": form, "kind": "cannot", "why": UNREACHED, "text": why}, separators=(",", ":")
    )
    return [
        replace(one, rc=0, stdout=f"{line}\n") if one.probe == probe and not one.missing else one
        for one in raws
    ]


def _lines_of(raws: Sequence[Raw], probe: str) -> list[Line]:
    raw = next((one for one in raws if one.probe == probe), None)
    text = raw.stdout if raw else ""
    text = text if isinstance(text, str) else text.decode(errors="replace")
    return lines_in(text)


def lines_in(text: str) -> list[Line]:
    """The lines that are JSON objects; of others nothing is said."""
    found = []
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        found += [told] if isinstance(told, dict) else []
    return found
