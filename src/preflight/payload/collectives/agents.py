"""One agent on each host, and one host that leads them: a test is fresh ranks on some of the hosts.

NCCL reads its variables once in a process, so that each test has processes of its own; the agents
stay, so that none of them needs a new login. They hang on the lead by one connection each, over
which a test goes there and what its ranks tell comes back, as JSON lines.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

#: Until all agents are there: hosts have met before, so that this is the time torch needs to load.
TOGETHER_S, _AGAIN_S = 120.0, 0.2
#: A host that does not take or give a line for so long is gone.
_LINE_S = 20.0
#: Free ports that an agent tells: each of its tests is given the next.
PORTS = 32
#: The host that leads gives a sign so often; without one for so long it is stopped, or gone.
_SIGN_S, LEAD_SILENT_S = 10.0, 90.0
#: Once the others of its test are done a host is too, or says within 120 s that its ranks say
#: nothing (orders.py); else it is stopped.
_ALONE_S = 130.0
#: Of one wait two names before Python 3.10.
TIMED_OUT = (socket.timeout, TimeoutError)
#: In place of the number of a test: nothing more comes; a sign.
OVER, SIGN = -1, -2

Line = dict[str, Any]


class GoneError(Exception):
    """The connection to the lead, or to all agents, is lost: why."""


class Wire:
    """A connection that carries JSON lines."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_LINE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket, self.rest = connection, b""

    def send(self, line: Line) -> None:
        """Raises OSError where the other end is gone."""
        self.socket.sendall(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def received(self) -> list[Line]:
        """Whole lines of what is there now, waited for. Raises OSError at the end."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the other end has closed it")
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(one) for one in whole]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()


def free_ports(address: str, many: int) -> list[int]:
    """Ports at which nobody listens just now."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(many)]
        for one in held:
            one.bind((address, 0))
        return [int(one.getsockname()[1]) for one in held]


def called(lead: tuple[str, int], at: int, secret: str, address: str, about: Line) -> Wire:
    """An agent's connection to the lead, which is told about its host. Raises GoneError."""
    until_s, why = time.monotonic() + TOGETHER_S, ""
    while time.monotonic() < until_s:
        try:
            wire = Wire(socket.create_connection(lead, timeout=_LINE_S))
            ports = free_ports(address, PORTS)
            wire.send({"at": at, "secret": secret, "ports": ports, "about": about})
        except OSError as error:
            why = error.strerror or str(error)
            time.sleep(_AGAIN_S)
        else:
            wire.socket.settimeout(LEAD_SILENT_S)
            return wire
    raise GoneError(f"{lead[0]} port {lead[1]}, where the first host leads, is not reached: {why}")


class Agent(NamedTuple):
    """One host, as the lead sees it."""

    at: int
    wire: Wire
    ports: list[int]


class Open:
    """The hosts that are in a test: which it is, when each was heard last, and how far the test
    is."""

    def __init__(self) -> None:
        self.tests: dict[int, int] = {}  # by host
        self._heard_s: dict[int, float] = {}
        self._at: dict[int, str] = {}  # by test
        self._ended_s: dict[int, float] = {}  # by test, when the last of its hosts was done

    def __len__(self) -> int:
        return len(self.tests)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tests)

    def get(self, at: int) -> int | None:
        """The test that it is in."""
        return self.tests.get(at)

    def begin(self, at: int, test: int) -> None:
        self.tests[at], self._heard_s[at] = test, time.monotonic()

    def end(self, at: int) -> int:
        """The test that it was in."""
        self._ended_s[self.tests[at]] = time.monotonic()
        return self.tests.pop(at)

    def heard(self, at: int, line: Line) -> None:
        self._heard_s[at] = time.monotonic()
        if line["kind"] == "step":
            self._at[self.tests[at]] = str(line["name"])

    def left_alone(self) -> list[int]:
        """Those that say nothing though all others of their test have long been done with it."""
        now_s, tests = time.monotonic(), list(self.tests.values())
        return [
            at for at, test in self.tests.items()
            if tests.count(test) == 1 and test in self._ended_s
            and now_s > max(self._ended_s[test], self._heard_s[at]) + _ALONE_S
        ]  # fmt: skip

    def silence(self, at: int) -> str:
        """How long one has said nothing, and where the others were by then."""
        return f"it gave no sign for {time.monotonic() - self._heard_s[at]:.0f} s{self.where(at)}"

    def where(self, at: int) -> str:
        """Where the others of its test are; "" where they have not told."""
        where = self._at.get(self.tests[at], "")
        return f" while the others were at {where}" if where else ""


