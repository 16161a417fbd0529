"""What no training wrote, and logs cut, mixed, far too large: a clear word, and no wrong figure."""

from __future__ import annotations

import gzip
import random
import shutil
from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.logs.training import log, sieve
from preflight.logs.training.text import Reach, batches
from tests.logs.training.reading import at, is_row, only, quiet, read
from tests.logs.training.styles_text import LINES, STEPS, written

TITAN = written("torchtitan")
NOT_LOGS: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n \r\n\0\0\n",
    "binary": random.Random(3).randbytes(200_000),
    "one line without an end": b"x" * 9_000_000,
    "brackets": b"[" * 3_000_000,
    "brackets of a state": b'{"log_history": ' + b"[" * 200_000,
    "records in records": b'{"log_history": [' + b'{"a":' * 10_000,
    "a list of numbers": b"\n".join(b"%d" % i for i in range(5_000)),
    "prose": b"We then ran step by step, and the loss was large: 3 apples.\n" * 50,
}


@pytest.mark.parametrize("name", list(NOT_LOGS))
def test_what_is_no_log_is_said_to_be_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParseError, match=r"no trainer_state|no lines of training|no record"):
        read(tmp_path, NOT_LOGS[name])


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"", "train.log"), (b"\0" * 500, "train.log"), (b"\x7fELF\2\1\1\0\0\0\0", "a.out"),
        (TITAN.encode(), "train.py"), (b'{"a": 1}', "config.json"), (b"lr: 1e-4\n", "run.yaml"),
        (random.Random(3).randbytes(65_536), "events.out"),
    ],
)  # fmt: skip
def test_other_files_are_not_taken_for_logs(head: bytes, name: str) -> None:
    assert not log.sniff(head, name)


@pytest.mark.parametrize("name", ["train.log", "slurm-123.out", "log", "job.o123", "x.jsonl"])
def test_texts_are_taken(name: str) -> None:
    assert log.sniff(TITAN.encode(), name)
    assert log.sniff(b'{"best_metric": null,\n "log_history": [', "trainer_state.json")


ODD: dict[str, bytes] = {
    "carriage returns and newlines": TITAN.replace("\n", "\r\n").encode(),
    "carriage returns alone": TITAN.replace("\n", "\r").encode(),
    "zero bytes": TITAN.replace("grad", "gr\0ad").encode(),
    "another encoding": TITAN.replace("root", "rôle").encode("latin-1"),
    "two bytes a letter": TITAN.encode("utf-16-le"),
    "words between": TITAN.replace("\n", "\nNothing of interest happened here at all\n").encode(),
    "gzip": gzip.compress(TITAN.encode()),
    "a line of 9 MB": b"x" * 9_000_000 + b"\n" + TITAN.encode(),
    "digits": b"a: %b b: 9\n" % (b"9" * 5_000) * 6 + TITAN.encode(),
}


@pytest.mark.parametrize("name", list(ODD))
def test_figures_are_found_in_odd_files(tmp_path: Path, name: str) -> None:
    series = only(read(tmp_path, ODD[name]))
    assert len(series.line) == STEPS - 1
    is_row(series, -1, step=STEPS - 1, loss=2.025, tokens_per_s_gpu=6480)


def test_a_line_cut_at_the_end_is_no_step(tmp_path: Path) -> None:
    """A figure of it may be cut too: 2.0 for 2.025."""
    text = TITAN[: TITAN.rindex("loss:") + 11]
    assert text[-1].isdigit()
    series = only(read(tmp_path, text))
    assert list(series.values("step")) == list(range(1, STEPS - 1))


def test_a_gzip_file_cut_short_is_read_so_far_and_said_to_be_cut(tmp_path: Path) -> None:
    noise = "".join(f"[titan] noise {random.Random(i).random()}\n" for i in range(5_000))
    found = read(tmp_path, gzip.compress((TITAN + noise).encode())[:-9_000])
    assert found.truncated and len(only(found).line) == STEPS - 1


def test_a_log_in_memory_stays_small_and_its_extremes_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("preflight.logs.training.rows.MOST_ROWS", 20_000)
    line = "iter {i}: loss {loss}, time 135.20ms, mfu 41.20%\n"
    rows = [line.format(i=i, loss=f"{2 + i % 7 / 10:.1f}") for i in range(30_000)]
    rows[12_344] = line.format(i=12_344, loss="9.5")
    rows[20_001] = line.format(i=20_001, loss="nan")
    series = only(read(tmp_path, "".join(rows)))
    assert series.lines == 30_000 and series.fold == 2 and len(series.line) == 15_000
    loss = series.columns["loss"]
    assert (loss.high[6_172], loss.low[6_172]) == (9.5, 2.0 + 12_345 % 7 / 10)
    assert loss.bad == {10_000: 1} and loss.mean[10_000] == pytest.approx(2 + 20_000 % 7 / 10)
    assert series.line[6_172] == 12_345
    with (tmp_path / "train.log").open("rb") as file:
        file.seek(series.offset[6_172])
        assert file.readline() == rows[12_344].encode()


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "LEAST_BYTES", 1_000_000)


