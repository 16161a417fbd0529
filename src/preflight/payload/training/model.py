"""A decoder as large models have it: RMSNorm, RoPE, grouped-query attention, SwiGLU."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor, nn
from torch.utils import checkpoint

from .presets import Preset

#: Whether attention knows of heads that share keys and values: since torch 2.5.
_GROUPED = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5)
_HAS_RMS_NORM = hasattr(F, "rms_norm")  # since torch 2.4
#: Of a block that is computed again, what is kept: products with weights, and what attention gives.
#: No other products: where attention is written out, theirs grow with the square of the length.
_DEAR = (
    "mm", "addmm", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable",
)  # fmt: skip


class Norm(nn.Module):
    """Root mean square norm (Zhang and Sennrich 2019), computed in fp32 whatever goes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        if not _HAS_RMS_NORM:
            x32 = x.float()
            whole = x32 * (x32.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
            return (whole * self.weight.float()).type_as(x)
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), 1e-5).type_as(x)


def rotations(length: int, size: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of RoPE (Su et al. 2021), base 10,000: each of shape (length, size / 2)."""
    frequency = 10_000.0 ** (-torch.arange(0, size, 2).float() / size)
    angle = torch.outer(torch.arange(length).float(), frequency)
    return angle.cos(), angle.sin()


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(batch, heads, length, size) with its halves turned by their positions' angles."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).type_as(x)


class Attention(nn.Module):
    def __init__(self, shape: Preset) -> None:
        super().__init__()
        self.heads, self.kv_heads = shape.heads, shape.kv_heads
        self.size = shape.width // shape.heads
        self.q = nn.Linear(shape.width, shape.heads * self.size, bias=False)
        self.kv = nn.Linear(shape.width, 2 * shape.kv_heads * self.size, bias=False)
        self.out = nn.Linear(shape.heads * self.size, shape.width, bias=False)
        self.reference = False  # attention written out in fp32, to hold the fused one against

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        kv = self.kv(x).view(batch, length, 2, self.kv_heads, self.size)
        k, v = kv[:, :, 0].transpose(1, 2), kv[:, :, 1].transpose(1, 2)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        attend = written_out if self.reference else fused
        y = attend(q, k, v).transpose(1, 2).reshape(batch, length, -1)
        return self.out(y)


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention by whatever kernel torch has for this device."""
    if _GROUPED:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    share = q.shape[1] // k.shape[1]
    k, v = (each.repeat_interleave(share, dim=1) for each in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same in fp32, one operation after the other."""
    share = q.shape[1] // k.shape[1]
    k, v = (each.float().repeat_interleave(share, dim=1) for each in (k, v))
    scores = q.float() @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return (scores.masked_fill(later, -math.inf).softmax(-1) @ v).type_as(q)


class FeedForward(nn.Module):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, shape: Preset) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, shape: Preset) -> None:
        super().__init__()
        self.attention_norm, self.attention = Norm(shape.width), Attention(shape)
        self.forward_norm, self.feed_forward = Norm(shape.width), FeedForward(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.forward_norm(x))


class Decoder(nn.Module):
    """Tokens (batch, length) and the tokens that follow them -> the mean loss in nats."""

    def __init__(self, shape: Preset, *, recompute: float = 0.0) -> None:
        super().__init__()
        #: Blocks whose activations are computed again in backward rather than kept.
        self.recomputed = round(recompute * shape.layers)
        self.keeps: dict[str, Any] = {}  # of such a block, as torch wants to be told
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        cos, sin = rotations(shape.length, shape.width // shape.heads)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.depth = shape.layers

    def initialise(self) -> None:
        """Normal weights of 0.02, those that write to the residual stream smaller by the square
        root of their number (GPT-2): so the loss begins at ln(vocabulary)."""
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                last = name.endswith(("out.weight", "down.weight"))
                std = 0.02 / math.sqrt(2 * self.depth) if last else 0.02
                nn.init.normal_(weight, std=std)

    def keep_dear(self) -> None:
        """Blocks that compute their activations again keep those of dear operators."""
        found = [getattr(torch.ops.aten, name) for name in _DEAR if hasattr(torch.ops.aten, name)]
        dear = [one.default for one in found]
        self.keeps = {"context_fn": partial(checkpoint.create_selective_checkpoint_contexts, dear)}

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(tokens)
        length = tokens.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        for number, block in enumerate(self.blocks):
            if number < self.recomputed:
                x = checkpoint.checkpoint(block, x, cos, sin, use_reentrant=False, **self.keeps)
            else:
                x = block(x, cos, sin)
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def selects() -> bool:
    """Whether this torch can compute again some operators of a block and keep others: from 2.4."""
    return hasattr(checkpoint, "create_selective_checkpoint_contexts")


def parameters(shape: Preset) -> int:
    """All that is trained, the embedding and the norms too."""
    norms = (2 * shape.layers + 1) * shape.width
    return shape.layers * _block(shape) + 2 * shape.width * shape.vocabulary + norms


def kv_cache_bytes(shape: Preset) -> int:
    """Of keys and values of all tokens of a pass, were they kept as one generates by them."""
    size = 4 if shape.precision == "fp32" else 2
    token = 2 * shape.layers * shape.kv_heads * (shape.width // shape.heads) * size
    return shape.batch * shape.length * token


def flops_per_token(shape: Preset, *, causal: bool = False) -> float:
    """Floating point operations of forward and backward for one token: 6 for each parameter that
    multiplies (not the embedding), and 12 x layers x width x length for attention (Narayanan et al.
    2021, appendix), of which a causal kernel skips half."""
    multiply = shape.layers * _block(shape) + shape.width * shape.vocabulary
    scores = 12 * shape.layers * shape.width * shape.length
    return 6.0 * multiply + (scores / 2 if causal else scores)


def _block(shape: Preset) -> int:
    """Weights of the matrices of one block."""
    size = shape.width // shape.heads
    attention = 2 * shape.width * size * (shape.heads + shape.kv_heads)
    return attention + 3 * shape.width * shape.hidden