class Lead:
    """The agents of all hosts, and what they are told to do. `about`: what each told of its host;
    those that say `cannot` take no part."""

    def __init__(self, address: str, port: int, many: int, secret: str) -> None:
        self.many, self.secret, self.agents = many, secret, dict[int, Agent]()
        self.about: dict[int, Line] = {}
        self._signed_s = 0.0
        self.server = socket.create_server((address, port), backlog=min(many + 8, 4096))

    def gather(self) -> list[int]:
        """Wait for all agents; the numbers of those that came and can take part."""
        until_s = time.monotonic() + TOGETHER_S
        while len(self.about) < self.many and time.monotonic() < until_s:
            self._give_signs()
            self.server.settimeout(max(0.01, min(_SIGN_S, until_s - time.monotonic())))
            try:
                connection, _ = self.server.accept()
            except TIMED_OUT:
                continue
            except OSError:
                break
            self._take(Wire(connection))
        return sorted(self.agents)

    def _take(self, wire: Wire) -> None:
        """One that does not know the secret is somebody else's."""
        try:
            lines: list[Line] = []
            while not lines:  # it may come in pieces
                lines = wire.received()
            (line,) = lines
            if line["secret"] == self.secret:
                at = int(line["at"])
                self.about[at] = dict(line["about"])
                self.agents[at] = Agent(at, wire, list(line["ports"]))
                if "cannot" in self.about[at]:
                    self.leave(at)
                return
        except (OSError, ValueError, KeyError, TypeError):
            pass
        wire.close()

    def run(self, orders: Sequence[Line], limit_s: float) -> Iterator[tuple[int, int, Line]]:
        """Have tests done at the same time, each on the hosts that its order names in `hosts`; what
        is told: the number of the test, that of the host, the line. A host that is lost, or says
        nothing until the time is over, is told as `gone` and asked no more."""
        open_ = Open()
        with selectors.DefaultSelector() as selector:
            for order in orders:
                yield from self._begin(order, open_, selector)
            until_s = time.monotonic() + limit_s
            while open_ and time.monotonic() < until_s:
                for key, _ in selector.select(0.2):
                    yield from self._heard(key.data, open_, selector)
                for at in open_.left_alone():
                    selector.unregister(self.agents[at].wire.socket)
                    yield self._lost(at, open_, open_.silence(at))
                self._give_signs()
            for at in list(open_):
                yield self._lost(at, open_, open_.silence(at))

    def _give_signs(self) -> None:
        """To those that wait for a test, so that they know that one may still come. Who is lost is
        found by its test."""
        now_s = time.monotonic()
        if now_s < self._signed_s + _SIGN_S:
            return
        self._signed_s = now_s
        for agent in self.agents.values():
            with contextlib.suppress(OSError):
                agent.wire.send({"test": SIGN})

    def _begin(
        self, order: Line, open_: Open, selector: selectors.BaseSelector
    ) -> Iterator[tuple[int, int, Line]]:
        if not order["hosts"]:
            return
        absent = [at for at in order["hosts"] if at not in self.agents]
        if absent:  # the others would wait for it
            for at in absent:
                yield order["test"], at, {"kind": "gone", "text": "it is no more there"}
            return
        ports = self.agents[order["hosts"][0]].ports
        ports.append(ports.pop(0))
        for at in order["hosts"]:
            agent = self.agents[at]
            open_.begin(at, order["test"])
            try:
                agent.wire.send({**order, "port": ports[-1]})
                selector.register(agent.wire.socket, selectors.EVENT_READ, agent)
            except OSError as error:
                yield self._lost(at, open_, error.strerror or str(error))

    def _heard(
        self, agent: Agent, open_: Open, selector: selectors.BaseSelector
    ) -> Iterator[tuple[int, int, Line]]:
        try:
            lines = agent.wire.received()
        except (OSError, ValueError) as error:
            selector.unregister(agent.wire.socket)
            yield self._lost(agent.at, open_, f"it was ended{open_.where(agent.at)} ({error})")
            return
        for line in lines:
            test = open_.get(agent.at)
            if test is None or line.pop("test", None) != test:
                continue
            open_.heard(agent.at, line)
            if line["kind"] == "over":
                selector.unregister(agent.wire.socket)
                open_.end(agent.at)
            yield test, agent.at, line

    def _lost(self, at: int, open_: Open, text: str) -> tuple[int, int, Line]:
        self.agents.pop(at).wire.close()
        return open_.end(at), at, {"kind": "gone", "text": text}

    def leave(self, at: int, why: str = "") -> None:
        """No more tests for this host."""
        wire = self.agents.pop(at).wire
        with contextlib.suppress(OSError):
            wire.send({"test": OVER, "why": why})
        wire.close()

    def dismiss(self, why: str = "") -> None:
        """No more tests."""
        for at in list(self.agents):
            self.leave(at, why)
        self.server.close()
