"""A checkpoint's bytes by part, its times, and what would make it less."""

from __future__ import annotations

import pytest

from preflight.errors import UsageError
from preflight.expect.checkpoint_bytes import OPTIMIZERS, bytes_per_param, layout, project
from preflight.model import Missing
from preflight.reports.projection import projection_table
from preflight.units import parse_count


def _cells(table: dict[str, object]) -> str:
    rows = table["rows"]
    assert isinstance(rows, list)
    return "\n".join(f"{row['measure']}: {row['value']}" for row in rows)


def test_a_state_of_13b_is_156_to_182_gb_and_not_its_weights() -> None:
    found = project(13e9)
    assert (found.least_bytes, found.total_bytes) == (156e9, 182e9)
    assert project(13e9, optimizer="none").total_bytes == 26e9
    assert found.sum_told == "2 + 4 + 4 + 4 = 14 B"


def test_a_plain_save_of_140_gb_takes_187_s_at_three_quarters_of_a_gigabyte() -> None:
    found = project(70e9, optimizer="none", write_gbps=0.75, read_gbps=6.1)
    assert found.save_s == pytest.approx(187, abs=1)
    assert found.load_s == pytest.approx(23, abs=0.1)


def test_a_restart_in_30_s_of_13b_needs_6_gb_a_second() -> None:
    found = project(13e9, read_gbps=3.0)
    assert found.restore_gbps == pytest.approx(6.07, abs=0.01)
    assert "needs 6.07 GB/s; 3 were measured: no" in _cells(projection_table(found))
    enough = projection_table(project(13e9, read_gbps=7.0))
    assert "7 were measured: yes" in _cells(enough)


@pytest.mark.parametrize(
    ("optimizer", "dtype", "per_param"),
    [("adamw", "bf16", 14), ("adamw", "fp32", 12), ("adamw-8bit", "bf16", 8.03125),
     ("adafactor", "bf16", 6), ("sgd", "fp16", 6), ("momentum", "bf16", 10), ("lion", "fp32", 8),
     ("muon", "bf16", 10), ("none", "bf16", 2), ("none", "fp32", 4)],
)  # fmt: skip
def test_each_optimizer_has_its_sum(optimizer: str, dtype: str, per_param: float) -> None:
    assert bytes_per_param(layout(optimizer, dtype)) == per_param


def test_every_optimizer_is_told_with_parts_that_add_up() -> None:
    for optimizer in OPTIMIZERS:
        found = project(1e9, optimizer=optimizer, ranks=8)
        parts = sum(one.bytes_per_param for one in found.parts) * 1e9
        assert parts == found.total_bytes
        assert projection_table(found)["numbers"]["rank_bytes"] == found.total_bytes / 8


def test_the_share_counts_the_save_that_follows_an_interval() -> None:
    found = project(70e9, write_gbps=1.0, interval_s=1800)
    assert found.share_percent == pytest.approx(100 * 980 / (1800 + 980))
    assert "35.3 % of the run: a save after every 30 min of training" in _cells(
        projection_table(found)
    )


def test_what_halves_a_save_is_told_apart_from_what_takes_a_part_of_it() -> None:
    factors = {one.what: one.factor for one in project(70e9, write_gbps=2.0).changes}
    assert factors["storage that is written twice as fast, 4 GB/s"] == 0.5
    assert factors["moments of 8 bit (adamw-8bit)"] == pytest.approx(8.03125 / 14)
    told = _cells(projection_table(project(70e9, write_gbps=2.0)))
    assert "half of it by: storage that is written twice as fast, 4 GB/s" in told
    assert "less of it by: no bf16 weights beside the master copy" in told
    assert "86 % of the time" in told


def test_without_a_measured_speed_no_time_is_made_up() -> None:
    found = project(7e9, interval_s=1800)
    assert isinstance(found.save_s, Missing)
    table = projection_table(found)
    assert not {"save_s", "load_s", "share_percent"} & set(table["numbers"])
    assert "preflight io-bench" in _cells(table)


@pytest.mark.parametrize(
    "bad",
    [{"params": 0}, {"params": -7e9}, {"params": 1e30}, {"params": float("nan")},
     {"ranks": 0}, {"write_gbps": 0.0}, {"write_gbps": float("inf")}, {"read_gbps": -1.0},
     {"interval_s": 0.0}, {"interval_s": float("nan")}, {"optimizer": "adam2"},
     {"dtype": "int3"}],
)  # fmt: skip
def test_hostile_numbers_are_refused_by_name(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        project(**{"params": 7e9, **bad})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "count"),
    [("7e9", 7e9), ("7B", 7e9), ("2T", 2e12), ("1.5m", 1.5e6), ("1,000", 1000.0), ("64", 64.0)],
)
def test_counts_are_read_as_people_write_them(text: str, count: float) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["0", "-7e9", "nan", "inf", "1e999", "7 billion", "", "7GB"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a count"):
        parse_count(text)
