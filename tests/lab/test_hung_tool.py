"""A tool that never ends, and one that even SIGKILL does not end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from preflight.model import Command
from preflight.transports.local import Local
from tests.lab.frozen import frozen_directory


@pytest.mark.lab
def test_a_process_in_uninterruptible_sleep_costs_its_limit_and_no_other_answer(
    tmp_path: Path,
) -> None:
    with frozen_directory(tmp_path) as frozen:
        hang = Command("hang", ("touch", f"{frozen}/x"), timeout_s=1)
        began = time.monotonic()
        before, hung, after = Local("here").run(
            [Command("a", ("echo", "a")), hang, Command("b", ("echo", "b"))]
        )
        assert time.monotonic() - began < 15
        assert hung.rc == 137
        assert (before.stdout, after.stdout) == ("a\n", "b\n")


@pytest.mark.lab
def test_at_the_deadline_a_process_in_uninterruptible_sleep_is_left_behind(tmp_path: Path) -> None:
    with frozen_directory(tmp_path) as frozen:
        commands = [Command("a", ("echo", "a")), Command("hang", ("touch", f"{frozen}/x"))]
        began = time.monotonic()
        first, hung = Local("here", deadline_s=2).run(commands)
        assert time.monotonic() - began < 6
        assert first.stdout == "a\n"
        assert hung.missing is not None
        assert hung.missing.kind == "timeout"
