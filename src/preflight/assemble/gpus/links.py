"""NVLink and what the model is by design, joined with the GPUs that nvidia-smi lists."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from preflight.expect.models import model_of
from preflight.facts.gpu import Gpu
from preflight.facts.nvlink import Nvlink, NvlinkAnswer, NvlinkErrors, NvlinkGpu
from preflight.model import NOT_IN_INPUT, Known, Missing


def with_links(
    gpus: Known[tuple[Gpu, ...]], status: Known[NvlinkAnswer], errors: Known[NvlinkAnswer]
) -> Known[tuple[Gpu, ...]]:
    """The GPUs with their design, their links (of `status`) and the errors on them (of `errors`).

    Where nothing but NVLink's answers was given, the GPUs are those that they tell of.
    """
    if isinstance(gpus, Missing):
        if gpus is not NOT_IN_INPUT or (status is NOT_IN_INPUT and errors is NOT_IN_INPUT):
            return gpus
        gpus = _of_answers(status, errors)
        if isinstance(gpus, Missing):
            return gpus
    designed = (replace(gpu, design=model_of(gpu.product)) for gpu in gpus)
    return tuple(replace(gpu, nvlink=_links(gpu, status, errors)) for gpu in designed)


def _of_answers(*answers: Known[NvlinkAnswer]) -> Known[tuple[Gpu, ...]]:
    told: dict[int, NvlinkGpu] = {}
    for answer in answers:
        for gpu in () if isinstance(answer, Missing) else answer.gpus:
            told.setdefault(gpu.index, gpu)
    if not told:
        return next(answer for answer in answers if isinstance(answer, Missing))
    return tuple(
        Gpu(index, f"gpu{index}", "", one.line, one.probe, product=one.product, uuid=one.uuid)
        for index, one in sorted(told.items())
    )


def _links(gpu: Gpu, status: Known[NvlinkAnswer], errors: Known[NvlinkAnswer]) -> Known[Nvlink]:
    links, counted = _of(gpu, status), _of(gpu, errors)
    if isinstance(links, Missing):
        links = _unless_without(gpu, links)
        if isinstance(counted, Missing):
            return links
        links = Nvlink(counted.line, counted.probe, links, links, links, links, links)
    found: Known[NvlinkErrors] = counted if isinstance(counted, Missing) else counted.errors
    return replace(links, errors=found)


def _of(gpu: Gpu, answer: Known[NvlinkAnswer]) -> Known[Nvlink]:
    """What an answer tells of this GPU: by UUID, or by index where one of them has none."""
    if isinstance(answer, Missing):
        return answer
    one = _same_uuid(gpu, answer.gpus) or next(
        (each for each in answer.gpus if each.index == gpu.index), None
    )
    if one is None:
        return NOT_IN_INPUT
    if isinstance(gpu.uuid, str) and isinstance(one.uuid, str) and gpu.uuid != one.uuid:
        text = f"nvidia-smi nvlink tells of another GPU {gpu.index}: {one.uuid}, not {gpu.uuid}"
        return Missing("unreadable", text)
    return one.links


def _same_uuid(gpu: Gpu, told: Sequence[NvlinkGpu]) -> NvlinkGpu | None:
    return next((each for each in told if each.uuid == gpu.uuid and each.uuid), None)


def _unless_without(gpu: Gpu, why: Missing) -> Missing:
    """A tool that fails on a card without NVLink leaves nothing unknown."""
    design = gpu.design
    if not isinstance(design, Missing) and isinstance(design.nvlinks, Missing):
        return Missing("not-applicable", f"{gpu.product} has no NVLink")
    return why
