"""The agent of a host: it does the tests that the lead tells it, each with fresh ranks."""

from __future__ import annotations

import contextlib

from .agents import LEAD_SILENT_S, SIGN, TIMED_OUT, GoneError, Line, Wire, called
from .orders import done
from .plan import Plan

#: Where the agents call, behind the first of the ports of the first host.
LEAD_PORT = 1


def serve(plan: Plan, at: int, about: Line) -> None:
    """Until the lead has no more tests. Raises GoneError where there is no lead, or it says why it
    leads nothing, and OSError where it is lost."""
    wire = called((plan.master, plan.port + LEAD_PORT), at, plan.job, plan.addresses[at], about)
    while True:
        for order in _received(wire, plan.hosts[0]):
            if order["test"] == SIGN:
                continue
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


def _received(wire: Wire, lead: str) -> list[Line]:
    """Raises GoneError where nothing comes any more."""
    try:
        return wire.received()
    except TIMED_OUT as error:
        wire.close()
        text = f"{lead}, which leads, gave no sign for {LEAD_SILENT_S:.0f} s"
        raise GoneError(text) from error
