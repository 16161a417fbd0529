"""Many hosts at once, over a way that is a pair of pipes: limits, deadlines, interrupts."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from preflight.faults import FAULTS, fault
from preflight.model import Command, Missing
from preflight.transports import fan as fan_module
from preflight.transports.conversation import ERR, OUT
from preflight.transports.fan import Fan
from preflight.transports.progress import Progress
from preflight.transports.ways import Unreached

ECHO = [Command("a", ("echo", "a")), Command("b", ("echo", "b"))]


class Shell:
    """A session that is a shell on this machine."""

    def __init__(self, script: bytes, argv: Sequence[str] = ("/bin/sh", "-s")) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.streams = {self.process.stdout.fileno(): OUT, self.process.stderr.fileno(): ERR}
        with suppress(BrokenPipeError):
            self.process.stdin.write(script)
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def filenos(self) -> Sequence[int]:
        return tuple(self.streams)

    def read(self, fileno: int) -> Sequence[tuple[int, bytes]]:
        return [(self.streams[fileno], os.read(fileno, 1 << 16))]

    def ended(self, begun: bool, said: str) -> Missing:
        return fault("died" if begun else "no-shell", said or "it ended")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()


class Hosts:
    """A way by what each host does; how many were open at a time."""

    def __init__(self, **does: Callable[[bytes], Shell]) -> None:
        self.does = does
        self.opening = self.most_opening = 0
        self.lock = threading.Lock()

    def open(self, host: str, script: bytes, phase: Callable[[str], None]) -> Shell:
        with self.lock:
            self.opening += 1
            self.most_opening = max(self.most_opening, self.opening)
        try:
            phase("connect")
            session = self.does.get(host, Shell)(script)
            phase("login")
            return session
        finally:
            with self.lock:
                self.opening -= 1


def _ask(hosts: Sequence[str], way: Hosts, **settings: float) -> dict[str, list[Missing | None]]:
    fan = Fan(tuple(hosts), way, **settings)  # type: ignore[arg-type]
    return {name: [raw.missing for raw in raws] for name, raws in fan.run(ECHO)}


def test_every_host_answers() -> None:
    names = [f"h{number}" for number in range(40)]
    found = _ask(names, Hosts())
    assert found == {name: [None, None] for name in names}


def _slow(script: bytes) -> Shell:
    time.sleep(0.05)
    return Shell(script)


def test_few_arrive_at_a_time() -> None:
    names = [f"h{number}" for number in range(40)]
    way = Hosts(**dict.fromkeys(names, _slow))
    _ask(names, way)
    assert 2 <= way.most_opening <= fan_module.ARRIVING


def test_a_host_that_does_not_arrive_holds_up_nobody() -> None:
    def never(_script: bytes) -> Shell:
        time.sleep(2)
        raise Unreached("no-answer", "nothing")

    dead = [f"dead{number}" for number in range(fan_module.ARRIVING)]
    way = Hosts(**dict.fromkeys(dead, never))
    fan, began_s, seen = Fan((*dead, "h1", "h2"), way, 30.0), time.monotonic(), {}
    for name, _ in fan.run(ECHO):
        seen[name] = time.monotonic() - began_s
    assert seen["h1"] < 1.5
    assert seen["h2"] < 1.5
    assert max(seen.values()) < 4


def test_a_fault_is_told_of_every_question_and_once_of_the_host() -> None:
    def refuse(_script: bytes) -> Shell:
        raise Unreached("refused", "h1: Connection refused")

    found = _ask(["h1", "h2"], Hosts(h1=refuse))
    assert found["h2"] == [None, None]
    *questions, closing = found["h1"]
    assert closing == Missing("unreachable", "h1: Connection refused", "refused")
    assert all(one and one.fault == "refused" for one in questions)


def test_a_login_shell_that_runs_nothing_is_told_with_its_words() -> None:
    def nologin(script: bytes) -> Shell:
        return Shell(script, ("/bin/sh", "-c", "echo This account is currently not available."))

    closing = _ask(["h1"], Hosts(h1=nologin))["h1"][-1]
    assert closing
    assert closing.fault == "no-shell"
    assert "currently not available" in closing.text


def test_the_deadline_is_the_hosts_own() -> None:
    way = Hosts(h1=lambda script: Shell(b"sleep 60\n"))
    began_s = time.monotonic()
    found = _ask(["h1", "h2"], way, deadline_s=1.0)
    assert time.monotonic() - began_s < 5
    closing = found["h1"][-1]
    assert closing
    assert closing.fault == "silent"
    assert found["h2"] == [None, None]


def test_a_command_cut_by_the_deadline_is_a_timeout_and_no_fault_of_the_host() -> None:
    fan = Fan(("h1",), Hosts(), 1.5)
    commands = [Command("a", ("echo", "a")), Command("b", ("sleep", "60"))]
    ((_, (first, second)),) = list(fan.run(commands))
    assert first.stdout == "a\n"
    assert second.missing
    assert (second.missing.kind, second.missing.fault) == ("timeout", "")


def test_interrupted_it_tells_what_came() -> None:
    fan = Fan(("h1", "h2"), Hosts(h2=lambda script: Shell(b"sleep 60\n")), 60.0)
    found, began_s = {}, time.monotonic()
    for name, raws in fan.run(ECHO):
        found[name] = raws
        fan.interrupted.set()
    assert time.monotonic() - began_s < 5
    assert [raw.missing for raw in found["h1"]] == [None, None]
    closing = found["h2"][-1].missing
    assert closing
    assert closing.fault == "interrupted"


def test_interrupted_hosts_that_were_not_begun_are_told_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fan_module, "ARRIVING", 1)
    fan = Fan(("h1", "h2", "h3"), Hosts(h1=lambda script: Shell(b"sleep 60\n")), 60.0)
    threading.Timer(0.5, fan.interrupted.set).start()
    found = {name: raws[-1].missing for name, raws in fan.run(ECHO)}
    assert set(found) == {"h1", "h2", "h3"}
    assert all(one and one.fault == "interrupted" for one in found.values())


def test_a_bug_in_the_way_is_no_silent_host() -> None:
    def bug(_script: bytes) -> Shell:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        _ask(["h1"], Hosts(h1=bug))


def test_progress_names_the_slowest() -> None:
    told: list[Progress] = []
    fan = Fan(("h1", "h2"), Hosts(h2=lambda script: Shell(b"sleep 60\n")), 1.5, False, told.append)
    list(fan.run(ECHO))
    assert any((one.slowest, one.done, one.hosts) == ("h2", 1, 2) for one in told)


def test_what_to_type_stands_for_every_fault_that_can_be_mended() -> None:
    assert all(one.do for name, one in FAULTS.items() if name != "interrupted")


def test_login_files_that_lead_one_stream_into_the_other_or_away_cost_no_answer() -> None:
    def led(where: str) -> Callable[[bytes], Shell]:
        return lambda script: Shell(script, ("/bin/sh", "-c", f"exec {where} /bin/sh -s"))

    for where in ("2>&1", "2>/dev/null"):
        ((_, raws),) = list(Fan(("h1",), Hosts(h1=led(where)), 20.0).run(ECHO))
        assert [(raw.stdout, raw.rc) for raw in raws] == [("a\n", 0), ("b\n", 0)]
        assert [raw.missing for raw in raws] == [None, None]
    for where in (">/dev/null", "1>&2"):  # empty answers would read like sound ones
        ((_, raws),) = list(Fan(("h1",), Hosts(h1=led(where)), 20.0).run(ECHO))
        assert [raw.missing.fault for raw in raws if raw.missing] == ["no-shell"] * 3
        assert raws[-1].missing == fault("no-shell", "its login files lead standard output away")
