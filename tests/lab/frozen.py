"""A real process in uninterruptible sleep: it writes to a frozen loop-mounted file system."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import require


@contextmanager
def frozen_directory(base: Path) -> Iterator[Path]:
    """A directory in which every write sleeps uninterruptibly until the context is left."""
    require("root and mkfs.ext4", os.geteuid() == 0 and bool(shutil.which("mkfs.ext4")))
    image, mount = base / "frozen.img", base / "frozen"
    mount.mkdir()
    subprocess.run(["truncate", "-s", "16M", image], check=True)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True)
    require("loop mounts", mounted.returncode == 0)
    try:
        subprocess.run(["fsfreeze", "-f", mount], check=True)
        yield mount
    finally:
        subprocess.run(["fsfreeze", "-u", mount], check=False)
        subprocess.run(["umount", "-l", mount], check=True)
