"""The agent of a host: it does the tests that the lead tells it, each with fresh ranks."""

from __future__ import annotations

import contextlib

from .agents import GoneError, Line, called
from .orders import done
from .plan import Plan

#: Where the agents call, behind the first of the ports of the first host.
LEAD_PORT = 1


def serve(plan: Plan, at: int, about: Line) -> None:
    """Until the lead has no more tests. Raises GoneError where there is no lead, or it says why it
    leads nothing, and OSError where it is lost."""
    wire = called((plan.master, plan.port + LEAD_PORT), at, plan.job, plan.addresses[at], about)
    while True:
        for order in wire.received():
            number = {"test": order["test"]}
            if order["test"] < 0:
                wire.close()
                if order.get("why"):
                    raise GoneError(order["why"])
                return
            with contextlib.closing(done(plan, at, order)) as lines:
                for line in lines:
                    wire.send({**line, **number})
            wire.send({"kind": "over", **number})
