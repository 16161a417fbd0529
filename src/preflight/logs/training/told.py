"""What a log tells of its run once: model, devices, sizes, versions."""

from __future__ import annotations

import re

_IS = r"['\"]?[ .]*[:= ]+\s*"
_COUNT = r"([\d,_]+(?:\.\d+)?(?:[eE]\+?\d+)?\s?[KMBT]?)\b"
#: Name -> what stands in such lines, and how it is told; the first group is the value.
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("gpu", "CUDA capacity", r"CUDA capacity: (.+?) with [\d.]+GiB"),
    ("gpu", "NVIDIA", r"(NVIDIA [A-Z][\w -]{2,40}?)(?=[,;|()]|\s{2}|$)"),
    ("gpus", "orld", r"world[ _]size['\"]?\s*(?:[:=]|is)\s*(\d+)"),
    ("gpus", "num_gpus|num_devices", rf"\bnum_(?:gpus|devices){_IS}(\d+)"),
    ("params", "aram|odel size|ize of model",
     r"(?:number of (?:trainable |model )?parameters|total parameters?(?: count)?|params_total"
     r"|model parameters|parameter count|size of model|model size)\s*(?:[:=]|is)?\s*"
     rf"(?:dense )?{_COUNT}"),
    ("layers", "layers", rf"\bnum[_ ](?:hidden[_ ])?layers{_IS}(\d+)"),
    ("sequence", "eq|max_context_width|model_max_length",
     r"\b(?:seq[_ ]?len(?:gth)?|sequence[_ ]length|max_seq_len|max_context_width|model_max_length)"
     rf"{_IS}(\d+)"),
    ("global_batch", "atch", rf"\bglobal[_ ]batch[_ ]size{_IS}(\d+)"),
    ("global_batch", "Total train batch", r"Total train batch size \([^)]*\) = (\d+)"),
    ("micro_batch", "atch",
     r"\b(?:micro[_ ]batch[_ ]size|Instantaneous batch size per device|per_device_train_batch_size)"
     rf"{_IS}(\d+)"),
    ("accumulation", "ccumulation", rf"gradient[_ ]accumulation[_ ]steps{_IS}(\d+)"),
    ("total_steps", "optimization steps", r"Total optimization steps = ([\d,]+)"),
    ("total_steps", "max_steps|iters", rf"\b(?:max_steps|train[_-]iters){_IS}(\d+)"),
    ("nccl", "NCCL version", r"NCCL version ([\d.]+)"),
    ("precision", "precision|dtype",
     r"(?:precision|dtype)['\"]?\s*[:= ]\s*['\"]?(?:torch\.)?"
     r"(bf16|fp16|bfloat16|float16|float32|fp8)"),
    ("workers", "orkers", rf"\b(?:dataloader_)?num[_-]workers{_IS}(\d+)"),
    ("nodes", "nnodes|num_nodes", rf"\b(?:nnodes|num_nodes){_IS}(\d+)"),
)  # fmt: skip
_TOLD = tuple(
    (name, tuple(one.encode() for one in marks.split("|")), re.compile(tells, re.IGNORECASE))
    for name, marks, tells in _ROWS
)
_ANY = re.compile(b"|".join(re.escape(mark) for _, marks, _ in _TOLD for mark in marks))
MOST_TEXT = 4_096


def tell(line: bytes, told: dict[str, str]) -> None:
    """What the line tells that was not told before: the first line that tells it counts."""
    if _ANY.search(line) is None:
        return
    text = line[:MOST_TEXT].decode("utf-8", "replace")
    for name, marks, pattern in _TOLD:
        if name in told or not any(mark in line for mark in marks):
            continue
        if found := pattern.search(text):
            told[name] = found[1].strip(" ,.")
