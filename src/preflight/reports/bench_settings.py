"""Values of variables that were held against each other: a table each, and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from preflight.facts.bench import SettingGain, SettingSweep
from preflight.facts.host import Host
from preflight.model import Missing
from preflight.units import format_bytes, format_duration

Row = dict[str, Any]


def setting_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """A table of each variable that was compared."""
    sweeps = () if isinstance(host.bench_settings, Missing) else host.bench_settings
    return tuple(
        {"table": _title(one), "host": host.name, "rows": list(_rows(one)),
         "notes": [*_told(one), *_method(one)]}
        for one in sweeps if one.gains or one.failed
    )  # fmt: skip


def _title(sweep: SettingSweep) -> str:
    return f"{sweep.name} ({sweep.collective})"


def _rows(sweep: SettingSweep) -> Iterator[Row]:
    for one in sweep.gains:
        yield {
            "value": one.value, "size": format_bytes(one.size_bytes), "turns": one.turns,
            "us, unset": one.usual_us, "us": one.median_us, "gain %": f"{one.gain_percent:+.1f}",
            f"{sweep.sure_percent:.0f} % sure":
                f"{one.low_percent:+.1f} to {one.high_percent:+.1f}",
            "spread %": f"{one.spread_percent:.1f}", "": _verdict(one),
        }  # fmt: skip


def _verdict(one: SettingGain) -> str:
    if one.verdict in ("faster", "slower"):
        return one.verdict
    return f"none beyond {max(abs(one.low_percent), abs(one.high_percent)):.1f} %"


def _told(sweep: SettingSweep) -> Iterator[str]:
    """What fails, and what is worth to be set: faster in a size, and slower in none."""
    for failed in sweep.failed:
        when = "in the trial" if isinstance(failed.turn, Missing) else f"in turn {failed.turn + 1}"
        what = f"{sweep.name}={failed.value}" if failed.value else f"without {sweep.name}"
        yield f"{what} failed {when}: {failed.text}"
    best: dict[str, float] = {}
    for value in dict.fromkeys(one.value for one in sweep.gains):
        mine = [one for one in sweep.gains if one.value == value]
        won = [one for one in mine if one.verdict == "faster"]
        lost = [one for one in mine if one.verdict == "slower"]
        if won and lost:
            sizes = ", ".join(format_bytes(one.size_bytes) for one in lost)
            yield f"{value} is faster at {format_bytes(won[0].size_bytes)} and slower at {sizes}"
        elif won:
            best[value] = max(one.gain_percent for one in won)
    if best:
        value = max(best, key=best.__getitem__)
        yield f"faster by {best[value]:.1f} %: `export {sweep.name}={shlex.quote(value)}`"
    elif sweep.gains:
        yield f"{_no_winner(sweep)}: leave it unset"


def _no_winner(sweep: SettingSweep) -> str:
    if any(one.verdict == "slower" for one in sweep.gains):
        return f"no value is faster than {sweep.name} unset"
    most = max(max(abs(one.low_percent), abs(one.high_percent)) for one in sweep.gains)
    return f"no difference beyond {most:.1f} %"


def _method(sweep: SettingSweep) -> Iterator[str]:
    """How it was told."""
    if sweep.gains:
        yield (
            f"{sweep.turns} turns, each value in fresh processes, in "
            f"{format_duration(sweep.elapsed_s)}; gain: median of the turns' ratios "
            f"(Hodges-Lehmann) with its {sweep.sure_percent:.0f} % interval; faster or slower: by "
            f"Wilcoxon's signed ranks, 1 % for all comparisons together, and by "
            f"{sweep.least_percent:.0f} % or more"
        )
