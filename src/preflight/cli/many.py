"""Whether other hosts are asked: what it takes to reach them is loaded only then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from preflight.cli.options import Options, are_many
from preflight.cli.streams import Streams
from preflight.model import Command

if TYPE_CHECKING:
    from preflight.cli.hosts import Asking


def many_hosts(
    options: Options, commands: Callable[[], Sequence[Command]], streams: Streams
) -> Asking | None:
    """The hosts that the options name and the way to them; None for this machine."""
    if not are_many(options):
        return None
    from preflight.cli.hosts import asking

    return asking(options, commands(), streams)
