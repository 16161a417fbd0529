"""Which hosts a result over the fleet is about: its subject is a folded text."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from preflight.errors import UsageError
from preflight.nodesets import expand

_AT = r"(?:^|, ){}(?:$|,? )"


def hosts_named(subject: str, known: AbstractSet[str]) -> set[str]:
    """`node[03,07] gpu3, node09` -> those of `known` that it names, with or without a device."""
    if subject in known:
        return {subject}
    # What no node set can hold stands in a folded text as it is, spaces included.
    spaced = {name for name in known if " " in name}
    found = {name for name in spaced if re.search(_AT.format(re.escape(name)), subject)}
    for part in subject.split(", "):
        found |= _of_part(part, known)
    return found


def _of_part(part: str, known: AbstractSet[str]) -> set[str]:
    if part in known:
        return {part}
    names = part.partition(" ")[0]  # a device or a slot follows
    if names in known:
        return {names}
    try:
        return set(expand(names)) & known
    except UsageError:  # a rank, a word: no host
        return set()
