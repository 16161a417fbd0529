"""What goes over the wire below a library that tries again by itself: every exchange of aiohttp,
which those of S3, of Google and of Azure use. Only there it is seen how often they did.
"""

from __future__ import annotations

import functools
from collections import Counter
from importlib import import_module
from typing import Any

from .masked import masked

#: Those after which a library tries again (S3: 500 InternalError, 503 SlowDown; Google: 408, 429).
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_THROTTLED = frozenset({429, 503})
_NONE = 0


class Exchanges:
    """Counts of statuses; 0 is an exchange that had no answer."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.said = ""

    def watch(self) -> None:
        """From now on, of every session that is opened."""
        try:
            aiohttp: Any = import_module("aiohttp")
        except ImportError:
            return
        trace = aiohttp.TraceConfig()
        # Every try has a connection of the pool, or a new one. A second try of one request is
        # aiohttp's own: the server had closed the connection in place of an answer.
        trace.on_connection_reuseconn.append(self._tried)
        trace.on_connection_create_start.append(self._tried)
        trace.on_request_redirect.append(self._redirected)
        trace.on_request_end.append(self._ended)
        trace.on_request_exception.append(self._failed)
        opened = aiohttp.ClientSession.__init__

        @functools.wraps(opened)
        def watched(session: Any, *given: Any, **named: Any) -> None:
            named["trace_configs"] = [*(named.get("trace_configs") or ()), trace]
            opened(session, *given, **named)

        aiohttp.ClientSession.__init__ = watched

    async def _tried(self, _session: Any, context: Any, _told: Any) -> None:
        context.tries = getattr(context, "tries", 0) + 1
        if context.tries > 1:
            self.statuses[_NONE] += 1
            self.said = "the connection was closed in place of an answer"

    async def _redirected(self, _session: Any, context: Any, _told: Any) -> None:
        context.tries = 0

    async def _ended(self, _session: Any, _context: Any, told: Any) -> None:
        self.statuses[int(told.response.status)] += 1

    async def _failed(self, _session: Any, _context: Any, told: Any) -> None:
        self.statuses[_NONE] += 1
        self.said = masked(f"{type(told.exception).__name__}: {told.exception}")

    def line(self, before: Counter[int]) -> dict[str, Any]:
        """What came since then: by status, troubled (tried again, or given up), throttled."""
        since = self.statuses - before
        return {"kind": "exchanges", "seen": sum(since.values()), "troubled": troubled(since),
                "throttled": sum(since[one] for one in _THROTTLED), "said": self.said,
                "statuses": {str(one): since[one] for one in sorted(since)}}  # fmt: skip

    def why_none(self) -> str:
        """Why nothing was answered, as the wire tells; "" where it tells nothing."""
        throttled = sum(self.statuses[one] for one in _THROTTLED)
        if throttled and throttled == sum(self.statuses.values()):
            code = max(_THROTTLED, key=lambda one: self.statuses[one])
            return f"throttled: all of {throttled} answers were {code}"
        if self.statuses[_NONE]:
            late = any(one in self.said for one in ("reading data", "ServerTimeout"))
            return f"{'no answer' if late else 'no connection'}: {self.said}"
        return ""


def troubled(statuses: Counter[int]) -> int:
    """How many exchanges a library would try again."""
    return statuses[_NONE] + sum(statuses[one] for one in _AGAIN)
