"""Captures: written and read back, cut, damaged, oversized, on a full disk."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight import __version__, capture
from preflight.capture import Captured, Reader, Writer, is_capture, read
from preflight.errors import PreflightError, UsageError
from preflight.model import Missing, Raw
from preflight.unpack import unpacked
from tests.conftest import sample
from tests.peak import PEAK

XML = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
FULL = Raw(
    "node-07", "nvidia-smi", ("nvidia-smi", "-q", "-x"), None, "out é\n", "err\x00", "2026-01-02",
    1.25, True, Missing("timeout", "60 s"), "x.txt", 3, 30.0,
)  # fmt: skip


def raws_of(host: str, count: int = 2) -> list[Raw]:
    return [Raw(host, f"probe-{n}", ("ask", str(n)), stdout=f"{host} {n}\n") for n in range(count)]


def written(path: Path, *hosts: str) -> Path:
    with Writer(path, argv=["preflight", "capture"]) as writer:
        for host in hosts:
            writer.write(raws_of(host))
    return path


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def test_every_field_survives(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    with Writer(path) as writer:
        writer.write([FULL, Raw("node-07", "empty")])
    assert read(path).raws == [FULL, Raw("node-07", "empty")]
    assert read(path).damage is None
    # A field added to Raw must be stored too: every one of FULL's differs from its default.
    plain = Raw("", "")
    assert all(getattr(FULL, name) != getattr(plain, name) for name in Raw.__struct_fields__)


def test_the_form(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    argv = ["preflight", "capture", "na\udcefve"]
    with Writer(path, argv, created_at="2026-01-02T03:04:05Z") as writer:
        writer.write(FULL)
    header, answer, end = map(json.loads, lines_of(path))
    assert header == {
        "schema": "preflight.capture/1",
        "preflight": __version__,
        "created_at": "2026-01-02T03:04:05Z",
        "argv": ["preflight", "capture", "na\\udcefve"],
        "ends": True,
    }
    assert end == {"answers": 1}
    assert answer["host"] == "node-07"
    assert answer["rc"] is None
    assert answer["missing"] == {"kind": "timeout", "text": "60 s"}
    assert read(path).created_at == "2026-01-02T03:04:05Z"


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for name in ("a.capture.gz", "b.capture.gz"):
        with Writer(tmp_path / name, created_at="2026-01-02T03:04:05Z") as writer:
            writer.write(raws_of("a"))
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]


def test_created_at_is_now_in_utc(tmp_path: Path) -> None:
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    created = read(written(tmp_path / "x.gz", "a")).created_at
    assert before <= created <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@pytest.mark.parametrize(
    ("output", "stored", "back"),
    [
        (b"\xff\x00\xfe", {"base64": "/wD+"}, b"\xff\x00\xfe"),
        (b"plain", "plain", "plain"),
        (b"h\xc3\xb6\xed\xa0\xbd", {"base64": "aMO27aC9"}, b"h\xc3\xb6\xed\xa0\xbd"),
        ("undecodable \udcff", {"base64": "dW5kZWNvZGFibGUg7bO/"}, b"undecodable \xed\xb3\xbf"),
    ],
)  # fmt: skip
def test_output_that_is_no_text(output: bytes | str, stored: object, back: bytes | str) -> None:
    line = capture.encode(Raw("a", "p", stdout=output, stderr=output))
    assert json.loads(line)["stdout"] == json.loads(line)["stderr"] == stored
    assert capture.decode(line).stdout == capture.decode(line).stderr == back


@given(st.binary(), st.text(), st.lists(st.text()), st.one_of(st.none(), st.integers(0, 255)))
def test_any_answer_survives(out: bytes, err: str, argv: list[str], rc: int | None) -> None:
    back = capture.decode(capture.encode(Raw("a", "p", tuple(argv), rc, out, err)))
    text = back.stdout if isinstance(back.stdout, bytes) else back.stdout.encode()
    assert (text, back.stderr, back.argv, back.rc) == (out, err, tuple(argv), rc)


def test_plain_lines_are_read_too(tmp_path: Path) -> None:
    plain = tmp_path / "edited.jsonl"
    plain.write_bytes(b"".join(lines_of(written(tmp_path / "x.gz", "a", "b"))) + b"\n  \n")
    assert read(plain) == Captured(read(tmp_path / "x.gz").raws, read(plain).created_at, None)
    assert read(plain.read_bytes()).raws == raws_of("a") + raws_of("b")


def test_captures_put_together_are_a_capture(tmp_path: Path) -> None:
    one, two = (written(tmp_path / name, name).read_bytes() for name in ("a", "b"))
    assert read(one + two) == Captured(raws_of("a") + raws_of("b"), read(one).created_at, None)
    assert read(one + b"\0" * 100_000).damage is None  # a tape's or a disk's padding


def test_an_answer_is_there_while_others_are_awaited(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.capture.gz") as writer:
        writer.write(raws_of("a"))
        [part] = tmp_path.iterdir()
        assert part.name.startswith(".x.capture.gz.")
        assert read(part).raws == raws_of("a")
        assert read(part).damage == "cut short after line 3"
    assert [path.name for path in tmp_path.iterdir()] == ["x.capture.gz"]


def test_it_has_the_rights_of_any_other_file(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        assert written(tmp_path / "x.gz", "a").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(old)


def test_cut_anywhere_it_reads_to_the_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    with Writer(path) as writer:
        for host in "abc":
            writer.write([Raw(host, "nvidia-smi", stdout=XML + host), Raw(host, "dmesg")])
    whole, raws = path.read_bytes(), read(path).raws
    cuts = random.Random(1).sample(range(400, len(whole)), 60)
    seen = set()
    for cut in (*cuts, len(whole) - 1, len(whole) - 8):
        captured = read(whole[:cut])
        assert captured.raws == raws[: len(captured.raws)]
        # The last line, which says that the capture ends, may be whole already.
        told = {f"cut short after line {len(captured.raws) + more}" for more in (1, 2)}
        assert captured.damage in told
        seen.add(len(captured.raws))
    assert {0, 2, 4, 6} <= seen


def test_a_cut_line_of_a_plain_file() -> None:
    header = b'{"schema":"preflight.capture/1"}\n'
    lines = header + b"".join(capture.encode(raw) for raw in raws_of("a"))
    assert read(lines[:-1]) == Captured(raws_of("a"), "", None)  # only its line end is missing
    assert read(lines[:-3]) == Captured(raws_of("a")[:1], "", "cut short after line 2")
    assert read(header) == Captured([], "", None)


def test_a_plain_file_cut_at_the_end_of_a_line_is_cut_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    with Writer(path) as writer:
        writer.write(raws_of("a", 3))
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    assert read(b"".join(lines)).damage is None
    for keep in range(1, len(lines)):
        assert read(b"".join(lines[:keep])).damage == f"cut short after line {keep}"


def test_bad_lines_are_left_out_and_told() -> None:
    header = b'{"schema":"preflight.capture/1"}\n'
    good = [capture.encode(raw) for raw in raws_of("a", 3)]
    bad = b'{"host":"a","probe":7}\n'
    captured = read(header + good[0] + bad + good[1] + b"\xff\n" + good[2])
    assert captured.raws == raws_of("a", 3)
    assert captured.damage is not None
    assert captured.damage.startswith("line 3 is not an answer (")
    assert "; line 5 is not an answer (" in captured.damage
    damage = read(header + bad * 100).damage or ""
    assert damage.endswith("; and 95 lines more")
    assert damage.count("is not an answer") == 5


def test_a_line_that_nests_deep_is_a_bad_line() -> None:
    deep = b'{"host":"a","probe":"p","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    captured = read(b'{"schema":"preflight.capture/1"}\n' + deep + capture.encode(Raw("a", "p")))
    assert captured.raws == [Raw("a", "p")]
    assert "line 2" in (captured.damage or "")


def test_fields_of_a_later_version_are_ignored() -> None:
    line = b'{"schema":"preflight.capture/1","new":1}\n{"host":"a","probe":"p","new":[1]}\n'
    assert read(line) == Captured([Raw("a", "p")], "", None)


def test_damage_within_the_stream(tmp_path: Path) -> None:
    packed = bytearray(written(tmp_path / "x.gz", *"abcdefgh").read_bytes())
    packed[-8] ^= 0xFF  # the check sum
    captured = read(bytes(packed))
    assert len(captured.raws) == 16
    assert (captured.damage or "").startswith("damaged (CRC check failed")
    assert "after line 18" in (captured.damage or "")


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    header = b'{"schema":"preflight.capture/1"}\n'
    answer = capture.encode(Raw("a", "p"))
    bomb = gzip.compress(header + answer + answer + b" " * 20_000_000 + b"\n", mtime=0)
    assert read(bomb).damage is None
    monkeypatch.setattr(capture, "MAX_BYTES", 1_000_000)
    assert read(bomb).raws == [Raw("a", "p")] * 2
    assert read(bomb).damage == "read no further: too large when unpacked, cut after line 3"
    monkeypatch.setattr(capture, "MAX_BYTES", 1 << 30)
    monkeypatch.setattr(capture, "MAX_LINE_BYTES", 1_000)
    assert read(bomb).raws == [Raw("a", "p")] * 2
    assert read(bomb).damage == "read no further: a line is too long, cut after line 3"


def test_memory_is_that_of_a_line_not_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    with Writer(path) as writer:
        for number in range(300):
            writer.write([Raw(f"node-{number}", "dmesg", stdout="x" * 1_000_000)])
    count = (
        f"{PEAK}import sys; from preflight.capture import Reader\n"
        "before = peak_kib()\n"
        "print(sum(len(raw.stdout) for raw in Reader(sys.argv[1])))\n"
        "print(peak_kib() - before)\n"
    )
    argv = [sys.executable, "-c", count, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    length, grown_kib = map(int, done.stdout.split())
    assert length == 300_000_000
    assert grown_kib < 50_000


def test_a_thousand_captures_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    with Writer(path) as writer:
        writer.write([Raw("a", "nvidia-smi", stdout=XML * 4)])
    assert len(XML * 4) > 350_000
    began = time.process_time()
    assert sum(len(raw.stdout) for _ in range(1000) for raw in Reader(path)) == len(XML) * 4000
    assert time.process_time() - began < 10  # measured: 1.1 s


def test_what_is_no_capture(tmp_path: Path) -> None:
    for data in (b"", b"x", b"{}\n", b'{"schema": "preflight.report/1"}', gzip.compress(b"x"),
                 b"\x1f\x8b", b"\x1f\x8b\x08junk", b"[" * 200_000):  # fmt: skip
        assert not is_capture(data)
        with pytest.raises(UsageError, match="is not a capture") as raised:
            read(data)
        assert raised.value.hint
    with pytest.raises(UsageError, match=r"none\.gz cannot be read: No such file"):
        Reader(tmp_path / "none.gz")
    with pytest.raises(UsageError, match="Is a directory"):
        is_capture(tmp_path)


def test_a_later_form_says_so() -> None:
    data = b'{"schema":"preflight.capture/2"}\n'
    assert is_capture(data)
    with pytest.raises(UsageError, match=r"y\.gz has the form preflight\.capture/2; this version"):
        Reader(data, "y.gz")


def test_an_exception_keeps_what_was_collected(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Writer(tmp_path / "x.gz") as writer:
        writer.write(raws_of("a"))
        raise KeyboardInterrupt
    assert read(tmp_path / "x.gz") == Captured(
        raws_of("a"), read(tmp_path / "x.gz").created_at, None
    )


def test_an_exception_before_the_first_answer_leaves_what_was_there(tmp_path: Path) -> None:
    before = written(tmp_path / "x.gz", "a").read_bytes()
    with pytest.raises(ZeroDivisionError), Writer(tmp_path / "x.gz"):
        raise ZeroDivisionError
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_no_answer_at_all_is_a_capture_too(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.gz"):
        pass
    assert read(tmp_path / "x.gz").raws == []
    assert read(tmp_path / "x.gz").damage is None


def test_an_interrupt_in_the_midst_of_writing_leaves_whole_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def __init__(self, engine: object) -> None:
            self.engine, self.calls = engine, 0

        def compress(self, data: bytes) -> bytes:
            packed: bytes = self.engine.compress(data)  # type: ignore[attr-defined]
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return packed

        def flush(self, mode: int) -> bytes:
            flushed: bytes = self.engine.flush(mode)  # type: ignore[attr-defined]
            return flushed

    real = zlib.compressobj
    monkeypatch.setattr(zlib, "compressobj", lambda *args: Interrupted(real(*args)))
    with pytest.raises(KeyboardInterrupt), Writer(tmp_path / "x.gz") as writer:
        writer.write(raws_of("a"))
        writer.write(raws_of("b"))
    assert read(tmp_path / "x.gz").raws == raws_of("a")
    assert read(tmp_path / "x.gz").damage == "cut short after line 3"


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """Files take no more bytes than this: as a full disk, in the middle of a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def noise(host: str, size: int) -> Raw:
    return Raw(host, "dmesg", stdout=random.Random(host).randbytes(size))


