"""--sweep of nccl-bench: which variables, which values, and what is refused with why."""

from __future__ import annotations

import pytest

from preflight.cli.bench_settings import hold_sweep, settings_of
from preflight.cli.benches import estimate, plan_of, told_of
from preflight.cli.options import Options
from preflight.errors import UsageError
from preflight.ship import BENCH_S, bench_command


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        ("NCCL_ALGO=Ring,Tree", ["", "Ring", "Tree"]),
        ("NCCL_ALGO=default,Ring,", ["", "Ring"]),
        ("NCCL_IB_HCA=mlx5_0,mlx5_1;mlx5_2", ["", "mlx5_0,mlx5_1", "mlx5_2"]),
        ("NCCL_IB_HCA=mlx5_0,mlx5_1;", ["", "mlx5_0,mlx5_1"]),
        ("NCCL_IB_GID_INDEX=3", ["", "3"]),
        ("OMP_NUM_THREADS=1,2", ["", "1", "2"]),
        ("CUDA_DEVICE_MAX_CONNECTIONS=1", ["", "1"]),
    ],
)
def test_not_set_is_always_among_the_values_and_first(asked: str, values: list[str]) -> None:
    assert settings_of([asked]) == [[asked.partition("=")[0], *values]]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("LD_PRELOAD=/x.so", "Python would load other code"),
        ("MASTER_ADDR=h1", "the run itself sets it"),
        ("NCCL_DEBUG=INFO", "would stand among the answers"),
        ("NCCL_COMM_ID=h1:1", "where ranks meet"),
        ("NCCL_TOPO_DUMP_FILE=/tmp/x", "would write files"),
        ("CUDA_VISIBLE_DEVICES=1", "--ranks says how many"),
        ("OMP_PROC_BIND=true", "ranks are forked after that"),
        ("nccl_algo=Ring", "is no variable that ranks read"),
        ("SHELL=1", "is no variable that ranks read"),
        ("NCCL_ALGO", "names no value"),
        ("NCCL_ALGO=default", "names no value"),
        ("NCCL_ALGO=a b", "is no value"),
        ("OMP_NUM_THREADS=many", "takes whole numbers"),
        ("NCCL_ALGO=1,2,3,4,5,6,7,8,9", "has 9 values"),
    ],
)
def test_what_breaks_the_run_is_refused_with_why(asked: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        settings_of([asked])


def test_a_variable_stands_there_once() -> None:
    with pytest.raises(UsageError, match="there twice"):
        settings_of(["NCCL_ALGO=Ring", "NCCL_ALGO=Tree"])


def test_the_plan_and_the_time_for_it_follow_what_is_asked() -> None:
    plan = plan_of(Options(settings=["NCCL_ALGO=Ring"], lasting="2h"))
    assert plan == {"sweep": [["NCCL_ALGO", "", "Ring"]], "lasting_s": 7200.0}
    assert bench_command(plan).timeout_s == BENCH_S + 900 + 7200
    assert "NCCL_ALGO: 26 launches" in estimate(plan) and "2 h of one" in estimate(plan)
    with pytest.raises(UsageError, match="out of range"):
        plan_of(Options(lasting="3d"))


def test_turns_are_news() -> None:
    told = {"kind": "setting", "name": "NCCL_ALGO", "value": "", "turn": 3}
    assert told_of(told) == "NCCL_ALGO=default, turn 4"
    assert told_of({**told, "turn": -1, "failed": "no"}) == "NCCL_ALGO=default, a trial: no"


def test_what_nobody_reads_on_processors_is_refused_there() -> None:
    with pytest.raises(UsageError, match="--sweep NCCL_ALGO: on processors ranks talk by gloo"):
        hold_sweep(settings_of(["NCCL_ALGO=Ring"]), on_gpus=False)
    hold_sweep(settings_of(["NCCL_ALGO=Ring"]), on_gpus=True)
    hold_sweep(settings_of(["OMP_NUM_THREADS=1,2"]), on_gpus=False)
