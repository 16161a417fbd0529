"""A bench over several hosts: the first of them leads."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..parent import die_with_launcher
from ..ranks import Tell
from .agents import TOGETHER_S, Lead, Line
from .bench import Bench
from .parts import parts
from .plan import Plan
from .served import LEAD_PORT, serve


def lead(plan: Plan, tell: Tell, about: Line) -> None:
    """All parts, as the first host has them done. What its own agent does it does in a process of
    its own."""
    with _agent_here(plan, about):
        agents = _lead(plan)
        try:
            came = agents.gather()
            for at in sorted(set(range(len(plan.hosts))) - set(came)):
                why = agents.about.get(at, {}).get("cannot", "")
                none = f"it gave no sign for {TOGETHER_S:.0f} s while {len(came)} others were ready"
                tell({"kind": "absent", "of": plan.hosts[at], "text": why or none})
            parts(Bench(plan, tell, agents))
        finally:
            agents.dismiss()


def cannot_take_part(plan: Plan, at: int, why: str) -> None:
    """This host says so to whoever waits for it: the others go on without it, and without the one
    that leads they end."""
    if at:
        serve(plan, at, {"cannot": why})
        return
    agents = _lead(plan)
    agents.about[0] = {"cannot": why}
    agents.gather()
    agents.dismiss(f"{plan.hosts[0]}, which leads, takes no part: {why}")


def _lead(plan: Plan) -> Lead:
    return Lead(plan.master, plan.port + LEAD_PORT, len(plan.hosts), plan.job)


@contextmanager
def _agent_here(plan: Plan, about: Line) -> Iterator[None]:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_launcher(signal.SIGKILL)
            serve(plan, 0, about)
            status = 0
        except Exception as error:  # noqa: BLE001 - the lead sees that it is gone
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(status)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
