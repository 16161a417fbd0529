"""Where the step goes as tables with bars."""

from __future__ import annotations

from preflight.diagnosis.reading import Curve, Mark, Part, RankParts, Reading, Share
from preflight.reports.step_time import step_tables

PARTS = (Part("data", 0.3), Part("compute", 0.6), Part("save", 0.1))


def test_parts_are_bars_of_their_share() -> None:
    (table,) = step_tables([Reading("a log", parts=PARTS)])
    assert [(row["part"], row["percent"], len(row["bar"])) for row in table["rows"]] == [
        ("data", 30.0, 12), ("compute", 60.0, 24), ("save", 10.0, 4),
    ]  # fmt: skip


def test_ranks_are_stacked_to_one_scale_with_a_letter_for_each_part() -> None:
    slow = (Part("data", 0.3), Part("compute", 1.2), Part("copy", 0.5))
    ranks = (RankParts("rank 0", PARTS), RankParts("rank 1", slow))
    table, _ = step_tables([Reading("traces", ranks=ranks)])
    bars = {row["rank"]: row["bar"] for row in table["rows"]}
    assert len(bars["rank 1"]) == 40 and len(bars["rank 0"]) == 20
    assert bars["rank 1"].count("c") == 24 and bars["rank 1"].count("d") == 6
    assert "d data, c compute, s save, o copy" in table["notes"][0]


def test_a_series_shows_its_slow_steps_and_marks() -> None:
    values = tuple(5.0 if at == 500 else 1.0 for at in range(1000))
    curve = Curve("step time", "s", tuple(map(float, range(1000))), values, (Mark(300, "save"),))
    (table,) = step_tables([Reading("a log", curves=(curve,))])
    line = table["rows"][0]["slowest of each piece"]
    assert line.count("@") == 1 and len(line) <= 62
    assert table["notes"] == ["save at step 300"]


def test_the_wall_time_is_told() -> None:
    shares = (Share("trained", 90.0, 0.9), Share("saved", 10.0, 0.1))
    (table,) = step_tables([Reading("a log", goodput=shares)])
    assert [row["percent"] for row in table["rows"]] == [90.0, 10.0]
