"""Whether nccl-bench names the host that is slow: real ranks over links that are shaped.

    python -m bench.shaped [--hosts 5] [--sound 5]

Hosts are network namespaces on a bridge, each behind 400 Mbit/s (tests/lab/shaped.py); the command
runs as a user runs it. In turn one is slowed: its link, its processors, by packets that are lost.
Then all of them on two networks: one of a host's links is slow, then those of all to one network.
It takes root, and about half a minute for each run on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.table import Row, show
from tests.lab.shaped import RATE_MBIT, Shaped, shaped

_ASKED = ("nccl-bench", "--ranks", "1", "--collective", "all_reduce", "-e", "128K", "--format",
          "json")  # fmt: skip
#: The culprit of each kind: neither the first host, which leads, nor the last.
_ODD = "h3"
_SLOW_MBIT, _LOST_OF_A_THOUSAND, _CPU_PERCENT = 100, 200, 4
#: So few that the search may not see it; the counters do.
_FEW_OF_A_THOUSAND = 20


def blamed(lab: Shaped, *more: str) -> str:
    """The hosts and links that fail or are warned of, and what could not be told."""
    done = lab.preflight(*_ASKED, *more)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return f"exit {done.returncode}: {done.stderr[-300:]}"
    told = [
        f"{one['check']} ERROR" if one["status"] == "ERROR" else one["subject"]
        for host in report["hosts"] for one in host["results"]
        if one["status"] in ("FAIL", "ERROR", "WARN")
    ]  # fmt: skip
    return ", ".join(sorted(set(told))) or "nobody"


def _row(what: str, found: list[str], expected: str) -> Row:
    right = found.count(expected)
    others = sorted({one for one in found if one != expected})
    reached = f"{expected}: {right} of {len(found)}" + (f" ({'; '.join(others)})" if others else "")
    return Row(what, reached, f"{len(found)} of {len(found)}", right == len(found))


def rows(lab: Shaped, sound: int) -> list[Row]:
    """Runs on a sound network, and with each kind of culprit."""
    found = [_row(f"{len(lab.hosts)} sound hosts", [blamed(lab) for _ in range(sound)], "nobody")]
    faults: dict[str, Callable[[], None]] = {
        f"{_ODD} behind {_SLOW_MBIT} of {RATE_MBIT} Mbit/s": lambda: lab.rate(_ODD, _SLOW_MBIT),
        f"{_ODD} loses {_LOST_OF_A_THOUSAND} of 1,000 packets":
            lambda: lab.loses(_ODD, _LOST_OF_A_THOUSAND),
        f"{_ODD} loses {_FEW_OF_A_THOUSAND} of 1,000 packets":
            lambda: lab.loses(_ODD, _FEW_OF_A_THOUSAND),
        f"{_ODD} has {_CPU_PERCENT} % of a processor once it runs":
            lambda: lab.starves(_ODD, _CPU_PERCENT),
    }  # fmt: skip
    for what, begin in faults.items():
        begin()
        found.append(_row(what, [blamed(lab)], _ODD))
        lab.heals(_ODD)
    return found


def rails(lab: Shaped) -> list[Row]:
    """The same hosts on two networks."""
    asked = ("--interface", "eth0,eth1")
    found = [_row(f"{len(lab.hosts)} sound hosts on two networks", [blamed(lab, *asked)], "nobody")]
    lab.rate(_ODD, _SLOW_MBIT, network=1)
    what = f"{_ODD} behind {_SLOW_MBIT} of {RATE_MBIT} Mbit/s on the second"
    found.append(_row(what, [blamed(lab, *asked)], f"{_ODD}, {_ODD} eth1"))
    for host in lab.hosts:
        lab.rate(host, _SLOW_MBIT, network=1)
    what = f"all behind {_SLOW_MBIT} of {RATE_MBIT} Mbit/s on the second"
    found.append(_row(what, [blamed(lab, *asked)], "eth1 of all hosts"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.shaped")
    parser.add_argument("--hosts", type=int, default=5)
    parser.add_argument("--sound", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, shaped(Path(folder), asked.hosts) as lab:
        found = rows(lab, asked.sound)
    with tempfile.TemporaryDirectory() as folder, shaped(Path(folder), asked.hosts, 2) as lab:
        found += rails(lab)
    return show("Whom nccl-bench blames, over shaped links", found)


if __name__ == "__main__":
    sys.exit(main())
