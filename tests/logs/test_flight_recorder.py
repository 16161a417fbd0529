"""Dumps of the flight recorder: nothing in them is run, damage has a word, versions are numbers."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.hang.from_hang import reading
from preflight.errors import ParseError
from preflight.logs.hangs.flight_recorder import dump_of, rank_of, read, sniff, version_of
from preflight.logs.hangs.plain_pickle import loads
from preflight.model import Finding


def entry(
    seq: int, name: str = "all_reduce", state: str = "scheduled", **more: Any
) -> dict[str, Any]:
    return {
        "record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"),
        "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq, "profiling_name": f"nccl:{name}",
        "time_created_ns": 10**18 + seq, "input_sizes": [[8, 4]], "input_dtypes": ["Float"],
        "output_sizes": [[8, 4]], "output_dtypes": ["Float"], "state": state, "is_p2p": False,
        "frames": [{"name": "step", "filename": "train.py", "line": 7}], **more,
    }  # fmt: skip


def dump(*entries: dict[str, Any], ranks: int = 4, enqueued: int = 9) -> dict[str, Any]:
    return {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}},
        "pg_status": {"0": {"last_enqueued_collective": enqueued, "last_started_collective": -1,
                            "last_completed_collective": 4}},
        "entries": list(entries),
    }  # fmt: skip


def told(folder: Path, dumps: dict[int, dict[str, Any]], *, as_json: bool = False) -> list[Finding]:
    read_ = []
    for rank, one in dumps.items():
        path = folder / f"node12_trace_rank_{rank}{'.json' if as_json else ''}"
        path.write_bytes(json.dumps(one).encode() if as_json else pickle.dumps(one, protocol=2))
        assert sniff(path.read_bytes()[:65536], path.name)
        read_.append(read(path, lambda _: None))
    made = reading({"flight-recorder": read_}, Asked())
    return list(findings([made])) if made else []


class _Writes:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_dump_that_would_run_something_does_not(tmp_path: Path, protocol: int) -> None:
    trap = tmp_path / "trap"
    whole = {**dump(entry(5)), "x": _Writes(str(trap))}
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps(whole, protocol=protocol))
    with pytest.raises(ParseError, match="nothing was run"):
        read(path, lambda _: None)
    assert not trap.exists()


@pytest.mark.parametrize("cut", [1, 10, 100, 300])
def test_one_that_is_cut_is_told(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps(dump(entry(5), entry(6)), protocol=2)[:-cut])
    with pytest.raises(ParseError, match="damaged or cut"):
        read(path, lambda _: None)


NONE = (b"", b"\x80", b"\x80\x02(((((", b"\x80\x02]" + b"q\x00" * 50, b"\x80\x02\x8a\xff",
        b"garbage", b"\x80\x02cos\nsystem\n.")  # fmt: skip


@pytest.mark.parametrize("data", NONE)
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        loads(data)


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rank_0.json"
    path.write_text('{"entries": ' + "[" * 200_000)
    with pytest.raises(ParseError):
        read(path, lambda _: None)


def test_ranks_come_from_the_last_number_of_a_name() -> None:
    names = {"nccl_trace_rank_7": 7, "comm_lib_trace_rank_12": 12, "_dump_3": 3, "gpu04_rank_1": 1,
             "node12_trace_rank_31.json": 31, "trace": None}  # fmt: skip
    assert {name: rank_of(name) for name in names} == names


def test_versions_are_numbers() -> None:
    assert version_of("2.10") > version_of("2.4")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_rank_that_never_entered_is_the_root(tmp_path: Path, as_json: bool) -> None:
    dumps = {rank: dump(entry(9)) for rank in (0, 1, 3)}
    dumps[2] = dump(entry(8, state="completed"), enqueued=8)
    (found,) = told(tmp_path, dumps, as_json=as_json)
    assert (found.finding, found.subject, found.status.value) == ("hang", "rank 2", "FAIL")
    assert "number 9 of default_pg" in found.text


def test_a_rank_without_a_dump_died_first(tmp_path: Path) -> None:
    (found,) = told(tmp_path, {rank: dump(entry(9)) for rank in (0, 1, 3)})
    assert found.subject == "rank 2" and "left no dump" in found.text


def test_calls_that_differ_are_the_programs_and_both_places_are_told(tmp_path: Path) -> None:
    other = [{"name": "evaluate", "filename": "eval.py", "line": 3}]
    dumps = {rank: dump(entry(9)) for rank in range(4)}
    for name, wrong, said in (
        (
            "type",
            entry(9, "broadcast", frames=other),
            "broadcast on rank 3 at evaluate (eval.py:3)",
        ),
        ("dtype", entry(9, input_dtypes=["Half"]), "Half on rank 3"),
        ("size", entry(9, input_sizes=[[9, 4]]), "36 on rank 3"),
    ):
        (found,) = told(tmp_path, {**dumps, 3: dump(wrong)})
        assert "the program of the ranks differs" in found.text, name
        assert said in found.text and "train.py:7" in found.text, name
        assert not found.subject, name


def test_uneven_pieces_of_a_gather_are_no_difference(tmp_path: Path) -> None:
    dumps = {r: dump(entry(9, "all_to_all", input_sizes=[[r + 1]])) for r in range(4)}
    (found,) = told(tmp_path, dumps)
    assert "all ranks have entered" in found.text


def test_all_there_is_the_network_or_a_device(tmp_path: Path) -> None:
    (found,) = told(tmp_path, {rank: dump(entry(9, state="started")) for rank in range(4)})
    assert "all ranks have entered" in found.text and found.confidence == "medium"
    assert not found.subject


def test_nothing_unfinished_is_no_hang(tmp_path: Path) -> None:
    found = told(tmp_path, {rank: dump(entry(9, state="completed")) for rank in range(4)})
    assert [one for one in found if one.finding == "hang"] == []


def test_two_groups_in_different_order_are_a_ring(tmp_path: Path) -> None:
    def both(first: str, seq: int) -> dict[str, Any]:
        one = dump(entry(seq, process_group=(first, f"group {first}"), pg_id=int(first)), ranks=2)
        one["pg_config"] = {
            name: {"name": name, "desc": f"group {name}", "ranks": "[0, 1]"} for name in ("1", "2")
        }  # fmt: skip
        one["pg_status"] = {}
        return one

    (found,) = told(tmp_path, {0: both("1", 5), 1: both("2", 5)})
    assert "different order" in found.text and not found.subject


def test_a_rank_that_is_alone_in_a_collective_blames_nobody(tmp_path: Path) -> None:
    dumps = {rank: dump(entry(9)) for rank in (0, 1, 3)}
    dumps[2] = dump(entry(9, state="completed"), entry(10), enqueued=10)
    (found,) = told(tmp_path, dumps)
    assert not found.subject and "unconfirmed" in found.text


def test_of_one_dump_of_four_nobody_is_named(tmp_path: Path) -> None:
    found = told(tmp_path, {1: dump(entry(9))})
    assert found[0].finding == "hang" and not found[0].subject
    assert "1 of 4 dumps" in found[0].text


def test_what_is_retired_is_over(tmp_path: Path) -> None:
    found = told(tmp_path, {rank: dump(entry(9, retired=True)) for rank in range(4)})
    assert [one.finding for one in found] == ["healthy"]


def test_a_scatter_gives_what_it_gives(tmp_path: Path) -> None:
    dumps = {
        r: dump(entry(9, "scatter", input_dtypes=["Float"] if r == 0 else [])) for r in range(4)
    }
    (found,) = told(tmp_path, dumps)
    assert "differs" not in found.text


def test_dumps_of_unknown_ranks_are_told(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pickle.dumps(dump(entry(9)), protocol=2))
    made = reading({"flight-recorder": [read(path, lambda _: None)]}, Asked())
    assert made is not None
    (found,) = findings([made])
    assert found.status.value == "ERROR" and "of which rank" in found.text


def test_tuples_within_tuples_end_soon() -> None:
    """Doubled through the memo forty times: written out it would have no end."""
    data = b"\x80\x02)" + b"".join(
        b"q" + bytes([at]) + b"h" + bytes([at]) + b"\x86" for at in range(40)
    )
    entries = (
        b"\x80\x02}(X\x07\x00\x00\x00entries](}("
        + (b"X\x0e\x00\x00\x00profiling_nameX\x01\x00\x00\x00xX\x0c\x00\x00\x00input_dtypes")
        + data[2:]
        + b"ueu."
    )
    began = time.monotonic()
    whole = dump_of(loads(entries), "x", "rank_0")
    assert whole.entries[0].input_dtypes == ("", "")
    with pytest.raises(ParseError, match="neither word nor number"):
        loads(b"\x80\x02}(" + data[2:] + b"K\x01u.")
    assert time.monotonic() - began < 2
