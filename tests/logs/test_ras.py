"""Answers of NCCL's RAS service: every form of its guide is read, what is damaged has a word."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from preflight.cli.targets.walk import head_of, kind_of
from preflight.errors import ParseError
from preflight.facts.ras import RasFile
from preflight.logs.hangs.ras import read, sniff
from tests.ras_text import DEAD, FAILED, MISSING, TABLE, TIMED_OUT, answer, as_json, mismatch


def told(folder: Path, text: str, name: str = "ras.txt") -> RasFile:
    path = folder / name
    path.write_text(text)
    assert kind_of(head_of(path), name).name == "ras"  # type: ignore[union-attr]
    return read(path, lambda _: None)


def test_a_sound_answer(tmp_path: Path) -> None:
    found = told(tmp_path, answer())
    (report,) = found.reports
    assert (report.version, report.nodes, report.processes, report.gpus) == ("2.28.9", 2, 8, 8)
    (group,) = report.groups
    assert (group.comms, group.ranks_per_comm, group.status, group.errors) == (1, 8, "RUNNING", ())
    assert not found.unread and not report.comms and not report.peers


def test_processes_that_are_missing_and_dead(tmp_path: Path) -> None:
    for wrong, dead in ((MISSING, False), (DEAD, True)):
        (report,) = told(tmp_path, answer("INCOMPLETE", wrong, TIMED_OUT)).reports
        (peer,) = report.peers
        assert (peer.host, peer.pid, peer.gpus, peer.dead) == ("10.0.0.12", 7105, "1", dead)
        (comm,) = report.comms
        assert [one.rank for one in comm.missing] == [5] and comm.missing_number == 1
        assert (report.dead, report.missing, report.timeouts) == (dead, not dead, 2)


def test_counts_that_differ_and_ranks_behind_a_count_of_many(tmp_path: Path) -> None:
    (report,) = told(tmp_path, answer("MISMATCH", "", mismatch())).reports
    first, second = report.comms[0].counts
    assert (first.operation, first.count, first.number, first.ranks) == ("AllReduce", 644, 7, ())
    assert (second.count, second.ranks[0].rank, second.ranks[0].gpu) == (640, 3, "3 (NVML 7)")
    old = (
        "#0-0 (5d1c0ffee0ddba11) MISMATCH\n"
        "  Communicator ranks have different collective operation counts\n"
        "  6 ranks have launched up to operation 90\n  2 ranks have not launched any operations\n"
        "  Rank 1 -- GPU 1 managed by process 6201 on node 10.0.0.11\n"
        "  Rank 6 -- [process information not found]\n"
    )
    (report,) = told(tmp_path, answer("MISMATCH", "", old)).reports
    assert [(one.count, one.number, [rank.rank for rank in one.ranks])
            for one in report.comms[0].counts] == [(90, 6, []), (0, 2, [1, 6])]  # fmt: skip


def test_errors_of_communicators_and_unlike_states(tmp_path: Path) -> None:
    (report,) = told(tmp_path, answer("ERROR", FAILED)).reports
    assert [(one.text, one.number, [rank.rank for rank in one.ranks])
            for one in report.comms[0].failed] == [
        ("Remote process error", 7, []), ("Unhandled CUDA error", 1, [6]),
    ]  # fmt: skip
    unlike = (
        "#0-0 (5d1c0ffee0ddba11) MISMATCH\n  Communicator ranks have different status\n"
        "  6 ranks have status RUNNING\n  2 ranks have status NOCOMM\n"
        "  Rank 3 -- GPU 3 managed by process 6203 on node 10.0.0.11\n"
    )
    found = told(tmp_path, answer("MISMATCH", "", unlike, "FINALIZE"))
    assert found.reports[0].comms[0].statuses == {"RUNNING": 6, "NOCOMM": 2} and not found.unread


def test_tables_of_a_job_of_unlike_nodes(tmp_path: Path) -> None:
    text = (
        "Job summary\n===========\n\n  Nodes  Processes         GPUs\n"
        "          per node  per process\n      1          4            1\n"
        "      1          3            1\n\n  Nodes  Processes         GPUs\n"
        "(total)    (total)      (total)\n      2          7            7\n\n"
        f"Communicators... (0.00s)\n=============\n\n{TABLE}"
        "    0         1         2       3-4         8         7   RUNNING  INCOMPLETE,MISMATCH\n"
        "    1         1         2         1         2         2      INIT      OK\n"
    )
    found = told(tmp_path, text)
    (report,) = found.reports
    assert (report.nodes, report.gpus) == (2, 7) and not found.unread
    assert [(one.status, one.errors) for one in report.groups] == [
        ("RUNNING", ("INCOMPLETE", "MISMATCH")), ("INIT", ()),
    ]  # fmt: skip


def test_columns_of_another_width(tmp_path: Path) -> None:
    text = (
        "Job summary\n===========\n\n  Nodes    Processes          GPUs  Processes      GPUs\n"
        "  (total)   per node   per process    (total)   (total)\n"
        "      2            4             1          8         8\n\nCommunicators... (0.002s)\n"
        "=============\n\nNo communicator data collected!\n"
    )
    found = told(tmp_path, text)
    (report,) = found.reports
    assert (report.nodes, report.gpus, found.unread) == (2, 8, ())


def test_answers_one_after_another_are_apart(tmp_path: Path) -> None:
    found = told(tmp_path, answer() + answer("INCOMPLETE", MISSING) + answer())
    assert [len(one.peers) for one in found.reports] == [0, 1, 0]
    table = f"Communicators... (0.00s)\n===\n\n{TABLE}    0  1  2  4  8  8  RUNNING  OK\n"
    assert len(told(tmp_path, table + table).reports) == 2


def test_json_tells_the_same(tmp_path: Path) -> None:
    counts = {rank: 640 - 4 * (rank == 3) for rank in range(8) if rank != 5}
    (report,) = told(tmp_path, as_json(counts, missing={5: False}, errors={6: 1}), "r.json").reports
    (comm,) = report.comms
    by_count = {(one.operation, one.count): [rank.rank for rank in one.ranks]
                for one in comm.counts}  # fmt: skip
    assert by_count["AllReduce", 636] == [3] and len(by_count["AllReduce", 640]) == 6
    assert [(one.text, [rank.rank for rank in one.ranks]) for one in comm.failed] == [
        ("Unhandled CUDA error", [6])
    ]
    assert [(one.pid, one.dead) for one in report.peers] == [(6205, False)]
    assert (report.missing, report.dead, report.gpus) == (1, 0, 8)
    both = told(tmp_path, as_json(counts) + as_json(counts), "two.json")
    assert len(both.reports) == 2 and both.reports[0].time_s is not None


def test_a_rank_that_left_its_communicator_by_itself_is_not_missing(tmp_path: Path) -> None:
    whole = json.loads(as_json(dict.fromkeys(range(7), 9), missing={7: False}))
    whole["communicators"][0]["missing_ranks"][0]["status"]["unresponsive"] = False
    (report,) = told(tmp_path, json.dumps(whole), "r.json").reports
    assert not report.peers and not report.comms[0].missing


def test_events_of_the_monitor_tell_of_the_dead(tmp_path: Path) -> None:
    text = (
        "RAS Monitor Mode - watching for peer changes (Ctrl+C to exit)...\n====\n"
        "[2026-01-02 03:04:05] PEER_DEAD: Process 7105 on node 10.0.0.12 managing GPU 1\n"
    )
    (report,) = told(tmp_path, text).reports
    assert report.peers[0].dead and report.peers[0].pid == 7105
    peer = {"host": "10.0.0.12", "pid": 7105, "cuda_devs": [1, 2]}
    event = {"timestamp": "2026-01-02 03:04:05", "group": "LIFECYCLE", "event": "PEER_DEAD",
             "peer": peer, "details": ""}  # fmt: skip
    (report,) = told(tmp_path, json.dumps(event, indent=2), "e.json").reports
    assert report.peers[0].dead and report.peers[0].gpus == "1,2"


def test_lines_that_are_not_known_are_told(tmp_path: Path) -> None:
    found = told(tmp_path, answer() + "\nCongestion\n  Rail 3 is slow\n")
    assert found.unread == ("Congestion", "Rail 3 is slow")


def test_a_log_of_nccl_is_none() -> None:
    for text in (
        "node-1:71:71 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\nstep 1 loss 3\n",
        "NCCL version 2.28.9 compiled with CUDA 12.9\nstep 1 loss 3.0\n",
        "step 1\n" * 30 + answer(), '{"communicators": []}', '{"nccl_version": "2"}', "",
    ):  # fmt: skip
        assert not sniff(text.encode(), "x.txt"), text[:60]


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_json_that_is_cut_has_a_word(tmp_path: Path, cut: int) -> None:
    with pytest.raises(ParseError, match="damaged or cut"):
        told(tmp_path, as_json({0: 1, 1: 1})[:-cut], "r.json")


def test_text_that_is_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = answer("INCOMPLETE", DEAD, TIMED_OUT)
    for end in range(whole.index("====="), len(whole), 7):
        path = tmp_path / "ras.txt"
        path.write_text(whole[:end])
        try:
            found = read(path, lambda _: None)
        except ParseError as error:
            assert "cut before" in error.what
            continue
        assert len(found.reports) == 1


def test_very_long_and_odd_json_end_soon(tmp_path: Path) -> None:
    began = time.process_time()
    rank = {"rank": "a", "status": 7, "collective_counts": {"AllReduce": "x"}}
    comm = {"hash": 3, "size": "x", "ranks": [3, rank], "missing_ranks": {"a": 1}}
    odd = {"nccl_version": [1], "communicators_count": 1, "timestamp": 3,
           "communicators": [None, comm], "ras": []}  # fmt: skip
    assert len(told(tmp_path, json.dumps(odd), "odd.json").reports) == 1
    nested = '{"nccl_version": "2", "communicators_count": 1, "communicators": ' + "[" * 200_000
    with pytest.raises(ParseError):
        told(tmp_path, nested, "nested.json")
    told(tmp_path, answer() + "  Rank 1 a b c d e f -- GPU\n" * 200_000)
    assert time.process_time() - began < 6
