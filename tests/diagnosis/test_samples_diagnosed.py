"""Every sample of logs, traces, timelines and dumps is judged as its INDEX.md says: the findings in
their order, with status and subject. Sources stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.cli.targets.read import facts_of, not_understood, readings_of
from preflight.cli.targets.walk import walk
from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.model import Finding
from tests.conftest import SAMPLES

UNKNOWN = "ERROR step.unknown"
HEALTHY = "PASS healthy"

#: sample -> what is found; of a log that cannot tell where a step goes, that.
TABLE: dict[str, tuple[str, ...]] = {
    "training_log/megatron_ds_2node_short_ok.log": (UNKNOWN,),
    "training_log/megatron_ds_104b_divergence_grad_spike.log": (UNKNOWN,),
    "training_log/megatron_ds_104b_overflow_after_resume.log": (UNKNOWN,),
    "training_log/megatron_ds_bloom176b_lm_loss_spike.log": (UNKNOWN,),
    "training_log/megatron_ds_gpt2_loss_jump_lossscale_minus1.log": (HEALTHY, UNKNOWN),
    "training_log/deepspeed_fp16_17_startup_skips_ok.log": (UNKNOWN,),
    "training_log/hf_ds_zero3_t5_overflow_in_progress_bars.log": (UNKNOWN,),
    "training_log/hf_trainer_gradnorm_nan_but_completed.log": ("FAIL not-training",),
    "training_log/fsdp_llama3_8b_p5_first_batches.log": (UNKNOWN,),
    "training_log/torchtitan_h100_1gpu_short_excerpt.log": (UNKNOWN,),
    "training_log/fairseq_roberta_ok.log": (HEALTHY, UNKNOWN),
    "training_log/nanogpt_speedrun_step_avg_nan_ok.log": (HEALTHY, UNKNOWN),
    "training_log/nanogpt_speedrun_multi_run_concat.log": (HEALTHY, UNKNOWN),
    "training_log/dataloader_shm_bus_error.log": ("FAIL crash",),
    "training_log/torch_cuda_error_in_nccl_watchdog_a100.log": ("FAIL crash",),
    "nccl_watchdog/lightning_metric_allreduce_numel1_seq6463.log": ("FAIL hang",),
    "nccl_watchdog/deepspeed_2rank_broadcast_seq1_init_hang.log": ("FAIL hang",),
    "nccl_watchdog/desync_report_rank1_missed_collective3.log": ("FAIL hang rank 1",),
    "nccl_flight_recorder/gpu_error_1st": ("FAIL hang rank 12",),
    "nccl_flight_recorder/lock_gil_1st": ("FAIL hang rank 9", "FAIL hang rank 14"),
    "kineto/cpu_only_rank34.json.gz": ("FAIL exposed-communication",),
    "kineto/rank_non_gpu.json.gz": (HEALTHY, UNKNOWN),
    "kineto/triton_small.json.gz": ("FAIL host",),
    "kineto/amd_mi250_minitoy.json.gz": ("FAIL host",),
    "kineto/alexnet_cudamalloc_start.json.gz": ("WARN allocator",),
    "kineto/nccl_args.json.gz": ("FAIL host",),
    "kineto/ns_resolution_rank0.json.gz": ("PASS compute", HEALTHY),
    "kineto/sampled_rank0.json.gz": ("FAIL host", "FAIL exposed-communication"),
    "op_timeline/timeline_ST.json.gz": ("WARN imbalance last stage",),
}


def found_in(*paths: Path) -> tuple[Finding, ...]:
    walked = walk([str(path) for path in paths], Path("/nonexistent"))
    readings = readings_of(facts_of(walked, lambda _: None), Asked())
    return findings([*readings, *not_understood(walked)])


def told(found: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(f"{one.status.value} {one.finding} {one.subject}".rstrip() for one in found)


@pytest.mark.parametrize("name", TABLE)
def test_a_sample_is_judged_as_a_person_would(name: str) -> None:
    assert told(found_in(SAMPLES / name)) == TABLE[name]


def words(name: str) -> str:
    return " ".join(f"{one.text} {' '.join(one.against)}" for one in found_in(SAMPLES / name))


def test_a_first_collective_that_never_worked_is_the_network() -> None:
    text = words("nccl_watchdog/deepspeed_2rank_broadcast_seq1_init_hang.log")
    assert "first collective never worked" in text and "network" in text


def test_a_late_timeout_is_another_rank_and_those_that_tell_of_it_the_cascade() -> None:
    text = words("nccl_watchdog/lightning_metric_allreduce_numel1_seq6463.log")
    assert "6,463, 1 elements; number 6,462 was its last: another rank never joined" in text
    assert "cascade" in text


def test_a_gpu_that_stopped_is_told_beside_the_rank_that_is_missing() -> None:
    text = words("nccl_flight_recorder/gpu_error_1st")
    assert "nccl:all_to_all number 20,537 of EXPERT_MODEL_PARALLEL_GROUP" in text
    assert "its device had stopped before" in text
    assert "devices of rank 14 lag as well" in text


def test_shared_memory_that_is_too_small_is_no_memory_fault() -> None:
    assert "/dev/shm is too small" in words("training_log/dataloader_shm_bus_error.log")


def test_two_ranks_of_many_are_joined_without_a_clock_and_no_machine_is_blamed() -> None:
    folder = SAMPLES / "kineto"
    found = found_in(folder / "sampled_rank0.json.gz", folder / "sampled_rank1.json.gz")
    assert found[0].finding == "host"
    assert all(one.finding != "straggler" for one in found)


def test_the_last_stage_is_no_machine() -> None:
    (found,) = found_in(SAMPLES / "op_timeline" / "timeline_ST.json.gz")
    assert found.share is not None and 0.10 < found.share < 0.20
    assert found.seconds is not None and 0.2 < found.seconds < 0.4
    assert "no machine" in " ".join(found.against)


#: Two ranks on processors with torch.profiler (torch 2.13, gloo), each with one fault: recorded by
#: us, the loop and the faults are in bench/traces_of_two_ranks.py.
OWN = {
    "none": (HEALTHY, UNKNOWN),
    "loader1": ("FAIL data-wait rank 1",),
    "slow1": ("FAIL straggler rank 1",),
    "random": ("WARN imbalance",),
}


@pytest.mark.parametrize("fault", OWN)
def test_a_fault_of_one_rank_is_told_by_traces_of_both(fault: str) -> None:
    assert told(found_in(SAMPLES / "own" / "traces" / fault)) == OWN[fault]


#: Four ranks on gloo (torch 2.13) that were made to stand: bench/dumps_of_four_ranks.py;
#: paths in them are changed.
DUMPS = {
    "never": ("FAIL hang rank 2",),
    "type": ("FAIL hang",),
    "size": ("FAIL hang",),
    "dtype": ("FAIL hang",),
    "cascade": ("FAIL hang",),
    "dead": ("FAIL hang rank 2",),
    "order": ("FAIL hang",),
    "forms": ("FAIL hang rank 2",),  # two dumps as pickles, two as JSON
    "healthy": (HEALTHY,),
}


@pytest.mark.parametrize("case", DUMPS)
def test_dumps_of_four_ranks_are_judged_by_what_was_done(case: str) -> None:
    found = found_in(SAMPLES / "own" / "flight_recorder" / case)
    assert told(found) == DUMPS[case]
    if case in ("type", "size", "dtype"):
        assert f"{'collective' if case == 'type' else case} differs" in found[0].text
        assert "rank 2 at" in found[0].text
    if case == "order":
        assert "rank 1 waits in gloo:all_reduce number 1 of pair_b (2); rank 2" in found[0].text
    if case in ("cascade", "order"):  # gloo does not say who is of a group: nobody can be named
        assert "unconfirmed" in found[0].text
