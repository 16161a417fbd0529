"""Which torch a Python would import and how it comes to its NCCL: asked of trees of our own."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from preflight.facts.stack_pieces import PythonEnv, TorchBuild
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.stack.packages import packages
from tests.setup_text import PACKAGES, TORCH

#: Tags of the dynamic section (System V gABI).
NEEDED, STRTAB, RPATH, RUNPATH = 1, 5, 15, 29
_VERSION = "__version__ = '2.5.1+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\nhip = None\n"


def library(entries: list[tuple[int, str]]) -> bytes:
    """The smallest shared object that has these entries: a header, two program headers, the
    dynamic section, the strings; loaded at 0x10000."""
    strings, tags = b"\0", []
    for tag, text in entries:
        tags.append((tag, len(strings)))
        strings += text.encode() + b"\0"
    at = 64 + 2 * 56
    size = 16 * (len(tags) + 2)
    tags += [(STRTAB, 0x10000 + at + size), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    whole = at + size + len(strings)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x10000, 0x10000, whole, whole, 4096)
    found = struct.pack("<IIQQQQQQ", 2, 6, at, 0x10000 + at, 0x10000 + at, size, size, 8)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64,
                                                     56, 2, 0, 0, 0)  # fmt: skip
    return head + load + found + dynamic + strings


def torch_at(place: Path, version: str = _VERSION, cuda: bytes | None = None) -> Path:
    """A package torch with its version.py and its library, and NCCL's wheel beside it."""
    for folder in ("torch/lib", "nvidia/nccl/lib"):
        (place / folder).mkdir(parents=True)
    (place / "torch" / "version.py").write_text(version)
    (place / "nvidia" / "nccl" / "lib" / "libnccl.so.2").touch()
    if cuda is not None:
        (place / "torch" / "lib" / "libtorch_cuda.so").write_bytes(cuda)
    return place


def asked(*places: Path) -> PythonEnv:
    _, *argv = packages.probe.command.argv  # type: ignore[attr-defined]
    env = {"PYTHONPATH": os.pathsep.join(map(str, places)), "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-S", *argv], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return packages(done.stdout)


def build(*places: Path) -> TorchBuild:
    found = asked(*places).torch
    assert isinstance(found, TorchBuild)
    return found


def test_a_torch_tells_its_version_and_its_cuda(tmp_path: Path) -> None:
    found = build(torch_at(tmp_path / "a"), torch_at(tmp_path / "b", "__version__ = '1.0'\n"))
    assert (found.version, found.cuda, found.hip) == ("2.5.1+cu124", "12.4", "none")
    assert found.path == str(tmp_path / "a" / "torch")


@pytest.mark.parametrize(("entries", "how"), [
    ([(NEEDED, "libnccl.so.2"), (RPATH, "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN")], "wheel"),
    ([(NEEDED, "libnccl.so.2"), (RUNPATH, "$ORIGIN:$ORIGIN/../../nvidia/nccl/lib")], "runpath"),
    ([(NEEDED, "libnccl.so.2"), (RPATH, "$ORIGIN")], "loader"),
    ([(NEEDED, "libnccl.so.2")], "loader"),
    ([(NEEDED, "libc.so.6"), (RPATH, "$ORIGIN/../../nvidia/nccl/lib")], "static"),
])  # fmt: skip
def test_how_it_comes_to_its_nccl(tmp_path: Path, entries: list[tuple[int, str]], how: str) -> None:
    assert build(torch_at(tmp_path / "a", cuda=library(entries))).nccl == how


@pytest.mark.parametrize("damaged", [
    b"", b"\x7fELF", b"\x7fELF\2\1" + bytes(58), library([(NEEDED, "libnccl.so.2")])[:150],
    b"\x7fELF\1\1" + bytes(200), os.urandom(400), b"\x7fELF\2\1" + b"\xff" * 400,
])  # fmt: skip
def test_a_damaged_library_is_not_known(tmp_path: Path, damaged: bytes) -> None:
    assert isinstance(build(torch_at(tmp_path / "a", cuda=damaged)).nccl, Missing)


def test_a_library_of_this_machine(tmp_path: Path) -> None:
    """Python's own program, an ELF file with a dynamic section, needs no NCCL."""
    program = Path(sys.executable).resolve().read_bytes()
    if program[:5] != b"\x7fELF\2":
        pytest.skip("the Python that runs is no 64-bit ELF program")
    assert build(torch_at(tmp_path / "a", cuda=program)).nccl in ("static",)


def test_a_torch_without_cuda_asks_for_no_library(tmp_path: Path) -> None:
    found = build(torch_at(tmp_path / "a", "__version__ = '2.5.1+cpu'\ncuda = None\nhip = None\n"))
    assert (found.cuda, found.nccl) == ("none", NOT_IN_INPUT)


def test_a_broken_torch_is_said_to_be_broken(tmp_path: Path) -> None:
    for name, text in (("a", ""), ("b", "import os\n"), ("c", "\0\0=\0")):
        found = build(torch_at(tmp_path / name, text))
        assert isinstance(found.version, Missing)
        assert "broken" in found.version.text


