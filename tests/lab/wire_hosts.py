"""Hosts that do tests of links, each order in a process of its own: what `Lead` is to a bench."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from preflight.payload.collectives.agents import free_ports
from preflight.payload.collectives.bench import Bench
from preflight.payload.collectives.plan import Plan
from preflight.payload.wire.part import wire
from preflight.probes.collectives.job import split

Line = dict[str, Any]
_ROOT = Path(__file__).resolve().parents[2]


class WireHosts:
    """`prefix`: words before the command of host number so and so. Who is in `lost` says nothing
    and is gone, as one that died."""

    def __init__(
        self, plan: Plan, root: str = "/sys", environment: dict[str, str] | None = None,
        prefix: Callable[[int], Sequence[str]] = lambda _: (),
    ) -> None:  # fmt: skip
        self.plan, self.root, self.prefix = plan, root, prefix
        self.agents = list(range(max(1, len(plan.hosts))))
        # Another directory may be that of whoever enters the namespaces of a host.
        paths = {"PYTHONPATH": os.pathsep.join((str(_ROOT), os.environ.get("PYTHONPATH", "")))}
        self.environment = {**os.environ, **paths, **(environment or {})}
        self.lost: set[int] = set()
        self.rounds: list[list[list[int]]] = []

    def run(self, orders: Sequence[Line], _limit_s: float) -> Iterator[tuple[int, int, Line]]:
        """All at the same time."""
        self.rounds.append([one["hosts"] for one in orders])
        begun = []
        for order in orders:
            (port,) = free_ports("", 1)
            gone = self.lost & set(order["hosts"])
            for at in gone:
                self.agents.remove(at)
                yield order["test"], at, {"kind": "gone", "text": "it is no more there"}
            begun += [(order["test"], at, self._begun(at, {**order, "port": port}))
                      for at in order["hosts"] if not gone]  # fmt: skip
        for test, at, process in begun:
            out, _ = process.communicate(timeout=100)
            for line in out.splitlines():
                yield test, at, json.loads(line)

    def _begun(self, at: int, order: Line) -> subprocess.Popen[str]:
        words = json.dumps([asdict(self.plan), at, order, self.root])
        name = self.plan.hosts[at] if self.plan.hosts else ""
        return subprocess.Popen(
            [*self.prefix(at), sys.executable, "-m", "tests.lab.wire_host", words],
            stdout=subprocess.PIPE, text=True, env={**self.environment, "HOST": name},
        )  # fmt: skip

    def told(self) -> dict[str, str]:
        """All of it, as each host's answer tells it."""
        begin = {"preflight": "nccl-bench/1", "kind": "begin", "plan": asdict(self.plan),
                 "world": 1, "torch": "none"}  # fmt: skip
        lines: list[Line] = []
        wire(Bench(self.plan, lines.append, self))  # type: ignore[arg-type]
        names = self.plan.hosts or ["input"]
        texts = dict.fromkeys(names, _written([begin]))
        texts[names[0]] += _written([*lines, {"kind": "end"}])
        return split(texts)


def _written(lines: Sequence[Line]) -> str:
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines)
