"""Which checks see which injected fault: any one of them has to say so."""

from __future__ import annotations

_RESUMED = ("training.resume.loss", "training.resume.parameters")
_REPLICAS = ("training.replicas", "training.replicas.fleet")
_LOADER = ("training.data.wait", "training.data.loader")

#: Those of payload/training/inject.py; a test holds them together.
SEEN_BY = {
    "slow-rank": ("training.straggler",),
    "slow-loader": ("training.data.wait",),
    "pickle-heavy": _LOADER,
    "stall": ("training.data.longest",),
    "kill": ("training.ranks",),
    "stop": ("training.ranks",),
    "flip-weight": _REPLICAS,
    "flip-gradient": _REPLICAS,
    "nan": ("training.finite",),
    "rate-x100": ("training.loss.learned", "training.loss.jump"),
    "bad-batch": ("training.loss.jump",),
    "lost-optimizer": _RESUMED,
    "repeated-data": ("training.resume.samples",),
    "corrupt-checkpoint": ("training.checkpoint.sound",),
    "half-checkpoint": ("training.checkpoint.sound",),
    "full-disk": ("training.checkpoint.written",),
    "pageable": ("training.copy",),
    "tiny-kernels": ("training.rest",),
    "churn": ("training.memory.retries", "training.memory.fragmented"),
    "gc-pauses": ("training.gc",),
}
#: Those of payload/stress/inject.py; a test holds them together.
STRESS_SEEN_BY = {
    "wedge": ("stress.ended",),
    "zero-work": ("stress.worked",),
    "corrupt": ("stress.gemm.right",),
    "memory": ("stress.memory.pattern",),
    "slow": ("stress.gemm.rate", "stress.gemm.peers", "stress.gemm.few"),
    "lost": ("stress.ended",),
}
