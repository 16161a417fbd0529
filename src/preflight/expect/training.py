"""What a sound run of the bundled training loop does, by its precision and device."""

from __future__ import annotations

from collections.abc import Callable

from preflight.expect.bound import Bound
from preflight.facts.host import Host
from preflight.facts.training import Training
from preflight.model import NOT_IN_INPUT, Known, Missing

Of = Callable[[Host, object], Known[Bound]]

#: How far two ways to one gradient may be apart, relative: some tens of roundings of fp32 (2^-24),
#: fp16 (2^-11), bf16 (2^-8).
_GRADIENT = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 5e-2}
#: How far a resumed run's loss may be from the uninterrupted one's. On processors sums have one
#: order; on a GPU atomics may change the last bits.
_RESUME_LOSS = {"cpu": 0.0, "cuda": 1e-5}
#: Fewer steps teach nothing.
_LEAST_STEPS = 30
#: Of the way from chance to the floor, percent: measured are 90 in 40 steps of cpu-tiny. Of a large
#: vocabulary few tokens are in use, and to know which alone is half of the way.
_LEARNED = {"cpu": 50.0, "cuda": 30.0}
#: Hooks that hold back most of each gradient learn more slowly at first: to that part of the way
#: they take so many steps. Measured with cpu-tiny are 36 % in 30 steps, 46 in 40, 68 in 60.
_HELD_BACK = dict.fromkeys(("topk", "powersgd"), 60)
#: Percent. A GPU has its own time; processors are shared with loaders and with whoever else is
#: there, and steps are of milliseconds.
_BEHIND = {"cpu": 100.0, "cuda": 10.0}
_DATA = {"cpu": 50.0, "cuda": 5.0}
_DATA_MOST = {"cpu": 80.0, "cuda": 20.0}
#: Times what training takes.
_LOADER = {"cuda": 1.5}
_JITTER = {"cuda": 20.0}
_REST = {"cuda": 15.0}
_SHARED = Missing("not-applicable", "processors are shared with the rest of the host: shown only")
#: Copying a rank's state to host memory, bytes a second where all GPUs do it at once, and what
#: the first copy costs beside.
_COPY_BYTES_S, _FIRST_COPY_S = 1e9, 3.0


def training_gradient(host: Host, _element: object) -> Known[Bound]:
    """Relative distance of two ways to one gradient, by the precision of the run."""
    run = host.training
    precision = run if isinstance(run, Missing) else run.precision
    if isinstance(precision, Missing):
        return precision
    if precision not in _GRADIENT:
        return Missing("not-applicable", f"no tolerance is known for {precision}")
    return Bound(_GRADIENT[precision], f"some tens of roundings of {precision}")


def training_resume_loss(host: Host, _element: object) -> Known[Bound]:
    """Nats between a resumed run and the other."""
    run = host.training
    world = 0 if isinstance(run, Missing) or isinstance(run.world, Missing) else run.world
    if isinstance(run, Training) and (run.device, run.sharding) == ("cpu", "ddp") and world > 2:
        return Bound(_RESUME_LOSS["cuda"], "three or more ranks are summed in another order")
    return _of_device(host, _RESUME_LOSS, "")


def training_learned(host: Host, _element: object) -> Known[Bound]:
    """Percent of what can be learned."""
    run = host.training
    steps = run if isinstance(run, Missing) else run.steps_asked
    if isinstance(steps, int) and steps < _LEAST_STEPS:
        return Missing("not-applicable", f"{steps} steps are too few to learn by")
    bound = _of_device(host, _LEARNED, "in a run of a minute")
    if isinstance(run, Missing) or isinstance(bound, Missing) or not isinstance(steps, int):
        return bound
    until = _HELD_BACK.get(run.comm_hook, 0)
    if steps >= until:
        return bound
    why = f"{bound.formula}, by {steps} of the {until} steps that {run.comm_hook} takes to it"
    return Bound(round(bound.value * steps / until, 1), why)


def training_stall(host: Host, _element: object) -> Known[Bound]:
    """Seconds that an asynchronous checkpoint may hold a step up: its state is copied first."""
    run = host.training
    ranks = run if isinstance(run, Missing) else run.ranks
    if isinstance(ranks, Missing):
        return ranks
    sizes = [one.memory.weights_bytes for one in ranks] + [
        one.memory.optimizer_bytes for one in ranks
    ]
    known = [one for one in sizes if not isinstance(one, Missing)]
    if not known:
        return next((one for one in sizes if isinstance(one, Missing)), NOT_IN_INPUT)
    most = sum(known) / len(ranks)
    told = f"{_FIRST_COPY_S:g} s + {most / 1e9:.3g} GB at 1 GB/s to host memory"
    return Bound(_FIRST_COPY_S + most / _COPY_BYTES_S, told)


def _of_device(host: Host, table: dict[str, float], formula: str) -> Known[Bound]:
    run: Known[Training] = host.training
    device = run if isinstance(run, Missing) else run.device
    if isinstance(device, Missing):
        return device
    if device not in table:
        return _SHARED
    where = "GPUs" if device == "cuda" else "processors"
    return Bound(table[device], f"on {where}, {formula}" if formula else f"on {where}")


def _by_device(table: dict[str, float], formula: str, text: str) -> Of:
    def bound(host: Host, _element: object) -> Known[Bound]:
        return _of_device(host, table, formula)

    bound.__doc__ = text
    return bound


training_behind = _by_device(_BEHIND, "", "Percent that one rank may be busy longer.")
training_data = _by_device(_DATA, "", "Percent of a step that waits for data.")
training_data_most = _by_device(_DATA_MOST, "", "The same where it is the loader that decides.")
training_loader = _by_device(_LOADER, "", "Times what training takes, of the loader alone.")
training_jitter = _by_device(_JITTER, "", "Percent of the 90th percentile over the median.")
training_rest = _by_device(_REST, "", "Percent of a step that belongs to no part of it.")
