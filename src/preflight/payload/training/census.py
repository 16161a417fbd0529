"""What the user's shards hold, by a look at some of it: before anything is trained on them.

A copy that was cut off and made long again, or a file of which the middle was never written, reads
as zeros. A model learns those at once, and its loss says that all is well.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .shards import Shard, ShardError

#: So many shards are looked at, spread over all of them; each from its start to its end at so many
#: places, fewer where there are many shards, and so many ids at each.
_SHARDS, _PLACES, _LEAST_PLACES, _LOOKS, _IDS = 256, 64, 24, 4096, 512
#: Whether it is one id between two places too is asked at so many more.
_ASKED_AGAIN = 24
_SEED = 1


def census(shards: list[Shard]) -> dict[str, Any]:
    """How many ids there are, how often the most frequent comes, and the longest stretch of one id
    in a shard, in percent of it."""
    looked = _spread([one for one in shards if one.tokens])
    if not looked:
        raise ShardError("no shard holds a token")
    each = max(_LEAST_PLACES, min(_PLACES, _LOOKS // len(looked)))
    draw = random.Random(_SEED)
    seen, stretches = [], []
    for shard in looked:
        tokens = shard.mapped()
        windows = list(_windows(tokens, each, draw))
        seen += [window for _, window in windows]
        stretches.append((_stretch(tokens, windows, draw), Path(shard.path).name))
    ids, counts = torch.cat(seen).unique(return_counts=True)
    most = int(counts.argmax())
    longest, where = max(stretches)
    return {
        "kind": "data", "shards": len(shards), "looked_at": len(looked),
        "tokens": sum(one.tokens for one in shards), "sampled": int(counts.sum()),
        "distinct": len(ids), "most_id": int(ids[most]),
        "most_percent": round(100.0 * int(counts[most]) / int(counts.sum()), 3),
        "stretch_percent": round(100.0 * longest, 3), "stretch_in": where if longest else "",
    }  # fmt: skip


def _spread(shards: list[Shard]) -> list[Shard]:
    if len(shards) <= _SHARDS:
        return shards
    return [shards[at * (len(shards) - 1) // (_SHARDS - 1)] for at in range(_SHARDS)]


def _windows(tokens: Tensor, places: int, draw: random.Random) -> Iterator[tuple[int, Tensor]]:
    """Where each begins, and its ids: the first, the last, and one at random in each part between
    them, for rows of one length would be met at the same place each time."""
    last = len(tokens) - _IDS
    if last < places * _IDS:
        yield 0, tokens.long()
        return
    part = last / (places - 1)
    inner = (int((at + draw.random()) * part) for at in range(places - 1))
    for begin in (0, *sorted(inner), last):
        yield begin, tokens[begin : begin + _IDS].long()


def _stretch(tokens: Tensor, windows: list[tuple[int, Tensor]], draw: random.Random) -> float:
    """The longest stretch that is one id, as a share of the shard."""
    if len(windows) == 1:
        longest = int(windows[0][1].unique_consecutive(return_counts=True)[1].max())
    else:
        longest, begin = 0, 0
        for (before, was), (at, window) in pairwise(windows):
            one = int(window[0])
            alike = _is(window, one) and _is(was, one)
            begin = begin if alike and _is_between(tokens, before, at, one, draw) else at
            longest = max(longest, at - begin + _IDS)
    return longest / len(tokens) if longest > _IDS else 0.0


def _is(window: Tensor, one: int) -> bool:
    return bool((window == one).all())


def _is_between(tokens: Tensor, begin: int, end: int, one: int, draw: random.Random) -> bool:
    """Whether it is that id from one place to the next too: rows that are filled up to one length
    hold long stretches of the filling between others."""
    places = (draw.randint(begin, end) for _ in range(_ASKED_AGAIN))
    return all(_is(tokens[place : place + _IDS].long(), one) for place in places)