def test_a_full_disk_keeps_the_whole_hosts(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    with (
        disk_of(100_000),
        pytest.raises(PreflightError, match=r"x\.gz: .*; its first 1 answers kept$") as raised,
        Writer(path) as writer,
    ):
        writer.write([noise("a", 40_000)])
        writer.write([noise("b", 200_000)])
    assert "df -h" in raised.value.hint
    assert not isinstance(raised.value, UsageError)
    assert [one.name for one in tmp_path.iterdir()] == ["x.gz"]
    assert read(path).raws == [noise("a", 40_000)]
    assert read(path).damage == "cut short after line 2"


def test_a_full_disk_is_told_once_and_the_report_goes_on(tmp_path: Path) -> None:
    with disk_of(100_000), Writer(tmp_path / "x.gz") as writer:
        writer.write([noise("a", 40_000)])
        with pytest.raises(PreflightError):
            writer.write([noise("b", 200_000)])
        with pytest.raises(PreflightError):
            writer.write([noise("c", 10)])
    assert [raw.host for raw in Reader(tmp_path / "x.gz")] == ["a"]


def test_a_full_disk_before_the_first_answer_leaves_what_was_there(tmp_path: Path) -> None:
    before = written(tmp_path / "x.gz", "a").read_bytes()
    with (
        disk_of(1_000),
        pytest.raises(PreflightError, match="nothing kept"),
        Writer(tmp_path / "x.gz") as writer,
    ):
        writer.write([noise("b", 200_000)])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_a_disk_that_is_full_only_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(PreflightError, match="No space left on device; its first 2 answers kept"),
        Writer(tmp_path / "x.gz") as writer,
    ):
        writer.write(raws_of("a"))
    assert read(tmp_path / "x.gz").raws == raws_of("a")


