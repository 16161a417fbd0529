"""Lists of processors as the kernel writes them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.cpulists import MOST_CPUS, fold, parse


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("\n", ()),
        ("0", (0,)),
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("8, 0-1", (0, 1, 8)),
        ("0-3,2-4", (0, 1, 2, 3, 4)),
        ("0-7:2/4", (0, 1, 4, 5)),
        ("0-47,96-143", (*range(48), *range(96, 144))),
    ],
)
def test_parse(text: str, cpus: tuple[int, ...]) -> None:
    assert parse(text) == cpus


@pytest.mark.parametrize(
    "text", ["N/A", "3-1", "0-", "-1", "0,,1", "0-3:0/4", "0 1", f"0-{MOST_CPUS}", "9" * 40, "0x3"]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse(text)


def test_fold() -> None:
    assert fold([]) == ""
    assert fold([8, 3, 2, 1, 0, 3]) == "0-3,8"
    assert fold(range(0, 8, 2)) == "0,2,4,6"


@given(st.sets(st.integers(0, 600)))
def test_what_is_folded_is_read_again(cpus: set[int]) -> None:
    assert parse(fold(cpus)) == tuple(sorted(cpus))


@given(st.text("0123456789-,:/ ", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert fold(parse(text)) == fold(parse(fold(parse(text))))
