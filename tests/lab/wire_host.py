"""One host's part in a test of links, in a process of its own: `python -m tests.lab.wire_host` with
the plan, its number, an order and the root of its sysfs as JSON; what it tells as JSON lines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from preflight.payload.collectives.plan import Plan
from preflight.payload.wire import adapters
from preflight.payload.wire.look import look
from preflight.payload.wire.rdma import rdma
from preflight.payload.wire.tcp import tcp

_WORK = {"wire_look": look, "tcp": tcp, "rdma": rdma}


def main() -> None:
    plan, at, order, root = json.loads(sys.argv[1])
    adapters.SYS = Path(root)
    for line in _WORK[order["do"]](Plan(**plan), at, order):
        print(json.dumps(line), flush=True)


main()