def test_where_no_file_can_be_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory") as raised:
        Writer(tmp_path / "none" / "x.gz").__enter__()
    assert raised.value.hint == f"mkdir -p {tmp_path / 'none'}"
    with pytest.raises(UsageError, match="is not a file"):
        Writer(tmp_path).__enter__()
    with pytest.raises(UsageError, match="is not a file"):
        Writer("/dev/null").__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.gz").symlink_to(tmp_path / "real.gz")
    written(tmp_path / "link.gz", "a")
    assert (tmp_path / "link.gz").is_symlink()
    assert read(tmp_path / "real.gz").raws == raws_of("a")


def test_unpacked_is_bounded() -> None:
    packed = gzip.compress(b"a" * 1_000_000)
    assert unpacked(packed, 1_000_000) == (b"a" * 1_000_000, "")
    data, cause = unpacked(packed, 999_999)
    assert (data, cause) == (b"a" * 999_999, "read no further: too large when unpacked, cut")
    assert unpacked(packed[:-9], 1_000_000)[1] == "cut short"


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.gz") as one, Writer(tmp_path / "x.gz") as two:
        one.write(raws_of("a"))
        two.write(raws_of("b"))
    assert read(tmp_path / "x.gz").raws in (raws_of("a"), raws_of("b"))
