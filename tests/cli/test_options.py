"""Options stand in several files, each of them once."""

from __future__ import annotations

from preflight.cli.options import ARGUMENTS, OPTIONS, Options
from preflight.cli.options.signature import ROOMS


def test_no_option_stands_in_two_files() -> None:
    assert len(OPTIONS) == sum(len(room.OPTIONS) for room in ROOMS)


def test_what_can_be_asked_has_an_option_and_what_has_an_option_can_be_asked() -> None:
    assert {*OPTIONS, *ARGUMENTS} == set(Options.__struct_fields__)
