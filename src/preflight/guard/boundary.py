"""The guard of one process: what is noted as it comes is done at the next step boundary."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .dumps import Dumps
from .endings import Endings, told
from .ranks import NOTHING, Ranks, Wish
from .records import Event, GuardError, Save
from .ring import Ring
from .scale import ScaleAudit
from .signals import Caught, name_of
from .spikes import Spikes

#: So many gradients in a row that are no number are not the loss scale's search, where it stands.
_OVERFLOWS = 3
#: The guard of this process: signals and hooks are its own, so there is one at a time.
HERE: list[Guard] = []


class Guard:
    """Made by install(). Its methods are for the thread that trains; `stopping` is whether the loop
    was asked to end, the same on every rank."""

    def __init__(
        self, save: Callable[[Save], object] | None, on_spike: Callable[[Event], object] | None,
        ring: Ring, dumps: Dumps, ranks: Ranks, tell: Callable[[str], None], *,
        raise_if_save_fails: bool,
    ) -> None:  # fmt: skip
        self._save_with, self._on_spike, self._tell = save, on_spike, tell
        self._ring, self._dumps, self._ranks = ring, dumps, ranks
        self._raise = raise_if_save_fails
        self._asked: deque[tuple[str, str]] = deque()  # what, and why; signals add to it
        self._loss, self._norm, self._scale = Spikes("loss"), Spikes("grad_norm"), ScaleAudit()
        self._overflows = 0
        self._caught: list[Caught] = []
        self._told: set[str] = set()
        self._at = 0
        self._endings = Endings(self._ended)
        self.stopping = False
        self._live = True

    def step(
        self, step: int, loss: Any = None, grad_norm: Any = None, loss_scale: Any = None,
        lr: Any = None,
    ) -> bool:  # fmt: skip
        """A step boundary: call it once a step, on every rank. Whether the loop is to end now, the
        same on every rank. Figures are floats, or what float() takes (a tensor on a GPU makes the
        step wait for it); give those that all ranks have alike, such as a reduced loss. A save that
        raises is told, or raised where install() was asked to."""
        self.record(step, loss, grad_norm, loss_scale, lr)
        if not self._live:
            return self.stopping
        if not self._ranks.several:
            if self._asked:
                self._act(step, *self._wish())
        elif self._ranks.check():
            agreed, why = self._ranks.agree(*self._wish())
            if agreed != NOTHING:
                self._act(step, agreed, why)
        return self.stopping

    def record(
        self, step: int, loss: Any = None, grad_norm: Any = None, loss_scale: Any = None,
        lr: Any = None,
    ) -> None:  # fmt: skip
        """Figures that come at another time than the boundary, such as in a callback for logs."""
        if not self._live:
            return
        self._at = step
        # This is what every step pays: calls are spared where they would do nothing.
        loss = loss if type(loss) is float else self._number(loss)
        norm = grad_norm if type(grad_norm) is float else self._number(grad_norm)
        scale = loss_scale if type(loss_scale) is float else self._number(loss_scale)
        lr = lr if type(lr) is float else self._number(lr)
        if self._ring.add((step, time.time(), loss, norm, scale, lr)):
            self._look_at_signals()
        if scale is not None and (event := self._scale.look(step, scale)):
            self._tell_of(event)
        if loss is not None and (event := self._loss.look(step, loss)):
            self._tell_of(event)
        if norm is None or (norm - norm != 0 and self._only_overflow(scale)):
            return
        self._overflows = self._overflows if norm - norm != 0 else 0
        if event := self._norm.look(step, norm):
            self._tell_of(event)

    def request_save(self, why: str = "the script asked") -> None:
        """A save at the next step boundary, of all ranks; for any thread."""
        self._asked.append(("save", why))

    def request_stop(self, why: str = "the script asked", *, save: bool = True) -> None:
        """The end of the loop at the next step boundary, of all ranks; for any thread."""
        self._asked.append(("stop" if save else "end", why))

    def _number(self, value: Any) -> float | None:
        if value is None:
            return None
        try:
            return float(value)
        except Exception as error:  # noqa: BLE001 (whatever was given, the training goes on)
            self._once(f"a figure of type {type(value).__name__} is left out: {error}")
            return None

    def _only_overflow(self, scale: float | None) -> bool:
        """Whether a gradient norm is no number because fp16 looks for its scale: that is usual, and
        the scale's audit sees to it. One that does not give way is another matter."""
        if scale is None or scale <= 1:
            return False
        self._overflows += 1
        return self._overflows < _OVERFLOWS or self._scale.calm < _OVERFLOWS

    def _wish(self) -> tuple[Wish, str]:
        """What was asked for on this rank since the last time, and why."""
        asked, whys = set(), []
        for _ in range(len(self._asked)):
            what, why = self._asked.popleft()
            asked.add(what)
            if what != "stacks":
                whys.append(why)
        wish = Wish(save=bool(asked & {"save", "stop"}), end=bool(asked & {"stop", "end"}),
                    stacks="stacks" in asked, suspect=bool(self._trouble()))  # fmt: skip
        return wish, ", ".join(dict.fromkeys(whys))

    def _trouble(self) -> str:
        return self._loss.trouble or self._norm.trouble or self._scale.trouble

    def _act(self, step: int, wish: Wish, why: str) -> None:
        """Do it; each rank at the same step."""
        if wish.stacks and "stacks" not in self._told:
            self._dumps.stacks()
            self._dumps.memory(f"step {step}, asked on another rank")
        self._told.discard("stacks")
        if not wish.save and not wish.end:
            return
        why = why or "asked on another rank"
        self.stopping = self.stopping or wish.end
        if wish.save:
            other = "another rank has its doubts" if wish.suspect else ""
            self._save(Save(step, why, self._trouble() or other))
        if wish.end:
            # In the words of who asked: a reader of logs takes the name of a signal for a crash.
            self._ring.flush(ended=f"asked to: {why}".replace("SIG", "kill -"))
            self._tell(f"step {step}: the loop is to end ({why})")

    def _save(self, ask: Save) -> None:
        if self._save_with is None:
            return
        began = time.monotonic()
        try:
            self._save_with(ask)
        except Exception as error:
            self._ring.flush(save=f"failed: {told(error)}")
            self._tell(f"step {ask.step}: the save failed:\n{traceback.format_exc().rstrip()}")
            if self._raise:
                raise
            return
        took = f"{time.monotonic() - began:.1f} s"
        doubt = f"; its weights are in doubt: {ask.suspect}" if ask.suspect else ""
        self._tell(f"step {ask.step}: saved in {took} ({ask.why}){doubt}")

    def _tell_of(self, event: Event) -> None:
        self._ring.flush(guard=event.kind, said=event.text)
        self._tell(f"step {event.step}: {event.text} (advice: {event.advice})")
        if event.kind == "scale-collapse":
            self._dumps.memory(f"step {event.step}: {event.text}")
        if self._on_spike is None:
            return
        try:
            if self._on_spike(event) == "stop":
                self.request_stop(f"on_spike: {event.text}", save=False)
        except Exception:  # noqa: BLE001 (a callback that fails is no reason to lose the run)
            self._tell(f"step {event.step}: on_spike failed:\n{traceback.format_exc().rstrip()}")

    def _signal(self, what: str, name: str) -> None:
        """Called by a signal, between any two instructions: take note."""
        if what == "record":
            self._ring.flush(ended=name)
            return
        self._asked.append((what, name))
        if what == "stacks":
            self._told.add("stacks")
            self._dumps.memory(f"step {self._at}, {name}; the stacks are above")

    def _look_at_signals(self) -> None:
        for one in self._caught:
            if who := one.taken_by():
                self._once(f"{name_of(one.number)} is caught by {who} by now: unless that passes "
                           "it on, it is lost here; install the guard after it")  # fmt: skip

    def _once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _ended(self, why: str) -> None:
        self._ring.flush(ended=why)
        self._dumps.leave_no_empty()

    def catch(self, number: int, what: str) -> None:
        """For install(): what a signal asks for."""
        try:
            one = Caught(number, lambda name: self._signal(what, name), ends=what == "record")
        except (OSError, ValueError) as error:
            raise GuardError(f"guard.install() cannot catch {name_of(number)}: {error}; name "
                             "another in save_on, stop_on or stacks_on") from error  # fmt: skip
        self._caught.append(one)
        if what == "stacks":
            self._dumps.listen(number)

    def uninstall(self, error: BaseException | None = None) -> None:
        """Give signals and hooks back. The last steps are kept where the run ended by an error, or
        there was something to note."""
        if not self._live:
            return
        self._live = False
        HERE.remove(self)
        if undone := [why for what, why in self._asked if what != "stacks"]:
            self._tell(f"asked for too late for step {self._at}, the last, and not done: "
                       + ", ".join(undone))  # fmt: skip
        self._dumps.close()
        for one in reversed(self._caught):
            one.release()
        self._endings.release()
        self._ranks.close()
        if error is not None:
            self._ring.flush(ended=told(error))
        self._ring.close(keep=error is not None)

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        well = isinstance(error, SystemExit) and not error.code
        self.uninstall(None if well else error)
