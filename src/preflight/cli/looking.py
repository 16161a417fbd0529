"""Whether this machine takes the directory and the job file of a bench of storage: looked at before
anything is announced, asked, or written."""

from __future__ import annotations

import json
import socket
from typing import Any

from preflight.cli.options import Options
from preflight.errors import UsageError

#: A directory that does not answer by then is told of by the bench itself.
_LOOKS_S = 5.0
_HINT = "`preflight io-bench --help` tells what --dir, --size and --job take; nothing was written"


def looked(plan: dict[str, Any], python: tuple[str, ...], options: Options) -> None:
    """Raises UsageError where it is refused. What gives no answer is left to the bench."""
    from preflight.ship import store_command
    from preflight.transports.local import Local

    asked = store_command({**plan, "look": True}, 0.0, python)
    transport = Local(socket.gethostname(), _LOOKS_S, options.sudo)
    for raw in transport.run([asked]):
        text = raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
        if why := _refused(text):
            what, _, hint = why.rpartition(": ")
            raise UsageError(what or why, hint if what else _HINT)


def _refused(text: str) -> str:
    """Why, where the one line says so."""
    try:
        told = json.loads(text)
    except ValueError:
        return ""
    is_no = isinstance(told, dict) and told.get("why") == "refused"
    return str(told.get("text", "")) if is_no else ""
