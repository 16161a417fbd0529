"""What a log tells of its run once: model, devices, sizes, versions."""

from __future__ import annotations

import re

_COUNT = r"([\d,_]+(?:\.\d+)?(?:[eE]\+?\d+)?\s?[KMBT]?)\b"
#: Name -> how it is told; the first group is the value. The first line that tells it counts.
_TOLD: tuple[tuple[str, tuple[bytes, ...], re.Pattern[str]], ...] = tuple(
    (name, tuple(one.encode() for one in marks.split("|")), re.compile(pattern))
    for name, marks, pattern in (
        ("gpu", "CUDA capacity|GPU|NVIDIA", r"CUDA capacity: (.+?) with [\d.]+GiB|(NVIDIA [A-Z][\w -]{2,40}?)(?=[,;|()]|\s{2}|$)"),
        ("gpus", "orld", r"(?i)world[ _]size['\"]?\s*(?:[:=]|is)\s*(\d+)"),
        ("gpus", "num_gpus|GPUs|devices", r"(?i)num_gpus['\"]?\s*[:=]\s*(\d+)|num_devices['\"]?\s*[:=]\s*(\d+)"),
        ("params", "aram", rf"(?i)(?:number of (?:trainable |model )?parameters|total parameters?(?: count)?|model parameters|params_total"
         rf"|parameter count|Size of model|model size)\s*(?:[:=]|is)?\s*(?:dense )?{_COUNT}"),
        ("layers", "layers", r"(?i)\bnum[_ ](?:hidden[_ ])?layers['\"]?[ .]*[:= ]\s*(\d+)"),
        ("sequence", "eq", r"(?i)\b(?:seq[_ ]?len(?:gth)?|sequence[_ ]length|max_seq_len|max_context_width|model_max_length)['\"]?[ .]*[:= ]\s*(\d+)"),
        ("global_batch", "atch", r"(?i)\bglobal[_ ]batch[_ ]size['\"]?[ .]*[:= ]\s*(\d+)|Total train batch size \([^)]*\) = (\d+)"),
        ("micro_batch", "atch", r"(?i)\b(?:micro[_ ]batch[_ ]size|Instantaneous batch size per device|per_device_train_batch_size)['\"]?[ .]*[:= ]+\s*(\d+)"),
        ("accumulation", "ccumulation", r"(?i)gradient[_ ]accumulation[_ ]steps['\"]?[ .]*[:= ]+\s*(\d+)"),
        ("total_steps", "teps|iters", r"(?i)Total optimization steps = ([\d,]+)|\b(?:max_steps|train[_-]iters)['\"]?[ .]*[:= ]+\s*(\d+)"),
        ("nccl", "NCCL version", r"NCCL version ([\d.]+)"),
        ("precision", "bf16|fp16|float16|dtype|precision", r"(?i)(?:precision|dtype)['\"]?\s*[:= ]\s*['\"]?(?:torch\.)?(bf16|fp16|bfloat16|float16|float32|fp8)"),
        ("workers", "orkers", r"(?i)\b(?:dataloader_)?num[_-]workers['\"]?[ .]*[:= ]+\s*(\d+)"),
        ("nodes", "nnodes|num_nodes", r"(?i)\b(?:nnodes|num_nodes)['\"]?[ .]*[:= ]+\s*(\d+)"),
    )
)  # fmt: skip
_ANY = re.compile(b"|".join(re.escape(mark) for _, marks, _ in _TOLD for mark in marks))
MOST_TEXT = 4_096


def tell(line: bytes, told: dict[str, str]) -> None:
    """What the line tells that was not told before."""
    if _ANY.search(line) is None:
        return
    text = ""
    for name, marks, pattern in _TOLD:
        if name in told or not any(mark in line for mark in marks):
            continue
        text = text or line[:MOST_TEXT].decode("utf-8", "replace")
        if found := pattern.search(text):
            told[name] = next(one for one in found.groups() if one).strip(" ,.")
