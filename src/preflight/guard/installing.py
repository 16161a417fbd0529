"""install(): from arguments to a guard that listens."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .boundary import HERE, Guard
from .dumps import Dumps
from .ranks import Ranks, rank_of_this
from .records import Event, GuardError, Save
from .ring import Ring
from .signals import refuse_other_threads, to_save, typed


def install(
    save: Callable[[Save], object] | None = None,
    *,
    on_spike: Callable[[Event], object] | None = None,
    save_on: int | Iterable[int] | None = None,
    stop_on: int | Iterable[int] = (),
    stacks_on: int | None = signal.SIGUSR2,
    signals: bool = True,
    folder: str | os.PathLike[str] = "preflight-guard",
    last: int = 1000,
    flush_s: float = 10.0,
    together: bool = True,
    every_s: float = 1.0,
    timeout_s: float = 1800.0,
    group: Any = None,
    raise_if_save_fails: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Guard:
    """A guard for this process; call .step() at each step boundary, on every rank.

    `save(ask)` saves, on every rank at the same step: `ask` is a Save. It is never called in a
    handler. `save_on`: signals that ask for it (default SIGUSR1; under Slurm, where nobody catches
    that yet, SIGRTMIN+1). `stop_on`: signals that ask for a save and the end of the loop, such as
    SIGTERM where a scheduler preempts; a SIGTERM that is not named ends the process as ever, with
    the last steps written. `stacks_on`: the signal for stacks and memory; None for none. Handlers
    that were there are called too. `signals=False` catches none, and may be used in any thread.

    `on_spike(event)` gets each Event; "stop" as its answer ends the loop without a save. Without
    it events are told on standard error, as `tell(text)` of your own would.

    `folder`: where files of a run that did not end well stay: the `last` steps as JSON lines,
    written every `flush_s` seconds, and stacks.

    `together`: ranks agree on a step wherever torch.distributed is initialised, by a check about
    every `every_s` seconds in a group of gloo (or in `group`, on its device), which gives up after
    `timeout_s`. False where not all ranks call .step() alike.

    Raises GuardError where signals cannot be caught here, or a guard is there already, and OSError
    where the folder cannot be written.
    """
    saves = _numbers(to_save() if save_on is None else save_on) if save is not None else ()
    wanted = dict.fromkeys(saves, "save")
    wanted.update(dict.fromkeys(_numbers(stop_on), "stop"))
    _refuse(save, save_on, wanted, stacks_on, signals=signals)
    wanted.setdefault(int(signal.SIGTERM), "record")
    rank = rank_of_this()
    say = tell or (lambda text: _say(rank, text))
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    stem = f"rank{rank}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
    dumps = Dumps(place / f"{stem}.stacks.txt")
    ring = Ring(place / f"{stem}.jsonl", last, flush_s, say)
    ranks = Ranks(every_s, timeout_s, group, say, together=together)
    made = Guard(save, on_spike, ring, dumps, ranks, say, raise_if_save_fails=raise_if_save_fails)
    HERE.append(made)
    if not signals:
        return made
    try:
        for number, what in wanted.items():
            made.catch(number, what)
        if stacks_on is not None:
            made.catch(int(stacks_on), "stacks")
    except GuardError:
        made.uninstall()
        raise
    if rank == 0:
        say(_what_to_type(wanted, stacks_on, place))
    return made


def _numbers(given: int | Iterable[int]) -> tuple[int, ...]:
    return (int(given),) if isinstance(given, int) else tuple(map(int, given))


def _refuse(
    save: object, save_on: object, wanted: dict[int, str], stacks_on: int | None, *, signals: bool
) -> None:
    """Raise GuardError where the arguments, or this place, cannot be."""
    if HERE:
        raise GuardError("guard.install() was called twice in this process: .uninstall() the first "
                         "guard, or end its `with` block, before the second")  # fmt: skip
    if save is None and save_on is not None:
        raise GuardError("guard.install(save_on=...) has no save=FUNCTION to call: give one")
    if stacks_on in wanted:
        raise GuardError(f"guard.install(): {stacks_on!r} asks for stacks and for a save: name "
                         "another signal in stacks_on, or None")  # fmt: skip
    if signals:
        refuse_other_threads()


def _what_to_type(wanted: dict[int, str], stacks_on: int | None, place: Path) -> str:
    words = {"save": "saves", "stop": "saves and ends the loop"}
    parts = [f"`kill -{typed(number)} PID` of any rank {words[what]} at the next step boundary"
             for number, what in wanted.items() if what in words]  # fmt: skip
    if stacks_on is not None:
        parts.append(f"`kill -{typed(stacks_on)} PID` writes stacks and memory to {place}")
    return f"pid {os.getpid()}: " + "; ".join(parts)


def _say(rank: int, text: str) -> None:
    try:
        sys.stderr.write(f"preflight.guard, rank {rank}: {text}\n")
    except (OSError, RuntimeError, ValueError):  # closed, or interrupted in a write of its own
        return
