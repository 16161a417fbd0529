"""A text of lspci that is not one whole list of one host."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from preflight.errors import ParseError
from preflight.model import Missing
from preflight.probes.pci.lspci import lspci
from tests.lspci_text import server
from tests.topology_hosts import GPUS, Function, machine, names
from tests.topology_hosts import lspci as written


def test_a_second_list_with_another_link_is_refused() -> None:
    assert lspci(server() + server()).devices
    with pytest.raises(ParseError, match="a second list begins here"):
        lspci(server(gpu="32 8") + server())


GONE = [one for one in machine() if one.address != GPUS[3]]


@pytest.mark.parametrize("write", [written, names], ids=["vvv", "nn"])
def test_two_lists_that_differ_in_one_gpu_are_no_host(
    write: Callable[[list[Function]], str],
) -> None:
    first = names(machine())
    bridge = "00:00.0 Host bridge [0600]: Intel Corporation Device [8086:3258]\n"
    second = write(GONE) if write is written else bridge + write(GONE)
    for text in (bridge + first + second, second + bridge + first):
        with pytest.raises(ParseError, match=f"one alone has {GPUS[3]}"):
            lspci(text)


def test_a_part_of_a_list_beside_the_whole_one_is_read() -> None:
    whole = written(machine())
    some = "".join(f"{line}\n" for line in names(GONE).splitlines() if "NVIDIA" in line)
    for text in (some + whole, whole + some):
        assert len(lspci(text).devices) == len(lspci(whole).devices)
        assert not lspci(text).may_be_cut
    cut = whole[: whole.index(GPUS[3])]
    assert len(lspci(whole + cut).devices) == len(lspci(whole).devices)


def test_a_text_that_stops_within_a_line_of_a_bridge_is_cut() -> None:
    text = server()
    at = text.index("LnkCtl:", text.index("17:01.0 PCI")) if "LnkCtl:" in text else 0
    at = at or text.index("LnkCap:", text.index("17:01.0 PCI"))
    answers = lspci(text[: at + 9]).devices[-1].answers
    assert isinstance(answers, Missing) and answers.kind == "unreadable"


def test_a_card_whose_link_has_no_lanes_is_not_known_to_be_virtual() -> None:
    text = re.sub(r"(?s)(19:00.0 3D.*?LnkSta:.*?Width) x16", r"\1 x0", server())
    (gpu,) = (each for each in lspci(text).devices if each.name == "0000:19:00.0")
    assert isinstance(gpu.width, Missing) and gpu.width.kind == "unreadable"


def test_a_link_is_read_without_its_blanks() -> None:
    text = re.sub(r"(?m)^\s+|(?<=:)\t", "", server())
    (gpu,) = (each for each in lspci(text).devices if each.name == "0000:19:00.0")
    assert gpu.width == 16
