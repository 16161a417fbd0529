"""Pictures of the step, its ranks and its series: the numbers of the report, within the drawing."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from preflight import reports
from preflight.diagnosis.reading import Curve, Mark, Part, RankParts, Reading
from preflight.model import Report
from preflight.reports.pictures.axis import axis_of
from preflight.reports.pictures.rank_heat import MOST, grouped
from preflight.reports.pictures.told import Bars, picture_of, pictures
from preflight.reports.step_time import step_tables
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.reports.built import HOSTILE, report

_NS = "{http://www.w3.org/2000/svg}"
_PATH = re.compile(r"[ML](-?[\d.e+-]+) (-?[\d.e+-]+)")


def told(*readings: Reading) -> Report:
    made = report()
    made.measurements = tuple(step_tables(readings))
    return made


def drawn(made: Report) -> ElementTree.Element:
    return ElementTree.fromstring("".join(reports.render(made, "svg")))


def words(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{_NS}text")]


def ranks(count: int, slow: int = -1, name: str = "rank") -> Reading:
    parts = (Part("forward", 0.2), Part("communication", 0.1))
    late = (Part("forward", 0.5), Part("communication", 0.01), Part("save", 0.1))
    told = [RankParts(f"{name} {at}", late if at == slow else parts) for at in range(count)]
    return Reading("traces", ranks=tuple(told))


def curve(values: list[float], *marks: Mark, name: str = "step time") -> Reading:
    steps = tuple(map(float, range(len(values))))
    return Reading("a log", curves=(Curve(name, "s", steps, tuple(values), marks),))


@pytest.mark.parametrize("count", [2, 8, 128, 2048])
def test_ranks_of_any_number_are_within_the_drawing_and_the_slow_one_is_named(count: int) -> None:
    root = drawn(told(ranks(count, slow=count - 1)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for one in root.iter(f"{_NS}rect"):
        at = {key: float(one.attrib.get(key, 0)) for key in ("x", "y", "width", "height")}
        assert at["x"] + at["width"] <= width + 0.1 and at["y"] + at["height"] <= height
    shown = words(root)
    assert f"rank {count - 1}" in shown and "610 ms" in shown
    assert any(f"most off: rank {count - 1}, forward: +" in one for one in shown)
    rows = [one for one in shown if one.startswith("rank ")]
    assert len(rows) == 2 * len(set(rows)) and len(set(rows)) == min(count, MOST)
    assert any("neighbours" in one for one in shown) == (count > MOST)
    assert len("".join(reports.render(told(ranks(count)), "svg"))) < 1_000_000


def test_a_column_of_neighbours_is_the_one_that_is_most_off() -> None:
    seconds = [(1.0, 0.5)] * 1000
    seconds[777] = (1.4, 0.1)
    bars = Bars(("a", "b"), tuple(map(str, range(1000))), tuple(seconds))
    found = grouped(bars)
    assert 777 in found.columns and len(found.columns) <= MOST and found.size == 4


def test_equal_ranks_have_no_map_of_what_is_off() -> None:
    names = [table["table"] for table in told(ranks(8)).measurements]
    assert names == ["the ranks, traces"]
    assert "ranks by parts, traces" in [t["table"] for t in told(ranks(8, 3)).measurements]


def test_the_map_in_text_shows_who_is_longer_and_who_shorter() -> None:
    (table,) = [t for t in told(ranks(8, 3)).measurements if t["table"].startswith("ranks by")]
    rows = {row["part"]: row["ranks"] for row in table["rows"]}
    assert rows["forward"] == "|...9....|" and rows["communication"] == "|...-....|"
    assert rows["save"] == "|...3....|" and "most off: rank 3" in table["notes"][0]


def points(root: ElementTree.Element, colour: str) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for one in root.iter(f"{_NS}path") if one.attrib["stroke"] == colour
        for x, y in _PATH.findall(one.attrib["d"])
    ]  # fmt: skip


def test_a_long_series_is_thinned_and_keeps_its_extremes() -> None:
    values = [1.0] * 200_000
    values[123_456], values[77_777] = 9.0, 0.1
    found = points(drawn(told(curve(values))), "#2b6cb0")
    assert 900 <= len(found) < 2_000
    heights = [y for _, y in found]
    usual = max(set(heights), key=heights.count)
    assert sum(abs(y - usual) > 5 for y in heights) == 2  # smaller places are higher up
    assert min(heights) < usual < max(heights)


def test_values_that_are_none_are_marked_and_part_the_line() -> None:
    root = drawn(told(curve([1.0, 2.0, float("nan"), 2.0, 1.0])))
    lines = [one for one in root.iter(f"{_NS}path") if one.attrib["stroke"] == "#2b6cb0"]
    assert len(lines) == 2 and len(points(root, "#b3261e")) == 2


def test_words_of_marks_without_room_are_counted() -> None:
    marks = [Mark(float(at), f"save number {at}") for at in range(0, 1000, 10)]
    shown = words(drawn(told(curve([1.0, 2.0] * 500, *marks))))
    placed = sum(bool(re.fullmatch(r"save number \d+ \d+", one)) for one in shown)
    assert 10 <= placed < 100
    assert f"{100 - placed} of the marks have no room" in " ".join(shown)


def test_a_mark_beyond_the_series_is_left_out() -> None:
    root = drawn(told(curve([1.0, 2.0], Mark(500.0, "far away"))))
    assert "far away" not in words(root)


def test_hostile_names_are_text_and_nothing_else() -> None:
    made = told(ranks(3, 1, HOSTILE), curve([1.0, 2.0], Mark(1.0, HOSTILE), name=HOSTILE))
    root = drawn(made)
    assert not list(root.iter(f"{_NS}script")) and "&lt;" in "".join(reports.render(made, "svg"))


@pytest.mark.parametrize("picture", [
    {}, 3, {"bars": 1}, {"bars": {"parts": ["a"], "ranks": [], "seconds": []}},
    {"bars": {"parts": ["a"], "ranks": ["x"], "seconds": [[1.0, 2.0]]}},
    {"bars": {"parts": ["a"], "ranks": ["x"], "seconds": [[-1.0]]}},
    {"bars": {"parts": ["a"], "ranks": ["x"], "seconds": [[1e300]]}},
    {"panels": [{"name": "a", "unit": "", "steps": [1.0], "values": []}]},
])  # fmt: skip
def test_a_picture_out_of_order_in_a_stored_report_is_none(picture: object) -> None:
    found = picture_of({"picture": picture})
    assert found is None or (found.bars is None and not found.panels)


def test_a_stored_report_is_drawn_as_the_run_was(tmp_path: Path) -> None:
    source = str(SAMPLES / "own" / "traces" / "slow1")
    preflight("diagnose-step-time", source, "--save", str(tmp_path / "a.json"),
              "--save", str(tmp_path / "a.svg"))  # fmt: skip
    preflight("report", str(tmp_path / "a.json"), "--save", str(tmp_path / "b.svg"))
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()
    assert "65.51 ms" in (tmp_path / "a.svg").read_text()


def test_what_has_no_picture_says_so(tmp_path: Path) -> None:
    dumps = str(SAMPLES / "own" / "flight_recorder" / "never")
    done = preflight("diagnose-step-time", dumps, "--save", str(tmp_path / "a.svg"))
    assert "there is nothing to draw" in done.err and not (tmp_path / "a.svg").exists()


def test_ticks_are_round_and_within() -> None:
    assert [told for _, told in axis_of((0.0, 1.0), 0, 1, room=0).ticks()] == [
        "0.0", "0.2", "0.4", "0.6", "0.8", "1.0",
    ]  # fmt: skip
    powers = axis_of((0.001, 1000.0), 0, 600, log=True, room=0)
    assert [value for value, _ in powers.ticks(7)] == [10.0**at for at in range(-3, 4)]
    assert axis_of((1.0, 100.0), 0, 100, log=True, room=0).place(10.0) == 50.0
    assert all(3 <= value <= 97 for value, _ in axis_of((3.0, 97.0), 0, 1, room=0).ticks())
    assert pictures(report()) == []
