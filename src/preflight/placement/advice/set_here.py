"""What the variables are set to already, where the question was asked."""

from __future__ import annotations

import re

from msgspec.structs import replace

from preflight.facts.host import Host
from preflight.facts.stack import EnvVar
from preflight.model import Export, Missing
from preflight.placement.advice.said import Said

#: NCCL_ALGO, NCCL_PROTO: the names of which a line of the advice speaks.
_NAMES = re.compile(r"([A-Z][A-Z0-9_]+(?:, [A-Z][A-Z0-9_]+)*):")


def set_here(host: Host, name: str) -> EnvVar | None:
    """The variable as it is in force: a process's own counts before NCCL's files."""
    variables = () if isinstance(host.environment, Missing) else host.environment
    mine = [one for one in variables if one.name == name and one.value]
    own = [one for one in mine if not one.of.startswith("/")]
    return next(iter(own or mine), None)


def told(one: EnvVar) -> str:
    """NCCL_IB_HCA=mlx5_0 is set here."""
    where = "here" if one.of == "shell" else f"in {one.of}"
    return f"{one.name}={one.value} is set {where}"


def weighed(host: Host, said: Said) -> Said:
    """The same advice, each variable of it with what it is set to in spite of it."""
    return Said(
        tuple(_in_place(host, one) for one in said.exports),
        tuple(_in_spite(host, line) for line in said.left),
    )


def _in_place(host: Host, one: Export) -> Export:
    here = set_here(host, one.name)
    if here is None or here.value == one.value or told(here) in one.why:
        return one
    return replace(one, why=f"{one.why}. {told(here)}")


def _in_spite(host: Host, line: str) -> str:
    names = _NAMES.match(line)
    here = [set_here(host, name) for name in names[1].split(", ")] if names else []
    found = [told(one) for one in here if one is not None]
    return f"{line}; {', '.join(found)}" if found else line
