"""A file of the user's data: how fast a core decodes it, and whether it is whole."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.facts.shard import Shard
from preflight.model import Missing
from preflight.payload.storage.decoders import decoders
from preflight.probes.shard import shard
from preflight.reports.shard import shard_tables
from tests.cli.command import preflight
from tests.conftest import require
from tests.shard_text import decoder
from tests.shard_text import shard as told

_WORDS = ["data", "wait", "rank", "loss", "node", "link"]


def _records(count: int = 4000) -> bytes:
    chosen = random.Random(7)
    lines = [json.dumps({"id": at, "text": chosen.choices(_WORDS, k=40)}) for at in range(count)]
    return ("\n".join(lines) + "\n").encode()


def _piped(*argv: str) -> Callable[[bytes], bytes]:
    return lambda data: subprocess.run(argv, input=data, capture_output=True, check=True).stdout


FORMATS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress,
    "zstd": _piped("zstd", "-qc"), "lz4": _piped("lz4", "-qc"),
}  # fmt: skip


def _needs(form: str) -> None:
    if form in ("zstd", "lz4"):
        require(form, shutil.which(form) is not None)


def _all(form: str, data: bytes) -> list[bytes]:
    return [b"".join(piece for _, piece in one.decode(data)) for one in decoders(form)]


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_decoded_over_several_streams_and_padding(form: str) -> None:
    _needs(form)
    data = _records()
    packed = FORMATS[form](data)
    found = _all(form, packed + packed)
    assert found
    assert all(one == data + data for one in found)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_cut_is_told(form: str, tmp_path: Path) -> None:
    _needs(form)
    packed = FORMATS[form](_records())
    (tmp_path / "cut").write_bytes(packed[: len(packed) * 2 // 3])
    ran = preflight("io-bench", "--shard", str(tmp_path / "cut"))
    assert ran.rc == 1, ran.err
    assert "shard.decodes" in ran.out
    assert "the file is cut" in " ".join(ran.out.split())


def test_a_file_is_timed_and_the_workers_for_the_demand_are_told(tmp_path: Path) -> None:
    data = _records(20000)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(data, 1))
    before = (tmp_path / "a.jsonl.gz").stat()
    ran = preflight("io-bench", "--shard", str(tmp_path / "a.jsonl.gz"), "--demand-mbps", "1",
                    "--format", "json", "--save", str(tmp_path / "a.capture.gz"))  # fmt: skip
    assert ran.rc == 0, ran.err
    [table] = json.loads(ran.out)["measurements"]
    [numbers] = table["numbers"].values()
    assert numbers["times"] == pytest.approx(len(data) / before.st_size)
    assert numbers["decoded_mbps"] > 1
    assert numbers["json_mbps"] > 1
    assert numbers["workers"] == 1
    after = (tmp_path / "a.jsonl.gz").stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.capture.gz", "a.jsonl.gz"]
    again = preflight("io-bench", "--from", str(tmp_path / "a.capture.gz"), "--format", "json")
    assert json.loads(again.out)["measurements"] == [table]


@pytest.mark.parametrize(
    ("name", "why"),
    [("none", "No such file"), ("", "Is a directory"), ("pipe", "no plain file"),
     ("empty", "empty"), ("/dev/zero", "no plain file")],
)  # fmt: skip
def test_what_is_no_file_of_data_is_refused_at_once(tmp_path: Path, name: str, why: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    ran = preflight("io-bench", "--shard", str(tmp_path / name))
    assert ran.rc == 3
    assert why in " ".join(ran.out.split())


@pytest.mark.parametrize(
    "wrong",
    [("--shard", "x", "--dir", "/tmp"), ("--shard", "x", "--model-params", "7e9"),
     ("--shard", ""), ("--shard", "x", "--demand-mbps", "0"),
     ("--shard", "x", "--demand-mbps", "nan"), ("--shard", "x", "--from", "y")],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(wrong: tuple[str, ...]) -> None:
    ran = preflight("io-bench", *wrong)
    assert ran.rc == 2
    assert "hint:" in ran.err


def _read(text: str) -> Shard:
    [found] = shard(text).shards
    return found


def test_workers_are_those_of_the_fastest_decoder_and_count_the_records() -> None:
    slow, fast = decoder("a", cpu_s=2.0), decoder("b", json_bytes=100_000_000, json_s=1.0)
    found = _read(told(slow, fast, demand_mbps=800.0))
    # 100 MB/s; and 500 to decode, 100 as records: 83.
    assert [one.workers for one in found.decoders] == [8, 10]
    assert found.workers == 8


def test_what_nothing_here_decodes_is_not_whole_and_says_what_to_install() -> None:
    text = told(format="zstd").replace('{"kind": "decoder"', '{"kind": "other"')
    found = _read(text)
    assert isinstance(found.decodes, Missing)
    assert found.decodes.kind == "no-tool"
    assert "pip install zstandard" in found.decodes.text


def test_hdf5_is_told_with_its_locks_where_hosts_share_the_file() -> None:
    def notes(**more: Any) -> str:
        from preflight.facts.host import Host

        text = told(format="hdf5", **more).replace('{"kind": "decoder"', '{"kind": "other"')
        [table] = shard_tables(Host("n1", shards=shard(text).shards))
        return " ".join(table["notes"])

    assert "HDF5_USE_FILE_LOCKING" in notes()
    assert "HDF5_USE_FILE_LOCKING" not in notes(shared=False, fs="ext4")
    assert "after the fork" in notes(shared=False)


@pytest.mark.parametrize("form", FORMATS)
def test_rubbish_behind_the_streams_is_damage_and_zeros_are_not(form: str, tmp_path: Path) -> None:
    _needs(form)
    packed = FORMATS[form](_records(200))
    decode = decoders(form)[0].decode
    if not decoders(form)[0].program:
        assert b"".join(piece for _, piece in decode(packed + bytes(64))) == _records(200)
    (tmp_path / "a").write_bytes(packed + b"rubbish of somebody else")
    ran = preflight("io-bench", "--shard", str(tmp_path / "a"))
    assert ran.rc == 1, ran.out
    assert "shard.decodes" in ran.out


def test_a_file_of_which_nothing_comes_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b""))
    ran = preflight("io-bench", "--shard", str(tmp_path / "a.gz"))
    assert ran.rc == 1
    assert "0 bytes" in " ".join(ran.out.split())


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_that_is_no_json_is_named(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = _records(2000).splitlines(keepends=True)
    lines[16] = b'{"id": 16, "text": [\n'
    (tmp_path / "a").write_bytes(pack(b"".join(lines)))
    ran = preflight("io-bench", "--shard", str(tmp_path / "a"))
    assert ran.rc == 1, ran.out
    assert "line 17 is no JSON; 1 of the 2000" in " ".join(ran.out.split())


def test_a_sample_is_told_to_be_one_and_advice_is_of_what_takes_the_time() -> None:
    found = _read(told(decoder(json_bytes=10**8, json_s=10.0), size_bytes=10 << 30))
    assert found.decoded == "the first 64 MiB of 10 GiB"
    assert found.workers_said == "most of it is json.loads"
