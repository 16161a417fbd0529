"""All the files below the paths of a plan, several at once, each told in lines as it is through."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from .blocks import How
from .one_file import scan
from .pieces import Pieces
from .plan import Plan
from .report import Told
from .values import Way, best_way
from .walk import Walked, walk

FORM = "checkpoint/1"
#: Where Python itself has to look at values, it does so at half a GB/s: so many bytes at most.
_PLAIN_BYTES = 20_000_000_000
_MOST_WORKERS = 16
_NEWS_S = 1.0

Tell = Callable[[dict[str, Any]], None]


def harness(plan: Plan, write: Tell) -> None:
    """Tell of every path: a line of kind `source`, those of its files and tensors, an `end`."""
    way, lock = best_way(), threading.Lock()

    def tell(line: dict[str, Any]) -> None:
        with lock:
            write(line)

    tell({"preflight": FORM, "way": way.name})
    for path in plan.paths:
        began = time.monotonic()
        try:
            walked = walk(os.path.expanduser(path))
        except OSError as error:
            tell({"kind": "source", "source": path})
            tell({"kind": "end", "trouble": f"{path}: {error.strerror or error}", "absent": True})
            continue
        total = sum(one.size for one in walked.files)
        tell({"kind": "source", "source": path, "root": walked.root, "total_bytes": total,
              "now_s": round(time.time(), 3), "folders": walked.folders})  # fmt: skip
        how = _how(plan, way, total, tell)
        _files(walked, how, plan.workers, tell)
        tell({"kind": "end", "trouble": walked.trouble, "every": how.every,
              "values_every": how.values_every, "values": how.values,
              "elapsed_s": round(time.monotonic() - began, 3)})  # fmt: skip


def _how(plan: Plan, way: Way, total: int, tell: Tell) -> How:
    every = 1
    if plan.sample_bytes is not None:
        every = max(1, -(-total // max(plan.sample_bytes, 1)))
    values_every = max(1, -(-total // every // _PLAIN_BYTES)) if way.name == "Python" else 1
    return How(way, plan.values, every, values_every, _News(total, tell).tick)


class _News:
    """How far it is, at most once in a while."""

    def __init__(self, total: int, tell: Tell) -> None:
        self._total = total
        self._tell = tell
        self._done = 0
        self._next_s = time.monotonic() + _NEWS_S
        self._lock = threading.Lock()

    def tick(self, count: int) -> None:
        with self._lock:
            self._done += count
            if time.monotonic() >= self._next_s:
                self._next_s = time.monotonic() + _NEWS_S
                self._tell({"kind": "news", "done": self._done, "total": self._total})


def _files(walked: Walked, how: How, workers: int, tell: Tell) -> None:
    """The largest first: the last to end is then a small one."""
    pieces = Pieces(walked.root, walked.files)
    workers = workers or min(len(os.sched_getaffinity(0)), _MOST_WORKERS)
    entries = sorted(walked.files, key=lambda one: -one.size)
    pool = ThreadPoolExecutor(workers)
    try:
        # Few are given out ahead: what was told of them has to be kept until it is written.
        due: set[Future[Told]] = set()
        for entry in entries:
            due.add(pool.submit(scan, walked.root, entry, how, pieces))
            if len(due) > 2 * workers:
                due = _told_of(due, pieces, tell)
        while due:
            due = _told_of(due, pieces, tell)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for line in pieces.lines():
        tell(line)


def _told_of(due: set[Future[Told]], pieces: Pieces, tell: Tell) -> set[Future[Told]]:
    done, left = wait(due, return_when=FIRST_COMPLETED)
    for one in done:
        told = one.result()
        for missing in pieces.missing_beside(told.path) if told.kind == "dcp-metadata" else ():
            told.flaw("missing-file", f"{missing} is named in it, and is not there")
        for line in told.lines():
            tell(line)
    return left
