"""All ranks do the same at the same step: what one was asked for, the others learn of."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

#: Who tells a process its rank: torchrun and most launchers, Slurm, Open MPI, PMI.
_TOLD_BY = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
#: Checks are at most so many steps apart.
_MOST_STEPS = 1000
#: Until somebody is told that ranks are awaited.
_PATIENT_S = 60.0


class Wish(NamedTuple):
    """What is asked for; of several ranks: by any of them."""

    save: bool = False
    end: bool = False
    stacks: bool = False
    suspect: bool = False


NOTHING = Wish()


def rank_of_this() -> int:
    """The rank as torch knows it, else as the launcher tells; 0 where nobody does."""
    dist = _distributed()
    if dist is not None:
        return int(dist.get_rank())
    found = (os.environ.get(name, "") for name in _TOLD_BY)
    return next((int(one) for one in found if one.isdigit()), 0)


def _distributed() -> Any:
    """torch.distributed where the script has begun to use it."""
    dist: Any = sys.modules.get("torch.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def _both(one: tuple[Wish, str], two: tuple[Wish, str]) -> tuple[Wish, str]:
    return Wish(*map(max, one[0], two[0])), ", ".join(filter(None, (one[1], two[1])))


class Ranks:
    """Agreement by one small all_reduce(MAX), about every `every_s` seconds of training.

    Each rank counts its steps, and how many lie between two checks follows from the slowest rank's
    step of the last one: the number is the same everywhere without a word. Where steps are shorter
    than `every_s` the answer to a check is taken at the next one, so that nobody waits for it;
    where they are longer at once, so that a save does not come a step later.
    """

    def __init__(
        self, every_s: float, timeout_s: float, group: Any, tell: Callable[[str], None], *,
        together: bool,
    ) -> None:  # fmt: skip
        self._every_s, self._timeout_s, self._group, self._tell = every_s, timeout_s, group, tell
        self._own = group is None
        self._together = together
        self._dist: Any = None
        self._lost = False
        self._steps = 0
        self._between = 1
        self._step_s = 0.0  # of the slowest rank, at the last check
        self._began = time.monotonic()
        self._under_way: tuple[Any, Any, str] | None = None

    @property
    def several(self) -> bool:
        """Whether there are other ranks to agree with."""
        if self._dist is None:
            dist = _distributed() if self._together else None
            if dist is None or dist.get_world_size() < 2:
                return False
            self._dist = dist
        return True

    def check(self) -> bool:
        """Count a step boundary; whether ranks agree at this one."""
        self._steps += 1
        return self._steps >= self._between and not self._lost

    def agree(self, mine: Wish, why: str) -> tuple[Wish, str]:
        """What any rank asked for, and why this one did. Where ranks no longer reach each other
        nothing is, for ever."""
        now = time.monotonic()
        step_s = (now - self._began) / self._steps
        self._steps, self._began = 0, now
        try:
            before = self._answer()
            self._ask(mine, why, step_s)
            if self._step_s < self._every_s:
                return before
            return _both(before, self._answer())
        except Exception as error:  # noqa: BLE001 (whatever a backend raises, the training goes on)
            self._lost, self._under_way = True, None
            self._tell(f"ranks cannot agree on a step to save at any more, signals save nothing "
                       f"from here on: {type(error).__name__}: {error}")  # fmt: skip
            return NOTHING, ""

    def _ask(self, mine: Wish, why: str, step_s: float) -> None:
        import torch

        group = self._met()
        gpu = "gloo" not in str(self._dist.get_backend(group))
        words = [*map(float, mine), step_s]
        told = torch.tensor(words, dtype=torch.float64, device="cuda" if gpu else "cpu")
        work = self._dist.all_reduce(told, self._dist.ReduceOp.MAX, group=group, async_op=True)
        self._under_way = work, told, why

    def _answer(self) -> tuple[Wish, str]:
        if self._under_way is None:
            return NOTHING, ""
        (work, told, why), self._under_way = self._under_way, None
        work.wait()
        *wishes, self._step_s = told.tolist()
        pace = self._every_s / self._step_s if self._step_s > 0 else _MOST_STEPS
        self._between = int(max(1, min(_MOST_STEPS, pace)))
        return Wish(*map(bool, wishes)), why

    def _met(self) -> Any:
        """A group of processors for this alone: no GPU waits for it. All ranks come here together,
        at the first step of each."""
        if self._group is None:
            waiting = threading.Timer(_PATIENT_S, self._tell, [
                "waits for all ranks at their first .step(): is it called on every rank? "
                "install(..., together=False) agrees with nobody"])  # fmt: skip
            waiting.daemon = True
            waiting.start()
            limit = timedelta(seconds=self._timeout_s)
            try:
                self._group = self._dist.new_group(backend="gloo", timeout=limit)
            finally:
                waiting.cancel()
        return self._group

    def close(self) -> None:
        """Let go of the group. An answer under way is not waited for: nobody would act on it."""
        group, self._under_way, self._lost = self._group, None, True
        if self._own and group is not None and self._dist.is_initialized():
            try:
                self._dist.destroy_process_group(group)
            except Exception as error:  # noqa: BLE001 (the run is over)
                self._tell(f"could not let go of its process group: {error}")
