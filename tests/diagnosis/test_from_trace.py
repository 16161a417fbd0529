"""Made traces and timelines with one fault each, and sound ones: nobody is named by luck, and what
cannot be seen is never a pass."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.step_time import from_timeline, from_trace
from preflight.facts.traces import RankTrace, Timeline
from preflight.model import Finding
from tests.diagnosis.traces_made import job, pipeline, rank_of


def judged(traces: list[RankTrace]) -> tuple[Finding, ...]:
    made = from_trace.reading({"trace": traces}, Asked())
    assert made is not None
    return findings([made])


def first(found: tuple[Finding, ...]) -> str:
    one = found[0]
    return f"{one.status.value} {one.finding} {one.subject}".rstrip()


def names(found: tuple[Finding, ...]) -> set[str]:
    return {one.finding for one in found}


def test_sound_jobs_have_no_cause() -> None:
    for seed in range(15):
        assert names(judged(job(seed))) == {"compute", "healthy"}, seed


@pytest.mark.parametrize(("ranks", "steps"), [(2, 3), (4, 3), (2, 10), (8, 10)])
def test_a_rank_that_is_slow_by_chance_is_never_named(ranks: int, steps: int) -> None:
    for seed in range(25):
        found = judged(job(seed, ranks=ranks, steps=steps, chance=0.3))
        assert not any(one.subject for one in found if one.status.value != "ERROR"), seed


def test_a_slow_rank_is_named_and_why_it_is() -> None:
    assert first(judged(job(1, slow=3, factor=1.3, all_kernels=False))) == "FAIL straggler rank 3"
    assert first(judged(job(1, slow=3, factor=1.15))) == "FAIL throttled rank 3"
    for noise in (0.001, 0.01):  # others' noise makes most collectives wait for others
        assert first(judged(job(1, loader=5, noise=noise))).endswith("data-wait rank 5")


@pytest.mark.parametrize(("ranks", "steps"), [(2, 3), (2, 7), (8, 3)])
def test_too_few_steps_are_told_and_are_no_pass(ranks: int, steps: int) -> None:
    found = judged(job(1, ranks=ranks, steps=steps, slow=1, factor=1.3, all_kernels=False))
    (unknown,) = [one for one in found if one.finding == "step.unknown"]
    assert "may be luck" in unknown.text and "active=10" in " ".join(unknown.fix)


def test_ranks_that_are_not_there_are_told() -> None:
    found = judged(job(1, ranks=2, world=128))
    (unknown,) = [one for one in found if one.finding == "step.unknown"]
    assert "2 of 128 ranks" in unknown.text and "straggler" in unknown.text


def test_idle_time_without_an_owner_is_no_pass() -> None:
    found = judged([rank_of(busy_us=6e5, compute_us=6e5, idle_us={"unknown": 4e5})])
    assert "step.unknown" in names(found)
    assert "host" in next(one.text for one in found if one.finding == "step.unknown")


IDLE = (("loader", "data-wait"), ("host", "host"), ("allocator", "allocator"),
        ("compile", "recompile"), ("gc", "python-gc"), ("save", "checkpoint-stall"))  # fmt: skip


@pytest.mark.parametrize(("owner", "cause"), IDLE)
def test_who_owns_the_idle_time_is_the_cause(owner: str, cause: str) -> None:
    found = judged([rank_of(busy_us=6e5, compute_us=6e5, idle_us={owner: 4e5})])
    assert first(found) == f"FAIL {cause}"
    assert found[0].share == pytest.approx(0.4)
    sound = judged([rank_of(busy_us=9.9e5, compute_us=9.9e5, idle_us={owner: 1e4})])
    assert cause not in names(sound)


def test_a_loader_that_the_device_does_not_wait_for_is_none() -> None:
    assert "data-wait" not in names(judged([rank_of(busy_us=1e6, compute_us=1e6, loader_us=5e5)]))


def test_copies_that_nothing_hides_are_told() -> None:
    found = judged([rank_of(busy_us=1e6, compute_us=7e5, exposed_h2d_us=3e5, h2d_us=3e5,
                            h2d_bytes=10**9, pageable_bytes=10**9)])  # fmt: skip
    assert first(found) == "FAIL h2d" and "pageable" in found[0].text


def test_kernels_that_move_data_are_told_and_gemms_are_not() -> None:
    moving = {"elementwise": 5e5, "norm": 2e5, "gemm": 3e5}
    product = {"elementwise": 3.3e5, "gemm": 6.5e5}
    for classes, said in ((moving, "WARN memory-bandwidth"), (product, "PASS compute")):
        assert first(judged([rank_of(busy_us=1e6, compute_us=1e6, classes_us=classes)])) == said


def test_one_hiccup_is_not_how_steps_are() -> None:
    trace = rank_of(busy_us=1e6, compute_us=1e6)
    steps = list(trace.steps)
    steps[6] = replace(steps[6], wall_us=6e6, idle_us={"host": 5e6})
    trace.steps = tuple(steps)
    assert first(judged([trace])) == "WARN irregular"


def told(timeline: Timeline) -> tuple[Finding, ...]:
    made = from_timeline.reading({"timeline": [timeline]}, Asked())
    assert made is not None
    return findings([made])


def test_sound_pipelines_have_no_cause() -> None:
    for noise in (0.02, 0.1):
        for seed in range(10):
            assert first(told(pipeline(seed, noise=noise))) == "PASS healthy"


def test_slow_workers_and_heavy_stages_are_told_apart() -> None:
    assert first(told(pipeline(1, slow={5: 1.5}))) == "FAIL straggler worker 5"
    both = told(pipeline(1, slow={5: 1.5, 10: 1.6}))[0]
    assert (both.finding, both.subject) == ("straggler", "worker 10, 5")
    for stage, name in ((0, "first stage"), (1, "stage 1"), (3, "last stage")):
        found = told(pipeline(1, heavy={stage: 1.5}))[0]
        assert (found.finding, found.subject, found.confidence) == ("imbalance", name, "high")


def test_with_one_replica_machine_and_stage_look_alike() -> None:
    found = told(pipeline(1, replicas=1, slow={2: 1.5}))[0]
    assert (found.finding, found.confidence) == ("imbalance", "low")
    assert "slow machine in this stage would look the same" in " ".join(found.against)


def test_long_sequences_are_told() -> None:
    found = told(pipeline(1, uneven=0.4))[0]
    assert found.finding == "imbalance" and "micro-batches differ" in found.text


def test_no_time_at_all_is_unknown() -> None:
    timeline = pipeline(1)
    nothing = tuple(replace(one, duration_us=0.0) for one in timeline.operations)
    assert first(told(Timeline("x", nothing))) == "ERROR step.unknown"


def without_numbers(traces: list[RankTrace], late: int) -> list[RankTrace]:
    """As gloo tells them: no numbers, the places in each step; and the trace of one rank begins
    before a collective that the others' do not have."""
    made = []
    for one in traces:
        calls = [replace(call, group="", counted=True) for call in one.collectives]
        if one.rank == late:
            first = calls[0]
            calls = [replace(first, start_us=first.start_us - 40_000, duration_us=30_000.0), *calls]
        places: dict[int, int] = {}
        told = []
        for call in calls:
            place = places.get(call.step, 0)
            told.append(replace(call, seq=place))
            places[call.step] = place + 1
        made.append(replace(one, collectives=tuple(told)))
    return made


def test_collectives_without_numbers_are_joined_by_the_gaps_between_them() -> None:
    for seed in range(5):
        slow = without_numbers(job(seed, slow=3, factor=1.5, all_kernels=False), late=1)
        assert first(judged(slow)).endswith("straggler rank 3"), seed
        assert names(judged(without_numbers(job(seed), late=1))) == {"compute", "healthy"}
