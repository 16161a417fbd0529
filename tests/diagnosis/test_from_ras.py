"""What NCCL's RAS service proves, and what one answer of it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.hang.from_ras import reading
from preflight.facts.process import HostLook, KeptLooks
from preflight.logs.hangs.ras import read
from preflight.model import Finding
from tests.diagnosis.test_from_stacks import diagnosed, of_ranks
from tests.ras_text import DEAD, FAILED, MISSING, answer, as_json, mismatch
from tests.stack_text import LOADS, WAITS


def found_in(folder: Path, *texts: str) -> list[Finding]:
    files = []
    for number, text in enumerate(texts):
        path = folder / f"ras{number}.txt"
        path.write_text(text)
        files.append(read(path, lambda _: None))
    made = reading({"ras": files}, Asked())
    assert made is not None
    return list(findings([made]))


def one(found: list[Finding]) -> Finding:
    (only,) = found
    return only


def test_a_dead_process_is_the_root_by_its_rank(tmp_path: Path) -> None:
    for text in (answer("INCOMPLETE", DEAD),
                 as_json(dict.fromkeys((0, 1, 2, 3, 4, 6, 7), 9), missing={5: True})):  # fmt: skip
        found = one(found_in(tmp_path, text))
        assert (found.finding, found.subject, found.status.value, found.confidence) == (
            "hang", "rank 5", "FAIL", "high",
        )  # fmt: skip
        assert "on 10.0.0.12 (GPU 1) is dead" in found.text and found.evidence[0].line


def test_one_of_a_part_of_the_job_is_called_by_its_process(tmp_path: Path) -> None:
    part = json.loads(as_json({0: 9, 1: 9, 2: 9}, size=4, missing={3: True}))
    whole = json.loads(as_json(dict.fromkeys(range(8), 9)))
    whole["communicators"] += [{**part["communicators"][0], "hash": "0x77"}]
    assert one(found_in(tmp_path, json.dumps(whole))).subject == "PID 6203 on 10.0.0.11"


def test_one_that_does_not_answer_is_suspected_and_twice_is_sure(tmp_path: Path) -> None:
    text = answer("INCOMPLETE", MISSING)
    found = one(found_in(tmp_path, text))
    assert (found.subject, found.status.value) == ("rank 5", "WARN")
    assert "ask again" in found.fix[0]
    found = one(found_in(tmp_path, text, text))
    assert (found.subject, found.status.value) == ("rank 5", "FAIL")


def test_processes_that_are_counted_and_not_named(tmp_path: Path) -> None:
    wrong = "DEAD\n  64 job processes are considered dead (unreachable via the RAS network)\n"
    found = one(found_in(tmp_path, answer("INCOMPLETE", wrong)))
    assert found.status.value == "FAIL" and found.text.startswith("64 more processes are dead")


def test_an_error_of_a_communicator_is_told_without_its_echo(tmp_path: Path) -> None:
    found = one(found_in(tmp_path, answer("ERROR", FAILED)))
    assert found.finding == "crash" and "Unhandled CUDA error on rank 6" in found.text
    echo = FAILED.replace("Unhandled CUDA error", "Remote process error")
    found = one(found_in(tmp_path, answer("ERROR", echo)))
    assert found.confidence == "medium" and "the first is elsewhere" in found.against[0]


def test_one_answer_proves_no_hang_whatever_it_counts(tmp_path: Path) -> None:
    for text in (answer(), answer("MISMATCH", "", mismatch()), as_json({0: 9, 1: 8, 2: 9})):
        found = one(found_in(tmp_path, text))
        assert (found.finding, found.status.value) == ("step.unknown", "ERROR")
        assert "ncclras -f json twice" in found.fix[0]


def counts(behind: int, ahead: int, at: str) -> str:
    return as_json({rank: behind if rank == 3 else ahead for rank in range(8)}, at=at)


def test_a_rank_that_stays_behind_while_nothing_moves_is_the_root(tmp_path: Path) -> None:
    first = counts(636, 640, "2026-01-02 03:04:05")
    for at, status in (("2026-01-02 03:05:35", "FAIL"), ("2026-01-02 03:04:35", "WARN")):
        found = one(found_in(tmp_path, first, counts(636, 640, at)))
        assert (found.finding, found.subject, found.status.value) == ("hang", "rank 3", status)
        assert "has launched 636 of AllReduce, 7 others 640" in found.text
        assert "py-spy dump --pid 6203 on 10.0.0.11" in found.fix[0]
    found = one(found_in(tmp_path, first, counts(636, 640, "2026-01-02 03:04:08")))
    assert found.finding == "step.unknown"


def test_text_that_tells_no_time_is_sure_of_three(tmp_path: Path) -> None:
    text = answer("MISMATCH", "", mismatch())
    assert [one(found_in(tmp_path, *[text] * n)).status.value for n in (2, 3)] == ["WARN", "FAIL"]


def test_most_behind_name_nobody(tmp_path: Path) -> None:
    def text(at: str) -> str:
        return as_json({rank: 640 if rank == 3 else 636 for rank in range(8)}, at=at)

    found = one(found_in(tmp_path, text("2026-01-02 03:04:05"), text("2026-01-02 03:06:05")))
    assert not found.subject and "most are behind" in found.text


def test_counts_that_grow_are_no_hang(tmp_path: Path) -> None:
    one_, two = counts(636, 640, "2026-01-02 03:04:05"), counts(690, 694, "2026-01-02 03:05:05")
    assert one(found_in(tmp_path, one_, two)).finding == "healthy"
    texts = answer("MISMATCH", "", mismatch()), answer("MISMATCH", "", mismatch(650, 650 + 4))
    assert one(found_in(tmp_path, *texts)).finding == "healthy"
    assert one(found_in(tmp_path, texts[0], answer())).finding == "healthy"  # it has caught up


def test_equal_counts_that_stand_are_suspected_without_a_name(tmp_path: Path) -> None:
    first, second = (counts(640, 640, f"2026-01-02 03:0{n}:05") for n in (4, 6))
    found = one(found_in(tmp_path, first, second))
    assert (found.finding, found.subject, found.status.value) == ("hang", "", "WARN")
    assert "a save, an evaluation or a long step" in found.text


def test_one_that_is_always_behind_may_be_slow_and_others_in_turn_are_not(tmp_path: Path) -> None:
    def text(slow: int, at: int) -> str:
        return as_json({rank: 100 * at - (rank == slow) for rank in range(8)},
                       at=f"2026-01-02 03:{at:02}:05")  # fmt: skip

    found = one(found_in(tmp_path, *(text(6, at) for at in range(4, 9))))
    assert (found.finding, found.subject, found.status.value) == ("straggler", "rank 6", "WARN")
    found = one(found_in(tmp_path, *(text(at % 3, at) for at in range(4, 9))))
    assert found.finding == "healthy"
    assert one(found_in(tmp_path, text(6, 4), text(6, 5))).finding == "healthy"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (answer("INCOMPLETE", DEAD), ["hang"]),
        (answer("INCOMPLETE", MISSING), ["hang"]),
        (answer("MISMATCH", "", mismatch()), []),
        (answer(), []),
        ("", []),
        ("ERROR\n", []),
    ],
)
def test_a_look_at_a_running_job_takes_what_is_wrong(text: str, told: list[str]) -> None:
    looks = [HostLook("n1", ras=text), HostLook("n2", ras=text)]
    made = reading({"look": looks[:1], "kept-looks": [KeptLooks("k", tuple(looks[1:]))]}, Asked())
    found = findings([made]) if made else ()
    assert [each.finding for each in found] == told
    assert all(each.subject == "rank 5" for each in found)


def test_stacks_and_the_service_agree_on_one_rank(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 3: LOADS, 4: WAITS})
    for number in (0, 1, 2):
        text = answer("MISMATCH", "", mismatch())
        (tmp_path / f"ras{number}.txt").write_text(text)
    found = one(diagnosed(tmp_path))
    assert found.subject == "rank 3" and found.status.value == "FAIL"
    assert "has launched 640" in found.text and "waits in the loader" in found.text
