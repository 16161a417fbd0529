"""NCCL's lines out of a large log: the same facts and evidence as of the whole of it."""

from __future__ import annotations

import gzip
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from preflight import datafiles
from preflight.collect import examine
from preflight.errors import UsageError
from preflight.judge.load import load
from preflight.logs.nccl.log import nccl_log
from preflight.model import Raw
from preflight.recognise import recognise
from preflight.transports import nccl_sieve, one_file
from tests.conftest import sample
from tests.nccl_lines import BASES, Job

TRAINING = "iteration {0:8}/ 500000 | lm loss: 2.{0:06} | grad norm: 0.3 | skipped iterations: 0 |"
AZURE = "nccl_debug/azure_ib_roce_mix_error12_vendor129.log"
CHECKS = load(["nccl"]).checks
WAYS = ("grep", "blocks")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With grep, and where there is none."""
    if request.param == "blocks":
        monkeypatch.setenv("PATH", "/nonexistent")
    yield request.param


def within(text: str, every: int = 7) -> str:
    """A training log with a line of the text among so many."""
    return "".join(
        "".join(f"{TRAINING.format(every * number + n)}\n" for n in range(every)) + line
        for number, line in enumerate(text.splitlines(keepends=True))
    )


def sieved(path: Path, text: str) -> Raw:
    path.write_text(text, encoding="utf-8")
    [raw] = nccl_sieve.nccl_sieved(path, path.name)
    return raw


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", BASES)
def test_the_facts_are_those_of_the_whole(tmp_path: Path, name: str) -> None:
    text = within(BASES[name].text())
    [whole] = recognise(text.encode(), "x")
    part = sieved(tmp_path / "x", text)
    assert nccl_log(str(part.stdout)) == nccl_log(str(whole.stdout))
    told = [examine("x", [raw], CHECKS).results for raw in (part, whole)]
    assert told[0] == told[1]


@pytest.mark.usefixtures("way")
def test_a_folded_line_is_one_and_keeps_its_number(tmp_path: Path) -> None:
    text = TRAINING + "\n" + sample(AZURE) + within("")
    raw = sieved(tmp_path / "x", text)
    [one] = nccl_log(str(raw.stdout)).completions
    assert (one.vendor_error, one.line) == (129, 3)


@pytest.mark.usefixtures("way")
def test_evidence_is_the_line_of_the_file(tmp_path: Path) -> None:
    text = within(BASES["nccl_error"].text())
    raw = sieved(tmp_path / "x", text)
    [one] = [one for one in examine("x", [raw], CHECKS).results if one.check == "nccl.completions"]
    [seen] = one.evidence
    assert seen.line is not None
    assert text.splitlines()[seen.line - 1] == seen.text


def test_gzip_is_unpacked_as_it_is_read(tmp_path: Path) -> None:
    text = Job().text() + within("\n" * 200)
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(text.encode()))
    [raw] = nccl_sieve.nccl_sieved(path, "x.gz")
    assert nccl_log(str(raw.stdout)).lines == 301


def test_a_report_of_another_tool_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("==============NVSMI LOG==============\n" + Job().text(), encoding="utf-8")
    assert nccl_sieve.nccl_sieved(path, "x") == []


@pytest.mark.parametrize("text", ["", "loss 1\n" * 100, "\0\1NCCL INFO \2" * 50])
def test_what_holds_no_line_of_nccl_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    assert nccl_sieve.nccl_sieved(path, "x") == []


def test_too_many_lines_are_counted_and_warnings_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nccl_sieve, "KEPT_BYTES", 5000)
    raw = sieved(tmp_path / "x", BASES["nccl_warning"].text())
    log = nccl_log(str(raw.stdout))
    assert log.left_out > 100
    assert log.lines + log.left_out == nccl_log(BASES["nccl_warning"].text()).lines
    assert len(log.warnings) == 1


def test_a_large_file_is_sieved_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    block = "".join(f"{TRAINING.format(n)}\n" for n in range(20_000))
    with path.open("w", encoding="utf-8") as file:
        file.write(Job().text())
        for _ in range(10):
            file.write(block)
    assert path.stat().st_size > one_file.SMALLEST_BYTES
    tracemalloc.start()
    [raw] = one_file.answers_of(path, path.name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert raw.probe == "nccl-log"
    assert nccl_log(str(raw.stdout)).lines == 301
    assert peak < 8 << 20


TABLE = sample("nccl_tests/h100_x16_2nodes_oci_464.log")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("place", ["head", "middle", "tail"])
def test_a_table_within_a_large_log_is_read(tmp_path: Path, place: str, *, packed: bool) -> None:
    log = Job().text() * 60
    parts = {"head": (TABLE, log), "middle": (log, TABLE, log), "tail": (log, TABLE)}[place]
    text = "".join(parts).encode()
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(text) if packed else text)
    large = nccl_sieve.nccl_sieved(path, "x")
    small = recognise(text, "x")
    assert (
        [raw.probe for raw in large] == [raw.probe for raw in small] == ["nccl-tests", "nccl-log"]
    )
    assert (large[0].stdout, large[0].line_offset) == (small[0].stdout, small[0].line_offset)


def test_of_two_reports_in_a_large_log_none_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "x"
    report = sample("nvidia_smi_table/h100_sxm_x8_535.183.txt")
    path.write_text(Job().text() * 60 + report + Job().text() * 60 + report, encoding="utf-8")
    with pytest.raises(UsageError, match="2 reports of nvidia-smi"):
        nccl_sieve.nccl_sieved(path, "x")


def test_more_of_others_than_can_be_held_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nccl_sieve, "REST_BYTES", 2000)
    path = tmp_path / "x"
    path.write_text(Job().text() + TABLE, encoding="utf-8")
    with pytest.raises(UsageError, match="x holds what a benchmark or another tool told"):
        nccl_sieve.nccl_sieved(path, "x")


def test_words_of_a_training_log_are_no_report(tmp_path: Path) -> None:
    text = Job().text() + "epoch 1: #wrong predictions 3\n" + within("")
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    [raw] = nccl_sieve.nccl_sieved(path, "x")
    assert raw.probe == "nccl-log"


def test_the_patterns_for_grep_are_the_needles() -> None:
    path = datafiles.root() / "checks" / "data" / "nccl_log.patterns"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line.encode() for line in lines[:3]] == list(nccl_sieve.NEEDLES[:3])
    assert lines[3:5] == ["NCCL version [0-9]", "vendor.err"]
    others = [re.sub(r"\\(.)", r"\1", line).encode() for line in lines[5:]]
    assert others == list(nccl_sieve.OTHERS)
