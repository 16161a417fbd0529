"""A user's own job file of fio, held to so many seconds, which jobs that take turns share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from preflight.probes.fio.options import Asked

_SECTION = re.compile(r"\[([^\]\n]+)\]")
_RUNTIME = re.compile(r"runtime\s*=", re.IGNORECASE)
#: A job with one of these begins after those before it have ended.
_AFTER = ("stonewall", "wait_for_previous")
_LEAST_S = 0.5


def in_time(text: str, sections: Mapping[str, Mapping[str, str]], seconds: float) -> str:
    """The text; where its jobs could take longer, with a runtime in each that could."""
    own_s = [Asked(dict(one), told=True).runtime_s() for one in sections.values()]
    if all(own_s) and sum(own_s) <= seconds:
        return text
    turns = 1 + sum(_waits(options) for options in list(sections.values())[1:])
    each_s = max(_LEAST_S, seconds / turns)
    late = [name for name, options in sections.items() if not _ends_by(options, each_s)]
    return "\n".join(_held(text.splitlines(), late, each_s)) + "\n" if late else text


def _waits(options: Mapping[str, str]) -> bool:
    return any(Asked(dict(options), told=True).on(one) is True for one in _AFTER)


def _ends_by(options: Mapping[str, str], seconds: float) -> bool:
    """Without a runtime it ends with its bytes, which may be at any time."""
    return 0 < Asked(dict(options), told=True).runtime_s() <= seconds


def _held(lines: Sequence[str], late: Sequence[str], seconds: float) -> list[str]:
    """In the sections of these jobs this runtime, in place of their own."""
    told, is_late = list[str](), False
    for line in lines:
        if match := _SECTION.match(line.strip()):
            is_late = match[1] in late
            told += [line, f"runtime={round(1000 * seconds)}ms"] if is_late else [line]
        elif not (is_late and _RUNTIME.match(line.strip())):
            told.append(line)
    return told
