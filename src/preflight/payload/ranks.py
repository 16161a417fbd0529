"""The ranks of one launch on this host: forked, listened to, and ended together.

They are forked from a process that has imported torch: a launch begins in a fraction of a second.
Each has a pipe of its own, so that what one prints does not tear the line of another.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .holdups import held_up
from .host_memory import oom_kills
from .parent import die_with_launcher

#: After the first rank ends in an error the others have so long to tell theirs.
_LAST_WORDS_S = 3.0
#: Until the first step: imports, compiling, kernels that are loaded.
_FIRST_STEP_S = 120.0

#: A process in an uninterruptible call (a dead file server, a driver) does not end when killed.
_KILLED_S = 4.0

Tell = Callable[[dict[str, Any]], None]


class Rank:
    """One forked process, as its launcher sees it."""

    def __init__(
        self, number: int, environment: dict[str, str], work: Callable[[Tell], None]
    ) -> None:
        self.number, self.rest, self.step = number, b"", -1
        self.heard_s = time.monotonic()
        self.status: int | None = None
        self.fd, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.setpgid(0, 0)  # what it starts is ended with it
            os.close(self.fd)
            _as_rank(number, writing, environment, work)
        os.close(writing)
        os.set_blocking(self.fd, False)

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it has told since; closes its end of the pipe when that is all."""
        while self.fd >= 0:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                self.close()
            self.heard_s = time.monotonic()
            *whole, self.rest = (self.rest + data).split(b"\n")
            for line in whole:
                told = json.loads(line)
                self.step = told.get("step", self.step) if told["kind"] == "step" else self.step
                yield {**told, "rank": self.number}

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def kill(self) -> None:
        """With all that it has started; the loader's workers outlive it otherwise."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:  # it may not have its group yet
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def ended(self) -> bool:
        """Whether it has ended; its status then stands in `status`, a signal as negative."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None


def _as_rank(
    number: int, fd: int, environment: dict[str, str], work: Callable[[Tell], None]
) -> None:
    """In the forked process: work, tell, end."""
    status, one_at_a_time = 1, threading.Lock()

    def tell(line: dict[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with one_at_a_time:
            while data:
                data = data[os.write(fd, data) :]

    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN if each == signal.SIGINT else signal.SIG_DFL)
        die_with_launcher(signal.SIGKILL)
        os.environ.update(environment)
        _call_itself(f"rank {number}")
        work(tell)
        status = 0
    except Exception as error:  # noqa: BLE001 - told, whatever it is
        sys.stderr.write(traceback.format_exc())
        with contextlib.suppress(OSError):
            text = str(error) or type(error).__name__
            tell({"kind": "failed", "error": type(error).__name__, "text": text[:2000]})
    finally:
        sys.stderr.flush()
        os._exit(status)


def _call_itself(name: str) -> None:
    """What ps and top show of a process: what was put into its environment they do not."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(name)


@dataclass(frozen=True)
class Among:
    """Where the ranks of this host stand among those of all hosts, and how they find each other."""

    first: int = 0
    world: int = 0  # 0: those of this host are all
    master: str = "127.0.0.1"
    port: int = 0  # 0: one that is free now
    environment: dict[str, str] = field(default_factory=dict)
    devices: list[int] = field(default_factory=list)  # of each rank; none: numbered from 0


ALONE = Among()
#: torch asks for the name of whoever connects, to write it into a log that nobody sees. Where no
#: server of names answers, each start of ranks would wait for it: for 10 s by default. An address
#: needs none (resolv.conf(5)).
_NAMES = "timeout:1 attempts:1"


class Launch:
    """All ranks of this host, from their start to the end of the last."""

    def __init__(
        self, ranks: int, work: Callable[[Tell], None], *, silent_s: float, among: Among = ALONE,
        start_s: float = _FIRST_STEP_S,
    ) -> None:  # fmt: skip
        port = among.port or free_port(among.master)
        self.silent_s, self.start_s, self.ended_s = silent_s, start_s, 0.0
        self._oom_kills = oom_kills()
        self.ranks = [
            Rank(among.first + local, {
                **({} if "RES_OPTIONS" in os.environ else {"RES_OPTIONS": _NAMES}),
                **among.environment,
                "RANK": str(among.first + local), "LOCAL_RANK": str(device),
                "WORLD_SIZE": str(among.world or ranks), "LOCAL_WORLD_SIZE": str(ranks),
                "MASTER_ADDR": among.master, "MASTER_PORT": str(port),
            }, work)
            for local, device in enumerate(among.devices or range(ranks))
        ]  # fmt: skip

    def lines(self) -> Iterator[dict[str, Any]]:
        """Everything that the ranks tell until all have ended, and how those ended that did not end
        well. Whoever stops listening calls kill()."""
        running = list(self.ranks)
        with selectors.DefaultSelector() as selector:
            for rank in running:
                selector.register(rank.fd, selectors.EVENT_READ, rank)
            while running:
                for key, _ in selector.select(0.05):
                    yield from key.data.lines()
                    if key.data.fd < 0:
                        selector.unregister(key.fd)
                # Of those that ended since, one that was killed is the cause and the others follow.
                ended = [one for one in running if one.ended()]
                for rank in sorted(ended, key=lambda one: (one.status or 0) >= 0):
                    running.remove(rank)
                    if rank.fd >= 0:  # something that it started may still hold the pipe
                        selector.unregister(rank.fd)
                        yield from rank.lines()
                    rank.kill()
                    rank.close()
                    yield from self._end_of(rank)
                yield from self._silent(running)
                if self.ended_s and time.monotonic() > self.ended_s + _LAST_WORDS_S:
                    self.kill()

    def _end_of(self, rank: Rank) -> Iterator[dict[str, Any]]:
        if rank.status:
            told = {"kind": "died", "rank": rank.number, "status": rank.status, "step": rank.step}
            killed = oom_kills() - self._oom_kills if rank.status == -signal.SIGKILL else 0
            yield {**told, "first": not self.ended_s, "oom_kills": killed}
            self.ended_s = self.ended_s or time.monotonic()

    def _silent(self, alive: list[Rank]) -> Iterator[dict[str, Any]]:
        """Ranks that have said nothing for too long. The one that is behind holds up the others."""
        now = time.monotonic()
        trained = any(rank.step >= 0 for rank in self.ranks)
        limit_s = self.silent_s if trained else max(self.silent_s, self.start_s)
        if self.ended_s or not alive or now - max(rank.heard_s for rank in alive) < limit_s:
            return
        behind = min(rank.step for rank in alive)
        steps = {str(rank.number): rank.step for rank in alive}
        held = held_up({rank.number: rank.pid for rank in alive})
        pids = {str(rank.number): rank.pid for rank in alive}
        stopped = sorted({one["rank"] for one in held if one["state"] == "stopped"})
        last = [rank.number for rank in alive if rank.step == behind]
        suspects = sorted({one["rank"] for one in held}) or last
        yield {"kind": "silent", "after_s": round(limit_s, 1), "steps": steps, "suspects": suspects,
               "stopped": stopped, "held": held, "pids": pids}  # fmt: skip
        self.ended_s = now - _LAST_WORDS_S

    def kill(self) -> None:
        """End all of them at once, and wait until they have."""
        for rank in self.ranks:
            if not rank.ended():
                rank.kill()
        until_s = time.monotonic() + _KILLED_S
        while not all(rank.ended() for rank in self.ranks) and time.monotonic() < until_s:
            time.sleep(0.005)


def free_port(address: str) -> int:
    """A port that nobody listens at just now."""
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])
