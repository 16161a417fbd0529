"""How bytes and seconds are shared out: small objects for what a request takes, larger ones for how
much comes through, each by 1, 4 and 16 at once; last an object in parts."""

from __future__ import annotations

from typing import NamedTuple

#: S3 takes parts of 5 MiB and more.
PART_BYTES, _LEAST_PARTS, _MOST_PARTS = 8 << 20, 2, 64
_SMALL_BYTES, _LARGE_LEAST, _LARGE_MOST = 16 << 10, 1 << 20, 8 << 20
#: Enough to tell a rate of failures of 1 in 10,000.
_MOST_SMALL = 32768
#: So many at once; which share of the objects; how much of the seconds: small ones have most at the
#: end, which tells of failures.
_SMALL = ((1, 1 / 16, 3), (4, 3 / 16, 3), (16, 12 / 16, 8))
_LARGE = ((1, 1 / 6, 2), (4, 2 / 6, 2), (16, 3 / 6, 3))
_OF_PARTS = 3


class Phase(NamedTuple):
    """Objects of one size, put and then got by so many at once. `weight`: of the seconds."""

    kind: str
    size_bytes: int
    at_once: int
    objects: int
    weight: int


def phases(size_bytes: int) -> tuple[Phase, ...]:
    """An eighth for small ones, an eighth in parts, the rest for large ones; from 64 MiB on no more
    than that in all."""
    small = min(size_bytes // 8 // _SMALL_BYTES, _MOST_SMALL)
    large = size_bytes - size_bytes // 8 - parts(size_bytes) * PART_BYTES
    size = max(_LARGE_LEAST, min(_LARGE_MOST, large // 96 >> 20 << 20))
    return (
        *(Phase("small", _SMALL_BYTES, at_once, max(at_once, int(small * share)), weight)
          for at_once, share, weight in _SMALL),
        *(Phase("large", size, at_once, max(at_once, int(large // size * share)), weight)
          for at_once, share, weight in _LARGE),
    )  # fmt: skip


def parts(size_bytes: int) -> int:
    """Of the object that is put in parts."""
    return max(_LEAST_PARTS, min(_MOST_PARTS, size_bytes // 8 // PART_BYTES))


def weights(left: tuple[Phase, ...]) -> int:
    """Of what is still to come, the object in parts included."""
    return sum(one.weight for one in left) + _OF_PARTS
