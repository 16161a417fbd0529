"""Values far above what is usual: points, stretches that end, and changes that stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event, Recovery
from preflight.diagnosis.divergence.track import LEAST, WINDOW, Course, Track, Usual


class Spike(Struct):
    """Places in a track: where it begins, where it is back; None where it is not."""

    at: int
    usual: float
    top: float
    back: int | None = None


def spikes(track: Track, bounds: Bounds, before: Sequence[float] = ()) -> list[Spike]:
    """In one start of a run; `before`: the last values of the start before it. On the logarithm,
    where all is above zero: noise of a loss is in proportion to it."""
    scaled = bool(track.tops) and min(track.tops) > 0
    to: Callable[[float], float] = math.log if scaled else float
    usual, found, open_ = Usual(), list[Spike](), list[tuple[Spike, float]]()
    for one in before:
        if one > 0 or not scaled:
            usual.add(to(one))
    few = len(track.tops) < 2 * LEAST
    for at, top in enumerate(track.tops):
        value = to(top)
        open_ = [one for one in open_ if not _closes(*one, value, at)]
        if len(usual) < (1 if few else LEAST):
            usual.add(value)
            continue
        middle = usual.median
        told = usual.sigma if len(usual) >= LEAST // 2 else 0.0  # of fewer it is none
        sigma = max(told, bounds.least_sigma * (1.0 if scaled else abs(middle) or 1.0))
        rise = value - middle
        least = bounds.rise if len(usual) >= LEAST else bounds.few_rise
        high = rise > bounds.sigmas * sigma and rise > (
            math.log1p(least) if scaled else least * abs(middle)
        )
        current = found[-1] if found and found[-1].back is None else None
        if not high:
            # Between the two it belongs to a spike that is not over yet.
            if current is None or rise <= bounds.back_sigmas * sigma:
                usual.add(value)
            continue
        if current is None:
            spike = Spike(at, _from(middle, scaled=scaled), top)
            found.append(spike)
            open_.append((spike, middle + bounds.back_sigmas * sigma))
        else:
            current.top = max(current.top, top)
            if at - current.at == bounds.stays_rows:  # it is the usual now
                for one in track.tops[current.at + 1 : at + 1]:
                    usual.add(to(one))
    return found


def _from(value: float, *, scaled: bool) -> float:
    return math.exp(value) if scaled else value


def _closes(spike: Spike, below: float, value: float, at: int) -> bool:
    if value > below:
        return False
    spike.back = at
    return True


def loss_events(course: Course, bounds: Bounds) -> Iterator[Event]:
    """Spikes of the loss; one that stays is a shift."""
    whole = course.track("loss")
    for begin, end in course.starts():
        track = whole.part(begin, end)
        step = course.steps[track.rows[0]] if track.rows else 0.0
        before = _before(course, whole.part(0, begin), step)
        if len(track.rows) + len(before) < 2 * LEAST and step < bounds.startup_steps:
            continue  # the first steps of a run go up and down
        for spike in spikes(track, bounds, before):
            yield _event(course, track, spike, bounds)


def _before(course: Course, track: Track, step: float) -> list[float]:
    """The last values of earlier starts, of steps before the one from which it goes on."""
    known = [top for row, top in zip(track.rows, track.tops, strict=True)
             if step - WINDOW <= course.steps[row] < step]  # fmt: skip
    return known[-LEAST:]


def _event(course: Course, track: Track, spike: Spike, bounds: Bounds) -> Event:
    row = track.rows[spike.at]
    step = course.steps[row]
    back = None if spike.back is None else course.steps[track.rows[spike.back]]
    last = len(track.rows) - 1 if spike.back is None else spike.back
    lasted = last - spike.at
    recovery: Recovery = "never"
    if back is not None:
        recovery = "alone" if back - step < bounds.alone_steps else "slowly"
    stays = back is None and lasted >= bounds.stays_rows
    change = f"loss {spike.usual:.4g} -> {spike.top:.4g}"
    after = {
        "alone": f"back after {_steps(back, step)}", "slowly": f"back after {_steps(back, step)}",
        "never": f"not back in the {lasted + 1:,} rows that follow", "": "",
    }[recovery]  # fmt: skip
    return Event(
        "shift" if stays else "spike", row, step, course.line(row), f"{change}, {after}",
        value=spike.top, usual=spike.usual, until=back, recovery=recovery, rows=max(1, lasted),
    )  # fmt: skip


def _steps(back: float | None, step: float) -> str:
    count = 0 if back is None else back - step
    return f"{count:,.0f} step{'s' if count != 1 else ''}"