def test_what_is_asked_for_to_the_last_digit(tmp_path: Path) -> None:
    metadata = """Metadata-Version: 2.1
Version: 2.5.1+cu124
Requires-Dist: filelock
Requires-Dist: numpy>=1.2
Requires-Dist: nvidia-nccl-cu12 (==2.21.5) ; platform_system == "Linux"
Requires-Dist: triton==3.1.0; platform_system == "Linux" and python_version < "3.13"
Requires-Dist: Flash_Attn==2.*
Requires-Dist: left-pad==1.0
Requires-Dist: apex==1.0; extra == 'all'

Requires-Dist: vllm==1.0
"""
    (tmp_path / "torch-2.5.1+cu124.dist-info").mkdir()
    (tmp_path / "torch-2.5.1+cu124.dist-info" / "METADATA").write_text(metadata)
    assert [(pin.name, pin.of, pin.version) for pin in asked(tmp_path).pins] == [
        ("torch", "nvidia-nccl-cu12", "2.21.5"), ("torch", "triton", "3.1.0"),
        ("torch", "flash-attn", "2.*"),
    ]  # fmt: skip


def test_a_second_torch_is_told_with_its_place(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for place, version in ((first, "2.5.1"), (second, "2.1.0")):
        (place / f"torch-{version}.dist-info").mkdir(parents=True)
    same = tmp_path / "same"
    same.symlink_to(first)  # lib64 -> lib is no second one
    found = asked(first, same, second)
    assert [(one.name, one.version, one.place) for one in found.twice] == [
        ("torch", "2.1.0", str(second))
    ]


def test_a_place_that_may_not_be_listed_may_hold_torch(tmp_path: Path) -> None:
    (closed := tmp_path / "closed").mkdir()
    closed.chmod(0)
    if os.access(closed, os.R_OK):
        pytest.skip("root reads everything")
    found = asked(closed)
    closed.chmod(0o700)
    assert found.unreadable == (str(closed),)
    assert isinstance(found.torch, Missing)
    assert found.torch.kind == "denied"


def test_a_place_that_may_not_be_listed_as_it_is_told() -> None:
    found = packages("python 3.11.7 /usr/bin/python3\nunreadable /opt/a b\ntorch none\nend\n")
    assert found.unreadable == ("/opt/a b",)
    assert isinstance(found.torch, Missing)
    assert (found.torch.kind, "/opt/a b" in found.torch.text) == ("denied", True)


def test_without_torch_the_option_is_named() -> None:
    found = packages("python 3.11.7 /usr/bin/python3\ntorch none\nend\n").torch
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"
    assert "/usr/bin/python3" in found.text
    assert "--python" in found.text


def test_an_answer_of_an_earlier_version_does_not_tell() -> None:
    assert packages(PACKAGES).torch == NOT_IN_INPUT
    assert isinstance(packages(TORCH).torch, TorchBuild)


@pytest.mark.parametrize(
    "cuda", ["foo()", "'12.4' if True else None", "12.4", "[]", "b'12.4'", "'"]
)
def test_only_a_literal_of_version_py_is_taken(tmp_path: Path, cuda: str) -> None:
    found = build(torch_at(tmp_path / "a", f"__version__ = '2.5.1'\ncuda = {cuda}\n"))
    assert found.version == "2.5.1"
    assert isinstance(found.cuda, Missing)


def test_a_torch_on_a_later_place_is_told_without_metadata(tmp_path: Path) -> None:
    first, second = torch_at(tmp_path / "a"), torch_at(tmp_path / "b", "__version__ = '2.9.1'\n")
    (second / "torch-2.9.1.dist-info").mkdir()
    found = asked(first, second)
    assert [(one.name, one.version, one.place) for one in found.twice] == [
        ("torch", "2.9.1", str(second))
    ]
    assert [one.version for one in found.packages if one.name == "torch"] == ["2.5.1+cu124"]


def test_two_metadata_of_one_package_in_one_place(tmp_path: Path) -> None:
    place = torch_at(tmp_path / "a")
    for version in ("2.4.0", "2.5.1"):
        (place / f"torch-{version}.dist-info").mkdir()
    found = asked(place)
    assert [one.version for one in found.packages if one.name == "torch"] == ["2.5.1+cu124"]
    assert [one.version for one in found.twice] == ["2.4.0"]
    assert found.packages[-1].place == str(place)


def test_a_folder_without_version_is_broken_where_torch_is_listed(tmp_path: Path) -> None:
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    assert isinstance(asked(tmp_path).torch, Missing)  # a folder that has this name
    (tmp_path / "torch-2.5.1.dist-info").mkdir()
    assert not build(tmp_path).whole
    later = torch_at(tmp_path / "later")
    assert build(tmp_path, later).path == str(later / "torch")


def test_the_nccl_that_torch_s_own_path_leads_to_tells_its_version(tmp_path: Path) -> None:
    entries = [(NEEDED, "libnccl.so.2"), (RPATH, "$ORIGIN/../../nvidia/nccl/lib")]
    place = torch_at(tmp_path / "a", cuda=library(entries))
    assert build(place).nccl_version == NOT_IN_INPUT  # as pip names the file
    lib = place / "nvidia" / "nccl" / "lib"
    (lib / "libnccl.so.2").rename(lib / "libnccl.so.2.23.4")
    (lib / "libnccl.so.2").symlink_to("libnccl.so.2.23.4")
    assert build(place).nccl_version == "2.23.4"
