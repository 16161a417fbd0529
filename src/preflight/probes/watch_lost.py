"""GPUs of a table of samples that stopped answering: their rows end, or their values do."""

from __future__ import annotations

from collections.abc import Collection

from preflight.probes.watch_series import Series

#: Samples that may be lacking at the end: a table is cut, or interrupted, within a round of rows.
_LEAST = 2
#: Above every number of a GPU.
_ANY = 10_000


class Rounds:
    """A round of rows ends where the numbers of the GPUs begin again, and at a header."""

    def __init__(self) -> None:
        self._number, self._previous = 0, -1
        self._began: dict[int, int] = {}

    def header(self) -> None:
        """The next row begins a round. (A header may also stand within a later round; that does not
        matter, because only the rounds in which GPUs are first seen are compared.)"""
        self._previous = _ANY if self._began else -1

    def row(self, gpu: int) -> int:
        """The round of the GPU's first row, of which this may be the one."""
        self._number += gpu <= self._previous
        self._previous = gpu
        return self._began.setdefault(gpu, self._number)


def find_lost(series: Collection[Series]) -> None:
    """Tell of every GPU whether it answered to the end. GPUs that were watched one after the other
    are not compared: only those whose first rows stand in the same round are."""
    for one in series:
        most = max(len(each.samples) for each in series if each.began == one.began)
        given = len(one.samples)
        if most - given >= _LEAST and _with_values(one):
            _lost(one, f"only {given} of {most} samples tell of it")
        else:
            _values_ended(one)


def lost_in_time(series: Collection[Series], patience_s: float) -> None:
    """The same for samples that have times: a GPU that was neither told as lost nor looked at a
    last time, while the samples of others go on for longer than `patience_s`."""
    last_s = max((_seconds(one) for one in series if one.samples), default=0.0)
    for one in series:
        if one.trouble or not one.samples:
            continue
        if not one.last and last_s - _seconds(one) > patience_s:
            _lost(one, f"no sample of it after {_seconds(one):g} s; those of others go on")
        else:
            _values_ended(one)


def _values_ended(one: Series) -> None:
    """One without any value has not answered, whatever that means; one that had some is lost."""
    given, told = len(one.samples), _with_values(one)
    if told == 0:
        one.answers = next(iter(one.missing.values()), True)
    elif given - told >= _LEAST:
        _lost(one, f"none of its values can be read from sample {told + 1} of {given} on")


def _lost(one: Series, trouble: str) -> None:
    one.answers, one.trouble = False, trouble


def _seconds(one: Series) -> float:
    return one.watched_s if isinstance(one.watched_s, (int, float)) else 0.0


def _with_values(one: Series) -> int:
    """The samples up to the last one that has a value."""
    return max((at for at, sample in enumerate(one.samples, 1) if sample), default=0)


def unreadable_from(rows: Collection[tuple[int, bool]], line: int) -> int:
    """Of rows (line, whether it has a value) the first of those at the end that have none; the last
    row where there is none such."""
    found = 0
    for number, has_value in rows:
        found = 0 if has_value else (found or number)
    return found or max((number for number, _ in rows), default=line)
