"""preflight diagnose-step-time as a user types it: what is taken, what is refused, what is said."""

from __future__ import annotations

import json
import os
from pathlib import Path

from preflight.cli.targets.kinds import Kind
from preflight.cli.targets.walk import kind_of, walk, what_it_is
from tests import ras_text
from tests.cli.command import preflight
from tests.conftest import SAMPLES

IOSTAT = (
    "Device            r/s     rkB/s   r_await     w/s     wkB/s w_await aqu-sz  %util\n"
    "sda 900 90000 45.0 10 100 3.0 12.5 99.7\n\n"
)


def held_up(folder: Path, name: str = "io.txt") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(IOSTAT * 6)
    return path


def diagnosed(*words: str) -> dict[str, object]:
    ran = preflight("diagnose-step-time", *words, "--format", "json")
    report = json.loads(ran.out)
    assert isinstance(report, dict)
    return report


def test_a_cause_is_told_with_its_place_and_what_to_do(tmp_path: Path) -> None:
    ran = preflight("diagnose-step-time", str(held_up(tmp_path)))
    assert ran.rc == 1
    assert "FAIL   disk  sda" in ran.out
    assert "io.txt:" in ran.out
    assert "preflight explain io-slow" in ran.out
    assert "FAIL: 1 finding failed" in ran.out


def test_a_folder_is_its_files_and_other_things_in_it_do_no_harm(tmp_path: Path) -> None:
    held_up(tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      " + bytes(64))
    (tmp_path / "run" / "latest").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "run" / "pipe")
    report = diagnosed(str(tmp_path / "run"))
    assert [one["finding"] for one in report["findings"]] == ["disk"]  # type: ignore[attr-defined]


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    path = held_up(tmp_path)
    walked = walk([str(path), str(tmp_path), str(path)], tmp_path)
    assert [one.path for one in walked.inputs] == [path]


def test_standard_input_is_a_target(tmp_path: Path) -> None:
    ran = preflight("diagnose-step-time", "-", stdin=IOSTAT.encode() * 6)
    assert ran.rc == 1 and "standard input:" in ran.out


def test_nothing_to_read_is_a_wrong_start(tmp_path: Path) -> None:
    empty = tmp_path / "empty.log"
    empty.touch()
    for words, said in (
        ((), "nothing to diagnose"),
        ((str(tmp_path / "none.log"),), "there is no"),
        ((str(empty),), "an empty file"),
        (("-1",), ""),
        (("99999999999",), "neither a file nor a process"),
    ):
        ran = preflight("diagnose-step-time", *words)
        assert ran.rc == 2, words
        assert said in ran.err and not ran.out, words


def test_what_cannot_be_read_is_told_and_the_others_are_judged(tmp_path: Path) -> None:
    broken = tmp_path / "io.json"
    broken.write_text('{"sysstat": {"hosts": [')
    report = diagnosed(str(held_up(tmp_path)), str(broken))
    found = {one["finding"]: one for one in report["findings"]}  # type: ignore[attr-defined]
    assert set(found) == {"disk", "input.unread"}
    assert "io.json: no whole JSON" in found["input.unread"]["text"]
    assert found["input.unread"]["status"] == "ERROR"


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    path = str(held_up(tmp_path))
    assert preflight("diagnose-step-time", path, "--gpus", "0").rc == 2
    assert preflight("diagnose-step-time", path, "--params", "many").rc == 2


def test_the_first_kind_that_takes_a_file_has_it() -> None:
    kinds = (Kind("gpu-samples", "", "preflight.logs.samples.gpus"),
             Kind("iostat", "", "preflight.logs.samples.iostat"))  # fmt: skip
    assert kind_of(IOSTAT.encode(), "x", kinds) == kinds[1]
    assert kind_of(b"\0\1\2", "x", kinds) is None


def test_what_is_not_understood_has_a_name() -> None:
    assert what_it_is(b"PK\x03\x04...", "a.pt").startswith("a zip archive")
    assert what_it_is(b"\0\0\0", "x.bin") == "binary data (.bin)"
    assert what_it_is(b"hello", "x") == "text of no known form (no suffix)"


def test_stacks_of_ranks_are_a_target(tmp_path: Path) -> None:
    stacks = SAMPLES / "own" / "stacks"
    ran = preflight("diagnose-step-time", str(stacks / "loader"))
    assert ran.rc == 1 and "FAIL   hang  rank 2" in ran.out
    ran = preflight("diagnose-step-time", str(stacks / "save"))
    assert ran.rc == 0 and "WARN   hang  rank 0" in ran.out  # one moment
    assert preflight("diagnose-step-time", str(stacks / "ring")).rc == 3
    assert "stacks" in preflight("diagnose-step-time", "--help").out


def test_answers_of_nccls_service_come_through_a_pipe() -> None:
    text = ras_text.answer("INCOMPLETE", ras_text.DEAD)
    ran = preflight("diagnose-step-time", "-", stdin=text.encode())
    assert ran.rc == 1 and "FAIL   hang  rank 5" in ran.out and "standard input:" in ran.out
