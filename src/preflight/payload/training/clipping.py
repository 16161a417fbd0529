"""Policies of gradient clipping: each scales gradients in place, and gives their norm before it.

Norms are of what the optimizer will see: unscaled, and over all pieces of a sharded model.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

#: The quantile is of so many norms, and until a quarter of them is there nothing is clipped by it.
_KEPT = 64


class Policy(Protocol):
    """A model with its gradients -> their norm; clipped afterwards."""

    def __call__(self, model: nn.Module) -> Tensor: ...

    def over(self, norms: Sequence[float]) -> list[bool]:
        """Of the steps so far, whose norms these are: those in which it scaled anything."""


class Whole:
    """All gradients as one vector, to a norm of at most `most`."""

    def __init__(self, most: float) -> None:
        self.most = most

    def __call__(self, model: nn.Module) -> Tensor:
        return nn.utils.clip_grad_norm_(model.parameters(), self.most)

    def over(self, norms: Sequence[float]) -> list[bool]:
        return [norm > self.most for norm in norms]


class _Counted:
    """Counts by itself."""

    def __init__(self) -> None:
        self._over: list[Tensor] = []  # read when the run is over: that waits for the device

    def over(self, norms: Sequence[float]) -> list[bool]:
        return [bool(one) for one in self._over[-len(norms) :]]


class ByLayer(_Counted):
    """Each layer by itself, to at most its share of `most`: the root of its share of all layers, so
    that layers that are alike are clipped where the whole would be."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.most = most

    def __call__(self, model: nn.Module) -> Tensor:
        layers = _layers(model)
        each = self.most / math.sqrt(len(layers))
        norms = [nn.utils.clip_grad_norm_(one.parameters(), each) for one in layers]
        found = torch.stack([_whole(one) for one in norms])
        self._over.append((found > each).any())
        return found.square().sum().sqrt()


class Quantile(_Counted):
    """To the quantile of the norms before it that were finite, so that what is clipped stays the
    share that is meant; one that is not finite is none of them."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self._norms: deque[float] = deque(maxlen=_KEPT)

    def __call__(self, model: nn.Module) -> Tensor:
        most = self._most()
        norm = nn.utils.clip_grad_norm_(model.parameters(), most)
        value = float(_whole(norm))
        self._over.append(torch.tensor(value > most))
        if math.isfinite(value):
            self._norms.append(value)
        return norm

    def _most(self) -> float:
        if len(self._norms) < _KEPT // 4:
            return math.inf
        return sorted(self._norms)[min(len(self._norms) - 1, int(self.share * len(self._norms)))]


_POLICIES: dict[str, Callable[[float], Policy]] = {
    "global": Whole, "layer": ByLayer, "quantile": Quantile,
}  # fmt: skip


def policy(text: str) -> Policy:
    """`global:1`, `layer:1`, `quantile:0.9`, `none`. Raises ValueError."""
    name, _, number = ("global", "", "inf") if text == "none" else text.partition(":")
    if name not in _POLICIES:
        raise ValueError(f"{text!r} is no policy: none, {', '.join(_POLICIES)} and a number")
    try:
        most = float(number or "1")
    except ValueError:
        most = -1.0
    if not most > 0 or (name == "quantile" and most >= 1):
        raise ValueError(f"{text!r}: expected a number above 0, and of a quantile below 1")
    return _POLICIES[name](most)


def _layers(model: nn.Module) -> list[nn.Module]:
    """The embedding, each block, the last norm and the head."""
    found: list[nn.Module] = []
    for child in getattr(model, "module", model).children():
        found += list(child) if isinstance(child, nn.ModuleList) else [child]
    return found


def _whole(norm: Tensor) -> Tensor:
    """Over all pieces."""
    full: Tensor = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return full.detach()
