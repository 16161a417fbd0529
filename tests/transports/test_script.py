"""The framed script: what it runs, and how its output is cut into answers again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.model import Command
from preflight.transports.script import Frame, FrameReader, render

MARK = "preflight-0123456789abcdef"


def _read(data: bytes, *, chunk: int = 7, cap: int = 10_000, total: int = 100_000) -> list[Frame]:
    reader = FrameReader(MARK, [cap] * 10, total)
    frames: list[Frame] = []
    for at in range(0, len(data), chunk):
        frames += reader.feed(data[at : at + chunk], float(at))
    return frames


def _framed(answers: list[bytes]) -> bytes:
    parts = [
        f"\n{MARK} begin {n} 0\n".encode() + answer + f"\n{MARK} end {n} {n + 3}\n".encode()
        for n, answer in enumerate(answers)
    ]
    return b"banner\n" + b"".join(parts) + f"\n{MARK} last 0 0\n".encode()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.integers(1, 300))
def test_answers_come_back_as_they_were_whatever_the_chunks(
    answers: list[bytes], chunk: int
) -> None:
    frames = _read(_framed(answers), chunk=chunk)
    assert [frame.data for frame in frames] == answers
    assert [frame.rc for frame in frames] == [n + 3 for n in range(len(answers))]


def test_an_answer_beyond_its_cap_is_cut_and_says_so() -> None:
    first, second = _read(_framed([b"x" * 500, b"y"]), cap=100)
    assert (len(first.data), first.truncated) == (100, True)
    assert (second.data, second.truncated) == (b"y", False)


def test_all_answers_together_are_capped() -> None:
    frames = _read(_framed([b"x" * 500, b"y" * 500]), total=600)
    assert [len(frame.data) for frame in frames] == [500, 100]
    assert frames[1].truncated


def test_a_reader_stops_at_the_last_mark() -> None:
    reader = FrameReader(MARK, [100], 100)
    list(reader.feed(_framed([b"a"]) + b"trailing", 0.0))
    assert reader.done


def test_an_answer_without_an_end_is_given_up_with_what_arrived() -> None:
    reader = FrameReader(MARK, [100], 100)
    assert not list(reader.feed(f"\n{MARK} begin 0 0\nhalf".encode(), 1.0))
    frame = reader.unfinished(5.0)
    assert frame is not None
    assert (frame.number, frame.data, frame.rc) == (0, b"half", None)


def test_a_script_cut_short_does_nothing(tmp_path: object) -> None:
    script = render([Command("touch", ("touch", f"{tmp_path}/made"))], MARK)
    for end in range(0, len(script) - len("preflight_ask\n"), 40):
        run = subprocess.run(["sh", "-s"], input=script[:end].encode(), capture_output=True)
        assert MARK.encode() not in run.stdout
    subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True)
    assert subprocess.run(["ls", str(tmp_path)], capture_output=True).stdout == b"made\n"


def test_words_reach_the_command_unchanged() -> None:
    words = ("printf", "%s|", "a b", "$HOME", "`id`", "'q'", '"', "\\", "*", "é", "line\nline")
    run = subprocess.run(
        ["sh", "-s"], input=render([Command("p", words)], MARK).encode(), capture_output=True
    )
    reader = FrameReader(MARK, [1000], 1000)
    (frame,) = reader.feed(run.stdout, 0.0)
    assert frame.data.decode() == "|".join(words[2:]) + "|"


def test_sudo_goes_before_the_commands_that_need_root_only() -> None:
    script = render(
        [Command("a", ("dmesg",), needs_root=True), Command("b", ("lscpu",))], MARK, sudo=True
    )
    assert "ask 0 30 - root dmesg" in script
    assert "ask 1 30 - - lscpu" in script


def test_where_there_is_no_sudo_the_command_runs_without(tmp_path: Path) -> None:
    for name in ("sh", "timeout", "printf", "id"):
        (tmp_path / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    script = render([Command("a", ("id", "-u"), needs_root=True)], MARK, sudo=True)
    script = script.replace(
        "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/opt/rocm/bin;", f"PATH={tmp_path};"
    )
    run = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True)
    (frame,) = FrameReader(MARK, [1000], 1000).feed(run.stdout, 0.0)
    assert (frame.rc, frame.data) == (0, f"{os.getuid()}\n".encode())


@pytest.mark.parametrize(
    "mark", ["begin", "begin x 0", "end 0", "begin 99 0", "hello 0 0", "end 0 -1"]
)
def test_what_is_no_mark_ends_nothing(mark: str) -> None:
    text = f"\n{MARK} begin 0 0\none\n{MARK} {mark}\ntwo\n{MARK} end 0 0\n\n{MARK} last 0 0\n"
    reader = FrameReader(MARK, [100], 100)
    (frame,) = reader.feed(text.encode(), 0.0)
    assert (frame.number, frame.rc, frame.data) == (0, 0, b"onetwo")
    assert reader.done