def large(folder: Path, name: str, *, dense: bool = False) -> Path:
    """A log of 3 MB: few lines of steps among others, or all of them."""
    path, noise = folder / "large.log", "[worker 3] took bucket {0} of the queue in {0} us\n"
    with path.open("w") as file:
        number = 0
        while file.tell() < 3_000_000:
            number += 1
            step = LINES[name].format(i=number, loss=f"{2 + number % 10 / 10:.3f}", mm="04") + "\n"
            file.write(step if dense else step + "".join(noise.format(i) for i in range(400)))
            if number == 50:
                file.write("saving checkpoint at iteration 50 to /x\n")
    return path


def test_a_large_log_read_by_grep_tells_what_all_of_its_lines_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large(tmp_path, "nanogpt")
    assert sieve.worthwhile(path)
    by_grep = log.read(path, quiet)
    monkeypatch.setattr("preflight.logs.training.sieve.shutil.which", lambda _: None)
    by_words = log.read(path, quiet)
    monkeypatch.setattr(sieve, "LEAST_BYTES", 1 << 40)
    whole = log.read(path, quiet)
    for found in (by_grep, by_words):
        assert found.lines == whole.lines and found.events == whole.events != ()
        one, two = only(found), only(whole)
        assert list(one.line) == list(two.line) and list(one.offset) == list(two.offset)
        for column in two.columns:
            assert list(one.values(column)) == list(two.values(column))


@pytest.mark.parametrize("name", ["nanogpt", "composer"])
def test_where_most_lines_are_steps_or_belong_together_all_are_read(
    tmp_path: Path, name: str
) -> None:
    path = large(tmp_path, name, dense=name == "nanogpt")
    assert not sieve.worthwhile(path)


def test_a_large_log_of_no_known_words_is_read_whole(tmp_path: Path) -> None:
    path = large(tmp_path, "learned")
    assert sieve.worthwhile(path) and shutil.which("grep")
    series = only(log.read(path, quiet))
    assert series.style == "learned" and len(series.line) > 100


def test_parts_of_a_log_are_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(400_000)) + b"last")
    reach, lines, numbers = Reach(), list[bytes](), list[int]()
    for one in batches(path, reach):
        lines += one.texts
        numbers += one.numbers
    assert lines == [*(b"%d" % i for i in range(400_000)), b"last"]
    assert numbers == list(range(1, 400_002)) and reach.lines == 400_001


def test_the_same_step_in_two_files_of_records(tmp_path: Path) -> None:
    text = "step,epoch,train_loss_step,val_loss\n1,0,2.5,\n2,0,nan,\n2,0,,2.25\n"
    series = only(read(tmp_path, text, "metrics.csv"))
    assert at(series, 0) == {"step": 1, "epoch": 0, "loss": 2.5}
    assert at(series, 1) == {"step": 2, "epoch": 0, "val_loss": 2.25}
    assert series.columns["loss"].bad == {1: 1}
    text = (
        '{"global_step": 20, "max_steps": 50, "log_history": [\n'
        ' {"step": 10, "loss": 2.5, "learning_rate": 1e-5},\n {"step": 20, "loss": NaN},\n'
        ' {"step": 20, "eval_loss": 2.25},\n {"step": 20, "train_runtime": 60.5}]}'
    )
    found = read(tmp_path, text, "trainer_state.json")
    series = only(found)
    assert (series.style, series.total_steps, list(series.line)) == ("trainer-state", 50, [2, 3])
    is_row(series, 1, step=20, val_loss=2.25)
    assert series.columns["loss"].bad == {1: 1}
    assert [(one.kind, one.seconds) for one in found.events] == [("ended", 60.5)]


def test_lines_that_are_too_long_are_told(tmp_path: Path) -> None:
    steps = [f"iter {at}: loss 3.{at:03}, time 135.20ms, mfu 41.20%\n" for at in range(40)]
    path = tmp_path / "long.log"
    path.write_text("".join([*steps[:20], "x" * (5 << 20) + "\n", *steps[20:]]))
    found = log.read(path, quiet)
    assert found.unread == ("1 line(s) longer than 4 MiB",) and found.series[0].lines == 40
