"""Variables that name what the host does not have: interfaces, adapters, GPUs, files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from preflight.facts.host import Host
from preflight.facts.stack import EnvVar
from preflight.judge.environment.scene import Fault, Scene
from preflight.model import Missing

#: Lists by commas; ^ leaves out, = wants the whole name, else a name's beginning is enough
#: (NCCL User Guide). gloo wants whole names, of which a beginning is one too.
_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME")
_ADAPTERS = "NCCL_IB_HCA"
#: Lists of devices, and whose.
_DEVICES = {
    "CUDA_VISIBLE_DEVICES": "NVIDIA",
    "ASCEND_RT_VISIBLE_DEVICES": "Huawei Ascend",
    "HIP_VISIBLE_DEVICES": "AMD",
    "ROCR_VISIBLE_DEVICES": "AMD",
}
_HIDDEN = ("", "-1", "NoDevFiles", "void", "none")


def devices(scene: Scene) -> Iterator[Fault]:
    """Of which nothing or not all is there."""
    for one in scene.variables if scene.here else ():
        if one.name in _INTERFACES:
            yield from _interfaces(scene, one)
        elif one.name == _ADAPTERS:
            yield from _adapters(scene, one)
        elif one.name in _DEVICES and (count := _count(scene.host, _DEVICES[one.name])):
            yield from _listed(one, count)


def _count(host: Host, vendor: str) -> int:
    """How many devices of a maker the host has; 0 where that is not known either."""
    if vendor == "NVIDIA":
        return 0 if isinstance(host.gpus, Missing) else len(host.gpus)
    others = () if isinstance(host.accelerators, Missing) else host.accelerators
    return sum(one.vendor == vendor for one in others)


def _interfaces(scene: Scene, one: EnvVar) -> Iterator[Fault]:
    """A list of beginnings is meant for hosts of several kinds: one that is there is enough."""
    have = scene.host.env_targets.netdevs
    if isinstance(have, Missing) or not one.value or one.value.startswith("^"):
        return
    if not any(_matching(name, one.value, have) for name in _names(one.value)):
        told = ", ".join(have[:12]) or "none"
        yield Fault(
            one, f"the host has no such interface; it has {told}: the run stops at the start"
        )


def _adapters(scene: Scene, one: EnvVar) -> Iterator[Fault]:
    have = scene.host.env_targets.adapters
    if isinstance(have, Missing) or not one.value or one.value.startswith("^"):
        return
    absent = [name for name in _names(one.value) if not _matching(name, one.value, have)]
    told = ", ".join(have[:12]) or "none"
    if len(absent) == len(_names(one.value)):
        yield Fault(one, f"the host has no such adapter; it has {told}: NCCL falls back to TCP")
    elif absent:
        yield Fault(one, f"the host has no {', '.join(absent)}; it has {told}", mild=True)


def _names(value: str) -> list[str]:
    """'=mlx5_0:1,mlx5_1' -> mlx5_0, mlx5_1."""
    words = (word.strip().partition(":")[0] for word in value.lstrip("^=").split(","))
    return [word.lstrip("=") for word in words if word]


def _matching(name: str, value: str, have: Sequence[str]) -> bool:
    exact = value.startswith("=")
    return any(one == name if exact else one.startswith(name) for one in have)


def _listed(one: EnvVar, count: int) -> Iterator[Fault]:
    """CUDA takes the list up to the first entry that is no GPU; one that stands twice hides all
    (CUDA C++ Programming Guide, CUDA Environment Variables). Other makers' runtimes do alike."""
    words = [word.strip() for word in one.value.split(",")]
    if one.value.strip() in _HIDDEN:
        yield Fault(one, f"it hides all {count} devices", mild=True)
        return
    twice = [word for word, times in Counter(words).items() if times > 1]
    if twice:
        yield Fault(one, f"{', '.join(twice)} stands in it twice: no device at all is seen")
    absent = [word for word in words if word.isdecimal() and int(word) >= count]
    if absent:
        told = f"there is no device {', '.join(absent)}: the host has {count}, counted from 0"
        yield Fault(one, f"{told}; the list counts up to there")


def files(scene: Scene) -> Iterator[Fault]:
    """Files that are named and cannot be read."""
    unreadable = scene.host.env_targets.unreadable
    for one in scene.variables if scene.here else ():
        if one.of == "shell" and one.name in unreadable:
            yield Fault(one, "there is no such file, or it cannot be read")
