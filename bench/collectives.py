"""What the bundled bench measures beside a hand-written loop of the same collective.

    python -m bench.collectives [--device cuda] [--rounds 1000]

In two ranks (one for each GPU with cuda) both take turns, call by call: a call as the bench times
it, and one that a few lines around torch.distributed time.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from bench.table import Row, show
from bench.turns import Rounds, ratio
from preflight.payload.collectives import timing
from preflight.payload.collectives.operations import COLLECTIVES, Ring
from preflight.payload.collectives.orders import socket_names
from preflight.payload.group.join import Place, join
from preflight.payload.ranks import Among, Launch

WITHIN_PERCENT = 5.0
SIZES = (1 << 20, 1 << 24)
NAMES = ("all_reduce", "all_gather")


def by_hand(place: Place, name: str, size: int) -> Callable[[], None]:
    """The collective as anybody writes it."""
    count = size // 4
    whole = torch.zeros(count, device=place.device)
    mine = torch.zeros(count // place.ranks, device=place.device)
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    return (lambda: dist.all_reduce(whole)) if name == "all_reduce" else (
        lambda: gather(whole, mine)
    )  # fmt: skip


def compared(place: Place, name: str, size: int, rounds: int) -> Rounds:
    """Seconds of each by round."""
    make, _ = COLLECTIVES[name]
    call = make(Ring(place.rank, place.ranks, place.device, torch.float32), size // 4)
    hand, found = by_hand(place, name, size), []

    def plain() -> float:
        began = time.perf_counter()
        hand()
        if place.gpu:
            torch.cuda.synchronize(place.device)
        return time.perf_counter() - began

    turns: dict[str, Callable[[], float]] = {
        "ours": lambda: timing.in_a_row(place)(call.run, place, 1)[0], "plain": plain,
    }  # fmt: skip
    for number in range(-timing.WARM, rounds):
        order = list(turns) if number % 2 else list(turns)[::-1]
        seconds = {one: turns[one]() for one in order}
        if number >= 0:
            found.append(seconds)
    return found


def _rounds(size: int, of_the_smallest: int) -> int:
    """A large message scatters less, and takes longer."""
    return of_the_smallest if size == SIZES[0] else max(1, of_the_smallest // 4)


def measured(device: str, ranks: int, rounds: int) -> list[dict[str, Any]]:
    """What the first rank saw of each collective and size."""

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        place = join(device)
        torch.set_num_threads(1)
        for name in NAMES:
            for size in SIZES:
                tell({"kind": "rounds", "name": name, "size": size,
                      "rounds": compared(place, name, size, _rounds(size, rounds))})  # fmt: skip
        dist.destroy_process_group()

    launch = Launch(ranks, work, silent_s=120.0, among=Among(environment=socket_names("")))
    told = list(launch.lines())
    found = [one for one in told if one["kind"] == "rounds" and one["rank"] == 0]
    if len(found) < len(NAMES) * len(SIZES):
        sys.exit(f"error: {told[-3:]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.collectives")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1000, help="of the smaller size")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")  # of torch, about itself: they would be told per rank
    rows = []
    for one in measured(asked.device, asked.ranks, asked.rounds):
        share = ratio(one["rounds"], "ours", "plain")
        what = f"{one['name']}, {one['size'] >> 20} MiB, {asked.ranks} x {asked.device}"
        what += f", n = {len(one['rounds'])}"
        rows.append(Row(what, share.percent(), f"within {WITHIN_PERCENT:.0f} %",
                        abs(100 * (share.middle - 1)) <= WITHIN_PERCENT))  # fmt: skip
    title = "The bundled bench beside a plain loop: medians of paired ratios [95 % by bootstrap]"
    return show(title, rows)


if __name__ == "__main__":
    sys.exit(main())
