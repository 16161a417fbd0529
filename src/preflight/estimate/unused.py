"""Options that were stated and that the estimate does not use, with what they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from preflight.estimate.run import Run
from preflight.estimate.whole import NO_INTERVAL, NO_MTBF, Estimate
from preflight.model import Missing

_UNSET = Run(1, 1, 1)
_HOLDS = Missing("not-applicable", "no use beside --mfu, which holds communication")


def _needs(text: str) -> Missing:
    return Missing("not-asked", text)


def _has_shape(run: Run) -> bool:
    """Of activations; attention needs a length beside."""
    return None not in (run.layers, run.width, run.tokens_per_gpu)


def _unsent(told: Estimate) -> Missing | None:
    """Why tokens of a pass are not used, save for activations."""
    if _has_shape(told.run) or not isinstance(told.balance_tokens, Missing):
        return None
    return _HOLDS if told.run.mfu_percent is not None else None


def _shaping(told: Estimate) -> Missing | None:
    run = told.run
    if None not in (run.layers, run.width, run.length) or _has_shape(run):
        return None
    return _needs("--layers, --width and --length together, or --tokens-per-gpu with the first two")


#: Field of Run, option, and why it is of no use; None where it is used.
_RULES: tuple[tuple[str, str, Callable[[Estimate], Missing | None]], ...] = (
    ("peak_tflops", "--peak",
     lambda told: _needs("--mfu PERCENT") if told.run.mfu_percent is None else None),
    ("stall_s", "--stall", lambda told: _if_missing(told.interval_s, NO_INTERVAL)),
    ("restart_s", "--restart", lambda told: NO_MTBF if told.run.mtbf_s is None else None),
    ("layers", "--layers", _shaping),
    ("length", "--length", _shaping),
    ("tokens_per_gpu", "--tokens-per-gpu", _unsent),
    ("accumulation", "--accumulation",
     lambda told: None if told.run.tokens_per_gpu else _needs("--tokens-per-gpu")),
    ("keep", "--keep",
     lambda told: _needs("--price-storage") if told.run.price_storage is None else None),
    ("transfers", "--transfers",
     lambda told: _needs("--price-transfer") if told.run.price_transfer is None else None),
)  # fmt: skip


def _if_missing(one: object, needs: Missing) -> Missing | None:
    return needs if isinstance(one, Missing) else None


def unused(told: Estimate) -> Iterator[tuple[str, Missing]]:
    """Each as `--stall (not used)` with what it needs."""
    for field, option, rule in _RULES:
        stated = getattr(told.run, field) != getattr(_UNSET, field)
        if stated and (why := rule(told)) is not None:
            yield f"{option} (not used)", why
