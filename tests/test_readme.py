"""The output that the README shows is the command's own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.command import preflight

ROOT = Path(__file__).resolve().parents[1]
_SHOWN = re.compile(
    r"^\$ (preflight (?:estimate |[^\n]* tests/samples/)(?:[^\n\\]|\\\n)*)\n(preflight .*?)^```$",
    re.DOTALL | re.MULTILINE,
)


def test_what_it_shows_is_what_the_command_prints() -> None:
    found = _SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found
    for command, shown in found:
        ran = preflight(*shlex.split(command.replace("\\\n", " "))[1:], cwd=ROOT)
        # The first line holds the time; three dots stand for what follows.
        head, _, rest = shown.partition("\n...\n")
        lines = head.splitlines()[1:]
        assert not rest
        assert ran.out.splitlines()[1:][: len(lines)] == lines
        assert head != shown or len(ran.out.splitlines()) == len(lines) + 1
