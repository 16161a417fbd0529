"""Variables that name what the host does not have: interfaces, adapters, GPUs, files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from preflight.facts.gpu import Gpu
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
    "ASCEND_RT_VISIBLE_DEVICES": "Huawei Ascend",
    "HIP_VISIBLE_DEVICES": "AMD",
    "ROCR_VISIBLE_DEVICES": "AMD",
}
_OUTER, _INNER = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"
_HIDDEN = ("", "-1", "NoDevFiles", "void", "none")


def devices(scene: Scene) -> Iterator[Fault]:
    """Of which nothing or not all is there."""
    for one in scene.variables if scene.here else ():
        if one.name in _INTERFACES:
            yield from _interfaces(scene, one)
        elif one.name == _ADAPTERS:
            yield from _adapters(scene, one)
        elif one.name == "CUDA_VISIBLE_DEVICES" and (gpus := _gpus(scene.host)):
            yield from _of_cuda(one, gpus)
        elif one.name in _DEVICES and (count := _count(scene, one.name)):
            yield from _listed(one, count)


def _gpus(host: Host) -> Sequence[Gpu]:
    return () if isinstance(host.gpus, Missing) else host.gpus


def _count(scene: Scene, name: str) -> int:
    """How many devices the variable chooses from; 0 where that is not known. HIP counts among what
    ROCR_VISIBLE_DEVICES left (ROCm documentation, GPU isolation techniques)."""
    others = () if isinstance(scene.host.accelerators, Missing) else scene.host.accelerators
    have = sum(one.vendor == _DEVICES[name] for one in others)
    outer = scene.value(_OUTER) if name == _INNER else None
    if not outer or outer.strip() in _HIDDEN:
        return have
    left = len(outer.split(","))
    return min(have, left) if have else left


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


def _of_cuda(one: EnvVar, gpus: Sequence[Gpu]) -> Iterator[Fault]:
    """CUDA takes the list up to the first entry that is no GPU; one that stands twice hides all
    (CUDA C++ Programming Guide, CUDA Environment Variables)."""
    words = [word.strip() for word in one.value.split(",")]
    wrong = next((at for at, word in enumerate(words) if not _is_gpu(word, gpus)), None)
    if one.value.strip() in _HIDDEN or _twice(words):
        yield from _listed(one, len(gpus))
    elif wrong is not None and words[wrong] not in ("-1", ""):  # so lists are ended on purpose
        left = f"{wrong} of {len(words)} are seen" if wrong else "no GPU at all is seen"
        told = f"{words[wrong][:40]} is none of the {len(gpus)} GPUs, which count from 0"
        yield Fault(one, f"{told}; the list counts up to there: {left}")


def _is_gpu(word: str, gpus: Sequence[Gpu]) -> bool:
    """By its number or the beginning of its UUID; what cannot be known is one."""
    if word.startswith("MIG-"):
        return True
    if word.startswith("GPU-"):
        known = [gpu.uuid for gpu in gpus if isinstance(gpu.uuid, str)]
        return len(known) < len(gpus) or any(uuid.startswith(word) for uuid in known)
    return word.isdecimal() and int(word) < len(gpus)


def _twice(words: Sequence[str]) -> list[str]:
    return [word for word, times in Counter(words).items() if times > 1]


def _listed(one: EnvVar, count: int) -> Iterator[Fault]:
    """The same of other makers, whose runtimes do alike."""
    words = [word.strip() for word in one.value.split(",")]
    if one.value.strip() in _HIDDEN:
        yield Fault(one, f"it hides all {count} devices", mild=True)
        return
    if twice := _twice(words):
        yield Fault(one, f"{', '.join(twice)} stands in it twice: no device at all is seen")
    absent = [word for word in words if word.isdecimal() and int(word) >= count]
    if absent:
        told = (
            f"there is no device {', '.join(absent)} of the {count} to choose from, counted from 0"
        )
        yield Fault(one, f"{told}; the list counts up to there")


def files(scene: Scene) -> Iterator[Fault]:
    """Files that are named and cannot be read."""
    unreadable = scene.host.env_targets.unreadable
    for one in scene.variables if scene.here else ():
        if one.of == "shell" and one.name in unreadable:
            yield Fault(one, "there is no such file, or it cannot be read")
