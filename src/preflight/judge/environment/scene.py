"""What a variable is judged by: those beside it, the versions installed, the host's devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.stack import EnvVar
from preflight.judge.versions import version_holds
from preflight.model import Missing


class Fault(Struct, frozen=True):
    """What is wrong with one variable. `mild`: a warning even where the check fails."""

    variable: EnvVar
    reason: str
    expected: str = ""
    mild: bool = False


class Unknown(Struct, frozen=True):
    """A variable of which nobody can tell whether something is wrong with it, and why."""

    variable: EnvVar
    why: Missing


#: What a look for faults finds.
Found = Iterator[Fault | Unknown]


def unversioned(one: EnvVar, of: str) -> Unknown:
    """One that a version decides which is not known."""
    return Unknown(
        one, Missing("not-in-input", f"the version of {of or 'its library'} is not known")
    )


def unseen(one: EnvVar, what: str, why: Missing) -> Unknown:
    """One that the host's devices decide, which are not known."""
    return Unknown(one, Missing(why.kind, f"the host's {what} are not known: {why.text}"))


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
    """Of what variables belong to, as a process of the Python that was asked would load it."""
    told = {"nccl": host.stack.nccl_loaded, "torch": host.stack.torch}
    return {name: version for name, version in told.items() if isinstance(version, str)}
