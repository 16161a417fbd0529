"""What a variable is judged by: those beside it, the versions installed, the host's devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.setup import Package, Software
from preflight.facts.stack import EnvVar
from preflight.judge.versions import version_holds
from preflight.model import Missing


class Fault(Struct, frozen=True):
    """What is wrong with one variable. `mild`: a warning even where the check fails."""

    variable: EnvVar
    reason: str
    expected: str = ""
    mild: bool = False


class Scene(Struct, frozen=True):
    """The variables that one process would see, and the host. `here`: they are of this host as it
    is, so that they can be held against its devices."""

    host: Host
    variables: tuple[EnvVar, ...]
    versions: dict[str, str]
    here: bool

    def value(self, name: str) -> str | None:
        """What a variable is set to; None where it is not set."""
        return next((one.value for one in reversed(self.variables) if one.name == name), None)

    def holds(self, what: str, wanted: str) -> bool | None:
        """Whether the version of something meets a condition; None where it is not known."""
        version = self.versions.get(what)
        return None if version is None else version_holds(version, wanted)


def scenes(host: Host, variables: Sequence[EnvVar]) -> Iterator[Scene]:
    """One for each process and report: NCCL's files count for all, what a process sets itself
    counts before them."""
    files = tuple(one for one in variables if one.of.startswith("/"))
    sources = list(dict.fromkeys(one.of for one in variables if not one.of.startswith("/")))
    versions = _versions(host)
    for of in sources or [""]:
        own = tuple(one for one in variables if one.of == of)
        here = of == "shell" or of.startswith("pid ") or not of
        yield Scene(host, (*(files if here else ()), *own), versions, here)


def _versions(host: Host) -> dict[str, str]:
    """Of what variables belong to; torch's own NCCL counts before the system's."""
    found: dict[str, str] = {}
    parts: list[Software | Package] = []
    parts += () if isinstance(host.packages, Missing) else host.packages
    parts += () if isinstance(host.software, Missing) else host.software
    for one in parts:
        name = "nccl" if one.name.startswith("nvidia-nccl-cu") else one.name
        if isinstance(one.version, str):
            found.setdefault(name, one.version)
    told = getattr(host, "env_reports", ())
    for report in () if isinstance(told, Missing) else told:
        for name in ("torch", "nccl"):
            version = getattr(report, name, None)
            if isinstance(version, str):
                found.setdefault(name, version)
    return found
