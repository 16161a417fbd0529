"""Values looked at as bits, the same by numpy, torch and Python itself; pages of zeros."""

from __future__ import annotations

import math
from pathlib import Path

import numpy
import pytest
import torch

from preflight.payload.checkpoint import values
from preflight.payload.checkpoint.dtypes import FLOATS
from preflight.payload.checkpoint.values import Seen, Way, as_number
from tests.checkpoint_files import changed, names, save_safetensors, scanned, verified

WAYS = (values._by_numpy(numpy), values._by_torch(torch),
        Way("Python", values.look_plain, values.plain_pages))  # fmt: skip
TYPES = ("float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn")


def looked(way: Way, dtype: str, numbers: list[float]) -> Seen:
    made = torch.tensor(numbers, dtype=torch.float32).to(getattr(torch, dtype))
    piece = memoryview(bytearray(made.view(torch.uint8).numpy().tobytes()))
    seen = Seen()
    way.look(piece, FLOATS[dtype], seen)
    return seen


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_nan_and_inf_are_counted_and_the_largest_is_told(way: Way, dtype: str) -> None:
    clean = looked(way, dtype, [0.5, -3.0, 2.0, 0.0])
    assert (clean.looked_at, clean.nans, clean.infs) == (4, 0, 0)
    bad = looked(way, dtype, [0.5, math.nan, -3.0, math.nan])
    assert (bad.nans, bad.infs) == (2, 0)
    if dtype != "float8_e4m3fn":  # which has no infinity
        assert looked(way, dtype, [math.inf, 1.0, -math.inf]).infs == 2
    if way.name != "Python":
        assert as_number(clean.largest_bits, dtype) == 3.0
        assert as_number(bad.largest_bits, dtype) == 3.0


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_negative_values_alone_have_a_largest_too(way: Way) -> None:
    seen = looked(way, "float32", [-1.0, -8.0])
    assert way.name == "Python" or as_number(seen.largest_bits, "float32") == 8.0


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_pages_of_zeros_are_found(way: Way) -> None:
    piece = bytearray(b"\1" * 4096 * 4 + b"\1" * 100)
    piece[8192:12288] = bytes(4096)
    piece[0:4000] = bytes(4000)
    assert way.pages(memoryview(piece)) == [2]


def lost(folder: Path, begin: int, size: int, shape: tuple[int, ...] = (3000, 100)) -> list[str]:
    """What becomes of a file without checksums in which so many bytes were lost."""
    path = save_safetensors(folder / "m.safetensors", {"w": torch.randn(*shape)})
    changed(path, begin, bytes(size))
    return [flaw.kind for file in scanned(path)[0].files for flaw in file.flaws]


@pytest.mark.parametrize(("begin", "pages"), [(4096, 1), (40960, 25), (524288 - 4096, 2),
                                              (524288, 1), (1048576, 30)])  # fmt: skip
def test_a_lost_write_is_seen_wherever_it_lies(tmp_path: Path, begin: int, pages: int) -> None:
    assert lost(tmp_path, begin, pages * 4096) == ["zero-pages"]


def test_what_was_never_written_up_to_the_end_is_seen(tmp_path: Path) -> None:
    size = (
        save_safetensors(tmp_path / "m.safetensors", {"w": torch.randn(3000, 100)}).stat().st_size
    )
    assert lost(tmp_path, 409600, size - 409600) == ["zero-pages"]


def test_zeros_that_were_saved_are_no_damage(tmp_path: Path) -> None:
    rows = torch.randn(512, 1024)
    rows[100:200] = 0  # rows of padding, each a page of the file
    sparse = torch.randn(100_000)
    sparse[3000:9000] = 0
    path = save_safetensors(tmp_path / "m.safetensors", {
        "rows": rows, "sparse": sparse, "bias": torch.zeros(50_000),
        "triangle": torch.tril(torch.randn(300, 300)), "moments": torch.zeros(64, 64),
    })  # fmt: skip
    assert names(verified(path)) == ["weights-only"]
    changed(path, -8, bytes(8))
    assert names(verified(path)) == ["weights-only"]
