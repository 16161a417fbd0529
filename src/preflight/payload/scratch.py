"""A folder for what libraries leave behind: sockets of loaders, compiled kernels."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import process

#: The path of a socket has at most 107 bytes (unix(7)); what is put behind the folder takes 40.
_LONGEST = 60


@contextmanager
def scratch() -> Iterator[None]:
    """Processes that are killed remove nothing: what they made goes with this folder."""
    places = [tempfile.gettempdir(), "/tmp", "/dev/shm"]
    place = next((one for one in places if len(one) <= _LONGEST and os.access(one, os.W_OK)), None)
    folder = tempfile.mkdtemp(prefix=".preflight-", dir=place)
    process.current_process()._config["tempdir"] = folder  # type: ignore[attr-defined]
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
