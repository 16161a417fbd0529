"""Checkpoints of torch.distributed.checkpoint as it writes them, and each way to lose a part."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import distributed
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata

from preflight.payload.checkpoint.dcp import Whole, tiling
from tests.checkpoint_files import cut, flipped, names, scanned, state, verified


def whole_state() -> dict[str, object]:
    one = state(rows=3000)
    return {"model": one["model"], "optim": {"state": one["optimizer"]["state"]},
            "lr_scheduler": one["lr_scheduler"], "rng": one["rng_state"],
            "train_state": {"step": 5}}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a checkpoint in three files, and one that was saved asynchronously."""
    folder = tmp_path_factory.mktemp("dcp")
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=0, world_size=1
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer = dcp.FileSystemWriter(folder / "run" / "step-10", thread_count=3)
            dcp.save(whole_state(), storage_writer=writer)
            dcp.async_save(whole_state(), checkpoint_id=folder / "run" / "step-20").result()
    finally:
        distributed.destroy_process_group()
    return folder / "run"


@pytest.fixture
def step(saved: Path, tmp_path: Path) -> Path:
    """A copy of the first, to be harmed."""
    return Path(shutil.copytree(saved / "step-10", tmp_path / "step-10"))


def largest(folder: Path) -> Path:
    return max(folder.glob("*.distcp"), key=lambda one: one.stat().st_size)


def test_what_was_saved_is_whole_and_every_piece_is_checked(saved: Path) -> None:
    found = verified(saved)
    assert names(found) == ["resumable", "resumable"]
    assert found.hints[0].startswith(f"resume from {saved}/step-20 (step 20)")
    scan = found.judged[1].found.scan
    assert {one.checksum for one in scan.files if one.kind == "distcp"} == {"verified"}
    embed = [one for one in scan.tensors if one.name == "model.embed.weight"]
    assert [(one.shape, one.looked_at) for one in embed] == [((3000, 64), 192_000)] * 2
    assert embed[0].largest == whole_state()["model"]["embed.weight"].abs().max()  # type: ignore[index]


def test_a_bit_in_a_piece_is_seen(step: Path) -> None:
    file = largest(step)
    flipped(file, file.stat().st_size // 2)
    finding = verified(step).findings[0]
    assert finding.finding == "checkpoint.damaged"
    assert f"{file.name}: model.embed.weight: its CRC32 is" in finding.text
    assert "5 of its 6 tensors are intact" in " ".join(finding.against)


def test_a_file_that_is_cut_or_gone_is_seen(step: Path) -> None:
    file = largest(step)
    data = file.read_bytes()
    cut(file, len(data) // 2)
    assert names(verified(step)) == ["damaged"]
    file.unlink()
    finding = verified(step).findings[0]
    assert finding.finding == "checkpoint.incomplete"
    assert f"{file.name} is named in it, and is not there" in finding.text


def test_without_the_metadata_the_save_did_not_end(step: Path) -> None:
    (step / ".metadata").rename(step / ".metadata.tmp")
    found = verified(step)
    assert names(found) == ["incomplete"]
    assert "shards of rank 0" in found.findings[0].text
    assert found.findings[1].finding == "checkpoint.leftover"
    (step / ".metadata.tmp").unlink()
    assert names(verified(step)) == ["incomplete"]


def test_metadata_that_is_cut_is_damage(step: Path) -> None:
    cut(step / ".metadata", 500)
    assert names(verified(step)) == ["damaged"]


def test_nan_in_a_piece_is_told_with_its_tensor(tmp_path: Path) -> None:
    whole = whole_state()
    whole["model"]["layers.0.w"][0, 0] = float("nan")  # type: ignore[index]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(whole, checkpoint_id=tmp_path / "step-1", no_dist=True)
    assert "NaN in model.layers.0.w (1 of 4,096" in verified(tmp_path / "step-1").findings[0].text


def test_pieces_that_leave_a_hole_are_seen(step: Path) -> None:
    described: Metadata = pickle.loads((step / ".metadata").read_bytes())
    kept = described.state_dict_metadata["model.embed.weight"]
    kept.chunks[0] = ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([2000, 64]))
    (step / ".metadata").write_bytes(pickle.dumps(described))
    assert "64,000 of its 192,000 values are in no piece" in verified(step).findings[0].text


def tiles(*chunks: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    return tiling(Whole("w", "float32", (4, 6), chunks))


def test_tiles_cover_a_tensor_once() -> None:
    assert tiles(((0, 0), (4, 3)), ((0, 3), (4, 3))) == ""
    assert tiles(((0, 0), (2, 6)), ((2, 0), (2, 2)), ((2, 2), (2, 4))) == ""
    assert "overlap" in tiles(((0, 0), (4, 4)), ((0, 3), (4, 3)))
    assert "in no piece" in tiles(((0, 0), (4, 3)))
    assert "beyond" in tiles(((0, 0), (5, 6)))


#: Saves that kill themselves at the n-th time that a file is made durable, and before the rename of
#: the last; each in a process of its own, which has torch already.
KILLED = """
import os, signal, sys, warnings
from pathlib import Path
import torch
import torch.distributed.checkpoint as dcp
warnings.simplefilter("ignore")

def saves(folder, at):
    done = 0
    def counted(*_):
        nonlocal done
        done += 1
        if done == at:
            os.kill(os.getpid(), signal.SIGKILL)
    os.fsync = counted
    Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    state = {"model": {"w": torch.randn(300, 64)}, "optim": {"exp_avg": torch.randn(300, 64)}}
    writer = dcp.FileSystemWriter(folder, thread_count=1, single_file_per_rank=False)
    dcp.save(state, storage_writer=writer, no_dist=True)

for at in range(1, 5):
    pid = os.fork()
    if not pid:
        saves(f"{sys.argv[1]}/step-{at}", at)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_a_save_that_is_killed_at_any_time_is_never_called_whole(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=True, timeout=60)
    phases = [sorted(path.name for path in one.iterdir()) for one in sorted(tmp_path.iterdir())]
    assert len({tuple(one) for one in phases}) > 2, phases
    assert [".metadata" in one for one in phases] == [False] * 4
    found = verified(tmp_path)
    assert set(names(found)) <= {"incomplete", "damaged"}
    assert found.hints == ("nothing here can be resumed from",)


def test_a_torch_file_killed_in_the_middle_is_never_called_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(state(), path)
    data = path.read_bytes()
    for size in range(1, len(data), len(data) // 60):
        path.write_bytes(data[:size])
        assert names(verified(path)) == ["damaged"], size
    assert scanned(path)[0].whole
