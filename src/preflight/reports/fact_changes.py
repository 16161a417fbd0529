"""What a host is made of and runs on, then and now: facts that do not change by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from preflight.model import Change
from preflight.reports.wording import value

#: Facts that stay as they are until somebody changes something; what is counted or read off a
#: sensor is told where its status changed. Paths as `_leaves` makes them.
_STEADY = re.compile(
    r"os|container|virtualization"
    r"|identity\.(?:hostname|kernel|boot_id)"
    r"|cpu\.(?:model|sockets|numa_nodes|cpus|hypervisor)"
    r"|memory\.(?:total_bytes|swap_total_bytes)"
    r"|driver\.(?:version|cuda)"
    r"|driver_module\.(?!line|probe).*"
    r"|fabric_manager\.version"
    r"|gpus\[[^\]]*\]\.(?:product|serial|uuid|vbios|inforom|bus_id|persistence|compute_mode"
    r"|(?:pcie|ecc|mig|power|clocks)\.[a-z_]*(?:max|mode|limit)[a-z_]*)"
    r"|dimms\.(?!line|probe).*"
    r"|(?:bios|board|firmware|sysctls|packages|libraries|nics|limits|modules)\b(?!.*\.(?:line|probe)$).*"
)
_ELEMENT = re.compile(r"\[([^\]]*)\]\.")
#: A kernel reserves a little more or less of the memory at each boot.
_SAME_BYTES = 0.01
#: What names an element of a list, best first.
_NAMES = ("name", "address", "bus_id", "locator")


def fact_changes(now: dict[str, Any] | None, then: dict[str, Any] | None) -> Iterator[Change]:
    """Facts that both reports hold and that differ."""
    if not now or not then:
        return
    was, is_ = dict(_leaves(then, "")), dict(_leaves(now, ""))
    yield from _untold(now, was)
    for path, told in is_.items():
        if told == was.get(path, told) or not _STEADY.fullmatch(path):
            continue
        if path == "identity.boot_id":
            yield Change("changed", "reboot")
        elif not _about_equal(path, was[path], told):
            about, subject = _ELEMENT.sub(".", path, 1), _ELEMENT.search(path)
            name = subject[1] if subject else ""
            yield Change("changed", about, (), name, None, None, value(was[path]), value(told))


def _untold(now: dict[str, Any], was: dict[str, Any]) -> Iterator[Change]:
    """Parts of a host that were known, and are not any more."""
    steady = [path for path in was if _STEADY.fullmatch(path)]
    for part, told in now.items():
        known = [path for path in steady if re.split(r"[.\[]", path)[0] == part]
        if known and _is_missing(told):
            yield Change("unseen", part, now=f"no longer told: {told['text']}", was="told")


def _is_missing(told: Any) -> bool:
    return isinstance(told, dict) and set(told) - {"fault"} == {"kind", "text"}


def _about_equal(path: str, was: Any, is_: Any) -> bool:
    if not path.endswith("_bytes") or not isinstance(was, int) or not isinstance(is_, int):
        return False
    return abs(was - is_) <= _SAME_BYTES * max(abs(was), abs(is_))


def _leaves(told: Any, path: str) -> Iterator[tuple[str, Any]]:
    """`gpus[gpu0].pcie.width` and its value, for each value that is known."""
    if isinstance(told, dict):
        if _is_missing(told):
            return  # a Missing: why it is not known is told by results
        for key, part in told.items():
            yield from _leaves(part, f"{path}.{key}" if path else str(key))
    elif isinstance(told, (list, tuple)):
        for at, part in enumerate(told):
            yield from _leaves(part, f"{path}[{_name(part, at)}]")
    elif isinstance(told, (bool, int, float, str)):
        yield path, told


def _name(part: Any, at: int) -> str:
    found = (part.get(key) for key in _NAMES) if isinstance(part, dict) else ()
    return next((name for name in found if isinstance(name, str) and name), str(at))
