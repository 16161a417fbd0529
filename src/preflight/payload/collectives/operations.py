"""The collectives: buffers, the call, and what has to be there afterwards.

Values are small whole numbers, so that every order of summing gives the same, in bf16 too: element
i of rank r holds (i + r) mod 3, and a sum over 85 ranks or fewer stays below 256, up to which bf16
knows every number. Of more ranks element i holds (i + r) mod 2 (up to 256 ranks), then only rank
numbers below 256 have ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

#: Numbers up to which bf16 has no gaps: 8 bits of its mantissa, the hidden one among them.
_WHOLE = 256
_ELEMENTS_AT_ONCE = 1 << 22
# Since torch 2.13, and what they were called before.
_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass
class Call:
    """One collective on buffers of one size. `run` leaves its answer in `answer`."""

    run: Callable[[], Any]
    fill: Callable[[], None]
    answer: Tensor
    expected: Callable[[int, int], Tensor]  # elements from .. to of the answer, in fp32


class Values:
    """What each rank puts in."""

    def __init__(self, ranks: int, device: Any) -> None:
        self.ranks, self.device = ranks, device
        self.modulus = 3 if 2 * ranks < _WHOLE else 2
        self.many = min(ranks, _WHOLE)  # ranks that put in anything but zeros

    def of(self, rank: int, begin: int, end: int) -> Tensor:
        """Elements begin .. end of a rank's input, in fp32."""
        if rank >= self.many:
            return torch.zeros(end - begin, device=self.device)
        places = torch.arange(begin, end, device=self.device)
        return (places + rank).remainder_(self.modulus).float()

    def summed(self, begin: int, end: int) -> Tensor:
        """The same of the sum over all ranks."""
        by = torch.zeros(self.modulus)
        for rank in range(self.many):
            by += (torch.arange(self.modulus) + rank).remainder(self.modulus).float()
        places = torch.arange(begin, end, device=self.device).remainder_(self.modulus)
        return by.to(self.device)[places]

    def put(self, buffer: Tensor, rank: int, offset: int = 0) -> None:
        """Fill a buffer with a rank's input, from element `offset` of it."""
        for begin in range(0, buffer.numel(), _ELEMENTS_AT_ONCE):
            end = min(begin + _ELEMENTS_AT_ONCE, buffer.numel())
            buffer[begin:end].copy_(self.of(rank, offset + begin, offset + end))


@dataclass(frozen=True)
class Ring:
    """Where a rank stands among all, and its device and type of number."""

    rank: int
    ranks: int
    device: Any
    dtype: Any


def _all_reduce(at: Ring, count: int) -> Call:
    values, buffer = Values(at.ranks, at.device), _buffer(at, count)
    return Call(lambda: dist.all_reduce(buffer), lambda: values.put(buffer, at.rank), buffer,
                values.summed)  # fmt: skip


def _all_gather(at: Ring, count: int) -> Call:
    piece = count // at.ranks
    values, mine, whole = (
        Values(at.ranks, at.device),
        _buffer(at, piece),
        _buffer(at, piece * at.ranks),
    )
    return Call(lambda: _GATHER(whole, mine),
                lambda: values.put(mine, at.rank), whole, _pieces(values, piece, 0))  # fmt: skip


def _reduce_scatter(at: Ring, count: int) -> Call:
    piece = count // at.ranks
    values, mine, whole = (
        Values(at.ranks, at.device),
        _buffer(at, piece),
        _buffer(at, piece * at.ranks),
    )
    first = at.rank * piece
    return Call(lambda: _SCATTER(mine, whole),
                lambda: values.put(whole, at.rank), mine,
                lambda begin, end: values.summed(first + begin, first + end))  # fmt: skip


def _broadcast(at: Ring, count: int) -> Call:
    values, buffer = Values(at.ranks, at.device), _buffer(at, count)
    return Call(lambda: dist.broadcast(buffer, 0), lambda: values.put(buffer, at.rank), buffer,
                lambda begin, end: values.of(0, begin, end))  # fmt: skip


def _reduce(at: Ring, count: int) -> Call:
    """Only the first rank has an answer; of the others any is right."""
    values, buffer = Values(at.ranks, at.device), _buffer(at, count)
    answer = buffer if at.rank == 0 else buffer[:0]
    return Call(lambda: dist.reduce(buffer, 0), lambda: values.put(buffer, at.rank), answer,
                values.summed)  # fmt: skip


def _all_to_all(at: Ring, count: int) -> Call:
    piece = count // at.ranks
    values, given, got = (
        Values(at.ranks, at.device),
        *(_buffer(at, piece * at.ranks) for _ in range(2)),
    )
    return Call(lambda: dist.all_to_all_single(got, given), lambda: values.put(given, at.rank),
                got, _pieces(values, piece, at.rank * piece))  # fmt: skip


def _sendrecv(at: Ring, count: int) -> Call:
    """To the next rank, from the one before."""
    values, given, got = Values(at.ranks, at.device), _buffer(at, count), _buffer(at, count)
    after, before = (at.rank + 1) % at.ranks, (at.rank - 1) % at.ranks

    def run() -> None:
        both = [dist.P2POp(dist.isend, given, after), dist.P2POp(dist.irecv, got, before)]
        for one in dist.batch_isend_irecv(both):
            one.wait()

    return Call(run, lambda: values.put(given, at.rank), got,
                lambda begin, end: values.of(before, begin, end))  # fmt: skip


def _buffer(at: Ring, count: int) -> Tensor:
    return torch.zeros(count, dtype=at.dtype, device=at.device)


def _pieces(values: Values, piece: int, offset: int) -> Callable[[int, int], Tensor]:
    """The answer where each rank has given a piece: its elements from `offset`."""

    def expected(begin: int, end: int) -> Tensor:
        found = []
        while begin < end:
            rank, first = divmod(begin, piece)
            last = min(piece, first + end - begin)
            found.append(values.of(rank, offset + first, offset + last))
            begin += last - first
        return torch.cat(found)

    return expected


#: In the order in which they are timed; each with buffers of the whole size that it takes.
COLLECTIVES: dict[str, tuple[Callable[[Ring, int], Call], int]] = {
    "all_reduce": (_all_reduce, 1), "all_gather": (_all_gather, 2),
    "reduce_scatter": (_reduce_scatter, 2), "all_to_all": (_all_to_all, 2),
    "broadcast": (_broadcast, 1), "reduce": (_reduce, 1), "sendrecv": (_sendrecv, 2),
}  # fmt: skip
#: Those that cut the buffer into a piece for each rank.
IN_PIECES = ("all_gather", "reduce_scatter", "all_to_all")


def wrong(call: Call) -> int:
    """Elements of the answer that are not what they have to be."""
    found = 0
    for begin in range(0, call.answer.numel(), _ELEMENTS_AT_ONCE):
        end = min(begin + _ELEMENTS_AT_ONCE, call.answer.numel())
        here = call.answer[begin:end].float()
        found += int((here != call.expected(begin, end)).sum())
    return found
