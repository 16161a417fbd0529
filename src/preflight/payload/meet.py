"""Whether the hosts of a run reach each other, before torch is even loaded.

Each listens at its own address and tries the others, in both directions: whoever collects in a ring
dials other hosts than whoever has all connect to the first. A port that a firewall closes, or an
address that leads nowhere, is told within seconds; ranks would wait for minutes, and say no more
than that they waited. What a host reached stands in its lines; whose fault it is can be seen only
where the lines of all are side by side.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

#: Behind the ports of the launches.
_PORT = 3
#: For all hosts to come; they are reached and start one after another.
_TOGETHER_S, _EACH_S = 30.0, 0.1
#: For one connection: the kernel asks again after 1 and 3 s.
_CONNECT_S = 6.0
_AGAIN_S = 0.2
#: Whoever has nobody left is ended soon.
_LEFT_S = 3.0
#: Up to so many hosts each tries all others; of more the first and its neighbours in the ring.
_ALL_PAIRS = 32
_AT_ONCE = 64
_HERE, _GO, _APART = b"here\n", b"go\n", b"apart\n"
_ABSENT = "not all hosts reach each other"
#: Of one wait two names before Python 3.11.
_LATE = (asyncio.TimeoutError, TimeoutError)
_Line = dict[str, Any]


def meet(plan: dict[str, Any], at: int, tell: Callable[[_Line], None]) -> bool:
    """Whether all hosts of the plan reach each other. Host number `at` tells `ways`, with the
    reason for each host that it did not reach, as soon as it has tried, and at last `met` or
    `unmet`."""
    return asyncio.run(_held(plan, at, tell))


def left(plan: dict[str, Any], at: int) -> _Line:
    """The ways that are left once the ranks say nothing any more. Nobody listens by then, and a
    host that refuses is one that is reached."""
    address, port = _places(plan).get(at, ("", 0))
    ways = asyncio.run(_left(plan, at))
    return {"kind": "ways", "address": address, "port": port, "ways": ways}


async def _left(plan: dict[str, Any], at: int) -> list[dict[str, str]]:
    return await _Meeting(plan, at, lambda _: None).ways_left()


async def _held(plan: dict[str, Any], at: int, tell: Callable[[_Line], None]) -> bool:
    return await _Meeting(plan, at, tell).held()


def tried(plan: dict[str, Any], at: int) -> list[int]:
    """The hosts that host number `at` tries to reach."""
    many = len(plan["hosts"])
    near = {0, (at - 1) % many, (at + 1) % many}
    chosen = set(range(many)) if many <= _ALL_PAIRS or at == 0 else near
    return sorted((chosen - {at}) & set(_places(plan)))


def _places(plan: dict[str, Any]) -> dict[int, tuple[str, int]]:
    """Where each host listens. A plan that tells no addresses has that of the first alone."""
    addresses = plan.get("addresses") or [plan["master"]]
    ports = plan.get("ports") or [plan["port"]]
    return {at: (one, ports[at] + _PORT) for at, one in enumerate(addresses)}


class _Meeting:
    """One host's part of it."""

    def __init__(self, plan: dict[str, Any], at: int, tell: Callable[[_Line], None]) -> None:
        self.plan, self.at, self.tell, self.places = plan, at, tell, _places(plan)
        self.until_s = time.monotonic() + _TOGETHER_S + _EACH_S * len(plan["hosts"])
        #: On the first host: who has tried all, and whether they were reached.
        self.told: dict[int, bool] = {}
        self.all_told, self.over = asyncio.Event(), asyncio.Event()
        #: Who is still to try whether this host is reached.
        self.awaited = {one for one in range(len(plan["hosts"])) if at in tried(plan, one)}
        self.all_tried = asyncio.Event()
        self.go = False
        self.waiting: set[asyncio.Task[None]] = set()

    async def held(self) -> bool:
        """Listen, try the others, and wait for what comes of it."""
        address, port = self.places.get(self.at, ("", 0))
        try:
            server = await asyncio.start_server(self._asked, address, port) if address else None
        except OSError as error:
            text = f"{self.plan['hosts'][self.at]} ({address}) cannot listen at port {port}"
            self.tell({"kind": "unmet", "own": True, "text": f"{text}: {_said(error)}"})
            return False
        ways = await self._ways()
        self.tell({"kind": "ways", "address": address, "port": port, "ways": ways})
        sound = not any(one["why"] for one in ways)
        self.go = await (self._gathered(sound) if self.at == 0 else self._reported(ways))
        self.over.set()
        if self.waiting:
            await asyncio.wait(self.waiting, timeout=_CONNECT_S)
        if server is not None:
            server.close()
        no = {"kind": "unmet", "own": False, "text": _ABSENT}
        self.tell({"kind": "met"} if self.go else no)
        return self.go

    async def _ways(self) -> list[dict[str, str]]:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def way(other: int) -> dict[str, str]:
            async with turn:
                return {"host": self.plan["hosts"][other], "why": await self._reached(other)}

        return list(await asyncio.gather(*map(way, tried(self.plan, self.at))))

    async def ways_left(self) -> list[dict[str, str]]:
        async def way(other: int) -> dict[str, str]:
            why = ""
            try:
                await self._ask(other, b"here? %d\n" % self.at, _LEFT_S)
            except ConnectionError:
                pass
            except _LATE:
                why = f"nothing answers within {_LEFT_S:g} s"
            except OSError as error:
                why = _said(error)
            return {"host": self.plan["hosts"][other], "why": why}

        return list(await asyncio.gather(*map(way, tried(self.plan, self.at))))

    async def _reached(self, other: int) -> str:
        """Why not; "" where it was. It may not listen yet."""
        while True:
            try:
                said = await self._ask(other, b"here? %d\n" % self.at, _CONNECT_S)
            except ConnectionRefusedError:
                if time.monotonic() > self.until_s:
                    return "connection refused: nobody listens there"
            except _LATE:
                return f"nothing answers within {_CONNECT_S:g} s"
            except OSError as error:
                return _said(error)
            else:
                return "" if said == _HERE else "somebody else listens there"
            await asyncio.sleep(_AGAIN_S)

    async def _ask(self, other: int, question: bytes, answer_s: float) -> bytes:
        """What the other host answers."""
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(*self.places[other]), min(answer_s, _CONNECT_S)
        )
        try:
            writer.write(question)
            return await asyncio.wait_for(reader.readline(), answer_s)
        finally:
            writer.close()

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one that has connected; what else comes here is not answered."""
        with contextlib.suppress(OSError, ValueError, *_LATE):
            said = (await asyncio.wait_for(reader.readline(), _CONNECT_S)).split()
            if said[:1] == [b"here?"] and len(said) == 2 and said[1].isdigit():
                writer.write(_HERE)
                self._tried_by(int(said[1]))
            elif said[:1] == [b"tried"] and len(said) == 3 and said[1].isdigit():
                await self._noted(int(said[1]), said[2] == b"all")
                writer.write(_GO if self.go else _APART)
            await writer.drain()
        writer.close()

    def _tried_by(self, other: int) -> None:
        self.awaited.discard(other)
        if not self.awaited:
            self.all_tried.set()

    async def _noted(self, other: int, reached: bool) -> None:
        """On the first host: until it is known of all."""
        task = asyncio.current_task()
        if task is not None:
            self.waiting.add(task)
            task.add_done_callback(self.waiting.discard)
        self.told[other] = reached
        if len(self.told) >= len(self.plan["hosts"]) - 1:
            self.all_told.set()
        await self.over.wait()

    async def _gathered(self, sound: bool) -> bool:
        """On the first host: whether all of them reached all that they tried."""
        with contextlib.suppress(*_LATE):
            await asyncio.wait_for(self.all_told.wait(), self._left_s(_CONNECT_S))
        whole = len(self.told) >= len(self.plan["hosts"]) - 1
        return whole and all(self.told.values()) and sound

    async def _reported(self, ways: list[dict[str, str]]) -> bool:
        """On another host: what the first says once all have told. Without a way to it this host
        goes on to answer those that try to reach it."""
        said = b""
        if all(one["host"] != self.plan["hosts"][0] for one in ways if one["why"]):
            word = b"some" if any(one["why"] for one in ways) else b"all"
            with contextlib.suppress(OSError, *_LATE):
                told = b"tried %d %s\n" % (self.at, word)
                said = await self._ask(0, told, self._left_s(2 * _CONNECT_S))
        if not said:
            with contextlib.suppress(*_LATE):
                await asyncio.wait_for(self.all_tried.wait(), self._left_s(_CONNECT_S))
        return said == _GO

    def _left_s(self, more_s: float) -> float:
        """The last try to reach somebody begins at the end."""
        return max(0.0, self.until_s + more_s - time.monotonic())


def _said(error: OSError) -> str:
    return error.strerror or str(error)
