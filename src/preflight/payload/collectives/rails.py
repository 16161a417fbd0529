"""The ways out of a host that carry collectives side by side: adapters of RDMA of one kind, or the
interfaces that were named."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

_SYSFS = "/sys/class/infiniband"


def adapters(spec: str, root: str = _SYSFS) -> list[str]:
    """Ports that are up, of the fastest kind there is: storage and management are slower, or of
    another layer. `spec`: NCCL_IB_HCA, which may name fewer. mlx5_0; mlx5_0:2 of a second port."""
    kinds: dict[tuple[float, str], list[str]] = defaultdict(list)
    for port in sorted(Path(root).glob("*/ports/*"), key=_by_number):
        name = port.parent.parent.name
        name = name if port.name == "1" else f"{name}:{port.name}"
        if "ACTIVE" in _text(port / "state") and _is_named(name, spec):
            rate = _text(port / "rate").split(" ", 1)[0]
            kinds[_number(rate), _text(port / "link_layer")].append(name)
    return kinds[max(kinds)] if kinds else []


def _is_named(name: str, spec: str) -> bool:
    """By a list of beginnings of names; = in front: of whole names; ^: all but those (NCCL's User
    Guide, NCCL_IB_HCA). Without a port each of an adapter is meant."""
    others = spec.startswith("^")
    words = spec.lstrip("^=").split(",")
    if not any(words):
        return True
    whole = spec.lstrip("^").startswith("=")
    device = name.partition(":")[0]
    named = any(
        word in (name, device, f"{name}:1") or (not whole and device.startswith(word))
        for word in words if word
    )  # fmt: skip
    return named != others


def _by_number(port: Path) -> tuple[int, str, str]:
    """mlx5_2 before mlx5_10."""
    name = port.parent.parent.name
    return len(name), name, port.name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
