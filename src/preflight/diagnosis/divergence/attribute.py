"""Which causes an event may have: each with what speaks for it, and against. No device is suspected
without evidence of its own: a log alone never names one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from preflight.diagnosis.divergence.scene import Scene, after_resume

#: Spikes beside one that are no batch of its own.
_MANY = 6
#: How much an argument counts.
_SOME, _MUCH, _PROOF = 1, 2, 4


class Hypothesis(Struct, frozen=True):
    """`weight`: of the arguments for it, less those against."""

    cause: str
    weight: int
    reasons: tuple[str, ...]
    against: tuple[str, ...] = ()


Argument = tuple[int, str]  # below 0 it speaks against


def hypotheses(scene: Scene, evidence: Sequence[str] = ()) -> list[Hypothesis]:
    """The most probable first; those that nothing speaks for are left out. `evidence`: of faulty
    hardware, from what was given beside the log."""
    found = []
    for cause, argue in _CAUSES.items():
        arguments = list(argue(scene))
        if cause == "silent-corruption":
            arguments += [(_PROOF, one) for one in evidence]
        pro = tuple(text for weight, text in arguments if weight > 0)
        contra = tuple(text for weight, text in arguments if weight < 0)
        if pro:
            found.append(Hypothesis(cause, sum(one for one, _ in arguments), pro, contra))
    return sorted(found, key=lambda one: -one.weight)


def _learning_rate(scene: Scene) -> Iterator[Argument]:
    event = scene.event
    if event.kind in ("drop-after-resume", "periodic-spikes", "jump-after-resume"):
        return
    if scene.rate is not None and scene.rate >= 0.9:
        yield _SOME, f"the learning rate is at {scene.rate:.0%} of its largest"
    if scene.warmup_end and abs(event.step - scene.warmup_end) <= 0.1 * scene.warmup_end:
        yield _MUCH, f"within a tenth of the end of the warm-up (step {scene.warmup_end:,.0f})"
    if scene.rate_jump is not None and scene.rate_jump >= 2 and event.recovery == "never":
        yield _MUCH, f"the learning rate had just risen {scene.rate_jump:.3g} times"
    if event.kind in ("slow-divergence", "oscillation", "shift", "gradient-growth"):
        yield _SOME, "it does not come back by itself"
    if event.kind in ("oscillation", "slow-divergence"):
        yield _SOME, "no single step began it"
    if scene.rose is not None:
        yield _MUCH, f"the loss had risen {scene.rose:,.0f} steps before, and had not come back"
    if scene.others >= 2 and not after_resume(scene):
        yield _SOME, f"{scene.others} other spikes beside it"
    if scene.rate is not None and scene.rate < 0.2:
        yield -_MUCH, f"the learning rate is at {scene.rate:.0%} of its largest only"
    if event.recovery == "alone" and event.kind == "spike":
        yield -_SOME, "the run came back by itself"


def _no_warmup(scene: Scene) -> Iterator[Argument]:
    early = scene.event.row < 64 and scene.since_resume is None
    early = early and scene.event.recovery != "alone"
    full = scene.first_rate is not None and scene.first_rate >= 0.9
    if early and full and scene.event.column == "loss":
        yield _PROOF, "the first step has the full learning rate, and the event comes early"


def _bad_batch(scene: Scene) -> Iterator[Argument]:
    if scene.event.kind not in ("spike", "not-finite") or scene.others >= _MANY:
        return
    if scene.event.recovery == "alone":
        yield _MUCH, "the run came back by itself within 50 steps"
        if scene.event.rows <= 2:
            yield _SOME, "one row alone"
    if scene.norm_lead == 0:
        yield _SOME, "the gradient norm rose in the same step"
    if scene.worst_rank is not None and scene.worst_rank > 2:
        yield _MUCH, f"the loss of the worst rank is {scene.worst_rank:.3g} times the mean"
    if scene.others >= 3:
        yield -_SOME, f"{scene.others} other spikes: not one batch"
    if scene.event.recovery == "never":
        yield -_MUCH, "one batch passes"


def _optimizer_state(scene: Scene) -> Iterator[Argument]:
    if scene.event.kind not in ("spike", "shift"):
        return
    if scene.norm_lead is not None and 1 <= scene.norm_lead <= 8:
        yield _MUCH, f"the gradient norm rose {scene.norm_lead} rows before the loss"
        if scene.event.recovery != "alone":
            yield _SOME, "and it did not pass at once"


def _fp16(scene: Scene) -> Iterator[Argument]:
    if scene.fp16 is False:
        return
    if scene.event.kind in ("scale-collapse", "scale-decline", "frozen"):
        yield _PROOF, "the loss scale itself falls: gradients leave the range of fp16"
    elif scene.scale_lead is not None:
        yield _PROOF, f"the loss scale had fallen {scene.scale_lead:,.0f} steps before"


def _data_order(scene: Scene) -> Iterator[Argument]:
    if scene.event.kind == "spike" and scene.event.recovery == "alone" and scene.others >= _MANY:
        yield _MUCH, f"{scene.others} other spikes, which pass: some data are harder, all along"
    if scene.event.kind == "periodic-spikes":
        yield _PROOF, "spikes at equal distances follow the data, not the weights"


def _lost_state(scene: Scene) -> Iterator[Argument]:
    if scene.event.kind == "jump-after-resume":
        yield _PROOF, "the loss jumps with the first rows after the restart"
    elif after_resume(scene) and scene.event.kind in ("spike", "shift", "not-finite", "frozen"):
        yield _MUCH, f"{scene.since_resume} rows after a restart"
    if after_resume(scene) and scene.rate_jump is not None and scene.rate_jump > 1.5:
        yield _SOME, f"the learning rate is {scene.rate_jump:.3g} times what it was"


def _repeated(scene: Scene) -> Iterator[Argument]:
    if scene.event.kind == "drop-after-resume":
        yield _PROOF, "the loss drops with the first rows after the restart: these data are known"


def _masked(scene: Scene) -> Iterator[Argument]:
    if not scene.masked:
        return
    if scene.event.kind != "not-finite":
        yield _MUCH, "the loss is 0: a mean over nothing"
    elif scene.event.recovery == "alone":
        yield _MUCH, "a loss of 0 with a gradient that is no number, and then it goes on"
    else:
        yield _SOME, "the loss is 0; but some trainers write that for any loss that is no number"


def _code(scene: Scene) -> Iterator[Argument]:
    if scene.event.kind not in ("not-finite", "loss-vanished"):
        return
    if scene.again:
        yield _PROOF, f"again at step {scene.again[0]:,.0f} in another start: no accident"
    if (
        scene.norm_told
        and scene.norm_lead is None
        and scene.scale_lead is None
        and not scene.others
    ):
        yield _MUCH, "nothing announced it: neither the gradient norm nor the loss rose before"
    elif not scene.others and scene.scale_lead is None:
        yield _SOME, "the loss did not rise before"


def _corruption(scene: Scene) -> Iterator[Argument]:
    if scene.hardware:
        yield _PROOF, f"the log itself tells of hardware: {scene.hardware[0].text[:120]}"
        if scene.rank is not None:
            yield _MUCH, f"rank {scene.rank} had it first"
    elif scene.rank is not None and not scene.again:
        yield _SOME, f"rank {scene.rank} had it first"
    if scene.again:
        yield -_PROOF, "it came again at the same step: hardware does not repeat itself"


_CAUSES: dict[str, Callable[[Scene], Iterator[Argument]]] = {
    "lost-state": _lost_state, "repeated-data": _repeated, "fp16-range": _fp16,
    "data-order": _data_order, "masked-labels": _masked, "no-warmup": _no_warmup,
    "bad-batch": _bad_batch, "optimizer-state": _optimizer_state,
    "learning-rate": _learning_rate, "code": _code, "silent-corruption": _corruption,
}  # fmt: skip
