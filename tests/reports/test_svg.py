"""The drawing: an XML document that every viewer reads, with every device, link and fault in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.parsers import expat

import pytest

from preflight import reports
from preflight.model import Map, MapNode, Report
from tests.reports.built import HOSTILE, host, report
from tests.reports.drawn import MACHINES, drawn, topo
from tests.reports.test_golden import compare

_NS = "{http://www.w3.org/2000/svg}"


def svg(told: Report) -> str:
    return "".join(reports.render(told, "svg"))


def texts(told: Report) -> list[str]:
    root = ElementTree.fromstring(svg(told))
    return [each.text or "" for each in root.iter(f"{_NS}text")]


@pytest.mark.parametrize("name", ["faulty", "sixteen", "without_gpu"])
def test_each_machine_is_drawn_as_the_golden_file(name: str) -> None:
    compare(f"topo.{name}.svg", svg(topo(drawn(name))))


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_an_xml_document_and_the_same_each_time(name: str) -> None:
    text = svg(topo(drawn(name)))
    expat.ParserCreate().Parse(text, True)
    assert text == svg(topo(drawn(name)))
    assert text.isascii()


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_reaches_beyond_the_drawing(name: str) -> None:
    root = ElementTree.fromstring(svg(topo(drawn(name))))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for each in root.iter(f"{_NS}rect"):
        at = {key: float(each.attrib.get(key, 0)) for key in ("x", "y", "width", "height")}
        assert at["x"] + at["width"] <= width and at["y"] + at["height"] <= height
    for each in root.iter(f"{_NS}text"):
        assert float(each.attrib["x"]) < width and float(each.attrib["y"]) < height


def test_every_device_every_link_and_the_nvlink_domain_are_in_it() -> None:
    told = texts(topo(drawn("sixteen")))
    for number in range(16):
        assert f"gpu{number}" in told and f"mlx5_{number}" in told
    assert "NVLink NV18" in told and "gpu[0-15]" in told
    assert told.count("gen5 x16") == 32 + 8
    assert "NUMA node 1: CPUs 48-95,144-191" in told
    assert told.count("PIX") == 32


def test_a_fault_is_told_in_words_and_not_by_colour_alone() -> None:
    told = texts(topo(drawn("faulty")))
    assert "! x8 of x16" in told and "! 200 of 400 Gb/s" in told
    assert not any(text.startswith("!") for text in texts(topo(drawn("eight"))))


def test_the_faster_the_link_the_wider_the_line() -> None:
    def thick(link: str) -> float:
        gpu = MapNode("gpu", "gpu0", link=link)
        told = host("n")
        told.map = Map((MapNode("numa", "n", below=(MapNode("root", "r", below=(gpu,)),)),))
        found = re.findall(r'<path [^>]*stroke-width="([\d.]+)"', svg(report(told)))
        return max(map(float, found))

    assert thick("gen5 x16") > thick("gen4 x16") > thick("gen3 x4") > thick("") == 1.0


def test_what_a_host_calls_itself_is_text_and_no_markup() -> None:
    told = host("<n>&\"'")
    told.map = Map((MapNode("numa", HOSTILE, HOSTILE, below=(
        MapNode("gpu", HOSTILE, HOSTILE, "gen5 x16", HOSTILE),)),), unknown=(HOSTILE,))  # fmt: skip
    root = ElementTree.fromstring(svg(report(told, host("other"))))
    assert {each.tag for each in root.iter()} <= {
        f"{_NS}{tag}" for tag in ("svg", "title", "rect", "path", "text", "g")
    }
    assert "\x1b" not in svg(report(told))


def test_kinds_of_machines_are_below_each_other_and_a_report_without_says_so() -> None:
    both = texts(topo(drawn("eight", "a1"), drawn("eight", "a2"), drawn("without_gpu", "b")))
    assert "a[1-2]" in both and "b" in both
    assert both.count("gpu0") == 3  # in the tree, and in the table by row and by column
    assert texts(report(host("n"))) == [
        "nothing to draw: preflight topo asks how a machine is joined"
    ]
