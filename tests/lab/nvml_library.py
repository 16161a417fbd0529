"""A libnvidia-ml.so.1 of our own, whose GPUs do as NVML_STAND_IN says; see nvml/stand_in.c."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conftest import require

_SOURCE = Path(__file__).with_name("nvml") / "stand_in.c"


def nvml_library(folder: Path, *, old: bool = False) -> str:
    """The LD_LIBRARY_PATH under which it is found; `old` lacks what drivers before 535 lack."""
    require("gcc", bool(shutil.which("gcc")))
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "libnvidia-ml.so.1"
    flags = ["-DOLD"] if old else []
    argv: list[str | Path] = [
        "gcc",
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Werror",
        *flags,
        "-o",
        out,
        _SOURCE,
    ]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return str(folder)
