"""What a look at ranks is taken for: who is awaited, and what must not be told."""

from __future__ import annotations

from preflight.diagnosis.decide import findings
from preflight.diagnosis.step_time.from_live import reading
from preflight.facts.hangs import Stack
from preflight.facts.process import GpuLook, HostLook, ProcessLook
from preflight.model import Finding, Status

COMPUTES = ("matmul (model.py:3)", "main (train.py:9)")
WAITS = ("all_reduce (/x/torch/distributed/distributed_c10d.py:1)", "main (train.py:12)")
LOADS = ("_next_data (/x/torch/utils/data/dataloader.py:7)", "main (train.py:5)")


def rank(
    number: int, *shares: tuple[tuple[str, ...], int], host: str = "a", cpu: float = 90.0,
    seconds: float = 10.0,
) -> ProcessLook:  # fmt: skip
    frames = [one for one, times in shares for _ in range(times)]
    stacks = tuple(
        Stack(host, n, number, host, 100 + number, "MainThread", "active", one, main=True)
        for n, one in enumerate(frames, 5)
    )
    return ProcessLook(
        host, 100 + number, "python train.py", rank=number, seconds=seconds, looks=60,
        cpu_percent=cpu, disk_wait_percent=0.0, trains=True, line=2, stacks=stacks,
    )  # fmt: skip


def found(*hosts: HostLook) -> dict[str, Finding]:
    read = reading({"look": list(hosts)}, None)  # type: ignore[arg-type]
    assert read is not None
    return {one.finding: one for one in findings([read])}


def one_host(*ranks: ProcessLook, **more: object) -> HostLook:
    return HostLook("a", ranks, spy="py-spy", seconds=10, **more)  # type: ignore[arg-type]


def test_the_odd_one_of_several_hosts_is_named_with_its_host() -> None:
    waits = [rank(n, (WAITS, 8), (COMPUTES, 2), host=f"n{n}") for n in range(3)]
    slow = rank(3, (COMPUTES, 10), host="n3")
    hosts = [HostLook(one.host, (one,), spy="py-spy") for one in (*waits, slow)]
    told = found(*hosts)
    assert told["straggler"].subject == "n3 rank 3"
    assert told["straggler"].share == 0.8 and "exposed-communication" not in told


def test_ranks_that_wait_in_turn_name_nobody() -> None:
    told = found(one_host(*(rank(n, (WAITS, 5), (COMPUTES, 5)) for n in range(4))))
    assert "straggler" not in told and told["exposed-communication"].subject == ""


def test_one_rank_that_loads_while_all_wait_is_told_as_data() -> None:
    told = found(one_host(rank(0, (LOADS, 9), (COMPUTES, 1)),
                          *(rank(n, (WAITS, 9), (COMPUTES, 1)) for n in (1, 2))))  # fmt: skip
    assert told["data-wait"].subject == "rank 0" and "straggler" not in told


def test_a_run_that_computes_is_healthy() -> None:
    told = found(one_host(*(rank(n, (COMPUTES, 9), (LOADS, 1)) for n in range(2))))
    assert told["healthy"].status is Status.PASS and "hang" not in told


def test_nothing_that_moves_is_a_hang_and_the_one_not_in_the_collective_is_named() -> None:
    still = [rank(n, (WAITS, 10), cpu=0.1) for n in range(3)]
    told = found(one_host(*still, rank(3, (COMPUTES, 10), cpu=0.0)))
    assert told["hang"].subject == "rank 3" and told["hang"].status is Status.FAIL


def test_a_gpu_that_works_is_no_hang() -> None:
    gpu = GpuLook("a", 0, (100,), sm_percent=97.0)
    assert "hang" not in found(one_host(rank(0, (WAITS, 10), cpu=0.1), gpus=(gpu,)))


def test_a_power_cap_is_what_a_limit_is_for_and_heat_is_none() -> None:
    def with_reasons(reasons: int) -> dict[str, Finding]:
        gpu = GpuLook("a", 0, (100,), sm_percent=97.0, reasons=reasons, sm_clock_mhz=1200.0,
                      sm_clock_max_mhz=1980.0)  # fmt: skip
        return found(one_host(rank(0, (COMPUTES, 10)), gpus=(gpu,)))

    assert "throttled" not in with_reasons(0x4)
    assert with_reasons(0x40)["throttled"].status is Status.FAIL


def test_without_stacks_it_is_incomplete_and_says_what_to_install() -> None:
    bare = HostLook("a", (rank(0),), seconds=10)
    told = found(bare)
    assert told["step.unknown"].status is Status.ERROR
    assert any("pip install py-spy" in one for one in told["step.unknown"].fix)
