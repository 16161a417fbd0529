"""Variables that name what the host does not have: interfaces, adapters, GPUs, files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from preflight.env_names import FILES
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.stack import EnvVar
from preflight.facts.stack_pieces import StackGpu
from preflight.hca_list import is_meant, names_in
from preflight.judge.environment.adapters import absent, idle, left_out, taken_along
from preflight.judge.environment.scene import Fault, Found, Scene, unseen
from preflight.model import Known, Missing

T = TypeVar("T")

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
#: Reports that list all GPUs, as nvidia-smi -L does; others those that CUDA_VISIBLE_DEVICES left.
_LIST_ALL = ("collect-env",)
_OF_REPORT = Missing("not-in-input", "a report does not list them")
_NOT_OF_SHELL = Missing(
    "not-asked", "only those that the shell's own variables name are looked for"
)


def devices(scene: Scene) -> Found:
    """Of which nothing or not all is there."""
    targets = scene.host.env_targets
    for one in scene.variables:
        if one.name in _INTERFACES and _takes(one):
            yield from _held(one, "interfaces", _here(scene, targets.netdevs), _interfaces)
        elif one.name == _ADAPTERS and _takes(one):
            yield from _held(one, "adapters", _here(scene, targets.adapters), absent)
            yield from _of_ports(one, scene)
            yield from _of_places(one, scene)
        elif one.name == _ADAPTERS and one.value:
            yield from _of_places(one, scene)
        elif one.name == "CUDA_VISIBLE_DEVICES":
            yield from _held(one, "GPUs", _gpus(scene.host), _of_cuda)
        elif one.name in _DEVICES:
            yield from _held(one, "accelerators", _here(scene, _count(scene, one.name)), _listed)


def _takes(one: EnvVar) -> bool:
    """Whether a list takes devices; with ^ it leaves them out."""
    return bool(one.value) and not one.value.startswith("^")


def _here(scene: Scene, have: Known[T]) -> Known[T]:
    return have if scene.here else _OF_REPORT


def _held(
    one: EnvVar, what: str, have: Known[T], judge: Callable[[EnvVar, T], Iterator[Fault]]
) -> Found:
    """The variable held against what there is, where that is known."""
    if isinstance(have, Missing):
        yield unseen(one, what, have)
    else:
        yield from judge(one, have)


def _of_ports(one: EnvVar, scene: Scene) -> Iterator[Fault]:
    """What the ports of this host say, where the variable is of this host."""
    if scene.here:
        yield from idle(one, scene.host.nic_ports)
        yield from taken_along(one, scene.host.nic_ports)


def _of_places(one: EnvVar, scene: Scene) -> Iterator[Fault]:
    """What the places of the adapters say, where the variable is of this host."""
    if scene.here:
        yield from left_out(one, scene.host.topology.nics)


def _gpus(host: Host) -> Known[Sequence[Gpu | StackGpu]]:
    told = host.stack.gpus
    if not isinstance(host.gpus, Missing):
        return host.gpus
    if isinstance(told, Missing):
        return told
    return told if all(gpu.probe in _LIST_ALL for gpu in told) else _OF_REPORT


def _count(scene: Scene, name: str) -> Known[int]:
    """How many devices the variable chooses from. HIP counts among what ROCR_VISIBLE_DEVICES left
    (ROCm documentation, GPU isolation techniques)."""
    others = scene.host.accelerators
    have = (
        others
        if isinstance(others, Missing)
        else sum(one.vendor == _DEVICES[name] for one in others)
    )
    outer = scene.value(_OUTER) if name == _INNER else None
    if not outer or outer.strip() in _HIDDEN:
        return have
    left = len(outer.split(","))
    return left if isinstance(have, Missing) else min(have, left)


def _interfaces(one: EnvVar, have: Sequence[str]) -> Iterator[Fault]:
    """A list of beginnings is meant for hosts of several kinds: one that is there is enough."""
    names = names_in(one.value)
    if not any(is_meant(name, one.value, each) for name in names for each in have):
        told = ", ".join(have[:12]) or "none"
        yield Fault(
            one, f"the host has no such interface; it has {told}: the run stops at the start"
        )


def _of_cuda(one: EnvVar, gpus: Sequence[Gpu | StackGpu]) -> Iterator[Fault]:
    """CUDA takes the list up to the first entry that is no GPU; one that stands twice hides all
    (CUDA C++ Programming Guide, CUDA Environment Variables)."""
    if not gpus:
        return
    words = [word.strip() for word in one.value.split(",")]
    wrong = next((at for at, word in enumerate(words) if not _is_gpu(word, gpus)), None)
    if one.value.strip() in _HIDDEN or _twice(words):
        yield from _listed(one, len(gpus))
    elif wrong is not None and words[wrong] not in ("-1", ""):  # so lists are ended on purpose
        left = f"{wrong} of {len(words)} are seen" if wrong else "no GPU at all is seen"
        told = f"{words[wrong][:40]} is none of the {len(gpus)} GPUs, which count from 0"
        yield Fault(one, f"{told}; the list counts up to there: {left}")


def _is_gpu(word: str, gpus: Sequence[Gpu | StackGpu]) -> bool:
    """By its number or the beginning of its UUID; what cannot be known is one."""
    if word.startswith("MIG-"):
        return True
    if word.startswith("GPU-"):
        uuids = [gpu.uuid for gpu in gpus if isinstance(gpu, Gpu)]  # a report tells none
        known = [uuid for uuid in uuids if isinstance(uuid, str)]
        return len(known) < len(gpus) or any(uuid.startswith(word) for uuid in known)
    return word.isdecimal() and int(word) < len(gpus)


def _twice(words: Sequence[str]) -> list[str]:
    return [word for word, times in Counter(words).items() if times > 1]


def _listed(one: EnvVar, count: int) -> Iterator[Fault]:
    """The same of other makers, whose runtimes do alike."""
    if not count:
        return
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


def files(scene: Scene) -> Found:
    """Files that are named and cannot be read."""
    unreadable = scene.host.env_targets.unreadable
    for one in scene.variables:
        if one.name not in FILES or not one.value:
            continue
        if isinstance(unreadable, Missing) or one.of != "shell":
            why = unreadable if isinstance(unreadable, Missing) else _NOT_OF_SHELL
            yield unseen(one, "files", why)
        elif one.name in unreadable:
            yield Fault(one, "there is no such file, or it cannot be read")
