"""Files of torch.save, harmed one way each: what is told of them, and what stays silent."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from preflight.facts.checkpoints import Scan, Tensor
from tests.checkpoint_files import changed, cut, flipped, names, scanned, state, verified

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def saved(path: Path, **more: Any) -> Path:
    torch.save(state(rows=100, **more), path)
    return path


def tensor(scan: Scan, name: str) -> Tensor:
    return next(one for one in scan.tensors if one.name == name)


def embedding_at(path: Path) -> int:
    return tensor(scanned(path)[0], "model.embed.weight").offset or 0


def kinds(scan: Scan) -> list[str]:
    return [flaw.kind for file in scan.files for flaw in file.flaws]


def test_what_torch_saved_is_told_as_it_is(tmp_path: Path) -> None:
    path = saved(tmp_path / "checkpoint_7.pt", best=1.5, tag="x")
    scan = scanned(path)[0]
    file = scan.files[0]
    assert (file.kind, file.checksum, file.flaws) == ("torch-zip", "verified", ())
    with zipfile.ZipFile(path) as archive:
        assert file.checked_bytes >= sum(one.file_size for one in archive.infolist()) - 1000
    assert file.top["best"] == "float 1.5"
    assert file.top["model"] == "dict of 3"
    one = tensor(scan, "model.embed.weight")
    weight = state(rows=100)["model"]["embed.weight"]
    assert (one.dtype, one.shape, one.nbytes, one.looked_at) == ("float32", (100, 64), 25600, 6400)
    assert one.largest == pytest.approx(weight.abs().max().item())
    half = tensor(scan, "model.layers.0.w")
    assert half.dtype == "bfloat16"
    assert half.largest == state(rows=100)["model"]["layers.0.w"].float().abs().max().item()


def test_a_shared_storage_and_views_are_no_flaw(tmp_path: Path) -> None:
    whole = torch.randn(10, 10)
    torch.save({"w": whole, "tied": whole, "row": whole[3], "t": whole.t(), "none": torch.empty(0),
                "p": torch.nn.Parameter(whole[:2])}, tmp_path / "a.pt")  # fmt: skip
    scan = scanned(tmp_path / "a.pt")[0]
    assert kinds(scan) == []
    assert {one.name for one in scan.tensors} == {"w", "tied", "row", "t", "none", "p"}


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte short": (lambda path: cut(path, -1), "truncated"),
    "half": (lambda path: cut(path, path.stat().st_size // 2), "truncated"),
    "no bytes": (lambda path: path.write_bytes(b""), "empty"),
    "zeros": (lambda path: path.write_bytes(bytes(path.stat().st_size)), "zeros"),
    "lfs": (lambda path: path.write_text(LFS), "lfs-pointer"),
    "html": (lambda path: path.write_text("<!DOCTYPE html><p>403"), "html"),
    "bit": (lambda path: flipped(path, embedding_at(path) + 999), "crc"),
    "page": (lambda path: changed(path, 8192, bytes(4096)), "crc"),
    "pickle": (lambda path: flipped(path, 70), "crc"),
    "directory": (lambda path: changed(path, -200, b"XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"),
                  "header"),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_each_damage_is_seen(tmp_path: Path, harm: str) -> None:
    path = saved(tmp_path / "a.pt")
    assert names(verified(path)) == ["resumable"]
    HARMS[harm][0](path)
    found = verified(path)
    assert HARMS[harm][1] in kinds(found.judged[0].found.scan)
    assert names(found) == ["incomplete" if harm == "lfs" else "damaged"]
    assert not found.judged[0].can_resume
    assert found.judged[0].finding.fix


def test_what_is_intact_of_a_damaged_file_is_listed(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pt")
    flipped(path, embedding_at(path) + 5)
    against = " ".join(verified(path).judged[0].finding.against)
    assert "5 of its 6 tensors are intact: model.layers.0.w" in against
    cut(path, path.stat().st_size // 2)
    assert "intact: model.layers.0.w" in " ".join(verified(path).judged[0].finding.against)


def test_saved_without_checksums_is_no_damage_and_a_lost_page_is(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        path = saved(tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    scan = scanned(path)[0]
    assert (kinds(scan), scan.files[0].checksum) == ([], "off")
    assert "saved without checksums" in verified(path).findings[0].text
    changed(path, 8192, bytes(4096))
    assert kinds(scanned(path)[0]) == ["zero-pages"]


def test_bytes_behind_the_end_are_told_and_no_damage(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pt")
    path.write_bytes(path.read_bytes() + b"behind it")
    found = verified(path)
    assert names(found) == ["resumable"]
    assert "9 bytes follow its end" in found.findings[0].against[0]


def test_the_old_format_is_read_and_has_no_checksum(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    torch.save(state(), path, _use_new_zipfile_serialization=False)
    new = tmp_path / "new.pt"
    torch.save(state(), new)
    scan = scanned(path)[0]
    assert scan.files[0].kind == "torch-legacy"
    assert {(one.name, one.shape, one.largest) for one in scan.tensors} == {
        (one.name, one.shape, one.largest) for one in scanned(new)[0].tensors
    }
    assert "no checksum in this format" in verified(path).findings[0].text
    cut(path, -10)
    assert names(verified(path)) == ["damaged"]
    cut(path, 300)
    assert names(verified(path)) == ["damaged"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_no_numbers_are_told_with_their_tensor(tmp_path: Path, bad: float) -> None:
    whole = state()
    whole["model"]["layers.0.w"][3, 4] = bad
    torch.save(whole, tmp_path / "a.pt")
    finding = verified(tmp_path / "a.pt").findings[0]
    assert finding.finding == "checkpoint.damaged"
    assert "in model.layers.0.w (1 of 4,096 values)" in finding.text
    assert names(verified(tmp_path / "a.pt", values=False)) == ["resumable"]


def test_a_single_value_that_is_no_number_yet_is_no_damage(tmp_path: Path) -> None:
    best = {"min_value": torch.tensor(float("inf")), "last": torch.tensor(float("nan"))}
    torch.save(state(metrics=best), tmp_path / "a.pt")
    assert names(verified(tmp_path / "a.pt")) == ["resumable"]


def test_masks_may_hold_infinities(tmp_path: Path) -> None:
    torch.save(state(mask=torch.full((8, 8), float("-inf"))), tmp_path / "a.pt")
    assert names(verified(tmp_path / "a.pt")) == ["resumable"]


def test_a_sample_says_that_it_is_one_and_calls_no_sum_wrong(tmp_path: Path) -> None:
    torch.save(state(big=torch.randn(3_000_000)), tmp_path / "a.pt")
    whole = tmp_path.stat().st_size and (tmp_path / "a.pt").stat().st_size
    found = verified(tmp_path / "a.pt", sample_bytes=whole // 4)
    assert names(found) == ["resumable"]
    assert "one block in 5 was read (--sample)" in found.findings[0].text
    assert found.judged[0].found.scan.files[0].checked_bytes < whole // 2


def test_another_archive_is_no_checkpoint(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert [one.finding for one in verified(tmp_path).findings] == ["checkpoint.unknown"]


def test_whatever_bit_flips_in_the_directory_what_passes_loads(tmp_path: Path) -> None:
    """The archive's directory has no checksum of its own."""
    path = tmp_path / "a.pt"
    torch.save({"w": torch.ones(3), "optimizer": {"m": torch.ones(2)}}, path)
    data = path.read_bytes()
    begin = data.find(b"PK\x01\x02")
    seen = 0
    for at in range(begin, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        if verified(path).judged[0].can_resume:
            loaded = torch.load(path, weights_only=True)
            assert torch.equal(loaded["w"], torch.ones(3)), at
        else:
            seen += 1
    assert seen > 100
