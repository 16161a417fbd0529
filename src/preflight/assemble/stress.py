"""A stress run joined with what else is known of the same GPUs: their numbers and addresses by
nvidia-smi, what links them, their heat above the air that cools them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.stress import Pair, Stress, StressDevice
from preflight.facts.topology import Matrix
from preflight.facts.watch import Watch, WatchedGpu
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.stress.peers import behind

T = TypeVar("T")
NO_STRESS = Missing(
    "not-asked",
    "recorded without a stress run: --level standard where it is recorded adds one, or "
    "`gpu-health --stress`",
)
_NO_MATRIX = Missing("not-in-input", "which pairs are linked alike `nvidia-smi topo -m` tells")
_BY_PCIE = Missing(
    "not-applicable", "no NVLink joins them, and ways over PCIe differ: shown, not judged"
)
_BY_NVLINK = Missing("not-applicable", "NVLink joins them: stress.pair.rate holds them together")
_LINKED_ALONE = Missing("not-applicable", "no other pair is linked as this one is")


def stress_of(stress: Known[Stress], *, asked: bool) -> Known[Stress]:
    """The run, or why there is none: nobody asked for it, or nothing could be put under load."""
    if stress is NOT_IN_INPUT:
        return NO_STRESS if asked else stress
    if isinstance(stress, Missing):
        return stress
    if stress.busy:  # active work never competes
        return Missing("busy", stress.busy)
    if not stress.cannot:
        return stress
    return Missing("no-tool" if stress.lacks_torch else "exited", stress.cannot)


def watch_under_load(watch: Known[Watch], stress: Known[Stress]) -> Known[Watch]:
    """A watch of its own, else what NVML told beside a stress run."""
    if not isinstance(watch, Missing) or isinstance(stress, Missing):
        return watch
    return watch if stress.watch is NOT_IN_INPUT else stress.watch


def joined(host: Host) -> Known[Stress]:
    """The run by the names that the rest of the report has for the same GPUs."""
    run = host.stress
    if isinstance(run, Missing) or isinstance(run.devices, Missing):
        return run
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    if run.device != "cuda":
        return _without_gpus(run, len(gpus)) if gpus else run
    known = {one.name: gpu for one in run.devices if (gpu := _same(one, gpus))}
    names = {name: gpu.name for name, gpu in known.items()}
    places = {name: gpu.bus_id or gpu.name for name, gpu in known.items()}
    named = _renamed(run, names, places)
    assert not isinstance(named.devices, Missing)
    # Which is which is known where each was found again.
    found = len(known) == len([one for one in run.devices if one.uuid])
    left_out = _left_out(named, gpus) if known and found else ()
    return replace(
        named,
        devices=tuple(_with_heat(one, host) for one in (*named.devices, *left_out)),
        pairs=_of_each(named.pairs, lambda found: _linked(found, host.topology.matrix)),
    )


def _without_gpus(run: Stress, count: int) -> Missing:
    """Processors under load are no proof of the GPUs that are there."""
    text = f"torch {run.torch} finds none of the {count} GPUs that nvidia-smi lists"
    return Missing("exited", f"{text}: `preflight versions` says why, --python names another")


def _left_out(run: Stress, gpus: tuple[Gpu, ...]) -> Iterator[StressDevice]:
    """GPUs that nvidia-smi lists and that were not under load: nobody takes them for sound."""
    names = {one.name for one in run.devices} if isinstance(run.devices, tuple) else set()
    why = _why_left_out(run)
    for gpu in gpus:
        if gpu.name not in names:
            yield StressDevice(
                gpu.name, gpu.bus_id, product=gpu.product, ended=why, digest=why, peer_digest=why,
                repeats=why, memory_gbps=why, pinned_gbps=why, fading_percent=why, soak_s=why,
                soak_differing=why, soak_tflops=why, soak_least_tflops=why,
                soak_behind_percent=why, soak_peers=why, pinned_behind_percent=why,
                pinned_peers=why, line=1, probe=run.probe,
            )  # fmt: skip


def _why_left_out(run: Stress) -> Missing:
    if run.devices_asked:
        return Missing("not-asked", f"--devices {run.devices_asked} leaves it out")
    if run.visible:
        return Missing("not-asked", f"CUDA_VISIBLE_DEVICES={run.visible} leaves it out")
    return Missing("exited", "torch does not find it, and nvidia-smi lists it")


def _same(device: StressDevice, gpus: tuple[Gpu, ...]) -> Gpu | None:
    """The GPU of this UUID."""
    for gpu in gpus:
        if isinstance(gpu.uuid, str) and gpu.uuid.lower().removeprefix("gpu-") == device.uuid:
            return gpu
    return None


def _of_each(
    found: Known[tuple[T, ...]], change: Callable[[tuple[T, ...]], tuple[T, ...]]
) -> Known[tuple[T, ...]]:
    return found if isinstance(found, Missing) else change(found)


def _renamed(run: Stress, names: dict[str, str], places: dict[str, str]) -> Stress:
    def anew(one: Any) -> Any:
        device = getattr(one, "device", one.name)
        name = names.get(device, device) + one.name[len(device) :]
        moved = replace(one, name=name, bus_id=places.get(device, one.bus_id))
        return replace(moved, device=names.get(device, device)) if device != one.name else moved

    def all_of(found: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(anew, found))

    lists = ("devices", "gemms", "memory", "copies", "patterns", "attention")
    changed = {name: _of_each(getattr(run, name), all_of) for name in lists}
    return replace(
        run,
        **changed,
        pairs=_of_each(run.pairs, lambda found: tuple(_pair(p, names) for p in found)),
    )


def _pair(pair: Pair, names: dict[str, str]) -> Pair:
    one, of_two, other = pair.name.partition(" to ")
    if not of_two:
        return pair
    return replace(pair, name=f"{names.get(one, one)} to {names.get(other, other)}")


def _linked(pairs: tuple[Pair, ...], matrix: Known[Matrix]) -> tuple[Pair, ...]:
    """Each pair with what links it, and how far it is behind those that are linked alike."""
    if isinstance(matrix, Missing):
        told = [replace(one, link=_NO_MATRIX) for one in pairs]
    else:
        links = {
            frozenset((link.a, link.b)): f"{link.path}{link.nvlinks or ''}" for link in matrix.links
        }
        told = [
            replace(one, link=links.get(frozenset(one.name.split(" to ")), "")) for one in pairs
        ]
    rates = behind([(_kind(one), one.median_gbps) for one in told])
    return tuple(_behind(one, *rate) for one, rate in zip(told, rates, strict=True))


def _kind(pair: Pair) -> tuple[str, bool]:
    return str(pair.link), pair.reaches is True


def _behind(pair: Pair, percent: Known[float], peers: Known[int]) -> Pair:
    known = isinstance(pair.link, str) and bool(pair.link)
    if known and str(pair.link).startswith("NV"):
        alone = peers == 1
        return replace(
            pair, direct=pair.reaches, behind_percent=_LINKED_ALONE if alone else percent,
            peers=_LINKED_ALONE if alone else peers, far_percent=_BY_NVLINK, far_peers=_BY_NVLINK,
        )  # fmt: skip
    why = _BY_PCIE if known else _NO_MATRIX
    return replace(
        pair, direct=why, behind_percent=why, peers=why, far_percent=percent, far_peers=peers
    )


def _with_heat(device: StressDevice, host: Host) -> StressDevice:
    """The median temperature beside the tests, and how far it is above the inlet's."""
    watched = _watched(device, host)
    if isinstance(watched, Missing):
        return replace(device, gpu_c=watched, above_inlet_c=watched, watched_s=watched)
    celsius = watched.gpu_c if isinstance(watched.gpu_c, Missing) else watched.gpu_c.median
    inlet = host.chassis if isinstance(host.chassis, Missing) else host.chassis.air.inlet_c
    above: Known[float] = celsius
    if not isinstance(celsius, Missing):
        above = _unknown_air(inlet) if isinstance(inlet, Missing) else celsius - inlet
    return replace(device, gpu_c=celsius, above_inlet_c=above, watched_s=watched.watched_s)


def _unknown_air(inlet: Missing) -> Missing:
    """Not to know the air is no fault of the GPU: it is left out."""
    return Missing("not-in-input", f"how warm the air is that comes in is not known: {inlet.text}")


def _watched(device: StressDevice, host: Host) -> Known[WatchedGpu]:
    told = host.watch if isinstance(host.watch, Missing) else host.watch.gpus
    if isinstance(told, Missing):
        return Missing("not-in-input", "NVML was not asked beside the tests")
    mine = {device.bus_id, device.name}
    found = next((one for one in told if {one.bus_id, one.name} & mine), None)
    return found or Missing("not-in-input", "NVML tells nothing of it")
