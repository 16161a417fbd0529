"""What is told of a host whose answers did not all come."""

from __future__ import annotations

from preflight.faults import CONNECTION, fault
from preflight.model import Missing, Raw
from preflight.transports.conversation import Conversation
from preflight.transports.ways import Session

#: What it is called where a host did not get beyond a phase within its time.
_LATE = {
    "connect": "no-answer",
    "banner": "no-banner",
    "login": "silent",
    "session": "silent",
}


def late(
    deadline_s: float, conversation: Conversation, session: Session | None, phase: str
) -> Missing:
    """The host's time is over."""
    limit = f"the host's limit of {deadline_s:g} s was reached"
    if session and conversation.begun:
        return Missing("timeout", limit)
    if session:
        return fault("silent", f"{limit} before the script began; it said: "
                     f"{conversation.said or 'nothing'}")  # fmt: skip
    return fault(_LATE.get(phase, "proxy"), f"{limit}; it waited for: {phase}")


def ended_early(conversation: Conversation, session: Session) -> Missing:
    """Both streams ended before the last answer."""
    if conversation.mute:
        return fault("no-shell", "its login files lead standard output away")
    return session.ended(conversation.begun, conversation.said)


def closing(host: str, missing: Missing) -> Raw:
    """What stands last among a host's answers: why there are no more."""
    return Raw(host, CONNECTION, rc=None, missing=missing)
