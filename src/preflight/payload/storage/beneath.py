"""What holds the data of a directory in the end: figures past the page cache are of that."""

from __future__ import annotations

import os
import re

from .cached import dropped
from .mounts import MEMORY, Mount, mount_of

DEVICE, IN_MEMORY, IMAGE, UNKNOWN = "device", "memory", "cached image", "not known"
_UPPER = re.compile(r"(?:^|,)upperdir=((?:[^,\\]|\\.)+)")
_TRIAL_BYTES = 1 << 20
#: The parts of a device may have parts: LVM on encryption on a loop device.
_DEEPEST = 8


def beneath(folder: str, mount: Mount) -> str:
    """`folder` is empty and ours. An image file that a loop device reads through the host's page
    cache is in that; so is an overlay whose upper layer is memory."""
    if mount.kind in MEMORY:
        return IN_MEMORY
    if mount.kind == "overlay":
        return _of_overlay(folder, mount)
    return IMAGE if _is_on_image(folder, mount) else DEVICE


def _of_overlay(folder: str, mount: Mount) -> str:
    """The upper layer's place is told as the one who mounted it saw it, which a container need not
    see. What is on a device leaves the page cache; memory cannot."""
    if _lets_go(f"{folder}/trial"):
        return DEVICE
    found = _UPPER.search(mount.options)
    upper = found[1].replace("\\", "") if found else ""
    seen = bool(upper) and os.path.isdir(upper)  # noqa: PTH112
    return IN_MEMORY if seen and mount_of(os.path.realpath(upper)).kind in MEMORY else UNKNOWN


def _lets_go(path: str) -> bool:
    try:
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(os.urandom(_TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
        return dropped([path])
    finally:
        os.unlink(path)  # noqa: PTH108


def _is_on_image(folder: str, mount: Mount) -> bool:
    """By sysfs, of the device or of one below it."""
    at = os.stat(folder).st_dev  # noqa: PTH116
    names = [f"/sys/dev/block/{os.major(at)}:{os.minor(at)}"]
    # Of btrfs and the like the files' device is no block device.
    names += [f"/sys/class/block/{os.path.basename(os.path.realpath(mount.source))}"]  # noqa: PTH119
    start = next((one for one in names if os.path.isdir(one)), "")  # noqa: PTH112
    return bool(start) and is_cached_image(os.path.realpath(start))


def is_cached_image(device: str, deeper: int = _DEEPEST) -> bool:
    """Whether this device of sysfs, or one below it, is an image that is read through the page
    cache of its host."""
    if os.path.exists(f"{device}/partition"):  # noqa: PTH110
        device = os.path.dirname(device)  # noqa: PTH120
    try:
        with open(f"{device}/loop/dio", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip() == "0"
    except OSError:
        pass
    try:
        below = os.listdir(f"{device}/slaves")  # noqa: PTH208
    except OSError:
        below = []
    return deeper > 0 and any(
        is_cached_image(os.path.realpath(f"{device}/slaves/{one}"), deeper - 1) for one in below
    )
