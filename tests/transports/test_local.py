"""This machine as a host: exit statuses, limits, and what is left behind."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from preflight.model import Command
from preflight.transports.local import Local


def _rc(*argv: str, timeout_s: int = 5) -> int | None:
    (raw,) = Local("here").run([Command("x", argv, timeout_s=timeout_s)])
    return raw.rc


def test_exit_statuses_tell_the_cases_apart(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.write_text("no program\n")
    assert _rc("true") == 0
    assert _rc("sh", "-c", "exit 9") == 9
    assert _rc("preflight-no-such-tool") == 127
    assert _rc(str(closed)) == 126
    assert _rc("sleep", "60", timeout_s=1) == 124


def test_a_command_that_ignores_sigterm_is_killed() -> None:
    began = time.monotonic()
    assert _rc("sh", "-c", "trap '' TERM; while :; do sleep 1; done", timeout_s=1) == 137
    assert time.monotonic() - began < 6


def test_stdout_and_stderr_are_kept_apart_and_stdin_is_empty() -> None:
    (raw,) = Local("here").run([Command("x", ("sh", "-c", "cat; echo out; echo err >&2"))])
    assert (raw.stdout, raw.stderr, raw.host) == ("out\n", "err\n", "here")


def test_bytes_that_are_no_utf8_stay_bytes() -> None:
    (raw,) = Local("here").run([Command("x", ("printf", r"\377"))])
    assert raw.stdout == b"\xff"


def test_a_background_process_that_holds_the_pipes_does_not_delay_the_answer() -> None:
    began = time.monotonic()
    commands = [Command("x", ("sh", "-c", "sleep 30 & echo done"))]
    (raw,) = Local("here").run(commands)
    assert raw.stdout == "done\n"
    assert time.monotonic() - began < 5


def test_at_the_deadline_what_is_left_is_missing_and_nothing_runs_on() -> None:
    commands = [
        Command("a", ("echo", "a")),
        Command("b", ("sleep", "987")),
        Command("c", ("true",)),
    ]
    a, b, c = Local("here", deadline_s=1.5).run(commands)
    assert (a.rc, a.missing) == (0, None)
    assert b.missing is not None
    assert c.missing is not None
    assert (b.missing.kind, c.missing.kind) == ("timeout", "timeout")
    time.sleep(0.3)
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "987"]
    ]


def test_a_caller_that_stops_early_leaves_nothing_running() -> None:
    answers = Local("here").run([Command("a", ("true",)), Command("b", ("sleep", "986"))])
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    time.sleep(0.3)
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "986"]
    ]


def test_a_flood_is_capped_and_the_next_answer_still_comes() -> None:
    flood = Command("flood", ("sh", "-c", "yes x | head -c 20000000"), max_bytes=1000)
    first, second = Local("here").run([flood, Command("b", ("echo", "b"))])
    assert (len(first.stdout), first.truncated) == (1000, True)
    assert second.stdout == "b\n"


def test_what_waits_for_a_thing_that_hangs_is_not_asked_again() -> None:
    commands = [
        Command("a", ("sleep", "985"), timeout_s=1, waits_for="driver"),
        Command("b", ("echo", "b"), waits_for="driver"),
        Command("c", ("echo", "c"), waits_for="bmc"),
        Command("d", ("echo", "d")),
    ]
    a, b, c, d = Local("here").run(commands)
    assert (a.rc, b.rc, c.stdout, d.stdout) == (124, None, "c\n", "d\n")
    assert b.missing is not None
    assert b.missing.kind == "timeout"
    assert b.missing.text.startswith("not asked (echo b); before it sleep hung for 1 s")


def test_of_many_scripts_the_one_that_hung_is_named() -> None:
    commands = [
        Command("libraries", ("sh", "-c", "sleep 983"), timeout_s=1),
        Command("b", ("sleep", "983")),
    ]
    _, b = Local("here", deadline_s=2).run(commands)
    assert b.missing is not None
    assert "before it the script libraries hung for 1 s" in b.missing.text


def test_what_was_never_started_is_told_apart_from_what_was_cut_off() -> None:
    commands = [Command("a", ("sleep", "984")), Command("b", ("true",))]
    a, b = Local("here", deadline_s=1).run(commands)
    assert a.missing is not None
    assert b.missing is not None
    assert a.missing.text == "the host's limit of 1 s was reached 1 s after it was asked"
    assert b.missing.text == (
        "not asked: the host's limit of 1 s was reached; sleep was waited for until then"
    )
