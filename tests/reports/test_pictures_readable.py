"""Pictures of a run: the numbers of the report, nothing cut or on top of something else, whatever
the names, how many ranks, how long the series."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from preflight import reports
from preflight.diagnosis.reading import Curve, Mark, Part, RankParts, Reading
from preflight.diagnosis.series.shape import shift
from preflight.diagnosis.series.thin import thinned
from preflight.model import Report
from preflight.reports.pictures.axis import axis_of
from preflight.reports.pictures.flags import Flag, kind_of, placed
from preflight.reports.pictures.series import stacked_panels
from preflight.reports.pictures.told import Marked, Panel
from preflight.reports.step_time import step_tables
from preflight.reports.svg_shapes import Shape
from tests.cli.command import preflight
from tests.diagnosis.test_from_log import megatron, usual
from tests.reports.built import HOSTILE, report

_NS = "{http://www.w3.org/2000/svg}"
PARTS = {"data": 0.05, "forward": 0.3, "backward": 0.6, "communication": 0.2, "other": 0.01}


def told(*readings: Reading) -> Report:
    """As it comes back from a file."""
    made = report()
    made.command = "diagnose-step-time"
    made.measurements = tuple(json.loads(json.dumps(list(step_tables(readings)))))
    return made


def picture(*readings: Reading) -> ElementTree.Element:
    return ElementTree.fromstring("".join(reports.render(told(*readings), "svg")))


def ranks(count: int, slow: int = -1) -> Reading:
    chance = random.Random(count)
    made = [
        RankParts(f"rank {at}", tuple(
            Part(name, seconds * chance.uniform(0.99, 1.01) * (2 if at == slow else 1))
            for name, seconds in PARTS.items()
        )) for at in range(count)
    ]  # fmt: skip
    return Reading("traces", parts=made[0].parts, ranks=tuple(made))


def words(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{_NS}text")]


Box = tuple[float, float, float, float]


def room(each: ElementTree.Element) -> Box:
    """What a word covers, in a font whose letters are 0.602 of its size wide."""
    size, x, y = (float(each.attrib[key]) for key in ("font-size", "x", "y"))
    wide = 0.602 * size * sum(2 if ord(char) > 0x2E80 else 1 for char in each.text or "")
    shift = {"middle": wide / 2, "end": wide}.get(each.attrib.get("text-anchor", ""), 0.0)
    return x - shift, x - shift + wide, y - 0.73 * size, y + 0.1 * size


def apart(one: Box, other: Box) -> bool:
    return one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]


def hold_readable(root: ElementTree.Element) -> None:
    """No word lies on another or leaves the drawing; nothing comes from elsewhere."""
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    boxes = [(room(each), each.text) for each in root.iter(f"{_NS}text") if each.text]
    for (left, right, top, bottom), text in boxes:
        assert left >= 0 and right <= width and top >= 0 and bottom <= height, text
    boxes.sort(key=lambda one: one[0][2])
    for at, (one, text) in enumerate(boxes):
        for other, more in boxes[at + 1 :]:
            if other[2] >= one[3]:
                break
            assert apart(one, other), (text, more)
    tags = {each.tag.removeprefix(_NS) for each in root.iter()}
    assert tags <= {"svg", "title", "rect", "text", "path", "g"}
    assert not any("href" in key or key.startswith("on") for each in root.iter()
                   for key in each.attrib)  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 8, 128, 2048])
def test_any_number_of_ranks_is_readable_and_bounded(count: int) -> None:
    slow = count // 3
    root = picture(ranks(count, slow))
    hold_readable(root)
    shown = words(root)
    if count > 1:
        assert shown.count(f"rank {slow}") == 2  # as a bar, and in the map
        # Of two the median lies between them.
        off = r"\+[12]\d%" if count == 2 else r"\+5\d%"
        assert any(re.fullmatch(rf"1,[12]\d\d {off}", one) for one in shown)
    named = {one for one in shown if one.startswith("rank ")}
    assert len(named) == {1: 0, 2048: 256}.get(count, count)
    assert any(one.startswith("2,048 ranks: each row is one of 8") for one in shown) is (
        count == 2048
    )
    assert float(root.attrib["height"]) < 9000


def test_its_numbers_are_those_of_the_report() -> None:
    reading = ranks(4, 2)
    shown = words(picture(reading))
    (carried,) = [one["picture"]["bars"] for one in told(reading).measurements
                  if one["table"].startswith("the ranks")]  # fmt: skip
    assert carried["parts"] == list(PARTS)
    for row in carried["seconds"]:
        for part, seconds in zip(carried["parts"], row, strict=True):
            in_bar_or_map = [one for one in shown if one.split(" ")[0] == f"{seconds * 1e3:,.4g}"]
            assert in_bar_or_map, (part, seconds)
    median = sorted(row[2] for row in carried["seconds"])
    middle = (median[1] + median[2]) / 2 * 1e3
    assert f"median {middle:.4g} ms" in shown


def test_names_are_text_and_long_ones_have_room() -> None:
    names = [f"{HOSTILE}<script>alert(1)</script>{'W' * 90}\U0001f600節点-{at}" for at in range(3)]
    bad = tuple(
        RankParts(name, (Part(f"]]><{HOSTILE}{'M' * 80}", 0.1 * (at + 1)), Part(HOSTILE, 0.2)))
        for at, name in enumerate(names)
    )  # fmt: skip
    curve = Curve(HOSTILE, "<s>", (0.0, 1.0, 2.0), (1.0, 2.0, 3.0), (Mark(1, names[0] * 9),))
    reading = Reading(f"{HOSTILE}{'/path' * 300}", ranks=bad, curves=(curve,))
    root = picture(reading)
    hold_readable(root)
    assert "\x1b" not in "".join(reports.render(told(reading), "svg"))
    ends = [one[-4:] for one in words(root) if one.endswith(("-0", "-1", "-2"))]
    assert {one: ends.count(one) for one in ends} == {f"節点-{at}": 2 for at in range(3)}
    assert any("<script>" in (each.text or "") for each in root.iter(f"{_NS}title"))


def test_a_long_series_keeps_its_extremes() -> None:
    values = [1.0 + 0.01 * math.sin(at) for at in range(200_000)]
    values[77_777], values[150_001], values[9] = 9.0, 0.1, math.nan
    places = thinned(values, 1000)
    assert len(places) <= 1000 and places == sorted(places)
    assert {77_777, 150_001, 9, 0, 199_999} <= set(places)
    shapes = chart([panel("loss", "nats", values)])
    assert len("".join(one.markup for one in shapes)) < 100_000
    assert any("200,000 values" in one.markup for one in shapes)


def panel(name: str, unit: str, values: Sequence[float], *, log: bool = False) -> Panel:
    steps = tuple(float(at) for at in range(len(values)))
    return Panel(name, unit, steps, tuple(values), log=log)


def chart(panels: Sequence[Panel], *marks: Marked) -> list[Shape]:
    first = replace(panels[0], marks=marks)
    return list(stacked_panels([first, *panels[1:]], 24, 24))


def drawing(shapes: Sequence[Shape]) -> ElementTree.Element:
    height = max(one.bottom for one in shapes) + 24
    body = "".join(one.markup for one in shapes)
    return ElementTree.fromstring(
        f'<svg xmlns="{_NS[1:-1]}" width="1048" height="{height}">{body}</svg>'
    )


def test_panels_share_an_axis_and_marks_go_through_all() -> None:
    steps = [float(at) for at in range(1000)]
    loss = [2 + math.exp(-at / 200) for at in steps]
    loss[700:760] = [math.nan] * 60
    norm = [500.0 if at == 690 else 1.0 for at in steps]
    scale = [2.0 ** (16 - int(at) // 100) for at in steps]
    scale[10] = 0.0
    told_marks = [Marked(float(at), "checkpoint") for at in range(0, 1000, 100)]
    told_marks += [Marked(690, "spike"), Marked(700, "not finite"), Marked(760, "restart"),
                   Marked(1e9, "far away")]  # fmt: skip
    shapes = chart([panel("loss", "nats", loss), panel("gradient norm", "", norm, log=True),
                    panel("loss scale", "", scale, log=True)], *told_marks)  # fmt: skip
    root = drawing(shapes)
    hold_readable(root)
    shown = words(root)
    assert {"loss, nats", "gradient norm, log scale", "step", "spike 690", "not finite 700",
            "restart 760", "checkpoint 0"} <= set(shown)  # fmt: skip
    assert shown.count("200") == 1  # of the shared axis
    assert {"1", "10", "100"} <= set(shown)  # of the norm, by powers
    text = " ".join(shown)
    assert "loss: no number: 60 of 1,000 values (ticks at the upper edge)" in text
    assert "loss scale: 0 or less: 1 of 1,000 values (ticks at the lower edge)" in text
    assert "checkpoint (10, dotted)" in text and "1 beyond what is drawn" in text
    lines = [each for each in root.iter(f"{_NS}path") if "V" in each.attrib["d"]]
    xs = [each.attrib["d"].split(" ")[0] for each in lines]
    assert all(xs.count(one) >= 3 for one in set(xs))  # once in each panel


@pytest.mark.parametrize("seed", range(4))
def test_words_of_marks_never_lie_on_each_other(seed: int) -> None:
    chance = random.Random(seed)
    labels = ["save", "start", "shift", "drift begins", "x" * 60]
    flags = [Flag(chance.choice((chance.uniform(0, 999), 500 + chance.random())),
                  chance.choice(labels)) for _ in range(200)]  # fmt: skip
    axis = axis_of((0.0, 999.0), 100, 1000)
    found = placed(flags, axis)
    assert len(found) >= 10
    for one, other in combinations(found, 2):
        if one.lane == other.lane:
            assert one.right <= other.left or other.right <= one.left
    marks = [Marked(one.at, one.label) for one in flags]
    values = [float(at) for at in range(1000)]
    hold_readable(drawing(chart([panel("step time", "s", values)], *marks)))
    assert kind_of("shift x 1.30") == "trouble" and kind_of("save") == "checkpoint"


@pytest.mark.parametrize(
    "values",
    [[1.0, 1.0, 1.0], [0.0, 0.0], [1e-12, 2e-12], [-5.0, 1e15], [1e299, -1e299, 1e308],
     [math.nan, math.inf, 1.0], [math.nan] * 3, []],
)  # fmt: skip
@pytest.mark.parametrize("log", [False, True])
def test_odd_values_have_axes_too(values: list[float], log: bool) -> None:
    root = drawing(chart([panel("loss", "", values, log=log)], Marked(1, "save")))
    hold_readable(root)
    drawn = "".join(each.attrib.get("d", "") for each in root.iter(f"{_NS}path"))
    assert "nan" not in drawn and "inf" not in drawn


def test_save_draws_and_a_stored_report_draws_the_same(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("run.svg", "run.json", "again.svg")]
    given = "tests/samples/own/traces/slow1"
    ran = preflight("diagnose-step-time", given, "--save", str(files[0]), "--save", str(files[1]))
    assert f"saved {files[0]}" in ran.err
    root = ElementTree.fromstring(files[0].read_text("utf-8"))
    hold_readable(root)
    stored = json.loads(files[1].read_text("utf-8"))
    (table,) = [one for one in stored["measurements"] if one["table"].startswith("the ranks")]
    shown = words(root)
    for row in table["picture"]["bars"]["seconds"]:
        for seconds in row:
            told_ms = float(f"{seconds * 1e3:.4g}")
            assert any(one.split(" ")[0] == f"{told_ms:,.7g}" for one in shown), seconds
    preflight("report", str(files[1]), "--save", str(files[2]))
    assert files[2].read_text("utf-8") == files[0].read_text("utf-8")


def test_a_name_is_hidden_in_the_picture_too(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    preflight("diagnose-step-time", "tests/samples/own/traces/slow1", "--redact",
              "--save", str(path))  # fmt: skip
    assert "rank 1" in path.read_text("utf-8")


def test_what_has_no_picture_says_what_would_have_one(tmp_path: Path) -> None:
    path = tmp_path / "no.svg"
    ran = preflight("diagnose-step-time", "tests/samples/own/flight_recorder/never",
                    "--save", str(path))  # fmt: skip
    assert f"error: {path} was not written: there is nothing to draw" in ran.err
    assert "a step: preflight diagnose-step-time" in ran.err
    assert not path.exists() and "hang" in ran.out


@pytest.mark.parametrize("begin", [0, 300, 700])
def test_a_drift_is_marked_where_it_begins_and_a_shift_where_it_is(begin: int) -> None:
    chance = random.Random(begin)
    noise = [0.02 * chance.gauss(0, 1) for _ in range(1000)]
    grows = shift([1 + one + 0.001 * max(0, at - begin) for at, one in enumerate(noise)])
    assert grows is not None and grows.gradual and abs(grows.begin - begin) <= 25
    jumps = shift([1 + one + (0.3 if at >= 400 else 0) for at, one in enumerate(noise)])
    assert jumps is not None and not jumps.gradual and abs(jumps.begin - 400) <= 5


def test_a_log_that_drifts_has_the_step_in_text_and_picture(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(megatron(lambda at, chance: usual(at, chance) * (1 + max(0, at - 150) / 100)))
    ran = preflight("diagnose-step-time", str(log), "--save", str(tmp_path / "a.svg"))
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text("utf-8"))
    hold_readable(root)
    (mark,) = [one for one in words(root) if one.startswith("drift begins x ")]
    step = int(mark.split(" ")[-1])
    assert abs(step - 150) <= 15
    assert f"at step {step}" in ran.out
    assert f"since step {step}" in " ".join(ran.out.split())
