"""Lines fit, commands can be pasted, and nothing of the text is lost."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.printable import printable
from preflight.reports.commands import parts
from preflight.reports.layout import GLUE, Span, cells, flow, plain


def laid(text: str, *, head: str = "", hang: int = 4, width: int = 40, advice: bool = False) -> str:
    lines = flow([Span(head)], [Span(text)], hang=hang, width=width, advice=advice)
    return "\n".join(map(plain, lines))


def test_words_go_to_the_next_line_whole() -> None:
    assert laid("one two three four", head="a:  ", width=12) == "a:  one two\n    three\n    four"


def test_a_name_that_is_too_long_is_broken_after_a_comma() -> None:
    assert laid("node[01,03,05,07,09]", hang=2, width=14) == "node[01,03,05,\n  07,09]"


def test_a_word_without_a_comma_is_broken_anywhere() -> None:
    assert laid("x" * 25, hang=2, width=12) == f"{'x' * 12}\n  {'x' * 10}\n  {'x' * 3}"


def test_wide_characters_take_two_columns() -> None:
    assert cells("漢a\u0301") == 3
    assert laid("漢" * 7, hang=0, width=6) == "漢漢漢\n漢漢漢\n漢"


def test_glue_holds_a_line_together() -> None:
    assert laid(f"one gpu7{GLUE}65", head="", hang=0, width=9) == "one\ngpu7 65"


def test_columns_between_spans_are_kept() -> None:
    spans = [Span("a", "bold"), Span("  b"), Span("  c")]
    (line,) = flow([Span("FAIL  ", "fail")], spans, hang=6, width=40)
    assert plain(line) == "FAIL  a  b  c"
    assert [span.style for span in line] == ["fail", "bold", "", ""]


@pytest.mark.parametrize(
    "command",
    [
        "preflight run --hosts 'node[01-16] x' --level standard --save report.json",
        "sudo nvidia-smi --gpu-reset -i 3 --and --many --more --options",
        '$ echo "a b c d e f g h" | tee /some/where/far/away -a -b -c',
    ],
)
def test_a_command_is_broken_so_that_the_shell_joins_it(command: str) -> None:
    shown = laid(command, advice=True, hang=4, width=30)
    assert shown.count(" \\\n") == shown.count("\n") > 0
    joined = shown.replace("\\\n", "")
    assert shlex.split(joined) == shlex.split(command.removeprefix("$ "))


NODES = f"node[{','.join(f'{number:03}' for number in range(1, 199, 2))}]"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (f"srun --exclude='{NODES}'", ""),
        (f"in one job until then: srun --exclude='{NODES}'", f"srun --exclude='{NODES}'"),
        (f"srun -N 4 --exclude='{NODES}' --label hostname", ""),
        (f'scontrol update nodename="{NODES}" state=drain reason="preflight: gpu.xid.79, more (2)"',
         ""),
        (f"$ echo one\\ two 'it is {NODES} and never closed", ""),
        (f"`srun --exclude='{NODES}' hostname`", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("width", [24, 40, 100])
def test_a_command_is_never_broken_within_a_word_of_the_shell(
    text: str, command: str, width: int
) -> None:
    command = (command or text).removeprefix("$ ")
    shown = laid(text, advice=True, hang=8, head="   do:  ", width=width)
    lines = shown.split("\n")
    own = next(at for at, line in enumerate(lines) if command[:4] in line)
    pasted = "\n".join(line.strip() for line in lines[own:]).removeprefix("do:  ")
    joined = pasted.replace(" \\\n", " ")
    assert joined == command
    # Only a quoted word is wider, and stands by itself.
    for line in lines:
        if len(line) > width:
            word = line.strip().removeprefix("do:  ").strip("\\` ")
            assert "'" in word or '"' in word
            assert word.partition("=")[2][:1] in "'\"" or word[0] == "'"


def test_the_end_of_a_command_that_is_too_wide_leaves_no_empty_line() -> None:
    shown = laid(f"srun --exclude='{NODES}'", advice=True, hang=4, width=40)
    assert shown.split("\n") == ["srun \\", f"    --exclude='{NODES}'"]


def test_words_in_quotes_make_no_command_of_a_sentence() -> None:
    told = "ssh doesn't answer, isn't it up, and what does the console of the host say then"
    assert "\\" not in laid(told, advice=True, width=30)


def test_a_command_in_a_sentence_stays_whole_where_it_can() -> None:
    assert laid("look at `lspci -vv -s 1b:00`, then", advice=True, width=26) == (
        "look at\n    `lspci -vv -s 1b:00`,\n    then"
    )


def test_a_sentence_that_begins_like_a_command_is_prose() -> None:
    told = "preflight run adds tests, takes 10 min, and writes nothing"
    assert "\\" not in laid(told, advice=True, width=30)


def test_backticks_of_a_host_are_no_command() -> None:
    assert laid("`rm -rf` " * 3, width=12, hang=0) == "`rm -rf` `rm\n-rf` `rm\n-rf`"
    assert "\\" not in laid("sudo nvidia-smi --gpu-reset -i 3", width=12, hang=0)


def test_what_a_terminal_obeys_is_shown() -> None:
    assert laid("a\x1b[2Jb\r\nc\u202ed") == "a\\x1b[2Jb\\x0d\\x0ac\\u202ed"


def _fixes() -> list[str]:
    checks = Path(__file__).parents[2] / "checks"
    told = [
        fix
        for file in sorted(checks.glob("*.yaml"))
        for check in msgspec.yaml.decode(file.read_bytes()) or []
        for fix in check.get("fix", ())
    ]
    assert len(told) > 500
    return told


def _pasted(text: str, width: int) -> list[str]:
    """The words that a shell has of the lines of a command."""
    # shlex, unlike a shell, leaves a newline behind a backslash as a word.
    joined = laid(text, advice=True, hang=4, width=width).replace(" \\\n", " ")
    return shlex.split(joined, comments=True)


def test_no_fix_of_a_check_is_broken_where_a_shell_would_read_it_otherwise() -> None:
    commands = [one for fix in _fixes() for one in parts(fix) if one.command and "`" not in fix]
    assert len(commands) > 200
    for one in commands:
        for width in (30, 60, 85):
            told = f"$ {one.text.rstrip(' :;')}" + (f"   # {one.comment}" if one.comment else "")
            assert _pasted(told, width) == shlex.split(told[2:], comments=True), told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1,mlx5_2:1'",
         "export \\\n    NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1,mlx5_2:1'"),
        ("lsmod | grep nvidia   # a module that is refused says why",
         "# a module that is refused says why\n    lsmod | grep nvidia"),
        ("who: sudo dmesg | grep -e Xid -e nvlink | tail -40",
         "who:\n    sudo dmesg | grep -e Xid -e nvlink | \\\n    tail -40"),
    ],
)  # fmt: skip
def test_a_fix_is_broken_for_the_shell(text: str, expected: str) -> None:
    assert laid(text, head="    ", advice=True, hang=4, width=42) == f"    {expected}"


@given(
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126)), min_size=1),
    st.integers(20, 100),
)
def test_any_command_is_joined_by_the_shell_as_it_was(words: list[str], width: int) -> None:
    assert _pasted(f"$ {shlex.join(['echo', *words])}", width) == ["echo", *words]


@given(st.text(), st.integers(20, 100), st.integers(0, 14))
def test_every_line_fits_and_no_letter_is_lost(text: str, width: int, hang: int) -> None:
    shown = laid(text, width=width, hang=hang)
    assert all(cells(line) <= width for line in shown.split("\n"))
    letters = [char for char in printable(text) if char.isalnum()]
    assert [char for char in shown if char.isalnum()] == letters
