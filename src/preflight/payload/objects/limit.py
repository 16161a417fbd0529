"""A limit on what has none of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class NoAnswerError(Exception):
    """It did not end in time. It may still do so: nobody can end it."""


def within(seconds: float, act: Callable[[], Any]) -> Any:
    """What `act` yields or raises. NoAnswerError after so many seconds."""
    found: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(act())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not found:
        raise NoAnswerError(f"no answer within {seconds:g} s")
    return found[0]
