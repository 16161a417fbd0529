"""Which model it is: rows for every token, a configuration, another checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from preflight.diagnosis.checkpoint.whole import verdict
from preflight.model import Finding
from tests.checkpoint_files import save_safetensors, save_trainer, scanned, verified

CONFIG = {
    "model_type": "llama", "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip


def model(folder: Path, rows: int = 64, dtype: torch.dtype = torch.float32, **config: Any) -> Path:
    tensors = {"model.embed_tokens.weight": torch.randn(rows, 32).to(dtype),
               "lm_head.weight": torch.randn(rows, 32).to(dtype)}  # fmt: skip
    for layer in range(2):
        tensors[f"model.layers.{layer}.w"] = torch.randn(32, 32).to(dtype)
    save_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    return folder


def told(folder: Path, name: str) -> list[Finding]:
    return [one for one in verified(folder).findings if one.finding == f"checkpoint.{name}"]


def compared(one: Path, other: Path) -> Finding:
    mine, theirs = scanned(one, other)
    return verdict([mine], theirs).findings[-1]


def test_rows_that_fit_say_nothing(tmp_path: Path) -> None:
    (model(tmp_path) / "tokenizer.json").write_text(json.dumps({
        "model": {"vocab": {f"t{at}": at for at in range(60)}}, "added_tokens": [{"id": 63}],
    }))  # fmt: skip
    assert told(tmp_path, "vocabulary") == []


def test_a_tokenizer_with_more_entries_than_rows_is_told(tmp_path: Path) -> None:
    (model(tmp_path) / "tokenizer.json").write_text(json.dumps({
        "model": {"vocab": {f"t{at}": at for at in range(60)}}, "added_tokens": [{"id": 64}],
    }))  # fmt: skip
    assert "64 rows, and the tokenizer 65 entries" in told(tmp_path, "vocabulary")[0].text


def test_a_configuration_of_another_vocabulary_is_told(tmp_path: Path) -> None:
    model(tmp_path, rows=48)
    assert "48 rows, and config.json says vocab_size 64" in told(tmp_path, "vocabulary")[0].text


def test_the_same_model_is_the_same(tmp_path: Path) -> None:
    finding = compared(model(tmp_path / "a"), model(tmp_path / "b"))
    assert (finding.finding, finding.status.value) == ("checkpoint.compared", "PASS")
    assert "rope theta 500000.0" in finding.text
    assert "4 tensors of the same shapes" in finding.text


def test_another_theta_is_told_though_the_weights_are_alike(tmp_path: Path) -> None:
    finding = compared(model(tmp_path / "a", rope_theta=10000.0), model(tmp_path / "b"))
    assert finding.status.value == "FAIL"
    assert "rope theta 10000.0 against 500000.0" in finding.text


def test_newer_configurations_keep_theta_elsewhere(tmp_path: Path) -> None:
    other = tmp_path / "config.json"
    other.write_text(json.dumps({**CONFIG, "rope_theta": None,
                                 "rope_parameters": {"rope_theta": 1e6}}))  # fmt: skip
    finding = compared(model(tmp_path / "a"), other)
    assert "rope theta 500000.0 against 1000000.0" in finding.text


def test_tensors_that_are_missing_or_of_another_shape_are_told(tmp_path: Path) -> None:
    save_safetensors(tmp_path / "b" / "model.safetensors", {
        "model.embed_tokens.weight": torch.randn(64, 32), "model.layers.0.w": torch.randn(32, 16),
        "model.layers.1.w": torch.randn(32, 32), "model.layers.1.q": torch.randn(3),
    })  # fmt: skip
    text = compared(model(tmp_path / "a"), tmp_path / "b").text
    assert "1 tensors missing (layers.1.q)" in text
    assert "1 tensors of another shape (layers.0.w: [32, 32] against [32, 16])" in text


def test_another_type_of_values_is_a_warning(tmp_path: Path) -> None:
    finding = compared(model(tmp_path / "a", dtype=torch.bfloat16), model(tmp_path / "b"))
    assert finding.status.value == "WARN"
    assert "bfloat16 against float32" in finding.text


def test_what_tells_nothing_of_a_model_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    save_trainer(tmp_path / "checkpoint-1", 1)
    assert compared(tmp_path / "checkpoint-1", tmp_path / "x.json").status.value == "ERROR"
