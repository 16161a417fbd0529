"""Traces as they are found: damaged, cut, in other layouts. What can be read counts, the rest is
told."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.errors import ParseError, PreflightError
from preflight.traces import kineto, stream, timeline
from tests.conftest import sample_bytes
from tests.traces.built import document, flat, launched, read_bytes, step

REAL = gzip.decompress(sample_bytes("kineto/sampled_rank0.json.gz"))
EVENTS: list[dict[str, Any]] = json.loads(REAL)["traceEvents"]
ROOT = {key: value for key, value in json.loads(REAL).items() if key != "traceEvents"}
SOUND_US = [278680.0, 268976.0]  # busy in its two steps


def every(n: int, begin: bytes, into: bytes, text: bytes = REAL) -> bytes:
    """Each nth place replaced."""
    pieces = text.split(begin)
    return b"".join(
        piece + ((into if at % n == 0 else begin) if at < len(pieces) - 1 else b"")
        for at, piece in enumerate(pieces)
    )


#: What is done to the real trace -> what is said of it. All of it can be mended.
MENDED: dict[str, tuple[bytes, str]] = {
    "indented": (json.dumps(json.loads(REAL), indent=4).encode(), ""),
    "compact": (json.dumps(json.loads(REAL), separators=(",", ":")).encode(), ""),
    "an array": (json.dumps(EVENTS).encode(), ""),
    "rank after the events": (json.dumps({"traceEvents": EVENTS, **ROOT}).encode(), ""),
    "all of it after damaged events": (every(7, b'"queued": 0', b'"queued": N/A', json.dumps({
        "traceEvents": EVENTS, "deviceProperties": [{"id": n, "name": "H100"} for n in range(8)],
        **ROOT}).encode()), "mended"),
    "the last event damaged": (json.dumps({"traceEvents": [*EVENTS, {"ph": "i", "ts": 1.5}],
        **ROOT}).encode().replace(b"1.5", b'1.5, "x": "a "b" c"'), "mended"),
    "far in": (json.dumps({"a": {"b": [{"c": "traceEvents"}] * 50_000}, **ROOT,
                           "traceEvents": EVENTS}).encode(), ""),
    "within another": (json.dumps({"data": {"traceEvents": EVENTS}, **ROOT}).encode(), ""),
    "byte order mark": (b"\xef\xbb\xbf" + REAL, ""),
    "bare N/A": (every(7, b'"queued": 0', b'"queued": N/A'), "mended"),
    "bare nan": (every(9, b'"est. achieved occupancy %": 0', b'"x": -nan'), "mended"),
    "NaN and Infinity": (REAL.replace(b'"shared memory": 0', b'"shared memory":NaN').replace(
        b'"memory bandwidth (GB/s)": 0.', b'"y": -Infinity, "z": 0.'), "mended"),
    "bad UTF-8": (every(50, b'"name": "', b'"name": "\xff\xc3('), "mended"),
    "control characters": (every(60, b'"name": "', b'"name": "\x01\n\t'), "mended"),
    "quotes within names": (every(200, b'"name": "', b'"name": "a "b", "c" '), "mended"),
    "a wrong escape": (every(300, b'"name": "', b'"name": "C:\\Users\\'), "mended"),
    "trailing commas": (every(100, b'}}, {', b',},}, {').replace(b"]}", b",]}"), "mended"),
    "times as texts": (re.sub(rb'"(ts|dur)": ([\d.]+)', rb'"\1": "\2"', REAL), ""),
    "no commas": (every(500, b'}}, {"ph"', b'}} {"ph"'), "mended"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MENDED)
def test_what_can_be_mended_is_and_the_sums_are_right(kind: str, tmp_path: Path) -> None:
    text, told = MENDED[kind]
    trace = read_bytes(tmp_path, text, "trace_rank0.json")
    assert [one.busy_us for one in trace.steps] == pytest.approx(SOUND_US)
    assert (trace.rank, trace.lost_events, trace.truncated) == (0, 0, False)
    assert told in " ".join(trace.damage)
    assert bool(trace.damage) == bool(told)


@pytest.mark.parametrize("kind", MENDED)
def test_it_is_the_same_wherever_the_pieces_that_are_read_end(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = MENDED[kind]
    once = read_bytes(tmp_path, text)
    monkeypatch.setattr(stream, "CHUNK_BYTES", 40_007)
    pieces = read_bytes(tmp_path, text)
    assert (pieces.steps, pieces.events, pieces.rank) == (once.steps, once.events, once.rank)
    assert (pieces.lost_events, pieces.truncated) == (0, False)


@pytest.mark.parametrize("size", [1, 7, 100, 333, 1000])
def test_pieces_may_be_smaller_than_an_event(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [step(1, 0, 900), *(launched("gemm", 10 * n, 10 * n, 5) for n in range(10))]
    text = json.dumps({"traceEvents": flat(events), "distributedInfo": {"rank": 4}}).encode()
    monkeypatch.setattr(stream, "CHUNK_BYTES", size)
    trace = read_bytes(tmp_path, text)
    assert (trace.events, trace.rank, trace.damage) == (21, 4, ())
    assert trace.steps[0].busy_us == 50


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_that_is_cut_tells_it(tmp_path: Path, packed: bool) -> None:
    whole = gzip.compress(REAL) if packed else REAL
    trace = read_bytes(tmp_path, whole[: len(whole) * 3 // 4])
    assert trace.truncated
    assert 0.5 * len(EVENTS) < trace.events < 0.9 * len(EVENTS)
    assert "its end is missing" in " ".join(trace.damage)
    assert ("cut short" in " ".join(trace.damage)) == packed


def test_a_cut_anywhere_loses_at_most_an_event(tmp_path: Path) -> None:
    text = json.dumps(document([step(1, 0, 900), *(
        launched("gemm", 10 * n, 10 * n, 5) for n in range(20))])).encode()  # fmt: skip
    begin = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    counts = [text[begin:end].count(b"}}, {") for end in range(begin, len(text))]
    for end in range(text.index(b"}}, {") + 5, len(text), 7):
        trace = read_bytes(tmp_path, text[:end])
        assert trace.events >= counts[end - begin]
        assert trace.events + trace.lost_events <= counts[end - begin] + 1
        assert trace.truncated or end >= len(text) - 1


def test_what_cannot_be_mended_is_counted(tmp_path: Path) -> None:
    sound = [json.dumps(one) for one in launched("gemm", 0, 0, 5)]
    bad = ['{"ph": "X", "name": "x", "ts": }', '{"name": "no time"', "17"]
    text = '{"traceEvents": [' + ", ".join([sound[0], *bad, sound[1]]) + "]}"
    trace = read_bytes(tmp_path, text.encode())
    assert trace.has_device
    assert trace.lost_events >= 1
    assert "could not be read" in " ".join(trace.damage)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[", b"null", b"\0" * 5000, b'{"a": 1}', b"just words\n" * 50,
        gzip.compress(b""), gzip.compress(b"\0" * 50_000_000), b"\x1f\x8b" + b"\xff" * 100,
        b'{"traceEvent": [' + b"{}," * 100 + b"]}",
    ],
    ids=range(11),
)  # fmt: skip
def test_no_trace_is_an_error_that_says_so(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(ParseError, match=r"traceEvents|before its first event"):
        read_bytes(tmp_path, text)


@pytest.mark.parametrize("text", [b'{"traceEvents": []}', b'{"traceEvents":[], "x": 1}', b"[]"])
def test_a_trace_of_metadata_alone_has_no_steps(tmp_path: Path, text: bytes) -> None:
    trace = read_bytes(tmp_path, text)
    assert (trace.events, trace.steps, trace.truncated) == (0, (), False)
    assert {"steps", "kernels", "operators"} <= set(trace.lacks)


def deep(opening: bytes, closing: bytes) -> bytes:
    return opening * 200_000 + b"1" + closing * 200_000


#: What somebody could put into an event.
HOSTILE = {
    "deep lists": b'"x": ' + deep(b"[", b"]"),
    "deep objects": b'"x": ' + deep(b'{"a":', b"}"),
    "a long text": b'"x": "' + b"y" * 9_000_000 + b'"',
    "braces in a text": b'"x": "' + b'}, {"ph": ' * 100_000 + b'"',
    "braces that open": b'"x": "' + b"{[" * 500_000 + b'"',
    "a huge number": b'"x": ' + b"9" * 400_000,
    "a huge process": b'"pid": ' + b"9" * 50_000,
    "a huge argument": b'"args": {"correlation": ' + b"9" * 50_000 + b"}",
    "a huge time, and no colon": b'"ts": ' + b"9" * 12_000 + b', "x" 5',
    "a huge exponent": b'"ts": 1e999999',
    "a huge time": b'"ts": 9223372036854775808123',
    "a huge correlation": b'"args": {"correlation": 99999999999999999999999999}',
    "another type": b'"args": [1, 2], "pid": {"a": 1}, "name": 7',
    "a surrogate": b'"name": "\\ud800"',
    "no time": b'"ts": null',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_event_costs_at_most_itself(kind: str, tmp_path: Path) -> None:
    sound = [json.dumps(one).encode() for one in (step(1, 0, 100), *launched("gemm", 0, 0, 60))]
    bad = b'{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 5, "dur": 1, ' + HOSTILE[kind] + b"}"
    trace = read_bytes(
        tmp_path, b'{"traceEvents": [' + b", ".join([*sound[:2], bad, sound[2]]) + b"]}"
    )
    assert trace.steps[0].busy_us == 60
    assert trace.events in (3, 4) or kind == "braces in a text"


def test_names_without_end_are_not_remembered_whole(tmp_path: Path) -> None:
    trace = read_bytes(tmp_path, json.dumps(document([
        step(1, 0, 100), launched("k" * 3_000_000, 0, 0, 60)])).encode())  # fmt: skip
    assert len(trace.kernels[0].name) == 300


def test_an_endless_event_ends_in_a_word(tmp_path: Path) -> None:
    text = b'{"traceEvents": [{"ph": "X", "name": "' + b"a" * 40_000_000
    with pytest.raises(ParseError, match=r"none of its .* events can be read"):
        read_bytes(tmp_path, gzip.compress(text, 1), "x.json.gz")


def changed(draw: random.Random, text: bytes) -> bytes:
    """A few bytes anywhere."""
    data = bytearray(text)
    for _ in range(draw.randint(1, 12)):
        at = draw.randrange(len(data))
        action: Callable[[], None] = draw.choice([
            lambda at=at: data.__setitem__(at, draw.randrange(256)),
            lambda at=at: data.__delitem__(slice(at, at + draw.randint(1, 40))),
            lambda at=at: data.__setitem__(slice(at, at), draw.choice(
                [b'"', b"}", b"]", b"{", b"[", b",", b"\\", b"NaN", b"1e99", b"null"])),
        ])  # fmt: skip
        action()
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_in_it_ends_in_facts_or_a_word(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    texts = [gzip.decompress(sample_bytes(f"kineto/{name}.json.gz")) for name in (
        "amd_mi250_minitoy", "triton_small", "cpu_only_rank34")]  # fmt: skip
    lines = gzip.decompress(sample_bytes("op_timeline/timeline_ST.json.gz"))[:30_000]
    for _ in range(40):
        file = tmp_path / "t.json"
        for text, reader in ((draw.choice(texts), kineto.read), (lines, timeline.read)):
            file.write_bytes(changed(draw, text))
            try:
                reader(file, lambda told: None)
            except PreflightError as error:
                assert error.what


def test_one_changed_byte_loses_at_most_two_events(tmp_path: Path) -> None:
    text = json.dumps(document([step(1, 0, 900), *(
        launched("gemm", 10 * n, 10 * n, 5) for n in range(20))])).encode()  # fmt: skip
    begin = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    draw = random.Random(5)
    for _ in range(300):
        at = draw.randrange(begin, len(text) - 40)
        data = text[:at] + bytes([draw.choice(b'"{}[],:\\x\x00\xff')]) + text[at + 1 :]
        trace = read_bytes(tmp_path, data)
        assert trace.events >= 39, data[at - 60 : at + 20]
