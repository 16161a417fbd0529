"""Stacks of ranks: who is named, what one moment does not tell, and what moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.cli.targets.kinds import CONCLUDING
from preflight.cli.targets.read import facts_of, not_understood, readings_of
from preflight.cli.targets.walk import walk
from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.frames import is_own, place_of, role_of
from preflight.facts.hangs import Stack
from preflight.model import Finding
from tests.conftest import SAMPLES
from tests.stack_text import BACKWARD, BARRIER, COMPUTES, LOADS, OTHER, SAVES, WAITS, faulted, spied

OWN = SAMPLES / "own" / "stacks"
#: Recording of four ranks -> what is found.
TABLE = {
    "loader": "FAIL hang rank 2",
    "loader_faulthandler": "FAIL hang rank 2",
    "save": "WARN hang rank 0",
    "debugger": "FAIL hang rank 1",
    "type": "WARN hang",
    "ring": "ERROR step.unknown",
    "moves": "PASS healthy",
    "moves_faulthandler": "ERROR step.unknown",
}


def diagnosed(path: Path) -> list[Finding]:
    walked = walk([str(path)], path)
    readings = readings_of(facts_of(walked, lambda _: None), Asked(), CONCLUDING)
    return list(findings([*readings, *not_understood(walked)]))


def of_ranks(
    folder: Path, stacks: dict[int, tuple[str, ...]], moment: str = "", name: str = "rank{}{}.txt"
) -> Path:
    for rank, frames in stacks.items():
        (folder / name.format(rank, moment)).write_text(spied(frames, 4700 + rank))
    return folder


def one(found: list[Finding]) -> Finding:
    (only,) = found
    return only


# What was recorded of real ranks.


@pytest.mark.parametrize("name", TABLE)
def test_a_recording_is_judged_as_a_person_would(name: str) -> None:
    found = one(diagnosed(OWN / name))
    assert f"{found.status.value} {found.finding} {found.subject}".rstrip() == TABLE[name]


@pytest.mark.parametrize("form", ["loader", "loader_faulthandler"])
def test_the_rank_whose_loader_hangs_is_the_root(form: str) -> None:
    found = one(diagnosed(OWN / form))
    assert (found.finding, found.subject, found.status.value) == ("hang", "rank 2", "FAIL")
    assert "waits in the loader" in found.text and "rank 0-1,3 wait in all_reduce" in found.text
    assert "in each of 2 looks" in found.text and found.confidence == "medium"
    if form == "loader":
        assert "its loader's process is at _Slow.read_shard" in found.text


def test_the_rank_that_saves_is_suspected_at_one_moment() -> None:
    found = one(diagnosed(OWN / "save"))
    assert (found.finding, found.subject, found.status.value) == ("hang", "rank 0", "WARN")
    assert "at this one moment" in found.text and "_save_checkpoint" in found.text
    assert "a minute later" in found.fix[0]
    assert [e.source.rpartition("/")[2] for e in found.evidence] == ["rank0.txt", "rank1.txt"]


def test_different_collectives_are_told_with_their_places_and_nobody_is_named() -> None:
    found = one(diagnosed(OWN / "type"))
    assert (found.finding, found.subject, found.status.value) == ("hang", "", "WARN")
    assert "all_reduce on rank 0-1,3" in found.text and "broadcast on rank 2" in found.text


def test_all_in_the_same_call_is_not_confirmed_and_names_the_recorder() -> None:
    found = one(diagnosed(OWN / "ring"))
    assert (found.finding, found.status.value) == ("step.unknown", "ERROR")
    assert "recv" in found.text and "unconfirmed" in found.text
    assert "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1" in found.fix[0]


def test_who_stands_in_a_debugger_is_sure_at_once() -> None:
    found = one(diagnosed(OWN / "debugger"))
    assert (found.subject, found.status.value, found.confidence) == ("rank 1", "FAIL", "high")


def test_a_run_that_goes_on_is_no_hang() -> None:
    assert one(diagnosed(OWN / "moves")).finding == "healthy"  # a rank left its collective
    # Two have come to one between the looks: they go on, of the others nothing is known.
    found = one(diagnosed(OWN / "moves_faulthandler"))
    assert found.finding == "step.unknown" and "rank 1,3 moved between looks" in found.text


# What is made up.


def test_the_canonical_hang_of_32_ranks(tmp_path: Path) -> None:
    stacks = dict.fromkeys(range(1, 32), WAITS)
    found = one(diagnosed(of_ranks(tmp_path, {0: LOADS, **stacks})))
    assert (found.finding, found.subject, found.status.value) == ("hang", "rank 0", "WARN")
    assert "rank 1-31 wait in all_reduce at reduce_gradients (train.py:40)" in found.text


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (SAVES, "writes a checkpoint at save_checkpoint (checkpoint.py:55)"),
        (LOADS, "waits in the loader at train (train.py:33)"),
        (COMPUTES, "is at forward (model.py:77)"),
        (("acquire (filelock/_api.py:300)", "cache (data.py:9)"), "waits for a lock"),
        (("read (ssl.py:1100)", "request (urllib3/x.py:1)", "get (data.py:9)"), "the network"),
        (("emit (logging/__init__.py:1100)", "log (train.py:9)"), "writes a log at log"),
        (("builtin_print (libpython3.11.so)", "log (train.py:9)"), "writes a log at log"),
        (("_io_FileIO_readall (libpython3.11.so)", "get (data.py:9)"), "reads or writes a file"),
        (("take_gil (libpython3.11.so)", "c10d::Work::wait (x.so)", *WAITS), "interpreter's lock"),
        ((COMPUTES[0], "evaluate (eval.py:12)", COMPUTES[2]), "within evaluate (eval.py:12)"),
        (("load (torch/serialization.py:1100)", "resume (train.py:9)"), "reads a checkpoint"),
        (("synchronize (torch/cuda/__init__.py:1)", "t (train.py:9)"), "waits for its device"),
    ],
)
def test_what_the_root_does_instead(tmp_path: Path, frames: tuple[str, ...], said: str) -> None:
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 2: frames, 3: WAITS})
    found = diagnosed(tmp_path)
    if "device" in said:  # it may wait for the same collective there
        assert one(found).finding == "step.unknown" and not one(found).subject
    else:
        assert one(found).subject == "rank 2" and said in one(found).text


def test_the_ranks_of_a_host_at_one_place_are_one_finding(tmp_path: Path) -> None:
    of_ranks(tmp_path, {n: LOADS if n // 8 == 1 else WAITS for n in range(32)})
    found = one(diagnosed(tmp_path))
    assert found.subject == "rank 8-15" and "each waits in the loader" in found.text
    of_ranks(tmp_path, {9: SAVES, 3: COMPUTES})
    assert [each.subject for each in diagnosed(tmp_path)] == ["rank 3", "rank 8,10-15", "rank 9"]


def test_waiting_for_the_device_is_waiting_for_others(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: BACKWARD, 1: BACKWARD, 2: LOADS, 3: BACKWARD})
    assert one(diagnosed(tmp_path)).subject == "rank 2"


def test_a_save_within_which_all_wait_for_each_other_is_waiting(tmp_path: Path) -> None:
    frames = (*BARRIER[:2], "save (torch/distributed/checkpoint/state_dict_saver.py:1)", *SAVES[2:])
    of_ranks(tmp_path, {0: COMPUTES, 1: frames, 2: frames})
    assert one(diagnosed(tmp_path)).subject == "rank 0"


def test_a_rank_that_is_alone_in_a_collective_blames_nobody(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: COMPUTES, 1: WAITS, 2: COMPUTES, 3: COMPUTES})
    found = one(diagnosed(tmp_path))
    assert (found.finding, found.subject) == ("step.unknown", "")
    assert "may have called all_reduce alone" in found.text


def test_a_barrier_of_evaluation_beside_training_is_the_programs(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: BARRIER, 1: WAITS, 2: WAITS, 3: WAITS}, "_1")
    of_ranks(tmp_path, {0: BARRIER, 1: WAITS, 2: WAITS, 3: WAITS}, "_2")
    found = one(diagnosed(tmp_path))
    assert found.status.value == "FAIL" and not found.subject
    assert "barrier on rank 0 at evaluate (eval.py:12)" in found.text


def test_one_process_alone_says_where_it_is_and_how_to_get_the_others(tmp_path: Path) -> None:
    (tmp_path / "stack.txt").write_text(spied(LOADS))
    found = one(diagnosed(tmp_path / "stack.txt"))
    assert (found.finding, found.status.value) == ("step.unknown", "ERROR")
    assert "PID 4711 waits in the loader at train (train.py:33)" in found.text
    assert "py-spy dump --pid PID" in found.fix[0] and "--hosts" in found.fix[0]


def test_two_equal_looks_confirm_by_how_far_they_are_apart(tmp_path: Path) -> None:
    stacks = {0: WAITS, 1: WAITS, 2: LOADS}
    for first, second, status, confidence in (
        ("_1", "_2", "FAIL", "medium"),
        ("_20260102_030405", "_20260102_030700", "FAIL", "high"),
        ("_20260102_030405", "_20260102_030408", "WARN", "medium"),
    ):
        folder = tmp_path / second
        folder.mkdir()
        of_ranks(of_ranks(folder, stacks, first), stacks, second)
        found = one(diagnosed(folder))
        assert (found.subject, found.status.value, found.confidence) == (
            "rank 2", status, confidence,
        )  # fmt: skip


def test_one_that_goes_on_elsewhere_is_no_hang_and_no_health(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 2: LOADS}, "_1")
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 2: COMPUTES}, "_2")
    found = one(diagnosed(tmp_path))
    assert found.finding == "step.unknown" and "rank 2 moved" in found.text


def test_a_rank_that_left_its_collective_shows_that_all_came(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 2: LOADS}, "_1")
    of_ranks(tmp_path, {0: LOADS, 1: WAITS, 2: LOADS}, "_2")
    assert one(diagnosed(tmp_path)).finding == "healthy"


def test_all_in_the_same_place_again_and_again_is_a_hang_without_a_name(tmp_path: Path) -> None:
    """Two looks whose times are not told may be of one step: a sound job waits there too."""
    for moment in ("_1", "_2"):
        of_ranks(tmp_path, dict.fromkeys(range(4), WAITS), moment)
    assert one(diagnosed(tmp_path)).finding == "step.unknown"
    of_ranks(tmp_path, dict.fromkeys(range(4), WAITS), "_3")
    found = one(diagnosed(tmp_path))
    assert (found.finding, found.subject) == ("hang", "") and "unconfirmed" in found.text
    assert "TORCH_FR_BUFFER_SIZE" in found.fix[0]


def test_files_of_unknown_ranks_are_named_by_pid_and_containers_by_file(tmp_path: Path) -> None:
    for name, frames, pid in (("a", WAITS, 11), ("b", WAITS, 12), ("c", LOADS, 13)):
        (tmp_path / f"{name}.txt").write_text(spied(frames, pid))
    assert one(diagnosed(tmp_path)).subject == "PID 13"
    pods = tmp_path / "pods"
    for name, frames in (("pod-a", WAITS), ("pod-b", WAITS), ("pod-c", LOADS)):
        (pods / name).mkdir(parents=True)
        (pods / name / f"{name}.txt").write_text(spied(frames, 1))
    assert one(diagnosed(pods)).subject == "pod-c.txt"


def test_local_ranks_are_called_so_unless_a_number_is_there_twice(tmp_path: Path) -> None:
    def text(local: int, frames: tuple[str, ...], pid: int) -> str:
        return spied(frames, pid, f"python train.py --local_rank={local}")

    one_host = "\n".join(text(n, LOADS if n == 1 else WAITS, 50 + n) for n in range(4))
    (tmp_path / "all.txt").write_text(one_host)
    assert one(diagnosed(tmp_path / "all.txt")).subject == "local rank 1"
    two = "\n".join(text(n % 2, LOADS if n == 3 else WAITS, 50 + n) for n in range(4))
    (tmp_path / "two.txt").write_text(two)
    assert one(diagnosed(tmp_path / "two.txt")).subject == "PID 53"


def test_launchers_and_workers_are_no_ranks(tmp_path: Path) -> None:
    launcher = ("run (torch/distributed/elastic/agent/server/api.py:711)", "<module> (torchrun:7)")
    worker = ("get (multiprocessing/queues.py:1)",
              "_worker_loop (torch/utils/data/_utils/worker.py:260)")  # fmt: skip
    text = spied(launcher, 1) + "\n" + spied(worker, 77) + "\n"
    text += spied(WAITS, 2) + "\n" + spied(LOADS, 3)
    (tmp_path / "host.txt").write_text(text)
    found = one(diagnosed(tmp_path / "host.txt"))
    assert found.subject == "PID 3" and "1 ranks wait" in found.against[0]


def test_a_thread_that_holds_the_interpreters_lock_is_told(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: WAITS, 1: WAITS})
    (tmp_path / "rank2.txt").write_text(spied(COMPUTES, 9, second="active+gil"))
    assert (
        "its thread heartbeat at Thread.run (threading.py:975) holds"
        in one(diagnosed(tmp_path)).text
    )


def test_a_fatal_signal_is_the_end_and_not_a_hang(tmp_path: Path) -> None:
    of_ranks(tmp_path, {0: WAITS, 1: WAITS})
    text = f"Fatal Python error: Segmentation fault\n\n{faulted(COMPUTES)}"
    (tmp_path / "rank2.txt").write_text(text)
    found = one(diagnosed(tmp_path))
    assert (found.finding, found.subject) == ("crash", "rank 2")
    assert "Segmentation fault at forward (/job/model.py:77)" in found.text


def test_stacks_within_a_log_tell_where_it_ended(tmp_path: Path) -> None:
    steps = "".join(f"step {n}: loss={3 - n / 100:.3f} time={0.5} s\n" for n in range(40))
    text = f"Fatal Python error: Segmentation fault\n\n{faulted(COMPUTES)}"
    path = tmp_path / "rank2.log"
    path.write_text(steps + text)
    found = diagnosed(path)
    assert [one.finding for one in found] == ["crash"]
    assert "rank 2 ended by Segmentation fault at forward (/job/model.py:77)" in found[0].text
    path.write_text(faulted(COMPUTES).join(("starting training\n", steps * 3)))
    assert not [one for one in diagnosed(path) if one.finding in ("hang", "crash")]


def test_a_watchdog_makes_sure_of_what_stacks_suspect(tmp_path: Path) -> None:
    line = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, "
    line += (
        "NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600021 milliseconds before timing out."
    )
    (tmp_path / "train.log").write_text(f"[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] {line}\n")
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 2: LOADS})
    found = {one.subject: one for one in diagnosed(tmp_path)}
    assert found["rank 2"].status.value == "FAIL" and found["rank 2"].confidence == "high"


def test_dumps_name_the_rank_and_its_stack_says_where_it_is(tmp_path: Path) -> None:
    dumps = SAMPLES / "own" / "flight_recorder" / "never"
    for path in dumps.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    of_ranks(tmp_path, {0: WAITS, 1: WAITS, 2: LOADS, 3: WAITS})
    found = one(diagnosed(tmp_path))
    assert found.subject == "rank 2" and found.status.value == "FAIL"
    assert "it has not entered" in found.text and "waits in the loader" in found.text
    assert {each.probe for each in found.evidence} >= {"flight-recorder", "stacks"}


def test_places_roles_and_own_frames() -> None:
    def stack(*frames: str) -> Stack:
        return Stack("x", 1, frames=frames)

    assert place_of(stack(*WAITS)).call == "all_reduce"
    objects = ("all_gather (torch/distributed/distributed_c10d.py:1)", WAITS[1],
               "all_gather_object (torch/distributed/distributed_c10d.py:2)", WAITS[1],
               "gather (train.py:3)")  # fmt: skip
    assert place_of(stack(*objects)).text == "waits in all_gather_object at gather (train.py:3)"
    assert place_of(stack("c10d::Work::wait (libtorch.so)", "step (t.py:1)")).kind == "collective"
    assert place_of(stack()).site == "?"
    forked = ("step (train.py:1)", "run (multiprocessing/process.py:1)",
              "BaseProcess._bootstrap (multiprocessing/process.py:2)",
              "spawn (torch/multiprocessing/spawn.py:3)")  # fmt: skip
    assert role_of(stack(*forked)) == "rank" and role_of(stack(forked[3])) == "launcher"
    assert is_own("f (train.py:1)") and is_own("f (/home/u/lib/train.py:1)")
    for frame in ("f (queue.py:1)", "f (torch/x.py:1)", "f (/usr/lib/python3.11/queue.py:1)",
                  "f (/x/site-packages/a.py:1)", "f (libc.so.6)", OTHER[0]):  # fmt: skip
        assert not is_own(frame), frame
