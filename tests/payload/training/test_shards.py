"""Token shards of each form: mapped as they lie, and told where they cannot be."""

from __future__ import annotations

import math
import struct
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from preflight.payload.training import loader, shards

IDS = [5, 1, 9, 250, 7, 7, 3, 60]


def test_flat_files_are_read_as_they_lie(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(struct.pack("<8H", *IDS))
    (one,) = shards.open_shards(str(tmp_path), 256)
    assert one.mapped().tolist() == IDS


@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "int64"])
def test_arrays_of_numpy(tmp_path: Path, dtype: str) -> None:
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "a.npy", numpy.array(IDS, dtype=dtype))
    (one,) = shards.open_shards(str(tmp_path), 256)
    assert one.mapped().tolist() == IDS


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lists", [False, True])
def test_arrow_files_by_record_batch(tmp_path: Path, stream: bool, lists: bool) -> None:
    arrow = pytest.importorskip("pyarrow")
    column = [IDS[:2], IDS[2:4], IDS[4:]] if lists else IDS
    table = arrow.table({"input_ids": arrow.array(column), "other": [0.5] * len(column)})
    opened = arrow.ipc.new_stream if stream else arrow.ipc.new_file
    with opened(str(tmp_path / "a.arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=2)
    found = shards.open_shards(str(tmp_path), 256)
    assert len(found) == (2 if lists else 4)
    assert [one for each in found for one in each.mapped().tolist()] == IDS


def test_arrow_without_pyarrow_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.arrow").write_bytes(b"ARROW1\0\0")
    with pytest.raises(shards.ShardError, match=r"a\.arrow: Arrow files need pyarrow, and .* has"):
        shards.open_shards(str(tmp_path), 256)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.bin", b"\1\0\2", "3 bytes are no whole number of 16-bit ids: truncated?"),
        ("a.bin", b"", "0 bytes are no whole number"),
        ("a.npy", b"PK\3\4 and more of it", "no NumPy file"),
        ("a.txt", b"1 2 3", "no *.bin, *.npy, *.arrow in it"),
    ],
)
def test_what_is_wrong_is_told_with_its_file(
    tmp_path: Path, name: str, data: bytes, text: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(shards.ShardError) as told:
        shards.open_shards(str(tmp_path), 256)
    assert str(told.value).startswith(str(tmp_path))
    assert text in str(told.value)


def test_an_array_that_is_cut_short(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "a.npy", numpy.array(IDS, dtype="int32"))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:-4])
    with pytest.raises(shards.ShardError, match="28 of 32 bytes are there: truncated"):
        shards.open_shards(str(tmp_path), 256)


def test_the_synthetic_chain_has_its_entropy(tmp_path: Path) -> None:
    shards.write_synthetic(str(tmp_path), vocabulary=512, tokens=200_000, shards=1, seed=3)
    (one,) = shards.open_shards(str(tmp_path), 512)
    ids = one.mapped().tolist()
    pairs, single = Counter(pairwise(ids)), Counter(ids[:-1])
    nats = -sum(n / len(ids) * math.log(n / single[a]) for (a, _), n in pairs.items())
    assert nats == pytest.approx(shards.floor_nats(), abs=0.02)


def test_every_sample_is_read_once_whoever_reads() -> None:
    seen = []
    for rank in range(3):
        order = loader.Order(120, 7, batch=2, accumulation=2, rank=rank, ranks=3)
        seen += [one for step in range(10) for micro in order.ids(step) for one in micro]
    assert sorted(seen) == list(range(120))


def test_a_resumed_loader_reads_on(tmp_path: Path) -> None:
    shards.write_synthetic(str(tmp_path), vocabulary=64, tokens=4000, shards=2, seed=1)
    tokens = loader.Tokens(shards.open_shards(str(tmp_path), 64), 16, 64)
    order = loader.Order(len(tokens), 1, batch=4, accumulation=1, rank=0, ranks=1)
    whole = list(loader.batches(tokens, order, 0, 6, loader.Settings(workers=0)))
    rest = list(loader.batches(tokens, order, 4, 6, loader.Settings(workers=0)))
    assert [loader.ids(one) for one in rest] == [loader.ids(one) for one in whole[4:]]
    for batch in whole:
        read, follow = loader.pair(batch)
        assert torch.equal(read[:, 1:], follow[:, :-1])


def test_a_worker_hands_over_the_same_batches_without_shared_memory(tmp_path: Path) -> None:
    """Of shared memory a killed rank would leave a trace on stderr."""
    shards.write_synthetic(str(tmp_path), vocabulary=64, tokens=2000, shards=2, seed=1)
    tokens = loader.Tokens(shards.open_shards(str(tmp_path), 64), 16, 64)
    order = loader.Order(len(tokens), 1, batch=4, accumulation=1, rank=0, ranks=1)
    here = list(loader.batches(tokens, order, 0, 3, loader.Settings(workers=0)))
    there = list(loader.batches(tokens, order, 0, 3, loader.Settings(workers=1)))
    assert [one.tolist() for one in there] == [one.tolist() for one in here]
    assert not any(one.is_shared() for one in there)
