"""What a look at ranks is taken for: who is awaited, and what must not be told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.diagnosis.decide import findings
from preflight.diagnosis.step_time.from_live import reading
from preflight.facts.hangs import Stack
from preflight.facts.process import GpuLook, HostLook, ProcessLook
from preflight.model import Finding, Missing, Status

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


def test_ranks_that_go_from_place_to_place_do_not_hang_whatever_they_use() -> None:
    """Their work may be elsewhere: on a server, on a device that nobody sees."""
    moves = rank(0, (WAITS, 5), (COMPUTES, 5), cpu=0.5)
    assert "hang" not in found(one_host(moves, rank(1, (WAITS, 10), cpu=0.5)))


def test_without_stacks_what_begins_to_wait_again_and_again_is_no_hang() -> None:
    unseen = replace(rank(0, cpu=0.5), stacks=Missing("no-tool", "py-spy is not there"))
    assert "hang" not in found(HostLook("a", (replace(unseen, waits_per_s=40.0),), seconds=10))
    assert "hang" in found(HostLook("a", (replace(unseen, waits_per_s=0.1),), seconds=10))


FETCHES = ("fetch (/x/torch/utils/data/_utils/fetch.py:54)",
           "_worker_loop (/x/torch/utils/data/_utils/worker.py:350)")  # fmt: skip
IDLES = ("get (/usr/lib/python3.11/multiprocessing/queues.py:113)", FETCHES[1])


def worker(number: int, frames: tuple[str, ...], code: str = "") -> ProcessLook:
    stack = Stack("a", 40 + number, None, "a", number, "MainThread", "", frames, True, code)
    return ProcessLook("a", number, "python train.py", parent=100, role="worker", seconds=10,
                       looks=60, cpu_percent=95.0, stacks=(stack,) * 10)  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "code", "kind", "fix"),
    [
        (("decompress (/usr/lib/python3.11/gzip.py:616)", "load (data.py:7)"), "", "unpacks",
         "unpack once"),
        (("load (data.py:8)",), "ids = tokenizer(text)", "tokenizes", "tokenize once"),
        (("open (/x/site-packages/PIL/Image.py:1)", "load (data.py:9)"), "", "decodes pictures",
         "smaller pictures"),
        (("load (data.py:9)",), "return pickle.loads(row)", "unpickles", "arrays or files"),
        (("load (data.py:9)",), "with open(path, 'rb') as file:", "reads files", "io-bench"),
        (("recv (/usr/lib/python3.11/multiprocessing/managers.py:9)", "load (data.py:9)"), "",
         "asks a Manager's process", "no Manager"),
        (("read (/usr/lib/python3.11/ssl.py:9)", "load (data.py:9)"), "", "over the network",
         "local disks"),
        (("acquire (/usr/lib/python3.11/threading.py:9)", "load (data.py:9)"), "", "a lock",
         "opened in the worker"),
        (("load (data.py:9)",), "x = x * x", "load (data.py:9): x = x * x in", "num_workers"),
    ],
)  # fmt: skip
def test_the_work_of_a_loaders_workers_is_named_with_what_helps(
    frames: tuple[str, ...], code: str, kind: str, fix: str
) -> None:
    seen = [worker(n, (*frames, *FETCHES), code) for n in (1, 2)]
    told = found(one_host(rank(0, (LOADS, 9), (COMPUTES, 1)), *seen))["data-wait"]
    assert kind in told.text and "its 2 workers are at load" in told.text
    assert any(fix in one for one in told.fix)
    assert any("load (data.py" in one.text for one in told.evidence)


def test_workers_that_have_nothing_to_do_are_not_what_is_waited_for() -> None:
    told = found(one_host(rank(0, (LOADS, 9), (COMPUTES, 1)), worker(1, IDLES)))["data-wait"]
    assert "its worker had nothing to do in 100 %" in told.text


def test_what_holds_back_all_ranks_of_a_host_is_told_once() -> None:
    held = {"throttled_percent": 90.0, "run_wait_percent": 60.0, "processor_limit": 2.0}
    ranks = [replace(rank(n, (COMPUTES, 10)), **held) for n in range(4)]
    told = found(one_host(*ranks))["host"]
    assert told.status is Status.FAIL and told.subject == "a" and "all 4 ranks" in told.text
    assert "limit of 2 processors" in told.text


def test_a_burst_at_a_limit_that_costs_nothing_is_no_finding() -> None:
    burst = replace(rank(0, (COMPUTES, 10)), throttled_percent=50.0, run_wait_percent=1.0)
    assert "host" not in found(one_host(burst))


def test_swapping_is_told_only_where_something_waited_for_memory() -> None:
    swaps = replace(rank(0, (COMPUTES, 10)), swapped_bytes=2e9, major_faults_per_s=900.0)
    assert found(one_host(swaps, pressure={"memory": 30.0}))["host-memory"].status is Status.FAIL
    assert "host-memory" not in found(one_host(swaps, pressure={"memory": 0.0}))
    assert "host-memory" not in found(one_host(rank(0, (COMPUTES, 9)), pressure={"memory": 30.0}))


def test_of_many_ranks_those_that_were_not_asked_are_a_lack() -> None:
    why = Missing("denied", "more than 32 processes are not asked for stacks")
    told = found(one_host(rank(0, (COMPUTES, 10)), replace(rank(1), stacks=why)))["step.unknown"]
    assert "more than 32" in told.text and any("PID PID" in one for one in told.fix)
