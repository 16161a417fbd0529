"""Which binaries of nccl-tests a host has, and what keeps one from starting, told before it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from preflight.payload.programs.nccl_tests import look
from tests.conftest import require

NAME = "all_reduce_perf"
#: ELF, 64 bits, little end first, for aarch64 (183).
ARM = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44)


def put(folder: Path, data: bytes = b"#!/bin/sh\n", mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_they_lie_in_the_folder_or_in_build(tmp_path: Path) -> None:
    path = put(tmp_path / "build")
    for folder in (tmp_path, tmp_path / "build"):
        told = look(str(folder), [NAME, "reduce_perf"])
        assert told["cannot"] == ""
        assert told["found"] == {NAME: {"path": str(path), "mpi": False, "cannot": ""}}


def test_a_folder_without_any_or_none(tmp_path: Path) -> None:
    assert look(str(tmp_path / "x"), [NAME])["cannot"] == f"there is no folder {tmp_path}/x"
    assert f"there is no {NAME} in {tmp_path}" in look(str(tmp_path), [NAME])["cannot"]


@pytest.mark.skipif(sys.platform != "linux", reason="ELF")
@pytest.mark.parametrize(
    ("data", "mode", "text"),
    [
        (b"#!/bin/sh\n", 0o644, "may not be run: chmod +x"),
        (ARM, 0o755, "is built for aarch64, and this host is"),
    ],
)
def test_what_keeps_one_from_starting(tmp_path: Path, data: bytes, mode: int, text: str) -> None:
    put(tmp_path, data, mode)
    assert text in look(str(tmp_path), [NAME])["found"][NAME]["cannot"]


def test_an_empty_file_is_read_too(tmp_path: Path) -> None:
    put(tmp_path, b"")
    assert look(str(tmp_path), [NAME])["found"][NAME]["mpi"] is False


def test_mpi_is_what_its_binary_calls_and_a_library_that_is_not_there_is_named(
    tmp_path: Path,
) -> None:
    require("gcc", bool(shutil.which("gcc")))
    (tmp_path / "mpi.c").write_text("int MPI_Init(void) { return 0; }", encoding="utf-8")
    main = "int MPI_Init(void); int main(void) { return MPI_Init(); }"
    (tmp_path / "main.c").write_text(main, encoding="utf-8")
    gcc = ["gcc", "-o"]
    library = tmp_path / "libnccl-stand-in.so.2"
    path = tmp_path / NAME
    subprocess.run([*gcc, library, "-shared", "-fPIC", tmp_path / "mpi.c"], check=True)
    subprocess.run([*gcc, path, tmp_path / "main.c", library, f"-Wl,-rpath,{tmp_path}"],
                   check=True)  # fmt: skip
    assert look(str(tmp_path), [NAME])["found"][NAME] == {
        "path": str(path), "mpi": True, "cannot": "",
    }  # fmt: skip
    library.unlink()
    assert (
        "libnccl-stand-in.so.2, and the loader does not find it: export LD_LIBRARY_PATH"
        in (look(str(tmp_path), [NAME])["found"][NAME]["cannot"])
    )
