"""A bench over several hosts: the first of them leads."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..parent import die_with_launcher
from ..ranks import Tell
from .agents import Lead
from .bench import Bench
from .parts import parts
from .plan import Plan
from .served import LEAD_PORT, serve


def lead(plan: Plan, tell: Tell) -> None:
    """All parts, as the first host has them done. What its own agent does it does in a process of
    its own."""
    with _agent_here(plan):
        agents = Lead(plan.master, plan.port + LEAD_PORT, len(plan.hosts), plan.job)
        try:
            came = agents.gather()
            for at in sorted(set(range(len(plan.hosts))) - set(came)):
                tell({"kind": "absent", "of": plan.hosts[at]})
            parts(Bench(plan, tell, agents))
        finally:
            agents.dismiss()


@contextmanager
def _agent_here(plan: Plan) -> Iterator[None]:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_launcher(signal.SIGKILL)
            serve(plan, 0)
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
