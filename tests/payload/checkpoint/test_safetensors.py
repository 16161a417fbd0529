"""Files of safetensors: the rules of the header, each broken once."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.checkpoint_files import changed, cut, names, save_safetensors, scanned, state, verified


def header(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return dict(json.loads(data[8 : 8 + length]))


def written(path: Path, head: dict[str, Any] | bytes, values: bytes) -> Path:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)
    return path


def flaws(path: Path) -> list[str]:
    return [flaw.kind for file in scanned(path)[0].files for flaw in file.flaws]


def entry(dtype: str, shape: list[int], begin: int, stop: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, stop]}


def test_a_sound_file_is_told_as_it_is(tmp_path: Path) -> None:
    path = save_safetensors(tmp_path / "model.safetensors", state()["model"], step="7")
    scan = scanned(path)[0]
    assert (scan.files[0].kind, scan.files[0].flaws) == ("safetensors", ())
    assert scan.files[0].told["metadata.step"] == "7"
    assert [(one.name, one.dtype, one.shape) for one in scan.tensors] == [
        ("embed.weight", "float32", (40, 64)), ("layers.0.w", "bfloat16", (64, 64)),
        ("norm.bias", "float32", (64,)),
    ]  # fmt: skip
    assert scan.files[0].checked_bytes == 40 * 64 * 4 + 64 * 64 * 2 + 64 * 4
    assert "no checksum in this format" in verified(path).findings[0].text


def test_shapes_without_values_and_types_of_less_than_a_byte_are_in_order(tmp_path: Path) -> None:
    head = {"scalar": entry("F32", [], 0, 4), "none": entry("F32", [0, 5], 4, 4),
            "small": entry("F4", [3, 2], 4, 7)}  # fmt: skip
    assert flaws(written(tmp_path / "a.safetensors", head, bytes(7)[:4] + b"\1\2\3")) == []


BROKEN: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "a hole": ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, "hole"),
    "an overlap": ({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, "overlap"),
    "a size": ({"a": entry("F32", [2], 0, 12)}, "size"),
    "beyond the end": ({"a": entry("F32", [4], 0, 16)}, "truncated"),
    "behind it": ({"a": entry("F32", [2], 0, 8)}, "trailing"),
    "a type": ({"a": entry("F31", [3], 0, 12)}, "header"),
    "a negative size": ({"a": entry("F32", [-3], 0, 12)}, "header"),
    "a size that overflows": ({"a": entry("F32", [2**62, 8], 0, 12)}, "size"),
    "no entry": ({"a": [1, 2]}, "header"),
    "twice the same": (b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"a":{}}', "header"),
    "no JSON": (b"{'a'}", "header"),
    "a bomb": (b"{" + b'"a":[' * 100_000, "header"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_header_that_breaks_a_rule_is_refused(tmp_path: Path, broken: str) -> None:
    head, kind = BROKEN[broken]
    path = written(tmp_path / "model.safetensors", head, b"\1" * 12)
    assert kind in flaws(path)
    assert names(verified(path)) == ["damaged"]


def test_a_header_of_2_to_the_63_bytes_is_not_read(tmp_path: Path) -> None:
    path = save_safetensors(tmp_path / "model.safetensors", state()["model"])
    changed(path, 0, struct.pack("<Q", 2**63))
    assert flaws(path) == ["header"]


def test_a_file_cut_short_names_what_is_not_whole(tmp_path: Path) -> None:
    path = save_safetensors(tmp_path / "model.safetensors", state()["model"])
    cut(path, -5)
    finding = verified(path).findings[0]
    assert "ends 5 bytes too soon: of norm.bias not all is there" in finding.text
    assert "2 of its 3 tensors are intact" in finding.against[0]
    cut(path, 6)
    assert names(verified(path)) == ["damaged"]


def test_a_file_whose_values_were_never_written_is_seen(tmp_path: Path) -> None:
    path = save_safetensors(tmp_path / "model.safetensors", {"w": torch.randn(500, 500)})
    begin = 8 + struct.unpack("<Q", path.read_bytes()[:8])[0]
    changed(path, begin, bytes(path.stat().st_size - begin))
    assert flaws(path) == ["zeros"]
