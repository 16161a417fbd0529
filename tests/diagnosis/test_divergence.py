"""What went wrong with a loss: found where it began, with its cause; healthy runs have no event."""

from __future__ import annotations

import json
import math
import re
import time
from array import array
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from preflight.diagnosis.divergence.attribute import hypotheses
from preflight.diagnosis.divergence.bounds import table
from preflight.diagnosis.divergence.conclude import Judged, findings_of, judged, status_of
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.scene import Scene
from preflight.facts.series import Column, Log, Series
from preflight.logs.training.log import read
from preflight.model import Status
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.diagnosis import losses

SEEDS = range(3)


def judge(folder: Path, text: str) -> Judged:
    path = folder / "train.log"
    path.write_text(text)
    found = judged(read(path, lambda _: None))
    assert found is not None
    return found


@pytest.mark.parametrize("name", losses.FAULTS)
def test_an_event_is_found_where_it_began_with_its_cause(tmp_path: Path, name: str) -> None:
    fault = losses.FAULTS[name]
    for seed in SEEDS:
        drawn = losses.rows(seed, fault.change)
        for style in fault.styles:
            found = judge(tmp_path, losses.STYLES[style](drawn))
            events = [one for one in found.events if one.kind in fault.event]
            assert events, (seed, style, found.events)
            assert abs(events[0].step - fault.at) <= fault.slack
            causes = found.causes[found.events.index(events[0])]
            assert causes[0].cause in fault.causes, (seed, style, causes)


@pytest.mark.parametrize("name", losses.RESUMED)
def test_a_restart_that_goes_wrong_is_told_as_one(tmp_path: Path, name: str) -> None:
    fault = losses.RESUMED[name]
    for seed in SEEDS:
        found = judge(tmp_path, losses.megatron(losses.restarted(seed, fault.change)))
        assert [one.kind for one in found.events] == list(fault.event)
        assert found.events[0].step == losses.AT + 1
        assert found.causes[0][0].cause == fault.causes[0]


@pytest.mark.parametrize("name", losses.HEALTHY)
def test_a_healthy_run_has_no_event(tmp_path: Path, name: str) -> None:
    for seed in SEEDS:
        found = judge(tmp_path, losses.megatron(losses.HEALTHY[name](seed)))
        assert not found.events, (seed, found.events)
        assert [one.status for one in findings_of(found)] == [Status.PASS]


