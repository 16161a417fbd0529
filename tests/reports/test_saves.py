"""What a report shows of checkpoints: when they were durable, and what several hosts reach."""

from __future__ import annotations

import json
import re
from typing import Any

from preflight.collect import examine_one_of_many
from preflight.judge.load import load
from preflight.model import Counts, HostReport, Raw, Report, Status
from preflight.reports.wording import value
from tests.checkpoint_text import rows, text
from tests.reports.built import text_of

_ALL = {
    "kind": "pattern", "name": "checkpoint", "part": "restore, all hosts", "way": "read",
    "through": "device", "block_bytes": 4 << 20, "processes": 24, "done_bytes": 6 << 30,
    "count": 1536, "elapsed_s": 2.0, "apart_s": 0.21, "trouble": "",
    "hosts_mbps": [["node-01", 2100.0], ["node-02", 1074.0], ["node-03", 2050.0]],
}  # fmt: skip


def table(told: list[dict[str, Any]], name: str) -> dict[str, Any]:
    raws = [Raw("node-01", "io-bench", ("io-bench",), 0, text(told))]
    measured = examine_one_of_many("node-01", raws, load(["io"]).checks).measured
    return next(one for one in measured if one["table"] == name)


def test_a_save_is_told_by_when_it_is_durable() -> None:
    found = table(rows(), "saves of a checkpoint")
    assert [row["save"] for row in found["rows"]] == [
        "save", "save, direct", "save, one file", "save while reading",
    ]  # fmt: skip
    first, last = found["rows"][0], found["rows"][-1]
    assert (first["bytes"], first["durable s"], first["stall s"]) == ("2 GiB", 0.8, 0.4)
    assert (first["wrong"], first["read from"], first["reader %"]) == (0, "device", "")
    assert last["reader %"] == 33.3
    assert "480.0 MB/s alone, 160.0 MB/s beside the save" in found["notes"][-1]


def test_what_all_hosts_reach_names_the_slowest() -> None:
    found = table([*rows(), _ALL], "all hosts at once")
    assert found["rows"] == [
        {"all at once": "restore", "hosts": 3, "MB/s": 3221.0, "s": 2.0, "slowest": "node-02",
         "its MB/s": 1074.0, "median": 2050.0, "most": 2100.0},
    ]  # fmt: skip
    assert "they began within 0.21 s" in found["notes"][-1]
    # It is of all hosts, and no speed of this one.
    assert "checkpoint restore, all hosts" not in json.dumps(
        table([*rows(), _ALL], "as training does it")
    )


def test_what_is_to_be_said_of_a_host_is_said_once() -> None:
    note = "not begun together with the other hosts: 2 of 3 hosts came in time"
    told = [{**one, "note": note} for one in rows()]
    assert table(told, "as training does it")["notes"].count(note) == 1


def test_memory_in_place_of_the_device_is_named() -> None:
    told = [{**one, "read_back": "page cache"} for one in rows()]
    assert any("it is not shown" in one for one in table(told, "saves of a checkpoint")["notes"])


def test_a_table_and_a_check_round_alike() -> None:
    """4.2149 is 4.21 in both: rounded to four digits first it would be 4.22."""
    told = [{**one, "reader_starved_s": 4.2149, "elapsed_s": 4.2149, "durable_s": 4.2149}
            for one in rows()]  # fmt: skip
    [first, *_] = table(told, "saves of a checkpoint")["rows"]
    assert value(first["durable s"]) == value(4.2149) == "4.21"


def test_one_wide_figure_leaves_the_rows_of_a_table_aligned() -> None:
    row = {"job": "seq-read", "MB/s": 1.0, "us, mean": 17_110_000.0, "50 %": 412_345.0,
           "99 %": 99_999.0, "99.9 %": 17_110_000.0, "block": "1 MiB", "of": "device"}  # fmt: skip
    report = Report(
        "io-bench", (), "standard", "2026-01-02T03:04:05Z", 40.0, Status.PASS, Counts(),
        (HostReport("n", Status.PASS),), measurements=({"table": "fio", "rows": [row]},),
    )  # fmt: skip
    narrow, wide = (text_of(report, columns=columns) for columns in (68, 100))
    assert re.search(
        r"^  seq-read +1 +17.1M +412k +99,999 +17.1M +1 MiB +device$", narrow, re.MULTILINE
    )
    assert re.search(r"^  seq-read +1 +17,110,000 +412,345 +99,999 ", wide, re.MULTILINE)


def test_saves_of_unlike_size_are_told_to_be() -> None:
    first, *rest = rows()
    notes = [" ".join(table(told, "saves of a checkpoint")["notes"]) for told in (
        rows(), [{**first, "done_bytes": 1 << 30}, *rest],
    )]  # fmt: skip
    assert ["unlike size" in one for one in notes] == [False, True]


def test_a_reader_that_is_faster_beside_a_save_tells_nothing() -> None:
    """What it had alone was no measure."""
    *rest, last = rows()
    told = [*rest, {**last, "reader_kept_percent": 1184.0, "reader_mbps": 5683.0}]
    raws = [Raw("node-01", "io-bench", ("io-bench",), 0, text(told))]
    report = examine_one_of_many("node-01", raws, load(["io"]).checks).report
    found = [one for one in report.results if one.check == "io.pattern.reader"]
    assert [one.status for one in found if one.status is not Status.SKIP] == [Status.ERROR]
    assert any("is not steady" in one.reason for one in found)
    assert table(told, "saves of a checkpoint")["rows"][-1]["reader %"] == ""
