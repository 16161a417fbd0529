"""Whether the loss scale of fp16 only looks for its level, or falls away under the run."""

from __future__ import annotations

from math import inf, isfinite, log2

from .records import Event

#: Falls in a row, without a rise between, that are no search: a scale that has its level falls once
#: after each rise, and rises after 1,000 or 2,000 steps without overflow.
IN_A_ROW = 5
#: The search at the start has ended with a rise, or after so many steps: up to 16 falls in about 50
#: steps are usual there.
_START = 100
#: Falls within so many steps are a collapse; over more it is a decline that may be stopped in time.
_COLLAPSE_STEPS = 100
#: Here gradients are no longer scaled up: Megatron-LM and DeepSpeed go no further.
_FLOOR = 1.0


class ScaleAudit:
    """The falls of one run's loss scale. A scale that never changes (bf16: 1) is none.

    `calm`: looks since it changed. `trouble`: that it collapsed; "" while it did not.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._looks = self.calm = 0
        self._settled = False
        self._fallen, self._began, self._from = 0.0, 0, 0.0
        self.trouble = ""

    def look(self, step: int, scale: float) -> Event | None:
        """An event at the fall that makes it a decline or collapse, and when the floor is hit."""
        self._looks += 1
        last, self._last = self._last, scale
        if last is None or scale == last:
            self.calm += 1
            return None
        self.calm = 0
        if scale > last:
            self._settled, self._fallen, self.trouble = True, 0.0, ""
            return None
        if not self._settled and self._looks > _START:
            self._settled, self._fallen = True, 0.0
        return self._fell(step, last, scale)

    def _fell(self, step: int, last: float, scale: float) -> Event | None:
        """An event, or None; of the search's falls only the one to nothing counts."""
        if not self._fallen:
            self._began, self._from = self._looks, last
        before = self._fallen
        self._fallen += max(1.0, log2(last / scale)) if scale > 0 and isfinite(last) else inf
        if scale <= _FLOOR < last or not scale > 0:
            text = f"the loss scale fell from {self._from:g} to {scale:g}: nothing is left of it"
            return self._event("scale-collapse", "stop", step, scale, text)
        if not self._settled or not before < IN_A_ROW <= self._fallen:
            return None
        over = self._looks - self._began + 1
        lead = log2(scale) * max(1.0, (over - 1) / max(1.0, self._fallen - 1))
        text = (
            f"the loss scale fell {self._fallen:.0f} times in a row, from {self._from:g} to "
            f"{scale:g} within {over} steps; at this pace it is 1 after {lead:.0f} more"
        )
        if over <= _COLLAPSE_STEPS:
            return self._event("scale-collapse", "stop", step, scale, text)
        return self._event("scale-decline", "watch", step, scale, text)

    def _event(self, kind: str, advice: str, step: int, scale: float, text: str) -> Event:
        self.trouble = text if kind == "scale-collapse" else ""
        return Event(kind, advice, step, "loss_scale", scale, self._from, text)
