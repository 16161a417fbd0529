"""Work that puts a host under load: begun where nothing stands in its way, and ended whole."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .lines import Lines
from .parent import end_with_reader

_ENDING = (signal.SIGTERM, signal.SIGHUP)

Run = Callable[[dict[str, Any], Callable[[dict[str, Any]], None]], None]


class Work(NamedTuple):
    """Active work: the form of what it tells, in its first line; what it does, in a sentence; what
    imports it, with torch where it takes that."""

    form: str
    does: str
    imported: Callable[[], Run]
    torch: bool = True


def _trains() -> Run:
    from .training.harness import harness
    from .training.plan import Plan

    return lambda plan, tell: harness(Plan(**plan), tell)


def _stresses() -> Run:
    from .stress.harness import harness
    from .stress.plan import Plan

    return lambda plan, tell: harness(Plan(**plan), tell)


def _benches() -> Run:
    from .collectives.harness import harness
    from .collectives.plan import Plan

    return lambda plan, tell: harness(Plan(**plan), tell)


def _stores() -> Run:
    from .storage.harness import FORM, harness
    from .storage.plan import Plan
    from .storage.watched import watched

    return lambda plan, tell: watched(lambda told: harness(Plan(**plan), told), tell, FORM)


def _decodes() -> Run:
    from .storage.shard import Plan, harness

    return lambda plan, tell: harness(Plan(**plan), tell)


def _puts_objects() -> Run:
    from .objects.harness import harness
    from .objects.plan import Plan

    return lambda plan, tell: harness(Plan(**plan), tell)


#: By the command that asks for it.
ACTIVE = {
    "train": Work("micro-train/1", "trains", _trains),
    "stress": Work("stress/1", "stresses", _stresses),
    "bench": Work("nccl-bench/1", "times collectives", _benches),
    "io": Work("io-bench/1", "reads and writes files", _stores, torch=False),
    "objects": Work("objects/1", "puts and gets objects", _puts_objects, torch=False),
    "shard": Work("shard/1", "decodes a file", _decodes, torch=False),
}


def active(work: Work, plan: str, lines: Lines) -> int:
    """To its end, or until it is interrupted: by a signal, or because nobody reads any more."""
    for number in _ENDING:
        signal.signal(number, signal.default_int_handler)
    end_with_reader(lines.fd)
    from .scratch import scratch

    try:
        with scratch():
            _done(work, json.loads(plan), lines)
    except (KeyboardInterrupt, BrokenPipeError):
        with contextlib.suppress(BrokenPipeError):
            lines.write({"kind": "interrupted"})
        return 130
    return 0


def _done(work: Work, plan: dict[str, Any], lines: Lines) -> None:
    """Torch may be missing, or may not load: then that is what there is to tell."""
    import warnings

    from . import pythons

    warnings.filterwarnings("ignore")  # of torch, about itself: they would be told per rank
    pythons.add_users_modules()
    why = _stands_in_the_way(plan, torch=work.torch)
    if why:
        lines.write({"preflight": work.form, **why})
        return
    if work.torch and plan.get("hosts") and not _meets(plan, work.form, lines):
        return
    try:
        with _ended_at_once():
            run = work.imported()
    except (ImportError, OSError) as error:  # OSError: a library of CUDA that does not load
        text = f"{sys.executable} cannot import what {work.does}: {error}"
        lines.write({"preflight": work.form, "kind": "cannot", "why": "no-torch", "text": text})
        return
    run(plan, lines.write)


@contextlib.contextmanager
def _ended_at_once() -> Iterator[None]:
    """Python's own handlers wait until a library is loaded, and torch's take seconds. Whatever was
    begun is swept away (scratch.py)."""
    before = [(number, signal.signal(number, signal.SIG_DFL)) for number in _ENDING]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _meets(plan: dict[str, Any], form: str, lines: Lines) -> bool:
    """Whether all hosts reach each other; told either way."""
    from .meet import meet
    from .places import PlaceError, place_of

    try:
        at = place_of(plan["hosts"])
    except PlaceError as error:
        lines.write({"preflight": form, "kind": "cannot", "text": str(error)})
        return False
    host = plan["hosts"][at]
    return meet(plan, at, lambda line: lines.write({"preflight": form, **line, "host": host}))


def _stands_in_the_way(plan: dict[str, Any], *, torch: bool) -> dict[str, Any]:
    """A line that says why nothing is begun; empty where nothing is against it."""
    from . import alone, pythons
    from .site import torch_version

    few = _too_few(plan)
    if few:
        return {"kind": "cannot", "why": "few-gpus", "text": few}
    if torch and not torch_version():
        return {"kind": "cannot", "why": "no-torch", "text": pythons.no_torch()}
    gpus = plan.get("device") != "cpu"
    even_if_busy = bool(plan.get("even_if_busy"))
    busy = alone.others(str(plan.get("job", "")), gpus=gpus, even_if_busy=even_if_busy)
    return {"kind": "busy", "text": busy} if busy else {}


def _too_few(plan: dict[str, Any]) -> str:
    """Why work between GPUs is none here; "" where it is."""
    from . import alone

    least = int(plan.get("least_gpus", 0))
    found = len(alone.visible_gpus()) if least else 0
    return f"it takes {least} GPUs, and {found or 'none'} can be used here" if found < least else ""
