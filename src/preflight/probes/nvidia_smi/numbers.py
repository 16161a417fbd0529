"""Which number nvidia-smi gives to a GPU: what `nvidia-smi -i` takes, and a person types.

It counts all GPUs of the driver from 0 in the order of their bus ids, also where it lists only some
(`-i 4`, a report that is cut). A number that is only a guess resets the wrong GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from preflight.model import Known, Missing
from preflight.probes.nvidia_smi.block import Block
from preflight.probes.nvidia_smi.sentences import LostGpu

_UNKNOWN = Missing("not-in-input", "not all GPUs are listed: which number this one has is not told")


def numbers(entries: Sequence[Block | LostGpu], attached: Known[int]) -> list[Known[int]]:
    """The number of each GPU that is listed or told of, in their order; `attached`: how many there
    are as far as that is known."""
    told = _filled([entry.index for entry in entries])
    whole = isinstance(attached, int) and len(entries) >= attached
    nameless = not any(entry.bus_id for entry in entries)
    if (whole or nameless) and all(number in (None, at) for at, number in enumerate(told)):
        return list(range(len(entries)))
    twice = {number for number, times in Counter(told).items() if times > 1}
    return [_UNKNOWN if number is None or number in twice else number for number in told]


def name_of(number: Known[int], bus_id: str, place: int) -> str:
    """The subject: gpu4, or the address as the kernel writes it, or its place in the list."""
    if isinstance(number, int):
        return f"gpu{number}"
    return bus_id.removeprefix("0000") if bus_id else f"gpu{place}"


def _filled(told: list[int | None]) -> list[int | None]:
    """Those between two numbers, or before the first, that leave no other are known as well."""
    found, last, last_number = list(told), -1, -1
    for at, number in enumerate(told):
        if number is None:
            continue
        if number - last_number == at - last:
            found[last + 1 : at] = range(last_number + 1, number)
        last, last_number = at, number
    return found
