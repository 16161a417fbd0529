"""Values of variables that were held against each other, as the bundled bench told it."""

from __future__ import annotations

import math

from preflight.facts.bench import FailedSetting, SettingGain, SettingSweep
from preflight.model import Known, Missing
from preflight.probes.collectives.lines import PROBE, Line, Told

_TRIAL = Missing("not-applicable", "in the trial before the first turn")
_NOT_ASKED = Missing(
    "not-asked", "needs a variable: preflight nccl-bench --sweep NCCL_ALGO=Ring,Tree"
)


def settings(told: Told) -> Known[tuple[SettingSweep, ...]]:
    """One for each variable that was asked for, on the host that led."""
    asked = [str(one[0]) for one in told.plan.get("sweep") or ()]
    if not asked:
        return _NOT_ASKED
    ended = {str(one["name"]): one for one in told.of["swept"]}
    return tuple(_sweep(ended[name]) if name in ended else _cut(told, name) for name in asked)


def _cut(told: Told, name: str) -> SettingSweep:
    """One that did not come to its end."""
    lines = [one for one in told.of["setting"] if one["name"] == name]
    why = told.text("gone") or ("interrupted" if told.of["interrupted"] else "it was cut short")
    return SettingSweep(
        name, "", failed_values=Missing("exited", f"{name} was not compared: {why}"),
        line=lines[0]["line"] if lines else told.begin["line"], probe=PROBE,
    )  # fmt: skip


def _sweep(one: Line) -> SettingSweep:
    failed = tuple(_failed(each) for each in one["failed"])
    usual = next((each for each in failed if not each.value), None)
    names: Known[tuple[str, ...]] = tuple(each.value for each in failed)
    if usual is not None:
        names = Missing("exited", f"nothing to compare with: without {one['name']} {usual.text}")
    elif one["lost"]:
        lost = ", ".join(map(str, one["lost"]))
        names = Missing("exited", f"{one['name']}: {lost} was lost in mid-sweep")
    return SettingSweep(
        str(one["name"]), str(one["collective"]), tuple(_gain(each) for each in one["gains"]),
        failed, names, int(one["turns"]), float(one["elapsed_s"]), 100 * float(one["sure"]),
        100 * float(one["least"]), one["line"], PROBE,
    )  # fmt: skip


def _failed(one: Line) -> FailedSetting:
    turn = int(one["turn"])
    return FailedSetting(str(one["value"]), _TRIAL if turn < 0 else turn, str(one["text"])[:400])


def _gain(one: Line) -> SettingGain:
    names = ("median", "low", "high", "spread")
    share, low, high, spread = (100 * float(one[name]) for name in names)
    if not all(map(math.isfinite, (share, low, high, spread))):
        raise ValueError(f"{one['value']}: no numbers")
    return SettingGain(
        str(one["value"]), int(one["bytes"]), int(one["turns"]), float(one["usual_us"]),
        float(one["median_us"]), share, low, high, spread, float(one["chance"]),
        str(one["verdict"]),
    )  # fmt: skip
