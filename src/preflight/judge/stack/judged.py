"""Check -> the function that judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from preflight.facts.host import Host
from preflight.judge.stack import cuda, mixed, pairs, sources
from preflight.model import Check, Result

JUDGES: dict[str, Callable[[Host, Check], Iterator[Result]]] = {
    "versions.cuda.driver": cuda.runs,
    "versions.cuda.compat": cuda.by_compatibility,
    "versions.driver.gpu": cuda.driver_has_gpu,
    "versions.torch.cuda": cuda.built_with_cuda,
    "versions.torch.finds_gpu": cuda.finds_gpu,
    "versions.torch.gpu": cuda.has_code,
    "versions.torch.twice": mixed.twice,
    "versions.torch.whole": mixed.whole,
    "versions.inputs.agree": sources.agree,
    "versions.toolkit.torch": cuda.toolkit_fits_torch,
    "versions.toolkit.gpu": cuda.toolkit_knows_gpu,
    "versions.nccl.loaded": mixed.nccl_loaded,
    "versions.cudnn.path": mixed.cudnn_path,
    "versions.packages.one_cuda": mixed.one_place,
    "versions.image.mixed": mixed.image,
    "versions.deepspeed.build": mixed.deepspeed,
    "versions.packages.torch": pairs.built_for_torch,
    "versions.packages.pins": pairs.pinned,
    "versions.packages.flash_attn": pairs.flash_attention,
}


def judge_stack(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the checks of this rule, one or one for each GPU or package."""
    return [found for check in checks for found in JUDGES[check.id](host, check)]
