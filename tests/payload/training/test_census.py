"""What a look at the shards says of data that is one id, or a hole."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.payload.training import shards
from preflight.payload.training.census import census

_DRAW = random.Random(1)
MANY = [_DRAW.randrange(1, 250) for _ in range(400_000)]
FEW = MANY[:8000]


def looked_at(folder: Path, *files: list[int]) -> dict[str, Any]:
    for number, ids in enumerate(files):
        (folder / f"{number}.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    return census(shards.open_shards(str(folder), 256))


@pytest.mark.parametrize("ids", [FEW, MANY])
@pytest.mark.parametrize(("share", "found"), [(0.0, 0.0), (0.05, None), (0.15, 15.0)])
def test_a_tail_that_is_a_hole(
    ids: list[int], share: float, found: float | None, tmp_path: Path
) -> None:
    keep = len(ids) - int(share * len(ids))
    told = looked_at(tmp_path, MANY[:5000], ids[:keep] + [0] * (len(ids) - keep))
    if found is None:  # less than is asked for
        assert told["stretch_percent"] < 10
    else:
        assert told["stretch_percent"] == pytest.approx(found, abs=3)
    assert told["stretch_in"] == ("1.bin" if told["stretch_percent"] else "")
    assert told["most_percent"] < 50


def test_a_hole_in_the_middle_and_at_the_start(tmp_path: Path) -> None:
    middle = MANY[:100_000] + [0] * 100_000 + MANY[:200_000]
    assert looked_at(tmp_path, middle)["stretch_percent"] == pytest.approx(25, abs=4)
    start = [9] * 200_000 + MANY[:200_000]
    assert looked_at(tmp_path, start)["stretch_percent"] == pytest.approx(50, abs=4)


@pytest.mark.parametrize("tokens", [300, 400_000])
def test_zeros_and_nothing_else(tokens: int, tmp_path: Path) -> None:
    told = looked_at(tmp_path, [0] * tokens, [0] * tokens)
    assert (told["distinct"], told["most_id"], told["most_percent"]) == (1, 0, 100.0)


def test_rows_that_are_filled_up_are_no_hole(tmp_path: Path) -> None:
    rows = [one for at in range(400) for one in (*MANY[at * 300 : at * 300 + 300], *[0] * 3796)]
    told = looked_at(tmp_path, rows)
    assert told["stretch_percent"] == 0
    assert told["most_percent"] > 80


def test_synthetic_shards_are_of_many_ids(tmp_path: Path) -> None:
    shards.write_synthetic(str(tmp_path), vocabulary=512, tokens=200_000, shards=2, seed=3)
    told = census(shards.open_shards(str(tmp_path), 512))
    assert (told["shards"], told["tokens"], told["distinct"]) == (2, 200_000, 256)
    assert told["most_percent"] < 2
    assert told["stretch_percent"] == 0
