"""Files made to harm whoever reads them: told in a word, and nothing of them is done."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.checkpoint_files import names, scanned, verified
from tests.peak import PEAK


class Harm:
    """Pickled it is a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def test_a_pickle_that_would_run_a_command_does_not(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    torch.save({"model": {"w": torch.ones(3)}, "x": Harm(sign)}, tmp_path / "a.pt")
    torch.save({"w": torch.ones(3), "x": Harm(sign)}, tmp_path / "old.pt",
               _use_new_zipfile_serialization=False)  # fmt: skip
    (tmp_path / "states.pkl").write_bytes(pickle.dumps(Harm(sign)))
    (tmp_path / "step-1").mkdir()
    (tmp_path / "step-1" / ".metadata").write_bytes(pickle.dumps(Harm(sign)))
    found = verified(tmp_path)
    assert [one.finding for one in found.findings].count("checkpoint.hostile") == 4
    assert "posix.system" in found.findings[0].text
    assert not sign.exists()
    pickle.loads((tmp_path / "states.pkl").read_bytes())
    assert sign.exists()  # it would have


def archive(path: Path, members: dict[str, bytes], packed: bool = False) -> Path:
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def test_archives_that_lie_are_refused(tmp_path: Path) -> None:
    archive(tmp_path / "bomb.pt", {"a/data.pkl": bytes(50 << 20)}, packed=True)
    archive(tmp_path / "out.pt", {"a/data.pkl": pickle.dumps({}), "a/../../x": b"x"})
    archive(tmp_path / "root.pt", {"a/data.pkl": pickle.dumps({}), "/etc/x": b"x"})
    both = archive(tmp_path / "over.pt", {"a/data.pkl": pickle.dumps({}), "a/data/0": b"x" * 99})
    data = bytearray(both.read_bytes())
    second = data.rfind(b"PK\x01\x02")
    first = data.find(b"PK\x01\x02")
    data[first + 20 : first + 28] = struct.pack("<II", 5000, 5000)
    data[second + 42 : second + 46] = struct.pack("<I", 10)
    both.write_bytes(data)
    assert set(names(verified(tmp_path))) == {"hostile", "damaged"}
    assert names(verified(tmp_path / "bomb.pt")) == ["hostile"]
    assert names(verified(tmp_path / "out.pt")) == ["hostile"]
    assert names(verified(tmp_path / "root.pt")) == ["hostile"]
    assert names(verified(both)) == ["damaged"]


PICKLES = {
    "deep": b"\x80\x04)" + b"\x85" * 200_000 + b"}\x94h\x00.",
    "a deep key": b"\x80\x04})" + b"\x85" * 200_000 + b"Ns.",
    "doubling": b"\x80\x04]" + b"".join(b"\x94](h%ch%ce" % (at, at) for at in range(60)) + b".",
    "itself": b"\x80\x04]\x94h\x00a.",
    "a long number": b"I" + b"9" * 2_000_000 + b"\n.",
    "no stack": b"\x80\x04RRR.",
    "an extension": b"\x80\x04\x82\x01.",
    "cut": b"\x80\x04X\xff\xff\xff\x7fabc",
    "a memo that is not there": b"\x80\x04h\x07.",
}


@pytest.mark.parametrize("kind", PICKLES)
def test_no_pickle_hangs_or_ends_the_scan(tmp_path: Path, kind: str) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "good.pt")
    (tmp_path / "rng_state.pth").write_bytes(PICKLES[kind])
    archive(tmp_path / "bad.pt", {"a/data.pkl": PICKLES[kind], "a/version": b"3"})
    scan = scanned(tmp_path)[0]
    assert scan.whole
    assert len(scan.files) == 3
    assert verified(tmp_path / "good.pt").judged[0].finding.finding == "checkpoint.weights-only"


def test_links_are_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "run", tmp_path / "elsewhere.safetensors"
    inside.mkdir()
    outside.write_bytes(b"secret")
    (inside / "model.safetensors").symlink_to(outside)
    os.mkfifo(inside / "pipe.pt")
    found = verified(inside)
    assert names(found) == ["unknown"]
    assert "was not followed" in found.findings[0].text
    assert found.judged[0].found.files["model.safetensors"].checked_bytes == 0
    outside.unlink()
    assert names(verified(inside)) == ["incomplete"]


def test_text_that_is_no_checkpoint_ends_in_a_word(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text("[" * 200_000)
    (tmp_path / "a.safetensors").write_text("\x1b[31m" * 5000)
    (tmp_path / "b.bin").write_bytes(os.urandom(5000))
    found = verified(tmp_path)
    assert names(found) == ["damaged"]


SCAN = """
import sys
from preflight.payload.checkpoint.harness import harness
from preflight.payload.checkpoint.plan import Plan
harness(Plan((sys.argv[1],), sample_bytes=100_000_000), lambda line: None)
print(peak_kib())
"""


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """Sparse: five gigabytes that take no room."""
    path = tmp_path / "model.safetensors"
    size = 5_000_000_000
    head = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (size // 4, size)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.truncate(8 + len(head) + size)
    done = subprocess.run(
        [sys.executable, "-c", PEAK + SCAN, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 200_000  # KiB
