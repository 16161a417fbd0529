"""What each host counts before all parts and after them: what grew, the bench made grow."""

from __future__ import annotations

from .bench import Bench

#: Files of sysfs, and ethtool of some interfaces.
_LIMIT_S = 60.0


def before(bench: Bench) -> None:
    """The first look."""
    _told(bench, "before")


def after(bench: Bench) -> None:
    """The last one, of the hosts that are still there."""
    _told(bench, "after")


def _told(bench: Bench, when: str) -> None:
    hosts = bench.hosts
    for _, line in bench.heard([bench.order("counters", hosts, _LIMIT_S, when=when)]):
        bench.tell(line)
