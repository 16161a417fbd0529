"""What must hold of any correct step, tried before training on a model of this rank alone.

Each tells a distance, never a judgement: how far two ways to the same numbers are apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from . import layout, loader
from .checkpoint import digest
from .loop import Run, State

#: Sequences that a proof takes, of the run's first.
_SEQUENCES = 4
_STEPS = 3
_LENGTH = 512


def proofs(run: Run, seed: int) -> Iterator[dict[str, Any]]:
    """One line for each, on two layers at most: attention that is written out takes memory by the
    square of the length."""
    shape = run.shape
    small = replace(shape, layers=min(shape.layers, 2), length=min(shape.length, _LENGTH))
    tokens = loader.Tokens(run.tokens.shards, small.length, small.vocabulary)
    order = replace(run.order, samples=len(tokens))
    run = replace(run, shape=small, tokens=tokens, order=order)
    batch = _first(run)
    yield accumulation(run, seed, batch)
    yield attention(run, seed, batch)
    if run.compiled:
        yield compiling(run, seed, batch)
    yield repeated(run, seed, batch)


def membership(state: State) -> dict[str, Any]:
    """Whether every trainable parameter is in the optimizer, once."""
    trained = [id(one) for one in state.model.parameters() if one.requires_grad]
    held = [id(one) for group in state.optimizer.param_groups for one in group["params"]]
    return {
        "kind": "proof", "name": "membership", "trained": len(trained),
        "missing": len(set(trained) - set(held)), "foreign": len(set(held) - set(trained)),
        "repeated": len(held) - len(set(held)),
    }  # fmt: skip


def accumulation(run: Run, seed: int, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """One batch of k sequences against k batches of one, their loss divided by k."""
    whole = _gradients(run, seed, [batch])
    parts = _gradients(run, seed, [tuple(each[at : at + 1] for each in batch)
                                   for at in range(len(batch[0]))])  # fmt: skip
    return _apart("accumulation", whole, parts)


def attention(run: Run, seed: int, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """The step as it is trained against attention written out, all in fp32."""
    as_trained = _gradients(run, seed, [batch])
    in_fp32 = replace(run, shape=replace(run.shape, precision="fp32"))
    return _apart("attention", _gradients(in_fp32, seed, [batch], reference=True), as_trained)


def compiling(run: Run, seed: int, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """The compiled step against the same without compiling, and the compiled one in fp32."""
    eager = _gradients(run, seed, [batch])
    return _apart("compile", eager, _gradients(run, seed, [batch], compiled=True))


def repeated(run: Run, seed: int, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """A few steps from one seed on one batch, twice: hashes of losses, gradients and parameters.
    They are the same on all devices of one model; the second tells a passing fault from a standing
    one."""
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        return {"kind": "proof", "name": "repeated",
                "hashes": [_hashes(run, seed, batch) for _ in range(2)]}  # fmt: skip
    finally:
        torch.use_deterministic_algorithms(was)


def _hashes(run: Run, seed: int, batch: tuple[Tensor, Tensor]) -> list[str]:
    model = layout.built(run.shape, run.place, seed, recompute=run.recompute)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, gradients = hashlib.sha256(), hashlib.sha256()
    for _ in range(_STEPS):
        loss = _loss(run, model, batch)
        loss.backward()
        losses.update(repr(loss.item()).encode())
        norms = torch.stack([one.grad.float().norm() for one in model.parameters()
                             if one.grad is not None])  # fmt: skip
        gradients.update(repr(norms.tolist()).encode())
        optimizer.step()
        optimizer.zero_grad()
    return [losses.hexdigest()[:16], gradients.hexdigest()[:16], digest(model)]


def _gradients(
    run: Run, seed: int, batches: list[Any], *, reference: bool = False, compiled: bool = False
) -> tuple[float, list[Tensor]]:
    model = layout.built(run.shape, run.place, seed, recompute=run.recompute)
    for block in model.blocks:
        block.attention.reference = reference
    forward = torch.compile(model) if compiled else model
    total = 0.0
    for batch in batches:
        loss = _loss(run, forward, batch) / len(batches)
        loss.backward()
        total += loss.item()
    return total, [one.grad.float() for one in model.parameters() if one.grad is not None]


def _loss(run: Run, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    with layout.casting(run.place, "single", run.shape.precision):
        return model(*batch)


def _apart(
    name: str, one: tuple[float, list[Tensor]], other: tuple[float, list[Tensor]]
) -> dict[str, Any]:
    """How far two losses, and two sets of gradients, are apart: relative to the first."""
    off = torch.stack([(a - b).norm() for a, b in zip(one[1], other[1])]).norm()  # noqa: B905
    size = torch.stack([a.norm() for a in one[1]]).norm()
    norm = torch.stack([b.norm() for b in other[1]]).norm()
    return {
        "kind": "proof", "name": name, "loss": abs(one[0] - other[0]) / abs(one[0]),
        "gradient": float(off / size), "norm_ratio": float(norm / size),
    }  # fmt: skip


def _first(run: Run) -> tuple[Tensor, Tensor]:
    """The same sequences on every rank."""
    order = replace(run.order, rank=0, ranks=1, batch=_SEQUENCES, accumulation=1)
    found = loader.batches(run.tokens, order, 0, 1, loader.Settings(workers=0))
    return loader.pair(next(found).to(run.place.device))
