"""How a job should be started on a host: computed from what the host is, never a constant."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.model import Advice


def advise(host: Host) -> Advice:
    """Groups, seats, exports and snippets; empty parts where nothing is to be said."""
    return Advice()
