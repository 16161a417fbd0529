"""Programs that look like those of perftest, on hosts without adapters: the two ends speak over TCP
as the real ones do, take the same options, and print what a real one prints; and adapters as sysfs
shows them.

What they measure, and what is wrong, stands in a JSON file that PERFTEST names: per host (HOST) and
adapter `gbits`, `together` (when others run at the same time), `many` (of several queue pairs),
`gpu`; `fault`: hang, memlock, retry; of a host its `version`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).with_name("perftest_program.py")


class Perftest:
    """The programs in `base`/bin, the adapters in `base`/sys."""

    def __init__(self, base: Path) -> None:
        self.base, self.told = base, dict[str, Any]()
        for name in ("bin", "log", "running", "sys/class/infiniband"):
            (base / name).mkdir(parents=True)
        for tool in ("ib_write_bw", "ib_write_lat"):
            path = base / "bin" / tool
            words = f"{sys.executable} -IS {_PROGRAM} {tool}"
            path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
            path.chmod(0o755)

    def adapter(
        self, name: str, *, rate: str = "400 Gb/sec (4X NDR)", layer: str = "InfiniBand",
        state: str = "4: ACTIVE", kind: str = "1: CA", node: int = 0,
        gids: dict[int, tuple[str, str]] | None = None,
    ) -> None:  # fmt: skip
        """One with a port; `gids`: of each entry its address and its type."""
        nic = self.base / "sys/class/infiniband" / name
        port = nic / "ports/1"
        for folder in (port / "gids", port / "gid_attrs/types", nic / "device"):
            folder.mkdir(parents=True)
        told = {"rate": rate, "state": state, "link_layer": layer}
        files = {port / key: value for key, value in told.items()}
        files |= {nic / "device/numa_node": str(node), nic / "node_type": kind}
        for index, (gid, kind) in (gids or {}).items():
            files |= {port / f"gids/{index}": gid, port / f"gid_attrs/types/{index}": kind}
        for path, text in files.items():
            path.write_text(f"{text}\n", encoding="ascii")

    def node(self, number: int, cpus: str) -> None:
        """The processors of a NUMA node."""
        folder = self.base / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpulist").write_text(f"{cpus}\n", encoding="ascii")

    def environment(self) -> dict[str, str]:
        """Of whoever starts the programs."""
        told = {
            **self.told, "nics": str(self.base / "sys/class/infiniband"),
            "log": str(self.base / "log"), "running": str(self.base / "running"),
        }  # fmt: skip
        path = self.base / "told.json"
        path.write_text(json.dumps(told), encoding="utf-8")
        return {"PERFTEST": str(path), "PATH": f"{self.base / 'bin'}:/usr/bin:/bin"}

    def started(self) -> list[tuple[str, list[str], list[int]]]:
        """What was started: the host, the command line, the processors that it may use."""
        found = [json.loads(one.read_text()) for one in (self.base / "log").iterdir()]
        return [(host, argv, cpus) for host, argv, cpus in found]

    def absent(self) -> None:
        """They are not installed."""
        shutil.rmtree(self.base / "bin")
        (self.base / "bin").mkdir()
