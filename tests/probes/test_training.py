"""Runs of the bundled training loop: sound, with each fault, cut, interrupted, and lines that are
none."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from preflight.collect import examine
from preflight.errors import ParseError
from preflight.judge.load import load
from preflight.judge.overrides import mark
from preflight.model import Action, HostReport, Missing, Raw, Status
from preflight.probes.training.run import training
from preflight.recognise import recognise
from preflight.redact.redactor import Redactor
from tests.conftest import SAMPLES, sample, sample_bytes
from tests.training_lines import lines, slowed, text

CHECKS = load(("training",)).checks

#: sample -> the verdict, then one line per check that did not pass: status, check, subject.
TABLE: dict[str, tuple[str, ...]] = {
    "sweep_loader": ("PASS",),
    "cpu_ddp_x2": ("PASS",),
    "cpu_fsdp_x2": ("PASS",),
    "cpu_single_fp16": ("PASS",),
    "injected_slow_rank": ("WARN", "WARN training.straggler rank 1"),
    "injected_slow_loader": ("WARN", "WARN training.data.wait input"),
    "injected_kill": ("FAIL", "FAIL training.ranks rank 1"),
    "injected_stop": ("FAIL", "FAIL training.ranks rank 1"),
    "injected_nan": ("FAIL", "FAIL training.finite input"),
    "injected_lost_optimizer": (
        "FAIL", "FAIL training.resume.loss input", "FAIL training.resume.parameters input",
    ),
    "injected_full_disk": ("FAIL", "FAIL training.checkpoint.written input"),
    "injected_corrupt_checkpoint": ("FAIL", "FAIL training.checkpoint.sound input"),
    "injected_flip_weight": ("FAIL", "FAIL training.replicas input"),
}  # fmt: skip


def judged(told: str, *, rc: int | None = 0, argv: tuple[str, ...] = ()) -> HostReport:
    return examine("input", [Raw("input", "micro-train", argv, rc, told)], CHECKS)


def unsound(report: HostReport) -> set[str]:
    return {
        f"{one.status.value} {one.check} {one.subject}"
        for one in report.results
        if one.status not in (Status.PASS, Status.SKIP)
    }


def written(told: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in told)


@pytest.mark.parametrize("name", TABLE)
def test_a_recorded_run_is_recognised_and_judged(name: str) -> None:
    (raw,) = recognise(sample_bytes(f"micro_train/{name}.jsonl"), name)
    assert raw.probe == "micro-train"
    report = judged(str(raw.stdout))
    assert unsound(report) == set(TABLE[name][1:])
    assert report.verdict.value == TABLE[name][0]


def test_every_sample_is_in_the_table() -> None:
    assert {path.stem for path in (SAMPLES / "micro_train").glob("*.jsonl")} == set(TABLE)


def test_the_rank_that_went_first_is_named_and_the_other_is_not_at_fault() -> None:
    found = {one.name: one for one in _ranks(sample("micro_train/injected_kill.jsonl"))}
    assert (found["rank 1"].ended, found["rank 1"].trouble) == (
        False, "ended by signal 9 after step 12",
    )  # fmt: skip
    assert found["rank 0"].ended == Missing("not-applicable", "it was ended because of rank 1")
    for_memory = sample("micro_train/injected_kill.jsonl").replace(
        '"status":-9', '"status":-9,"oom_kills":1'
    )
    assert _ranks(for_memory)[1].trouble == (
        "ended by signal 9 after step 12: the kernel ended a process here for want of memory "
        "meanwhile"
    )
    stopped, *_ = training(sample("micro_train/injected_stop.jsonl")).failures
    assert (stopped.name, stopped.kind) == ("rank 1", "silent")
    assert stopped.text.endswith("stopped by a signal")


def test_an_error_of_its_own_counts_before_a_connection_that_was_lost() -> None:
    told = [one for one in lines() if (one["kind"], one.get("launch")) != ("done", "whole")]
    lost = {"launch": "whole", "kind": "failed", "error": "RuntimeError",
            "text": "gloo: Connection closed by peer", "rank": 0}  # fmt: skip
    memory = {"launch": "whole", "kind": "failed", "error": "OutOfMemoryError",
              "text": "CUDA out of memory", "rank": 1}  # fmt: skip
    found = {one.name: one for one in _ranks(written([*told[:60], lost, memory]))}
    assert found["rank 1"].trouble == "OutOfMemoryError: CUDA out of memory"
    assert isinstance(found["rank 0"].ended, Missing)


@pytest.mark.parametrize(
    ("loss", "of_both", "found"),
    [("NaN", True, 0.0), ("NaN", False, math.inf), ("Infinity", False, math.inf)],
)
def test_what_is_no_number_in_both_runs_is_no_difference(
    loss: str, of_both: bool, found: float
) -> None:
    launches = "(?:whole|resumed)" if of_both else "resumed"
    edit = rf'("launch":"{launches}","kind":"step","step":20,"loss":)[\d.]+'
    told, count = re.subn(edit, rf"\g<1>{loss}", text())
    assert count
    assert training(told).resume.loss_difference == found


#: A recorded run -> its cause, and what it brings.
FOLLOW = {
    "nan": ("training.finite", ("training.loss.learned", "training.resume.loss")),
    "flip": ("training.replicas", ("training.resume.loss", "training.resume.parameters")),
}


@pytest.mark.parametrize("name", FOLLOW)
def test_the_cause_leads_and_what_follows_is_counted(name: str) -> None:
    cause, follow = FOLLOW[name]
    edits = {
        "nan": [('("step":2[0-9],"loss":)[\\d.]+', r"\g<1>NaN"), ('("floor_nats":)', r"\g<1>-9")],
        "flip": [('("step_at":20,"digest":")r20(","rank":1)', r"\g<1>other\g<2>")],
    }[name]
    edits += [('("launch":"resumed","kind":"step","step":16,"loss":)[\\d.]+', r"\g<1>1.9"),
              ('("launch":"resumed","kind":"done","digest":")e32', r"\g<1>f32")]  # fmt: skip
    told = text()
    for old, new in edits:
        told, count = re.subn(old, new, told)
        assert count
    bad = {one.check: one.cause for one in judged(told).results if one.status is Status.FAIL}
    assert bad[cause] == ""
    assert set(follow) <= set(bad)
    assert {one for check, one in bad.items() if check != cause} == {cause}


@pytest.mark.parametrize(
    ("status", "step"), [(-9, "oom-kill"), (-15, "squeue"), (-7, "/dev/shm"), (-11, "versions")]
)
def test_what_to_do_is_of_the_signal_that_ended_it(status: int, step: str) -> None:
    told = [one for one in lines() if (one["kind"], one.get("launch")) != ("done", "whole")]
    died = {"launch": "whole", "kind": "died", "rank": 1, "status": status, "step": 12,
            "first": True}  # fmt: skip
    found = judged(written([*told[:60], died])).results
    (one,) = [each for each in found if each.status is Status.FAIL]
    assert step in one.fix[0]
    assert (one.action, len(one.fix)) == (Action.RESTART_JOB, 2)


@pytest.mark.parametrize(
    ("check", "edit", "shown"),
    [
        ("training.replicas", (r'("step_at":20,"digest":")r20(","rank":1)', r"\g<1>odd\g<2>"),
         ('"step_at":20,"digest":"r20","rank":0', '"step_at":20,"digest":"odd","rank":1')),
        ("training.loss.jump", (r'("step":20,"loss":)[\d.]+', r"\g<1>4.5"), ('"step":20,',)),
        ("training.loss.learned", (r'("floor_nats":)', r"\g<1>-9"), ('"step":31,',)),
        ("training.data.longest", (r'("step":20,.*"data":)0.0004', r"\g<1>5.1"), ('"step":20,',)),
    ],
)  # fmt: skip
def test_the_line_that_shows_it_stands_below(
    check: str, edit: tuple[str, str], shown: tuple[str, ...]
) -> None:
    told, count = re.subn(*edit, text())
    assert count
    (one,) = [each for each in judged(told).results if each.check == check]
    seen = [each.text.replace(" ", "") for each in one.evidence]
    assert all(part in line for part, line in zip(shown, seen, strict=True)), seen


def test_when_a_loss_jumped_and_in_what_it_is_counted() -> None:
    told = re.sub(r'("step":20,"loss":)[\d.]+', r"\g<1>4.5", text())
    (one,) = [each for each in judged(told).results if each.check == "training.loss.jump"]
    assert (one.unit, one.reason) == ("nats", "at step 20")


def test_what_a_checkpoint_lacks_decides_what_to_do() -> None:
    sound = '("launch":"resumed","kind":"resumed".*"wrong":\\[)'
    for wrong, step in (("written in part: 1 of 2 bytes", "df -h"), ("other bytes", "gpu-health")):
        told = re.sub(sound, rf'\g<1>"step-00000016: {wrong}"', text())
        (one,) = [each for each in judged(told).results if each.status is Status.FAIL]
        assert (one.check, len(one.fix)) == ("training.checkpoint.sound", 2)
        assert step in one.fix[0]


def test_figures_of_a_sound_run() -> None:
    told = training(text(gpu=True))
    assert isinstance(told.tokens_per_s, float)
    assert told.tokens_per_s == pytest.approx(2 * 8 * 128 / 0.02)
    assert sum(told.shares.values()) == pytest.approx(100)
    assert told.loader_ratio == pytest.approx(900000 * 2 / told.tokens_per_s)
    assert told.first_loss == 5.55
    assert told.chance_loss == pytest.approx(5.545, abs=1e-3)
    assert [one.name for one in told.layers] == ["embedding", "blocks.0"]
    first = _ranks(text(gpu=True))[0]
    assert not isinstance(first.load, Missing)
    assert (first.load.power_w, first.load.samples) == (650, 32)
    assert first.memory.inactive_split_percent == pytest.approx(10)
    assert first.gc_percent == pytest.approx(100 * 0.004 / (32 * 0.02))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
def test_a_run_that_is_cut_short_passes_for_nothing_that_comes_later(share: float) -> None:
    whole = text()
    report = judged(whole[: int(len(whole) * share)])
    assert report.verdict is Status.ERROR
    later = {one.check: one.status for one in report.results}
    assert later["training.resume.loss"] is Status.ERROR or share > 0.8
    assert later["training.resume"] is Status.ERROR
    assert Status.FAIL not in later.values()


def test_an_interrupted_run_is_judged_as_far_as_it_came() -> None:
    told = written([*list(lines())[:60], {"kind": "interrupted"}])
    report = judged(told, rc=130, argv=("python3",))
    reasons = {one.reason for one in report.results if one.status is Status.ERROR}
    assert reasons == {"the run was interrupted"}
    assert any(one.status is Status.PASS for one in report.results)


_PIDS = {"0": 71, "1": 72}
_WORKER = {"rank": 1, "pid": 99, "what": "data worker", "state": "stopped"}


@pytest.mark.parametrize(
    ("told", "rank", "texts"),
    [
        ({"suspects": [1], "stopped": [1], "held": [_WORKER]}, 1,
         "said nothing for 20 s after step 5: its process 99 (data worker) is stopped by a signal"),
        ({"suspects": [1], "stopped": [1], "held": [{**_WORKER, "pid": 72, "what": "rank"}]}, 1,
         "said nothing for 20 s after step 5, stopped by a signal (PID 72)"),
        ({"suspects": [1], "held": [{**_WORKER, "state": "waits in the kernel"}]}, 1,
         "said nothing for 20 s after step 5: its process 99 (data worker) waits in the kernel "
         "(state D)"),
        ({"suspects": [1], "steps": {"0": 6, "1": 5}}, 1,
         "said nothing for 20 s after step 5, behind the others (PID 72)"),
        ({"suspects": [0, 1]}, -1,
         "said nothing for 20 s after step 5, and none is further than the others: which one holds "
         "them is not known (PID 71, 72)"),
    ],
)  # fmt: skip
def test_who_holds_the_others_up(told: dict[str, Any], rank: int, texts: str) -> None:
    silent = {"launch": "whole", "kind": "silent", "after_s": 20.0, "steps": {"0": 5, "1": 5},
              "stopped": [], "held": [], "pids": _PIDS, **told}  # fmt: skip
    whole = [one for one in lines() if one["kind"] != "step" or one["step"] < 6]
    at = next(at for at, one in enumerate(whole) if one["kind"] == "memory")
    report = judged(written([*whole[:at], silent, {"kind": "end"}]))
    found = [one for one in report.results if one.check == "training.ranks"]
    at_fault = {one.subject for one in found if one.status is Status.FAIL}
    assert at_fault == ({f"rank {rank}"} if rank >= 0 else {"rank 0", "rank 1"})
    assert all(texts in str(one) for one in found if one.status is Status.FAIL)
    if rank < 0:
        assert any("py-spy dump --pid PID" in step for one in found for step in one.fix)


def _of_check(report: HostReport, check: str) -> set[str]:
    return {one.status.value for one in report.results if one.check == check}


def test_few_steps_and_a_lost_rank_name_no_slow_one() -> None:
    slow = [json.loads(one) for one in slowed("forward", 0.03, rank=1).splitlines()]
    assert _of_check(judged(written(slow)), "training.straggler") == {"PASS", "WARN"}
    few = [one for one in slow if one["kind"] != "step" or one["step"] < 9]
    assert _of_check(judged(written(few)), "training.straggler") == {"SKIP"}
    at = next(at for at, one in enumerate(slow) if one["kind"] == "memory")
    died = {"launch": "whole", "kind": "died", "rank": 1, "status": -9, "step": 31, "first": True}
    report = judged(written([*slow[:at], died, {"kind": "end"}]))
    assert _of_check(report, "training.straggler") == {"SKIP"}
    assert _of_check(report, "training.ranks") == {"FAIL", "SKIP"}


@pytest.mark.parametrize(("at", "steps", "status"), [(8, 32, "WARN"), (3, 32, "WARN"),
                                                     (8, 24, "WARN"), (8, 10, "SKIP")])  # fmt: skip
def test_a_jump_among_the_first_steps_is_seen(at: int, steps: int, status: str) -> None:
    told = [
        {**one, "loss": one["loss"] + 3} if one["kind"] == "step" and one["step"] == at else one
        for one in lines()
        if one["kind"] != "step" or one["step"] < steps
    ]
    assert _of_check(judged(written(told)), "training.loss.jump") == {status}


def test_a_recording_without_its_beginning_or_its_end_does_not_pass() -> None:
    whole = list(lines())
    assert "its beginning is missing" in judged(written(whole[1:])).results[0].reason
    assert unsound(judged(written(whole[:-1]))) == {"ERROR training.resume input"}
    once = [{**whole[0], "plan": {**whole[0]["plan"], "resume": False}},
            *(one for one in whole[1:] if one.get("launch", "whole") == "whole")]  # fmt: skip
    assert judged(written(once)).verdict is Status.PASS
    assert unsound(judged(written(once[:-1]))) == {
        "ERROR training.ranks rank 0", "ERROR training.ranks rank 1",
    }  # fmt: skip


def test_two_runs_in_one_file_are_none() -> None:
    report = judged(text() + text())
    assert report.verdict is Status.ERROR
    assert "two runs in one file" in report.results[0].reason


def test_a_rank_of_which_nothing_is_there_is_named() -> None:
    found = judged(written([one for one in lines() if one.get("rank") != 1]))
    reasons = {one.reason for one in found.results if one.check == "training.ranks"}
    assert "rank 1 told nothing" in reasons
    assert found.verdict is Status.ERROR


@pytest.mark.parametrize(
    ("rc", "elapsed_s", "why"),
    [(137, 8.0, "python3 was killed by signal 9 after 8 s (memory?)"),
     (139, 8.0, "python3 exited with 139: Segmentation fault"),
     (124, 600.0, "python3 did not end within 600 s")],
)  # fmt: skip
def test_what_ended_a_run_is_told_and_how_far_it_came_is_judged(
    rc: int, elapsed_s: float, why: str
) -> None:
    told = written(list(lines())[:60]) + '{"kind":"st'
    raw = Raw("n", "micro-train", ("python3",), rc, told, "Segmentation fault\n",
              elapsed_s=elapsed_s, limit_s=600)  # fmt: skip
    report = examine("n", [raw], CHECKS)
    assert {one.reason for one in report.results if one.status is Status.ERROR} == {why}
    assert any(one.status is Status.PASS for one in report.results)


def test_what_cannot_be_done_is_an_error_with_its_sentence() -> None:
    report = judged(written([{"kind": "cannot", "text": "2 GPUs are asked for, and 1 is here"}]))
    assert report.verdict is Status.ERROR
    assert {one.reason for one in report.results} == {"2 GPUs are asked for, and 1 is here"}


def test_without_torch_it_is_left_out_unless_it_was_asked_for() -> None:
    text = "python3 cannot import it: No module named 'torch'"
    told = written([{"kind": "cannot", "why": "no-torch", "text": text}])
    assert {one.status for one in judged(told).results} == {Status.SKIP}
    asked = mark(CHECKS, ["training.*"], asked=True)
    report = examine("input", [Raw("input", "micro-train", (), 0, told)], asked)
    assert {one.status for one in report.results} == {Status.ERROR}


def test_a_host_that_was_not_asked_is_told_how() -> None:
    report = examine("n", [Raw("n", "identity", ("sh",), 0, "hostname n\nuid 0\n")], CHECKS)
    assert {one.status for one in report.results} == {Status.SKIP}
    assert all("without a training run" in one.reason for one in report.results)


@pytest.mark.parametrize(
    "told",
    ["", "\n", "nothing\n", "[]\n", "{}\n", '{"kind": 1}\n',
     '{"kind":"step","rank":0}\n', '{"kind":"begin","plan":7}\n',
     '{"kind":"step","launch":"whole","rank":"x"}\n', text().replace('"step":7', '"step":-7')],
)  # fmt: skip
def test_lines_that_are_none_are_refused(told: str) -> None:
    with pytest.raises(ParseError):
        training(told)


def test_a_kind_that_is_not_known_is_no_fault() -> None:
    assert judged('{"kind":"of a later version","rank":0}\n' + text()).verdict is Status.PASS


def test_a_scale_that_collapses_and_a_loss_that_is_no_number() -> None:
    half = re.sub(r'"scale":65536.0', '"scale":0.25', text(gpu=True))
    assert "FAIL training.scale.collapsed input" in unsound(judged(half))
    odd = re.sub(r'("step":0,"loss":)[\d.]+', r"\1NaN", text())
    assert "FAIL training.finite input" in unsound(judged(odd))


def test_over_several_hosts_the_kill_is_not_taken_for_a_failure() -> None:
    told = []
    for one in lines():
        told.append(one)
        if one["kind"] == "killed":
            told.append({"launch": "killed", "kind": "failed", "rank": 0, "error": "RuntimeError",
                         "text": "Connection reset by peer"})  # fmt: skip
    assert judged(written(told)).verdict is Status.PASS


def test_ranks_are_those_of_this_host_and_the_rate_is_of_all() -> None:
    told = [{**one, "plan": {**one["plan"], "hosts": ["a", "b"], "resume": False}}
            if one["kind"] == "begin" else one for one in lines()]  # fmt: skip
    run = training(written(told))
    assert (run.world, run.hosts) == (4, 2)
    assert run.tokens_per_s == pytest.approx(4 * 8 * 128 / 0.02)
    assert isinstance(run.resume.trouble, Missing)
    assert "--folder" in run.resume.trouble.text


def test_on_one_of_several_hosts_a_lost_connection_is_not_its_ranks_fault() -> None:
    told = [{**one, "plan": {**one["plan"], "hosts": ["a", "b"], "resume": False}}
            if one["kind"] == "begin" else one for one in lines()][:60]  # fmt: skip
    lost = {"launch": "whole", "kind": "failed", "error": "RuntimeError",
            "text": "gloo: Connection closed by peer"}  # fmt: skip
    report = judged(written([*told, {**lost, "rank": 0}, {**lost, "rank": 1}, {"kind": "end"}]))
    assert report.verdict is Status.ERROR
    reasons = {one.reason for one in report.results if one.check == "training.ranks"}
    assert any("rank 0 lost its connection" in one for one in reasons)


_WAITED = {"launch": "whole", "kind": "silent", "after_s": 120.0, "steps": {"0": -1, "1": -1},
           "suspects": [0, 1], "stopped": []}  # fmt: skip
_JOIN = {"launch": "whole", "kind": "failed", "rank": 0, "error": "JoinError",
         "text": "Timed out after 61 seconds waiting for clients. 1/2 clients joined."}  # fmt: skip
_CLOSED = {"launch": "whole", "kind": "failed", "rank": 0, "error": "RuntimeError",
           "text": "gloo: Connection closed by peer"}  # fmt: skip
_DIED = {"launch": "whole", "kind": "died", "rank": 1, "status": -9, "step": 3}


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([_WAITED], Status.ERROR),
        ([_JOIN], Status.ERROR),
        ([_WAITED, {**_DIED, "first": False}], Status.ERROR),
        ([_CLOSED, {**_DIED, "first": False}], Status.ERROR),
        ([{**_DIED, "first": True}, _CLOSED], Status.FAIL),
        ([{**_WAITED, "suspects": [1], "stopped": [1]}], Status.FAIL),
        ([{**_CLOSED, "error": "OutOfMemoryError", "text": "CUDA out of memory"}], Status.FAIL),
    ],
)
def test_of_several_hosts_only_the_one_at_fault_fails(
    told: list[dict[str, Any]], status: Status
) -> None:
    begin, *rest = lines()
    begin = {**begin, "plan": {**begin["plan"], "hosts": ["a", "b"], "resume": False}}
    report = judged(written([begin, *rest[:3], *told, {"kind": "end"}]))
    assert report.verdict is status
    of_ranks = {one.status for one in report.results if one.check == "training.ranks"}
    assert (Status.FAIL in of_ranks) == (status is Status.FAIL)


def test_where_a_host_has_one_rank_it_says_that_no_slow_one_was_looked_for() -> None:
    begin, *rest = lines()
    begin = {**begin, "plan": {**begin["plan"], "ranks": 1, "hosts": ["a", "b"], "resume": False}}
    (rank,) = _ranks(written([begin, *(one for one in rest if one.get("rank", 0) == 0)]))
    assert isinstance(rank.behind_percent, Missing)
    assert "no slow rank was looked for" in rank.behind_percent.text


@pytest.mark.parametrize(("odd", "expected"), [("p1", Status.PASS), ("p9", Status.FAIL)])
def test_replicas_in_pieces_are_compared_piece_by_piece(odd: str, expected: Status) -> None:
    """Four ranks, two replicas in two pieces each."""
    plan = {"ranks": 4, "sharding": "fsdp", "mesh": "2x2", "resume": False}
    told = [
        {**one, "plan": {**one["plan"], **plan}} if one["kind"] == "begin" else one
        for one in lines()
        if one["kind"] == "begin"
    ]
    told += [
        {"kind": "replica", "launch": "whole", "rank": rank, "step_at": 10, "digest": digest}
        for rank, digest in enumerate(("p0", "p1", "p0", odd))
    ]
    report = judged(written([*told, {"kind": "end", "elapsed_s": 1.0}]))
    found = {one.check: one.status for one in report.results if "replicas" in one.check}
    assert found["training.replicas"] is expected
    ranks = _ranks(written(told))
    assert {one.pieces for one in ranks} == {"1, 2 of 2"}
    unlike = [one.replica for one in ranks]
    assert unlike == (["p0+p1"] * 4 if odd == "p1" else ["p0+?", "p0+p1", "p0+?", "p0+p9"])


def test_devices_of_another_model_are_not_compared() -> None:
    told = list(lines(gpu=True))
    devices = told[0]["devices"]
    told[0] = {**told[0], "devices": [*devices, {"name": "NVIDIA A10"}]}
    extra = [{**one, "rank": 2, "hashes": [["x"], ["x"]]} for one in told
             if one.get("name") == "repeated" and one["rank"] == 0]  # fmt: skip
    ranks = _ranks(written([*told, *extra]))
    assert ranks[0].peer_hashes == ranks[0].hashes
    assert isinstance(ranks[2].peer_hashes, Missing)


def test_free_pieces_between_steps_are_not_taken_for_those_at_the_peak() -> None:
    whole = text(gpu=True)
    split = '"inactive_split_peak_bytes":'
    most = re.sub(rf"{split}\d+", f"{split}4294967296", whole)
    assert _ranks(most)[0].memory.inactive_split_percent == pytest.approx(20)
    assert unsound(judged(most)) == set()


def test_the_line_that_shows_it_is_the_evidence() -> None:
    report = judged(sample("micro_train/injected_nan.jsonl"))
    (found,) = [one for one in report.results if one.check == "training.finite"]
    (evidence,) = found.evidence
    assert "NaN" in evidence.text


def test_names_of_hosts_and_users_are_redacted_and_the_facts_stay() -> None:
    told = [{**one, "host": "gpu7.example"} for one in lines()]
    told[0]["plan"] |= {"hosts": ["node-01", "gpu7.example"], "master": "node-01", "resume": False}
    told[-1] |= {"text": "/home/bob/run: denied"}
    clean = Redactor().full("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in told))
    assert not re.search(r"node-01|gpu7|bob", clean)
    before, after = training(written(told)), training(clean)
    assert (before.tokens_per_s, before.hosts) == (after.tokens_per_s, after.hosts)


def _ranks(told: str) -> Any:
    return training(told).ranks


@pytest.mark.parametrize(("world", "apart", "failed"), [
    (2, 2.4e-7, {"training.resume.loss", "training.resume.parameters"}),
    (4, 2.4e-7, set()), (4, 1e-3, {"training.resume.loss"}),
])  # fmt: skip
def test_more_than_two_ranks_of_ddp_are_summed_in_another_order_after_a_resume(
    world: int, apart: float, failed: set[str]
) -> None:
    told: list[dict[str, Any]] = [json.loads(json.dumps(one)) for one in lines()]
    told[0] |= {"world": world, "plan": {**told[0]["plan"], "ranks": world}}
    for one in told:
        if one.get("launch") == "resumed":
            one |= {"digest": "other"} if one["kind"] == "done" else {}
            one |= {"loss": one["loss"] + apart} if one["kind"] == "step" else {}
    found = judged("".join(json.dumps(one) + "\n" for one in told)).results
    resumed = {one.check for one in found if one.check.startswith("training.resume.")
               and one.status is Status.FAIL}  # fmt: skip
    assert resumed == failed


def test_all_wait_for_whichever_rank_has_no_data_yet() -> None:
    told = [json.loads(one) for one in text().splitlines()]
    for one in told:
        if one["kind"] == "step" and one["launch"] == "whole":
            late = one["rank"] == one["step"] % 2
            one["seconds"] |= {"data" if late else "communication": 0.035}
    assert training(written(told)).data_percent == pytest.approx(65.5, abs=2)
    assert _of_check(judged(written(told)), "training.data.wait") == {"WARN"}
