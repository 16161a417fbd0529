"""Tests that hold what seems to be to blame against other explanations of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .found import Link, Nodes, named
from .proof import as_key

if TYPE_CHECKING:
    from .choose import Choice

#: With so many others to blame a node to blame is measured; and with so many where not all of them
#: are slow together, or links are slow too: then what lies between may be at fault.
_MATES, _IN_DOUBT = 3, 7
#: And with so many proven nodes.
_PARTNERS = 6


def culprits(choice: Choice) -> None:
    """Nodes to blame with each other: hosts behind one slow switch are fast together. And with a
    node of each side."""
    proof = choice.proof
    parts = proof.sides or (proof.islands() if proof.unsteady and proof.bad else ())
    doubt = bool(proof.unsteady or proof.bad_links or proof.sides)
    for node in sorted(proof.bad):
        _with_another(choice, node, _IN_DOUBT if doubt else _MATES)
    for node in sorted(proof.bad) if doubt else ():
        _with_proven(choice, node, parts)


def _with_another(choice: Choice, node: int, most: int) -> None:
    proof = choice.proof
    if node in choice.used or proof.mates[node] >= most:
        return
    for other in sorted(proof.bad):
        free = other > node and other not in choice.used and proof.mates[other] < most
        if free and (node, other) not in proof.seen:
            choice.add((node, other), f"n{node} with n{other}: are they slow together too?")
            return


def _with_proven(choice: Choice, node: int, parts: Sequence[Nodes]) -> None:
    """One of each part that it was not measured with; if need be its neighbour, where a slow link
    cannot be told from it, but a fast test proves both."""
    tried = choice.proof.partners(node)
    parts = [part for part in parts if tried.keys().isdisjoint(part)]
    if not parts and len(tried) < _PARTNERS:
        parts = [tuple(choice.walk(node + choice.turn * 7919, 1))]
    for part in parts:
        others = [one for one in part if one not in tried and one != node and choice.free(one)]
        partner = choice.line(others, 1, node) or tuple(others[:1])
        if partner and node not in choice.used:
            choice.add((node, *partner), f"n{node} with proven {named(partner)} too")


def link_or_ends(choice: Choice, pair: Link, why: str) -> None:
    """The link; where it was slow, its ends with others before it is measured again, and after."""
    one = choice.proof.seen.get(pair)
    ends = choice.proof.stale(one) if one and one.verdict == "slow" else []
    if not ends:
        choice.add(pair, why)
    for node in ends:
        other = pair[0] if pair[1] == node else pair[1]
        ahead = choice.walk(node, 1 if (node - other) % choice.proof.size == 1 else -1)
        far = (each for each in ahead if each not in (node, other))
        partner = choice.line(far, 1, node) if node not in choice.used else ()
        if partner:
            nodes = as_key((node, *partner))
            choice.proof.checks.add(nodes)
            choice.add(nodes, f"n{node} without the link {named(pair)}")
