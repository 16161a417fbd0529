"""Several lists of PCI functions in one text: forms of one list, or lists of two hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

_HOST_BRIDGE = "0x0600"
#: Base classes of network adapters and of GPUs.
_COMPARED = ("0x02", "0x03")


class Listed(NamedTuple):
    """A function as one list has it."""

    address: str
    class_id: str
    line: int

    @property
    def base(self) -> str:
        """Its base class."""
        return self.class_id[:4]


def lacking(functions: Sequence[Listed]) -> Listed | None:
    """A GPU or an adapter that another list of the text leaves out, though it begins before it,
    goes on behind it, and shows its like. Lists without host bridges are excerpts, and may."""
    lists = [one for one in _lists(functions) if any(f.class_id == _HOST_BRIDGE for f in one)]
    for one, other in permutations(lists, 2):
        shown = {each.address for each in other}
        kinds = {each.base for each in other}
        for each in one:
            within = other[0].address < each.address < other[-1].address
            like = each.base in _COMPARED and each.base in kinds
            if within and like and each.address not in shown:
                return each
    return None


def _lists(functions: Sequence[Listed]) -> Iterator[list[Listed]]:
    """lspci sorts by address: where they begin again another list does."""
    here: list[Listed] = []
    for each in functions:
        if here and each.address <= here[-1].address:
            yield here
            here = []
        here.append(each)
    if here:
        yield here
