"""What a run costs, at the user's prices alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from msgspec import Struct

from preflight.estimate.figures import Figure, computed
from preflight.estimate.whole import Estimate
from preflight.model import Known, Missing

#: Of one request: parts of an upload as boto3's TransferConfig has them by default. Each rank has a
#: file of its own at least.
_PART_BYTES = 8 << 20
_MONTH_S = 30.44 * 86400  # a twelfth of a year


class BillLine(Struct, frozen=True):
    """One line; `of_which`: it is part of the first and not added."""

    name: str
    cost: Known[Figure]
    formula: str
    of_which: bool = False


def bill(told: Estimate) -> tuple[BillLine, ...]:
    """Every line, and the sum of those whose price is stated."""
    lines = list(_lines(told))
    costs = [one.cost for one in lines if isinstance(one.cost, Figure) and not one.of_which]
    if costs:
        whole = computed(lambda *each: sum(each), *costs)
        lines.append(BillLine("all of these", whole, "lines without a price are not in it"))
    return tuple(lines)


def _lines(told: Estimate) -> Iterator[BillLine]:
    run, size_gb = told.run, told.checkpoint.total_bytes / 1e9
    hours, idle = told.gpu_hours, told.idle_gpu_hours
    yield _line("GPU-hours", hours, run.price, "--price", lambda x, p: x * p, "GPU-hours x {}")
    yield _line("of which idle", idle, run.price, "--price", lambda x, p: x * p,
                f"{', '.join(told.beside_steps(known=True))} x {{}}", of_which=True)  # fmt: skip
    yield _line("energy", told.energy_kwh, run.price_kwh, "--price-kwh", lambda x, p: x * p,
                "kWh of the GPUs x {}")  # fmt: skip
    yield _line(
        "storage", told.wall_s, run.price_storage, "--price-storage",
        lambda x, p: run.keep * size_gb * x / _MONTH_S * p,
        f"{run.keep} checkpoints x {size_gb:,.0f} GB x months x {{}}",
    )  # fmt: skip
    each = max(run.gpus, math.ceil(told.checkpoint.total_bytes / _PART_BYTES))
    yield _line("requests", told.saves, run.price_requests, "--price-requests",
                lambda x, p: x * each / 1e3 * p,
                f"saves x {each:,} parts of 8 MiB, or files of a rank / 1000 x {{}}")  # fmt: skip
    gigabytes = run.transfers * size_gb
    sent = Figure(gigabytes, gigabytes, gigabytes, "computed")
    yield _line("transfer", sent, run.price_transfer, "--price-transfer", lambda x, p: x * p,
                f"{run.transfers} checkpoints read out x {size_gb:,.0f} GB x {{}}")  # fmt: skip


def _line(
    name: str, amount: Known[Figure], price: float | None, option: str,
    rule: Callable[[float, float], float], formula: str, *, of_which: bool = False,
) -> BillLine:  # fmt: skip
    if price is None:
        missing = Missing("not-asked", f"no price: {option}")
        return BillLine(name, missing, "", of_which)
    if isinstance(amount, Missing):
        return BillLine(name, amount, "", of_which)
    cost = computed(lambda one: rule(one, price), amount)
    return BillLine(name, cost, formula.format(f"{price:g}"), of_which)
