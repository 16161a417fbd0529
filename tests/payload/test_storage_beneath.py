"""What holds the data of a directory in the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from preflight.payload.storage import beneath
from preflight.payload.storage.mounts import MEMORY, Mount, mount_of


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def overlay(upper: str) -> Mount:
    return Mount("/", "overlay", "overlay", f"rw,lowerdir=/a:/b,upperdir={upper},workdir=/w")


def test_memory_is_memory(memory: Path) -> None:
    assert beneath.beneath(str(memory), mount_of(str(memory))) == "memory"


def test_an_overlay_is_what_its_upper_layer_is_on(memory: Path) -> None:
    """As the root of a container is; there the place of the layer is not to be seen."""
    seen, unseen = overlay(str(memory)), overlay("/var/lib/none/diff")
    assert beneath.beneath(str(memory), seen) == "memory"
    assert beneath.beneath(str(memory), unseen) == "not known"
    assert list(memory.iterdir()) == []


def test_an_overlay_on_a_disk_is_a_device(tmp_path: Path) -> None:
    if mount_of(str(tmp_path)).kind in MEMORY:
        pytest.skip("the directory of tests is in memory")
    assert beneath.beneath(str(tmp_path), overlay("/var/lib/none/diff")) == "device"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("told", "cached"), [("0", True), ("1", False), (None, False)])
@pytest.mark.parametrize("above", ["", "partition", "dm-0"])
def test_an_image_is_in_the_page_cache_of_its_host(
    tmp_path: Path, told: str | None, above: str, *, cached: bool
) -> None:
    loop = tmp_path / "loop0"
    (loop / "loop").mkdir(parents=True)
    if told is not None:
        (loop / "loop/dio").write_text(f"{told}\n")
    device = loop
    if above == "partition":
        device = loop / "loop0p1"
        device.mkdir()
        (device / "partition").write_text("1\n")
    elif above:
        device = tmp_path / above
        (device / "slaves").mkdir(parents=True)
        (device / "slaves/loop0").symlink_to(loop)
    assert beneath.is_cached_image(str(device)) is cached
