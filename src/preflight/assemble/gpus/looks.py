"""Several looks of nvidia-smi at one host, as a ticket holds them: the fullest is judged, and what
another one shows beyond it is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from preflight.assemble.tables import SUPPLIERS
from preflight.facts.gpu import Driver, Gpu, GpuLooks, NvidiaSmi
from preflight.model import Missing

#: One that is blotted out tells no GPU from another.
_BUS_ID = re.compile(r"[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_CALLED = {"nvidia-smi-table": "the table"}
_SHOWN = 3  # addresses


def looks(found: Mapping[str, Any]) -> GpuLooks:
    """How the other looks differ from the one that is judged; `found`: probe -> what it read."""
    answers = [found[name] for name in SUPPLIERS["nvidia_smi"] if name in found]
    judged = next((each for each in answers if isinstance(each, NvidiaSmi)), None)
    others = [each for each in answers if each is not judged]
    if judged is None or judged.driver.state != "answers":
        return GpuLooks()
    if not others and judged.silence is None:
        return GpuLooks()
    for other in others:
        unknown = other if isinstance(other, Missing) else _of_another_host(judged, other)
        if unknown:
            return GpuLooks(unknown)
    told: list[tuple[str, Gpu | Driver]] = []
    if judged.silence is not None:
        told.append((f"another time the driver said: {judged.silence.text}", judged.silence))
    told += [each for other in others for each in _unlike(judged, other)]
    first = told[0][1] if told else others[0].driver
    return GpuLooks(tuple(text for text, _ in told), first.line, first.probe)


def _of_another_host(judged: NvidiaSmi, other: NvidiaSmi) -> Missing | None:
    """Why another look cannot be of the same host, or not of the same time."""
    mine, its = judged.driver.version, other.driver.version
    here, there = _addresses(judged), _addresses(other)
    if isinstance(mine, str) and isinstance(its, str) and mine != its:
        what = f"driver {its}, not {mine}"
    elif here and there and here.isdisjoint(there):
        what = f"other GPUs ({', '.join(sorted(there)[:_SHOWN])} ...)"
    else:
        return None
    which = _CALLED.get(other.driver.probe, "another report")
    text = (
        f"{which} of nvidia-smi beside the one judged shows {what}: it was not judged; give each "
        "host its own file, --from NAME=FILE"
    )
    return Missing("unreadable", text)


def _addresses(smi: NvidiaSmi) -> set[str]:
    return {gpu.bus_id for gpu in smi.gpus if _BUS_ID.fullmatch(gpu.bus_id)}


def _whole(smi: NvidiaSmi) -> bool:
    known = isinstance(smi.attached, int) and len(smi.gpus) >= smi.attached
    return known and not smi.cut and len(_addresses(smi)) == len(smi.gpus)


def _unlike(judged: NvidiaSmi, other: NvidiaSmi) -> Iterator[tuple[str, Gpu]]:
    """What the other look shows and the judged one does not, each with the GPU of the evidence."""
    if other.driver.state != "answers":
        return
    of = {gpu.bus_id: gpu for gpu in judged.gpus}
    by_name = {gpu.name: gpu for gpu in judged.gpus}
    for gpu in other.gpus:
        same = of.get(gpu.bus_id) or by_name.get(gpu.name)
        if same is None and _whole(judged):
            yield f"{gpu.name} is listed in one look only", gpu
        known = {} if same is None else faults(same)
        for kind, text in faults(gpu).items():
            if kind not in known:
                yield f"{gpu.name}: {text}", gpu
    if _whole(other):
        for address in sorted(_addresses(judged) - _addresses(other)):
            yield f"{of[address].name} is listed in one look only", of[address]


def faults(gpu: Gpu) -> dict[str, str]:
    """What is ill by any look: kind -> how a person says it."""
    found: dict[str, str] = {}
    errors = [gpu.ecc.volatile_dram_uncorrected, gpu.ecc.volatile_sram_uncorrected]
    count = sum(each for each in errors if isinstance(each, int))
    if count:
        found["ecc"] = f"uncorrected memory errors {count}"
    if gpu.answers is False:
        found["answers"] = "it does not answer"
    if gpu.reset_required is True:
        found["reset"] = "it requires a reset"
    if gpu.inforom_corrupted is True:
        found["inforom"] = "its infoROM is corrupted"
    if gpu.unreadable and not isinstance(gpu.unreadable, Missing):
        found["unreadable"] = gpu.unreadable[0]
    return found