#: Sample -> what is found first: status, event, and its step; of short excerpts too.
SAMPLED = {
    "megatron_ds_bloom176b_lm_loss_spike.log": ("WARN", "spike", 31219),
    "megatron_ds_104b_divergence_grad_spike.log": ("FAIL", "slow-divergence", 6920),
    "megatron_ds_104b_overflow_after_resume.log": ("FAIL", "scale-collapse", 17063),
    "hf_trainer_gradnorm_nan_but_completed.log": ("FAIL", "not-finite", 0),
    "megatron_ds_gpt2_loss_jump_lossscale_minus1.log": ("PASS", "healthy", None),
    "fairseq_roberta_ok.log": ("PASS", "healthy", None),
    "nanogpt_speedrun_step_avg_nan_ok.log": ("PASS", "healthy", None),
    "megatron_ds_2node_short_ok.log": ("ERROR", "loss.unknown", None),
    "fsdp_llama3_8b_p5_first_batches.log": ("ERROR", "loss.unknown", None),
    "torchtitan_h100_1gpu_short_excerpt.log": ("ERROR", "loss.unknown", None),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sample_is_judged_as_a_person_would(name: str) -> None:
    found = judged(read(SAMPLES / "training_log" / name, lambda _: None))
    assert found is not None
    first = next(iter(findings_of(found)))
    status, event, step = SAMPLED[name]
    assert (first.status.value, first.finding) == (status, event)
    if step is not None:
        assert first.evidence[0].text == f"step {step:,}"


def test_a_spike_after_another_is_seen_as_well(tmp_path: Path) -> None:
    """Rules by mean and deviation are blind for it."""
    drawn = losses.rows(1)
    for row in drawn:
        row.loss *= {500: 4.0, 520: 1.6, 560: 1.5}.get(row.step, 1.0)
    found = judge(tmp_path, losses.json_lines(drawn))
    assert [one.step for one in found.events] == [500, 520, 560]
    assert {status_of(one) for one in found.events} == {Status.WARN}


def test_one_overflow_of_fp16_is_no_event_and_one_of_bf16_is(tmp_path: Path) -> None:
    drawn = losses.rows(1)
    drawn[400].norm = float("inf")
    assert judge(tmp_path, losses.json_lines(drawn)).events[0].kind == "not-finite"
    for row in drawn:
        row.scale = 65536.0 if row.step < 401 else 32768.0
    drawn[400].skipped = 1
    assert not judge(tmp_path, losses.megatron(drawn)).events


def test_a_collapse_is_announced_by_its_lead_time(tmp_path: Path) -> None:
    def change(row: losses.Row, chance: object) -> None:
        row.scale = 65536.0 / 2.0 ** max(0, min(15, (row.step - 300) // 8))
        if row.step >= 500:
            row.loss = 7.0

    found = judge(tmp_path, losses.megatron(losses.rows(1, change)))
    shift = next(at for at, one in enumerate(found.events) if one.kind == "shift")
    assert found.causes[shift][0].cause == "fp16-range"
    assert "had fallen 192 steps before" in " ".join(found.causes[shift][0].reasons)


def test_no_device_is_named_without_evidence_of_its_own() -> None:
    """Whatever a log of losses shows."""
    for kind in table().events:
        event = Event(kind.id, 500, 500, 500, "", recovery="never")
        for lead in (None, 0, 3):
            scene = Scene(event, rate=0.5, norm_lead=lead, norm_told=True, fp16=False)
            assert all(one.cause != "silent-corruption" for one in hypotheses(scene))
    scene = Scene(Event("not-finite", 500, 500, 500, ""), again=(500.0,), rank=3)
    named = [one for one in hypotheses(scene) if one.cause == "silent-corruption"]
    assert not named  # it repeats itself: hardware does not


def test_a_report_of_a_faulty_device_beside_the_log_is_evidence(tmp_path: Path) -> None:
    log, report = tmp_path / "train.log", tmp_path / "gpus.json"
    log.write_text(losses.megatron(losses.rows(1, losses.FAULTS["nan"].change)))
    name = "sram_uncorrectable_volatile1_aggregate5_excerpt.txt"
    preflight("gpu-health", "--from", str(SAMPLES / "nvidia_smi_q" / name), "--save", str(report))
    alone = preflight("divergence-rescue", str(log), "--format", "json")
    both = preflight("divergence-rescue", str(log), str(report), "--format", "json")
    subjects = [json.loads(ran.out)["findings"][0]["subject"] for ran in (alone, both)]
    assert subjects == ["code", "silent-corruption"]
    assert "fails in" in json.loads(both.out)["findings"][0]["text"]


def test_every_row_of_the_table_is_argued_and_every_runbook_is_there() -> None:
    from preflight.diagnosis.divergence.attribute import _CAUSES

    assert {one.id for one in table().causes} == set(_CAUSES)
    runbooks = Path(__file__).parents[2] / "runbooks"
    assert all((runbooks / f"{one.runbook}.md").exists() for one in table().events)
    assert all(a.rank <= b.rank for a, b in pairwise(table().events))


def test_the_command_tells_what_to_do_and_draws_it(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(losses.megatron(losses.rows(1, losses.FAULTS["divergence"].change)))
    ran = preflight("divergence-rescue", str(log), "--save", str(tmp_path / "loss.svg"))
    assert ran.rc == 1 and ran.out.count("FAIL   shift") == 1
    assert "train.log:500" in ran.out and "what would tell" in ran.out
    drawn = (tmp_path / "loss.svg").read_text()
    assert "grad_norm, log scale" in drawn and re.search(">shift [0-9,]+<", drawn)


def test_what_has_no_loss_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    errors = SAMPLES / "training_log" / "dataloader_shm_bus_error.log"
    ran = preflight("divergence-rescue", str(errors))
    assert ran.rc == 3 and "no loss and no gradient norm" in ran.out
    assert preflight("divergence-rescue", str(tmp_path / "none.log")).rc == 2
    assert preflight("divergence-rescue").rc == 2
    assert preflight("divergence-rescue", "4711").rc == 2


def test_a_loss_at_chance_is_told_through_its_noise(tmp_path: Path) -> None:
    for noise in (0.005, 0.03):

        def change(row: losses.Row, chance: Random, noise: float = noise) -> None:
            row.loss = (10.37 + math.exp(-row.step / 15)) * chance.lognormvariate(0, noise)

        found = judge(tmp_path, losses.json_lines(losses.rows(1, change)))
        assert [one.kind for one in found.events] == ["at-chance"]
        assert found.events[0].value == pytest.approx(math.log(32_000), rel=0.01)


def test_zeros_without_anything_to_learn_are_told_and_those_of_rewards_are_not(
    tmp_path: Path,
) -> None:
    drawn = losses.rows(1)
    for row in drawn:
        row.loss = row.norm = 0.0
    assert [one.kind for one in judge(tmp_path, losses.json_lines(drawn)).events] == ["loss-zero"]
    for row in drawn:
        row.more = {"reward": 0.5}
    assert not judge(tmp_path, losses.json_lines(drawn)).events


def test_thousands_of_spikes_cost_no_more_than_one() -> None:
    """Every figure around an event is looked up, never counted anew."""
    chance = Random(1)
    values = array("d", [2.0 * chance.lognormvariate(0, 0.02) for _ in range(50_000)])
    for row in chance.sample(range(200, 50_000), 2_000):
        values[row] *= 1.8
    step = array("d", range(1, 50_001))
    columns = {"step": Column(step, step, step), "loss": Column(values, values, values)}
    lines = array("q", range(1, 50_001))
    log = Log("x", (Series("x", "learned", line=lines, offset=lines, columns=columns),))
    began = time.process_time()
    found = judged(log)
    assert found is not None and len(found.events) >= 500
    assert time.process_time() - began < 10


def test_a_long_log_costs_little(tmp_path: Path) -> None:
    """Rows are folded, and each is looked at a few times only."""
    text = losses.json_lines(losses.rows(1, steps=20_000))
    path = tmp_path / "long.jsonl"
    path.write_text(text)
    log = read(path, lambda _: None)
    began = time.process_time()
    found = judged(log)
    assert found is not None and not found.events
    assert time.process_time() - began < 8


def test_what_a_restart_left_behind_is_over(tmp_path: Path) -> None:
    """A log that is appended to keeps the start that diverged; the run is sound since."""
    from preflight.diagnosis.divergence.plan import plan_of

    first = losses.rows(1, losses.FAULTS["divergence"].change, steps=700)
    second = losses.rows(2, first=401, steps=800)
    second[0].loaded = True
    found = judge(tmp_path, losses.megatron([*first, *second]))
    told = list(findings_of(found))
    assert [(one.status, one.finding) for one in told][:2] == [
        (Status.WARN, "shift"), (Status.PASS, "healthy"),
    ]  # fmt: skip
    assert "went back to step 401 since" in told[0].text
    assert plan_of(found, [], "/run", "now") is None
    again = losses.rows(2, losses.FAULTS["divergence"].change, first=401, steps=400)
    again[0].loaded = True
    found = judge(tmp_path, losses.megatron([*first, *again]))
    assert next(iter(findings_of(found))).status is Status.FAIL


def test_a_spike_that_came_back_is_no_beginning_of_what_comes_much_later(tmp_path: Path) -> None:
    import math

    from preflight.diagnosis.divergence.plan import plan_of

    def change(row: losses.Row, chance: object) -> None:
        if row.step >= 150:
            row.loss *= 1 + 0.8 * math.exp(-(row.step - 150) / 60)
        if row.step >= 700:
            row.loss = 6.5

    found = judge(tmp_path, losses.megatron(losses.rows(1, change)))
    assert [(one.kind, one.step) for one in found.events] == [("spike", 150), ("shift", 700)]
    plan = plan_of(found, [], "/run", "now")
    assert plan is not None and plan.since == 700
