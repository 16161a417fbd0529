"""Norms of the gradients by layer, of the whole model wherever its pieces lie."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..group.join import Place
from .layout import Spread


def by_layer(model: nn.Module, place: Place, how: Spread) -> dict[str, float]:
    """Of the embedding, each block, the last norm and the head. All ranks ask together."""
    names, squares = [], []
    for name, layer in _layers(getattr(model, "module", model)):
        gradients = [_local(one.grad).float() for one in layer.parameters() if one.grad is not None]
        if gradients:
            names.append(name)
            squares.append(torch.stack([one.norm() for one in gradients]).square().sum())
    found = torch.stack(squares)
    if how.sharding == "fsdp" and place.ranks > 1:
        dist.all_reduce(found)  # each piece is there once in every replica
        found /= how.replicas
    return dict(zip(names, found.sqrt().tolist()))  # noqa: B905


def _layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, child in model.named_children():
        if isinstance(child, nn.ModuleList):
            yield from ((f"{name}.{number}", one) for number, one in enumerate(child))
        else:
            yield name, child


def _local(gradient: Tensor) -> Tensor:
    return gradient.to_local() if hasattr(gradient, "to_local") else gradient
