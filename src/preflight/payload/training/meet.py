"""Whether all hosts of a run reach the one where their ranks meet, before torch is even loaded.

A port that a firewall closes, or an address that leads nowhere, is told within seconds; ranks would
wait for minutes, and say no more than that they waited.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

#: Behind the ports of the launches.
_PORT = 3
#: For all hosts to come; they are reached and start one after another.
_TOGETHER_S, _EACH_S = 30.0, 0.1
#: For one connection: the kernel asks again after 1 and 3 s.
_CONNECT_S = 6.0
_AGAIN_S = 0.2
_GO = b"go\n"
_Line = dict[str, Any]


class _ApartError(Exception):
    """They do not meet, and why."""


def meet(plan: dict[str, Any], at: int) -> _Line:
    """The line that says whether host number `at` of the plan meets the others: `met`, or `unmet`
    with the reason. `own`: whether it concerns this host's own way."""
    until_s = time.monotonic() + _TOGETHER_S + _EACH_S * len(plan["hosts"])
    place = (plan["master"], plan["port"] + _PORT)
    try:
        if at == 0:
            _wait_for_all(plan["hosts"], place, until_s)
            return {"kind": "met"}
        said = _come(at, place, until_s)
    except _ApartError as error:
        return {"kind": "unmet", "own": True, "text": _told(plan, at, str(error))}
    except OSError as error:  # a connection that breaks while it waits
        return {"kind": "unmet", "own": False, "text": f"{plan['hosts'][0]} is gone: {error}"}
    return {"kind": "met"} if said == _GO else {"kind": "unmet", "own": False, "text": _ABSENT}


_ABSENT = "not all hosts came to where the ranks meet"


def _told(plan: dict[str, Any], at: int, why: str) -> str:
    hosts, address, port = plan["hosts"], plan["master"], plan["port"]
    if at == 0:
        return f"{hosts[0]} ({address}), where the ranks meet: {why}"
    return (f"{hosts[at]} does not reach {address}, where the ranks meet ({hosts[0]}): {why}; "
            f"`nc -l {port}` there, `nc -zv {address} {port}` here; "
            "another way: --interface")  # fmt: skip


def _wait_for_all(hosts: list[str], place: tuple[str, int], until_s: float) -> None:
    """On the first host: until each of the others has come, and been told to go on."""
    come: dict[str, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(socket.create_server(place, backlog=len(hosts)))
        except OSError as error:
            raise _ApartError(f"cannot listen at port {place[1]}: {error.strerror}") from None
        for one in _accepted(server, until_s):
            stack.enter_context(one)
            number = _line_of(one, time.monotonic() + _CONNECT_S).decode(errors="replace").strip()
            if number.isdigit() and 0 < int(number) < len(hosts):
                come[hosts[int(number)]] = one
            if len(come) == len(hosts) - 1:
                break
        absent = [host for host in hosts[1:] if host not in come]
        for one in come.values():
            with contextlib.suppress(OSError):
                one.sendall(b"apart\n" if absent else _GO)
    if absent:
        raise _ApartError(f"{', '.join(absent)} did not come within {_TOGETHER_S:g} s")


def _accepted(server: socket.socket, until_s: float) -> Iterator[socket.socket]:
    while (left_s := until_s - time.monotonic()) > 0:
        server.settimeout(left_s)
        with contextlib.suppress(TimeoutError, socket.timeout):
            yield server.accept()[0]


def _come(at: int, place: tuple[str, int], until_s: float) -> bytes:
    """On another host: what the first says once all have come. It may not listen yet."""
    while True:
        try:
            one = socket.create_connection(place, _CONNECT_S)
        except ConnectionRefusedError:
            if time.monotonic() > until_s:
                raise _ApartError("connection refused: nobody listens there") from None
            time.sleep(_AGAIN_S)
        except (TimeoutError, socket.timeout):  # noqa: UP041 - two before Python 3.10
            raise _ApartError(f"nothing answers within {_CONNECT_S:g} s") from None
        except OSError as error:
            raise _ApartError(error.strerror or str(error)) from None
        else:
            with one:
                one.sendall(b"%d\n" % at)
                return _line_of(one, until_s + _CONNECT_S)


def _line_of(one: socket.socket, until_s: float) -> bytes:
    """What the other side says up to the end of its line; at most some bytes, and not for ever."""
    said = b""
    while not said.endswith(b"\n") and len(said) < 64:
        one.settimeout(max(0.1, until_s - time.monotonic()))
        try:
            more = one.recv(64)
        except OSError:
            break
        if not more:
            break
        said += more
    return said
