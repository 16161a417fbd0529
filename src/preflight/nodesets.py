"""`gpu[0-7]`, `node[001-064,070]` to names and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from preflight.errors import UsageError

#: The most names that one text may stand for; beyond lies a slip of the finger, not a cluster.
MOST_NAMES = 100_000

_HINT = "write names as node01,node02 or 'node[01-16,20]', quoted for the shell"
# What a node set may hold. ClusterShell's operators (space , ! & ^), brackets, %, @ and the colons
# of addresses are not in it, nor a number too long to count with.
_NAME = re.compile(r"(?!.*\d{16})[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_NUMBERED = re.compile(r"(.*?)(\d+)")
_TEXT = re.compile(r"[A-Za-z0-9_.,/@\[\]-]+")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?(?:/([1-9]\d{0,5}))?")
_FEW = 64
#: A name as it stands in a folded text that holds names no node set can: spaces included.
_AT = r"(?:^|, ){}(?:$|,? )"


def fold(names: Iterable[str]) -> str:
    """Names in the shortest form; what no node set can hold is joined with `, ` as it is."""
    told = list(dict.fromkeys(names))
    plain = [name for name in told if _NAME.fullmatch(name)]
    others = [name for name in told if name and not _NAME.fullmatch(name)]
    folded = _fold_few(plain) if len(plain) < _FEW else None
    if folded is None:
        folded = _fold_many(plain)
    return ", ".join([folded, *others] if folded else others)


def _fold_few(names: Sequence[str]) -> str | None:
    """The same as ClusterShell's answer without its import (28 ms); None where it is needed."""
    numbers: dict[str, list[str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            return name if len(names) == 1 else None
        numbers.setdefault(match[1], []).append(match[2])
    if len(numbers) > 1 and any(re.search(r"\d", prefix) for prefix in numbers):
        return None  # several numbers in a name: rack[1-2]-node[1-4]
    if any(_padded(found) and len(set(map(len, found))) > 1 for found in numbers.values()):
        return None  # 9 and 09 are two names
    return ",".join(f"{prefix}{_ranges(numbers[prefix])}" for prefix in sorted(numbers))


def _padded(numbers: Sequence[str]) -> bool:
    return any(text != "0" and text.startswith("0") for text in numbers)


def _ranges(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    runs: list[list[str]] = []
    for text in sorted(numbers, key=int):
        if runs and text == str(int(runs[-1][-1]) + 1).zfill(len(runs[-1][-1])):
            runs[-1].append(text)
        else:
            runs.append([text])
    parts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"[{','.join(parts)}]"


def _fold_many(names: Sequence[str]) -> str:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ",".join(names)


def expand(text: str) -> list[str]:
    """The names that a text stands for, in numeric order, each once; raises UsageError."""
    told = text.strip()
    if _NAME.fullmatch(told):
        return [told]
    if not _TEXT.fullmatch(told) or told.startswith("@") or ",@" in told:
        raise UsageError(f"{text!r} is not a list of names", _HINT)
    if _names_in(told) > MOST_NAMES:
        raise UsageError(f"{text!r} stands for more than {MOST_NAMES:,} names", _HINT)
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return list(NodeSet(told, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ZeroDivisionError) as error:  # a step of 0
        raise UsageError(f"{text!r} is not a list of names: {error}", _HINT) from error


def _names_in(text: str) -> int:
    """How many names a text stands for at most: counted before any is made."""
    total = 0
    for part in re.split(r",(?![^\[]*\])", text):
        count = 1
        for inside in _BRACKETS.findall(part):
            count *= sum(_size(step) for step in inside.split(","))
        total += count
    return total


def _size(text: str) -> int:
    match = _RANGE.fullmatch(text)
    if match is None or match[2] is None:
        return 1  # not a range, or one that ClusterShell will refuse
    return max(0, int(match[2]) - int(match[1])) // int(match[3] or 1) + 1


#: A subject that begins so is about no single one of them.
ALL_HOSTS = "all hosts"


def of_all(subject: str) -> bool:
    """Whether it is about what all hosts did together."""
    return subject.startswith(f"{ALL_HOSTS} ")


def hosts_named(subject: str, known: AbstractSet[str]) -> set[str]:
    """`node[03,07] gpu3, node09` -> those of `known` that it names, with or without a device: the
    hosts that a result over the fleet is about."""
    if subject in known:
        return {subject}
    if of_all(subject):
        return set()
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
