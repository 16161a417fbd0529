"""Files of stacks: what is one, whose they are, and what is damaged."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight.cli.targets.walk import head_of, kind_of
from preflight.errors import ParseError
from preflight.facts.hangs import StackFile, StackProcess
from preflight.logs.hangs.stacks import rank_of, read, sniff, time_of
from tests.conftest import SAMPLES
from tests.stack_text import COMPUTES, LOADS, WAITS, faulted, spied

OWN = SAMPLES / "own" / "stacks"


def told(folder: Path, text: str | bytes, name: str = "rank3.txt") -> StackFile:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    assert kind_of(head_of(path), name).name == "stacks"  # type: ignore[union-attr]
    return read(path, lambda _: None)


def main(process: StackProcess) -> tuple[str, ...]:
    (one,) = (one for one in process.threads if one.main)
    return one.frames


def test_every_recorded_file_is_one_of_stacks_and_wholly_read() -> None:
    paths = sorted(one for one in OWN.rglob("*") if one.is_file())
    assert len(paths) == 40
    for path in paths:
        assert kind_of(head_of(path), path.name).name == "stacks", path  # type: ignore[union-attr]
        found = read(path, lambda _: None)
        assert found.unread == 0 and found.rank == int(path.name[4]), path
        for process in found.processes:
            assert main(process)[-1].startswith(("<module> (", "0x")), path


def test_processes_of_a_loader_name_their_parent() -> None:
    found = read(OWN / "loader" / "rank2_1.txt", lambda _: None)
    rank, worker = found.processes
    assert worker.parent == rank.pid and rank.local_rank == 2 and rank.parent is None
    assert main(worker)[0] == "_Slow.read_shard (stacks_of_four_ranks.py:53)"


def test_variables_are_no_frames_and_tell_the_rank() -> None:
    (one,) = read(OWN / "save" / "rank2.txt", lambda _: None).processes
    assert one.rank == 2
    assert main(one)[0] == "all_reduce (torch/distributed/distributed_c10d.py:3252)"
    assert not any("Arguments" in frame or "store:" in frame for frame in main(one))


def test_json_and_text_are_the_same_stack(tmp_path: Path) -> None:
    data = (OWN / "type" / "rank2.json").read_text()
    (one,) = told(tmp_path, data, "rank2.json").processes
    assert main(one)[0].endswith("/torch/distributed/distributed_c10d.py:3151)")
    both = told(tmp_path, data + data, "two.json")
    assert len(both.processes) == 2 and both.processes[1].line > 1


def test_faulthandler_asked_twice_is_one_process_at_two_moments() -> None:
    first, second = read(OWN / "loader_faulthandler" / "rank2.txt", lambda _: None).processes
    assert first.mark == second.mark and main(first) == main(second)
    assert main(first)[0] == "select (/usr/lib/python3.11/selectors.py:415)"


def test_a_dump_after_some_time_has_no_current_thread(tmp_path: Path) -> None:
    text = f"Timeout (0:05:00)!\n{faulted(WAITS, current=False)}" * 2
    first, second = told(tmp_path, text).processes
    assert main(first) == main(second) and "all_reduce" in main(first)[0]


def test_memory_and_times_between_the_stacks_of_a_guarded_rank(tmp_path: Path) -> None:
    memory = "VmRSS:\t  200 kB\n" + "| Allocated memory | 1 GiB |\n" * 50 + "\n"
    text = "".join(f"{faulted(LOADS)}== 2026-01-02T03:0{n}:05Z, SIGUSR2\n{memory}" for n in (4, 6))
    first, second = told(tmp_path, text).processes
    assert first.mark == second.mark and main(first) == main(second)
    assert first.time_s is not None and second.time_s == first.time_s + 120


def test_the_signal_that_ended_it_is_told(tmp_path: Path) -> None:
    (one,) = told(tmp_path, f"Fatal Python error: Bus error\n\n{faulted(COMPUTES)}").processes
    assert one.fatal == "Bus error"


def test_each_section_of_torchs_debug_server_is_a_rank(tmp_path: Path) -> None:
    text = "PARTIAL DATA: 2/3 workers responded\n  Rank 2: timed out\n\n" + "\n".join(
        f"=== Rank {rank}: http://n{rank}:9000/handler/pyspy_dump?nonblocking=1 ===\n"
        + spied(WAITS, 100 + rank) for rank in (0, 1)
    )  # fmt: skip
    found = told(tmp_path, text, "pyspy_dump_20260102_030405.txt")
    assert [one.rank for one in found.processes] == [0, 1]
    assert found.processes[1].host == "http://n1:9000"
    other = told(tmp_path, "\n".join(f"=== Rank {n}: http://h ===\n{faulted(WAITS, 64 * n)}"
                                     for n in (0, 1)), "stacks_20260102_030405.txt")  # fmt: skip
    assert [one.rank for one in other.processes] == [0, 1]
    assert found.time_s is not None and found.time_s == other.time_s


@pytest.mark.parametrize(
    "head", ["==> rank{}.txt <==", "=== rank {} ===", "# rank={}", "[rank {}]"]
)
@pytest.mark.parametrize("write", [spied, faulted])
def test_files_of_ranks_one_after_another_under_a_head(
    tmp_path: Path, head: str, write: Callable[..., str]
) -> None:
    text = "\n".join(f"{head.format(rank)}\n{write(WAITS, 7000 + rank)}" for rank in (4, 11))
    assert [one.rank for one in told(tmp_path, text, "all.txt").processes] == [4, 11]


def test_lines_of_several_ranks_mixed_by_a_launcher_are_told_apart(tmp_path: Path) -> None:
    pairs = zip(faulted(WAITS, 16).split("\n"), faulted(LOADS, 32).split("\n"), strict=False)
    text = "".join(f"[rank0]: {one}\n[rank1]: {two}\n" for one, two in pairs)
    found = told(tmp_path, text)
    assert [(one.rank, main(one)[0].split()[0]) for one in found.processes] == [
        (0, "all_reduce"), (1, "wait"),
    ]  # fmt: skip


def test_hosts_before_lines_of_py_spy(tmp_path: Path) -> None:
    text = "".join(f"{host}: {line}\n" for host in ("node-1", "node-2")
                   for line in spied(WAITS).split("\n"))  # fmt: skip
    assert [one.host for one in told(tmp_path, text).processes] == ["node-1", "node-2"]


def test_colours_and_words_of_the_shell_before_it(tmp_path: Path) -> None:
    text = spied(WAITS).replace("all_reduce", "\x1b[32mall_reduce\x1b[0m")
    (one,) = told(tmp_path, f"+ py-spy dump --pid 4711\r\n{text}").processes
    assert main(one)[0].startswith("all_reduce (")


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    (one,) = told(tmp_path, gzip.compress(spied(WAITS).encode()), "rank1.txt.gz").processes
    assert main(one)[0].startswith("all_reduce (")


def test_ranks_and_times_of_names() -> None:
    names = {"rank3.txt": 3, "node12_rank_7_1.txt": 7, "stack-rank.12.json": 12, "4711.txt": None,
             "node3.txt": None, "ranks.txt": None}  # fmt: skip
    assert {name: rank_of(name) for name in names} == names
    when = time_of("stacks_20260102_030405.txt")
    assert when is not None and time.localtime(when)[:6] == (2026, 1, 2, 3, 4, 5)
    assert time_of("stacks_20269902_030405.txt") is None and time_of("rank3.txt") is None


STEPS = "".join(f"step {n} | loss {3 - n / 100:.3f} | 512 ms\n" for n in range(60))


@pytest.mark.parametrize(
    "text",
    [
        STEPS + "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 3, in <module>\n    main()\nValueError: x\n',
        STEPS + f"Fatal Python error: Aborted\n\n{faulted(WAITS)}",
        STEPS + spied(WAITS) + STEPS,
        f"starting\n{faulted(WAITS)}{STEPS}",
        "Process 12: started\n" + STEPS,
        "Traceback (most recent call last):\n" + STEPS,
    ],
)
def test_a_log_with_stacks_in_it_is_a_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(text)
    assert not sniff(text.encode()[:65536], path.name)
    assert kind_of(head_of(path), path.name).name == "log"  # type: ignore[union-attr]


def test_other_json_is_none() -> None:
    for text in (
        '[{"ph": "X", "pid": 1}]',
        "[]",
        "[[[[",
        '{"owns_gil": 1, "frames": []}',
        "[1, 2]",
    ):
        assert not sniff(text.encode(), "x.json")
    assert not sniff(b"\0\0Process 1: x", "x")


def test_py_spy_that_may_not_look_is_told(tmp_path: Path) -> None:
    text = "Permission Denied: Try running again with elevated permissions by going 'sudo ...'\n"
    with pytest.raises(ParseError, match="could not look: Permission Denied"):
        told(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "Process 1: x\n",
        'Process 1: x\nPython v3.11.7 (/usr/bin/python3)\n\nThread 1 (idle): "MainThr',
        "Thread 0x00007f00 (most recent call first):\n",
        '[\n {"pid": 1, "owns_gil": false, "frames": [{"name": "f"',
        '[{"pid": 1, "owns_gil": false, "frames": ' + "[" * 50_000,
    ],
)
def test_what_is_cut_before_a_stack_has_a_word(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rank0.txt"
    path.write_text(text)
    with pytest.raises(ParseError, match="cut"):
        read(path, lambda _: None)


def test_values_of_odd_kinds_are_left_out(tmp_path: Path) -> None:
    odd = [{"pid": "x", "thread_name": 7, "os_thread_id": None, "owns_gil": 3, "frames": [
        {"name": None, "filename": 3, "line": "y", "locals": [1, {"name": "rank", "repr": "-1"}]},
        "f", None]}, 3, {"frames": {"a": 1}, "owns_gil": None, "process_info": []}]  # fmt: skip
    (one,) = told(tmp_path, json.dumps(odd), "x.json").processes
    assert main(one) == ("? (3)",) and one.rank is None and one.pid is None


def test_very_many_threads_and_frames_end_soon_in_bounded_memory(tmp_path: Path) -> None:
    frames = "    f (x.py:1)\n" * 100_000
    threads = 'Thread 1 (idle): "a"\n    f (x.py:1)\n' * 20_000
    began = time.process_time()
    found = told(tmp_path, f'Process 1: x\nThread 2 (idle): "b"\n{frames}{threads}')
    assert len(found.processes[0].threads) <= 513 and time.process_time() - began < 3
    assert max(len(one.frames) for one in found.processes[0].threads) <= 256
