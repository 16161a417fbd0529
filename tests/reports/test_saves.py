"""What a report shows of checkpoints: when they were durable, and what several hosts reach."""

from __future__ import annotations

import json
from typing import Any

from preflight.collect import examine_one_of_many
from preflight.judge.load import load
from preflight.model import Raw
from tests.checkpoint_text import rows, text

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
