"""A large file of fio's reports: the facts of the whole, in memory that does not grow."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
from pathlib import Path

import pytest

from preflight.errors import UsageError
from preflight.facts.fio import FioRun
from preflight.model import Raw
from preflight.probes.fio.report import fio
from preflight.transports import fio_sieve, one_file
from tests.fio_text import Row, job, report, side
from tests.peak import PEAK


def at(seconds: int, bins: int = 0) -> str:
    """A report of a run so far, with so many latencies that occurred."""
    moved: Row = side(io_bytes=81920000 * seconds, runtime=seconds * 1000)
    moved["clat_ns"]["bins"] = {str(9000 + one): one % 7 + 1 for one in range(bins)}
    row = job(elapsed=seconds, eta=60 - seconds, read=moved)
    return report(row, job("b", elapsed=seconds, eta=60 - seconds), at_ms=10**12 + 1000 * seconds)


def sieved(path: Path, text: str) -> Raw:
    path.write_text(text, encoding="utf-8")
    raw = fio_sieve.fio_sieved(path, path.name)
    assert raw
    return raw


def runs(raw: Raw) -> tuple[FioRun, ...]:
    return fio(str(raw.stdout)).runs


@pytest.mark.parametrize("block", [1 << 20, 4096, 100, 33])
def test_the_facts_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """However the blocks fall: also within a key, a list of latencies, a beginning."""
    monkeypatch.setattr(fio_sieve, "_BLOCK", block)
    text = f"a warning\n{at(20, 50)}{at(40, 50)}fio: something\n{at(60, 50)}"
    text += report(job("other"), at_ms=2 * 10**12) + at(7, 30)[:-90]
    raw = sieved(tmp_path / "x", text)
    assert runs(raw) == fio(text).runs
    assert len(str(raw.stdout)) < len(text) / 1.5


def test_what_is_packed_and_what_is_cut(tmp_path: Path) -> None:
    text = "".join(at(seconds, 9) for seconds in range(1, 50))
    (tmp_path / "x.gz").write_bytes(gzip.compress(text.encode()))
    raw = fio_sieve.fio_sieved(tmp_path / "x.gz", "x")
    assert raw and runs(raw) == fio(text).runs
    (tmp_path / "y.gz").write_bytes(gzip.compress(text.encode())[:-9])
    raw = fio_sieve.fio_sieved(tmp_path / "y.gz", "x")
    assert raw and raw.truncated
    assert runs(sieved(tmp_path / "x", text[:-300])) == fio(text[:-300]).runs


@pytest.mark.parametrize("text", ["hello\n", "", "\0" * 5000, "<nvidia_smi_log>\n"])
def test_another_file_is_left_to_others(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    assert fio_sieve.fio_sieved(tmp_path / "x", "x") is None
    (tmp_path / "y").write_text(f"{report()}<nvidia_smi_log>\n")
    assert fio_sieve.fio_sieved(tmp_path / "y", "y") is None


def test_one_report_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fio_sieve, "REPORT_BYTES", 1 << 16)
    monkeypatch.setattr(fio_sieve, "_BLOCK", 4096)
    for text in (report(*[job(f"j{number}") for number in range(200)]), at(1, 20_000)[:-900_00]):
        (tmp_path / "x").write_text(text)
        with pytest.raises(UsageError) as raised:
            fio_sieve.fio_sieved(tmp_path / "x", "x")
        assert "--group_reporting" in raised.value.hint


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path, seed = tmp_path / "large.json", random.Random(1)
    with path.open("w") as file:
        for seconds in range(1, 60):
            file.write(at(seconds, seed.randint(18_000, 22_000)))
    assert path.stat().st_size > 24 << 20
    code = f"{PEAK}\nfrom pathlib import Path\nfrom preflight.transports import one_file\n"
    code += f"raws = one_file.answers_of(Path({str(path)!r}), 'x')\n"
    code += "print(raws[0].probe, peak_kib())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    probe, kib = told.stdout.split()
    assert probe == "fio"
    assert int(kib) < 80 << 10
    [raw] = one_file.answers_of(path, "x")
    assert isinstance(raw, Raw)
    assert len(str(raw.stdout)) < 1 << 17
