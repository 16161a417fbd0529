"""Which model it is: from a configuration and from the shapes of tensors; one held against another.

The base of rotary embeddings is not in the weights (inv_freq is not saved): it is in the
configuration alone, and a run that resumes with another one trains on, and gets worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from preflight.diagnosis.checkpoint.damage import seen
from preflight.diagnosis.checkpoint.found import Found, below
from preflight.facts.checkpoints import Scan, ScannedFile, Tensor
from preflight.model import Finding, Status

#: What is compared -> the keys by which configurations of several makers call it.
_KEYS = {
    "vocabulary rows": ("vocab_size", "padded_vocab_size"),
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "KV heads": ("num_key_value_heads", "n_kv_heads", "num_query_groups"),
    "head size": ("head_dim", "kv_channels"),
    "rope theta": ("rope_theta", "rotary_base", "rotary_emb_base"),
    "rope scaling": ("rope_scaling",),
    "eps": ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps"),
    "activation": ("hidden_act", "activation_function", "hidden_activation"),
    "tied head": ("tie_word_embeddings",),
}
#: Of these a difference costs precision, or nothing; of all others it is another model.
_MILD = ("type of values",)
_EMBEDDING = re.compile(
    r"(?:.*\.)?(?:embed_tokens|word_embeddings|wte|tok_embeddings|token_embedding|embed_in|embed)"
    r"\.weight"
)
_HEAD = re.compile(r"(?:.*\.)?(?:lm_head|output_layer|embed_out)\.weight")
_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks)\.(\d+)\.")
#: What wrappers put before the names of a model.
_WRAPPED = re.compile(
    r"^(?:(?:module|_orig_mod|_fsdp_wrapped_module|model|state_dict|model_state_dict|app)\.)+"
)
_MOST = 4


class Shape(Struct, frozen=True):
    """`told`: what the configuration and the tensors say, by the names above; `tensors`: shapes of
    the weights by their names without wrappers."""

    told: dict[str, Any]
    tensors: dict[str, tuple[int, ...]]
    source: str
    entries: int = 0  # of the tokenizer, added ones too


def shape_of(found: Found) -> Shape:
    """Of one checkpoint."""
    return _shape(found.shown, tuple(found.files.values()), found.tensors)


def shape_at(scan: Scan) -> Shape:
    """Of what is given to compare with: its newest checkpoint, else the configuration it is."""
    newest = next(iter(below(scan).found), None)
    return shape_of(newest) if newest else _shape(scan.source, scan.files, scan.tensors)


def _shape(source: str, files: Sequence[ScannedFile], tensors: Sequence[Tensor]) -> Shape:
    told: dict[str, Any] = {}
    for file in files:
        if file.path.rpartition("/")[2] in ("config.json", "params.json") or len(files) == 1:
            told |= _configured(file.told)
    weights = [one for one in tensors if not _is_state(one.name)]
    embedding = next((one for one in weights if _EMBEDDING.fullmatch(one.name)), None)
    if embedding is not None and len(embedding.shape) == 2:
        told["rows of the embedding"], told["type of values"] = embedding.shape[0], embedding.dtype
        told.setdefault("width", embedding.shape[1])
    layers = {int(found[1]) for one in weights if (found := _LAYER.search(one.name))}
    if layers:
        told.setdefault("layers", len(layers))
    entries = [one.told.get("entries", "") for one in files]
    return Shape(told, {_WRAPPED.sub("", one.name): one.shape for one in weights}, source,
                 max([int(one) for one in entries if one.isdecimal()], default=0))  # fmt: skip


def _is_state(name: str) -> bool:
    return any(word in name for word in ("exp_avg", "optim", "momentum", "rng", "sched"))


def _configured(told: dict[str, str]) -> dict[str, Any]:
    """What a configuration says, also in the parts that newer ones have."""
    whole = {key: _value(text) for key, text in told.items()}
    for part in ("text_config", "rope_parameters"):
        inner = whole.get(part)
        if isinstance(inner, dict):
            whole = {**inner, **{key: one for key, one in whole.items() if one is not None}}
    inner = whole.get("rope_parameters")
    if isinstance(inner, dict):
        whole.setdefault("rope_theta", inner.get("rope_theta"))
    found = {name: next((whole[key] for key in keys if whole.get(key) is not None), None)
             for name, keys in _KEYS.items()}  # fmt: skip
    return {name: one for name, one in found.items() if one is not None}


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def inside(found: Found) -> Iterator[Finding]:
    """Where a checkpoint contradicts itself: rows of the embedding, its configuration, its
    tokenizer."""
    shape = shape_of(found)
    rows, due = shape.told.get("rows of the embedding"), shape.told.get("vocabulary rows")
    if not isinstance(rows, int):
        return
    if shape.entries > rows:
        yield _of_rows(
            found, f"the embedding has {rows:,} rows, and the tokenizer {shape.entries:,} entries "
            "with those that were added: the last have no row",
            "resize the embedding to the tokenizer's length, rounded up to a multiple of 128",
        )  # fmt: skip
    elif isinstance(due, int) and due != rows:
        yield _of_rows(found, f"the embedding has {rows:,} rows, and config.json says vocab_size "
                       f"{due:,}: it does not load",
                       "put the configuration beside it that it was saved with")  # fmt: skip


def _of_rows(found: Found, text: str, fix: str) -> Finding:
    return Finding("checkpoint.vocabulary", Status.FAIL, found.shown, text=text, fix=(fix,),
                   runbook="checkpoint-load")  # fmt: skip


def against(found: Found, other: Shape) -> Finding:
    """The checkpoint held against another, or a configuration."""
    mine = shape_of(found)
    same = [name for name in mine.told if name in other.told]
    unlike = [name for name in same if not _alike(mine.told[name], other.told[name])]
    texts = [f"{name} {mine.told[name]} against {other.told[name]}" for name in unlike]
    texts += _rows_against(mine, other) + _tensors_against(mine, other)
    if not same and not (mine.tensors and other.tensors):
        return Finding(
            "checkpoint.compared", Status.ERROR, found.shown,
            text=f"INCOMPLETE: nothing in it and in {other.source} tells the same of a model",
            fix=("--compare CHECKPOINT, or --compare config.json",),
        )  # fmt: skip
    if not texts:
        told = ", ".join(f"{name} {mine.told[name]}" for name in same)
        both = f"{len(mine.tensors):,} tensors of the same shapes" if other.tensors else ""
        text = f"like {other.source}: {'; '.join(filter(None, (told, both)))}"
        return Finding("checkpoint.compared", Status.PASS, found.shown, text=text)
    mild = len(texts) == len(unlike) and all(name in _MILD for name in unlike)
    return Finding(
        "checkpoint.compared", Status.WARN if mild else Status.FAIL, found.shown,
        text=f"unlike {other.source}: {'; '.join(texts)}",
        evidence=(seen(other.source, texts[0]),), runbook="checkpoint-load",
        fix=("resume with the model that it was saved from: another configuration trains on, and "
             "gets worse without a word",),
    )  # fmt: skip


def _alike(one: Any, other: Any) -> bool:
    numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
    return one == other or (numbers and abs(one - other) <= 1e-9 * max(abs(one), abs(other)))


def _rows_against(mine: Shape, other: Shape) -> list[str]:
    """Of a configuration alone: its vocabulary is what the embedding has rows for."""
    rows, due = mine.told.get("rows of the embedding"), other.told.get("vocabulary rows")
    if isinstance(rows, int) and isinstance(due, int) and rows != due and not other.tensors:
        return [f"rows of the embedding {rows} against vocab_size {due}"]
    return []


def _tensors_against(mine: Shape, other: Shape) -> list[str]:
    """Keys that are missing, unexpected, of another shape; where hardly one is the same the names
    are of two frameworks, and tell nothing."""
    both = mine.tensors.keys() & other.tensors.keys()
    if len(both) < 0.5 * max(min(len(mine.tensors), len(other.tensors)), 1):
        return []
    told = []
    gone, new = sorted(other.tensors.keys() - both), sorted(mine.tensors.keys() - both)
    tied = [one for one in (*gone, *new) if _HEAD.fullmatch(one)]
    gone, new = ([one for one in each if one not in tied] for each in (gone, new))
    bent = sorted(one for one in both if mine.tensors[one] != other.tensors[one])
    for names, what in ((gone, "missing"), (new, "only in it")):
        if names:
            told.append(f"{len(names):,} tensors {what} ({', '.join(names[:_MOST])})")
    if bent:
        first = bent[0]
        shapes = f"{list(mine.tensors[first])} against {list(other.tensors[first])}"
        told.append(f"{len(bent):,} tensors of another shape ({first}: {shapes})")
    return told
