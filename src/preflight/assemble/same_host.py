"""Two names that lead to one machine: it is judged once, and the other name says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from preflight.assemble.answers import read
from preflight.facts.host import Identity
from preflight.faults import CONNECTION, fault
from preflight.model import Raw


def told_apart(answers: Iterable[tuple[str, list[Raw]]]) -> Iterator[tuple[str, list[Raw]]]:
    """The hosts as they come; one of the same boot and host name as an earlier one has no answers
    of its own. Containers on one machine share the boot, and differ in their host names."""
    seen: dict[tuple[str, str], str] = {}
    for name, raws in answers:
        who = _who(raws)
        first = seen.setdefault(who, name) if who else name
        if who is None or first == name:
            yield name, raws
            continue
        text = f"it is {first} under another name: both say {who[1]}, booted as {who[0]}"
        yield name, [Raw(name, CONNECTION, rc=None, missing=fault("same-host", text))]


def _who(raws: list[Raw]) -> tuple[str, str] | None:
    """Boot id and host name; None where either is unknown."""
    asked = next((raw for raw in raws if raw.probe == "identity"), None)
    identity = read(asked) if asked else None
    if isinstance(identity, Identity) and isinstance(identity.boot_id, str):
        return identity.boot_id, identity.hostname
    return None
