"""One path seen by several hosts: the same files on shared storage, parts on disks of their own."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import torch.distributed.checkpoint as dcp
from msgspec.structs import replace

from preflight.diagnosis.checkpoint.gathered import gathered
from preflight.diagnosis.checkpoint.whole import Verdict, verdict
from tests.checkpoint_files import flipped, names, save_trainer, scanned, state


def together(*folders: Path) -> Verdict:
    """Each folder as another host's, all under one path."""
    scans = [replace(scanned(one)[0], source="/data/run", host=one.name) for one in folders]
    return verdict(gathered(scans))


def copies(run: Path, *hosts: str) -> list[Path]:
    return [Path(shutil.copytree(run, run.parent / host)) for host in hosts]


def test_shared_storage_is_told_once(tmp_path: Path) -> None:
    save_trainer(tmp_path / "run" / "checkpoint-100", 100)
    found = together(*copies(tmp_path / "run", "node-01", "node-02"))
    assert [one.finding for one in found.findings] == ["checkpoint.resumable"]


def test_what_one_host_reads_wrong_is_damage(tmp_path: Path) -> None:
    save_trainer(tmp_path / "run" / "checkpoint-100", 100)
    one, two = copies(tmp_path / "run", "node-01", "node-02")
    flipped(two / "checkpoint-100" / "optimizer.pt", 5000)
    assert names(together(one, two)) == ["damaged"]


def test_parts_on_disks_of_their_own_are_whole_together(tmp_path: Path) -> None:
    save_trainer(tmp_path / "run" / "checkpoint-100", 100)
    one, two = copies(tmp_path / "run", "node-01", "node-02")
    (one / "checkpoint-100" / "rng_state_0.pth").unlink()
    (two / "checkpoint-100" / "model-00001-of-00002.safetensors").unlink()
    assert names(together(one)) == names(together(two)) == ["incomplete"]
    found = together(one, two)
    assert [one.finding for one in found.findings] == ["checkpoint.resumable", "checkpoint.apart"]
    assert "the files of node-01, node-02 are whole together" in found.findings[1].text


def test_pieces_on_another_host_than_the_metadata(tmp_path: Path) -> None:
    whole = state(rows=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = dcp.FileSystemWriter(tmp_path / "run" / "step-10", thread_count=2)
        dcp.save({"model": whole["model"], "optim": whole["optimizer"]["state"]},
                 storage_writer=writer, no_dist=True)  # fmt: skip
    one, two = copies(tmp_path / "run", "node-01", "node-02")
    (one / "step-10" / "__0_1.distcp").unlink()
    (two / "step-10" / ".metadata").unlink()
    (two / "step-10" / "__0_0.distcp").unlink()
    assert names(together(one)) == names(together(two)) == ["incomplete"]
    found = together(one, two)
    assert names(found) == ["unknown"]
    assert "__0_1.distcp: its pieces were not looked at" in found.findings[0].text
