"""RDMA between two hosts, adapter k with adapter k, or of a host with itself, by perftest."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from ..collectives.agents import free_ports
from ..collectives.plan import Plan
from . import gpus
from .adapters import adapters
from .programs import BANDWIDTH, LATENCY, Program, version
from .refused import meaning
from .sides import ApartError, Line, Side, met

#: Queue pairs of a test of many.
MANY = 4
#: Seconds of a test of bandwidth, without the first and the last; bytes of a message; of a test of
#: latency: trips.
_SECONDS, _MARGIN_S, _BYTES, _TRIPS, _SMALL = 3, 1, 8 << 20, 2000, 8
#: Until a program has ended: connections, memory that is registered, the test.
_LIMIT_S = _SECONDS + 15.0
_LAST_S = 5.0
_HERE = "127.0.0.1"
_ROW = re.compile(r"^\s*\d+\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", re.MULTILINE)
_GBITS = "BW average[Gb/sec]"


class Test(NamedTuple):
    """What all adapters do, one after another or `together`."""

    tool: str
    flows: int = 1
    gpu: bool = False
    together: bool = False


class End(NamedTuple):
    """One adapter in a test: its rail, what sysfs tells, the TCP port where both ends meet."""

    rail: int
    nic: Line
    port: int


def tests(rails: int, *, gpu: bool, brief: bool) -> list[Test]:
    """`brief`: the bandwidth alone. Of a loopback that is what it says of the adapter's place in
    the host."""
    found = [Test(BANDWIDTH)]
    found += [Test(BANDWIDTH, gpu=True)] if gpu else []
    found += [] if brief else [Test(BANDWIDTH, MANY), Test(LATENCY)]
    return found + ([Test(BANDWIDTH, together=True)] if rails > 1 else [])


def seconds(rails: int, *, gpu: bool, brief: bool) -> float:
    """What the tests take at most where all are well."""
    many = tests(rails, gpu=gpu, brief=brief)
    return sum((1 if one.together else rails) * (_SECONDS + 2.0) for one in many)


def rdma(plan: Plan, at: int, order: Line) -> Iterator[Line]:
    """The part of host number `at` in its pair, or with itself. What it sends it tells."""
    hosts = order["hosts"]
    by_name = {one["nic"]: one for one in adapters(plan.nics)}
    mine = [by_name[nic] for nic in order["nics"][hosts.index(at)] if nic in by_name]
    names = [plan.hosts[one] if plan.hosts else "" for one in hosts]
    if len(hosts) < 2:
        yield from _alone(mine, names[0], gpu=order["gpu"])
        return
    number = hosts.index(at)
    own, other = (plan.addresses[hosts[one]] for one in (number, 1 - number))
    try:
        with met(number, own, other, order["port"]) as side:
            kinds = tests(len(mine), gpu=order["gpu"], brief=order.get("brief", False))
            yield from _with_other(side, mine, names, kinds)
    except (ApartError, OSError) as error:
        yield {"kind": "wire", "tool": BANDWIDTH, "from": names[number], "to": names[1 - number],
               "rail": 0, "flows": 1, "trouble": str(error)}  # fmt: skip


def _with_other(
    side: Side, mine: Sequence[Line], names: Sequence[str], kinds: Sequence[Test]
) -> Iterator[Line]:
    """What failed once is not tried in other tests: each would take its time."""
    versions = (version(), str(side.swap(version=version())["version"]))
    bad: dict[int, set[int]] = {0: set(), 1: set()}
    for test in kinds:
        for sender in (0, 1):
            for rails in _rounds(test, set(range(len(mine))) - bad[sender]):
                nics = [mine[one] for one in rails]
                if sender == side.number:
                    failed = yield from _sent(side, test, nics, rails, names, versions)
                else:
                    failed = _received(side, test, nics, rails)
                bad[sender].update(() if test.gpu else failed)


def _alone(mine: Sequence[Line], name: str, *, gpu: bool) -> Iterator[Line]:
    bad: set[int] = set()
    for test in tests(len(mine), gpu=gpu, brief=True):
        for rails in _rounds(test, set(range(len(mine))) - bad):
            for line in _with_itself(test, [mine[one] for one in rails], rails, name):
                bad |= {line["rail"]} if "trouble" in line and not test.gpu else set()
                yield line


def _rounds(test: Test, rails: set[int]) -> list[list[int]]:
    """One after another, or all at once where there are several."""
    if test.together:
        return [sorted(rails)] if len(rails) > 1 else []
    return [[one] for one in sorted(rails)]


def _sent(
    side: Side, test: Test, nics: Sequence[Line], rails: Sequence[int], names: Sequence[str],
    versions: tuple[str, str],
) -> Generator[Line, None, list[int]]:  # fmt: skip
    """This side's programs call those of the other side, whose ports and troubles it tells. The
    rails that failed."""
    heard = side.hear()
    ends = list(map(End, rails, nics, heard["ports"]))
    called = (names[side.number], names[1 - side.number])
    if heard["troubles"]:
        lines = _refused(test, ends, heard["troubles"], called, versions)
    else:
        lines = _measured(test, ends, side.other, called, versions)
    failed = []
    for line in lines:
        failed += [line["rail"]] if "trouble" in line else []
        yield line
    side.say(failed=failed)
    return failed


def _refused(
    test: Test, ends: Sequence[End], troubles: dict[str, str], called: tuple[str, str],
    versions: tuple[str, str],
) -> Iterator[Line]:  # fmt: skip
    """Of servers of which one or more did not come up."""
    for end in ends:
        if str(end.rail) in troubles:
            told = meaning(troubles[str(end.rail)], versions)
            yield {**_line(test, end, *called), "trouble": f"{called[1] or 'here'}: {told}"}


def _received(side: Side, test: Test, nics: Sequence[Line], rails: Sequence[int]) -> list[int]:
    """The rails that failed."""
    ends = list(map(End, rails, nics, free_ports(side.own, len(nics))))
    servers = _begun(test, ends, "")
    try:
        troubles = _not_listening(servers)
        side.say(ports=[one.port for one in ends], troubles=troubles)
        failed = list(map(int, side.hear(_LIMIT_S + _LAST_S)["failed"]))
        for end, program in servers:
            if end.rail not in failed:
                program.waited(time.monotonic() + _LAST_S)
    finally:
        for _, program in servers:
            program.close()
    return failed


def _with_itself(
    test: Test, nics: Sequence[Line], rails: Sequence[int], name: str
) -> Iterator[Line]:
    ends = list(map(End, rails, nics, free_ports(_HERE, len(nics))))
    versions = (version(),) * 2
    servers = _begun(test, ends, "")
    try:
        troubles = _not_listening(servers)
        if troubles:
            yield from _refused(test, ends, troubles, (name, name), versions)
        else:
            yield from _measured(test, ends, _HERE, (name, name), versions)
    finally:
        for _, program in servers:
            program.close()


def _measured(
    test: Test, ends: Sequence[End], address: str, names: tuple[str, str], versions: tuple[str, str]
) -> Iterator[Line]:
    """Programs that call the servers at an address, all at once, and what comes of each."""
    called, until_s = _begun(test, ends, address), time.monotonic() + _LIMIT_S
    try:
        for end, program in called:
            yield {**_line(test, end, *names), **_found(test, program, until_s, versions)}
    finally:
        for _, program in called:
            program.close()


def _not_listening(servers: Sequence[tuple[End, Program]]) -> dict[str, str]:
    """By their rails what those printed that do not come up."""
    return {str(end.rail): program.printed() for end, program in servers
            if not program.listens(end.port)}  # fmt: skip


def _begun(test: Test, ends: Sequence[End], address: str) -> list[tuple[End, Program]]:
    """The programs of all ends, near their adapters; without an address they are servers."""
    return [(end, Program(words(test, end, address), end.nic["cpus"])) for end in ends]


def words(test: Test, end: End, address: str) -> list[str]:
    """The command line, as a user may type it too."""
    nic = end.nic
    found = [test.tool, "-d", nic["nic"], "-i", str(nic["port"]), "-p", str(end.port), "-F"]
    if test.tool == LATENCY:
        found += ["-s", str(_SMALL), "-n", str(_TRIPS)]
    else:
        found += ["-s", str(_BYTES), "-D", str(_SECONDS), "-f", str(_MARGIN_S), "-q",
                  str(test.flows), "--report_gbits"]  # fmt: skip
    found += ["-x", str(nic["gid"])] if nic["gid"] is not None else []
    found += [f"--use_cuda={gpus.near(nic['place'])}"] if test.gpu else []
    return [*found, address] if address else found


def _line(test: Test, end: End, sender: str, receiver: str) -> Line:
    near = gpus.near(end.nic["place"]) if test.gpu else -1
    return {
        "kind": "wire", "tool": test.tool, "from": sender, "to": receiver, "rail": end.rail,
        "nic": end.nic["nic"], "flows": test.flows, "together": test.together,
        "memory": f"GPU {near}" if test.gpu else "host", "rate_gbits": end.nic["rate_gbits"],
        "gid": end.nic["gid"],
    }  # fmt: skip


def _found(test: Test, program: Program, until_s: float, versions: tuple[str, str]) -> Line:
    """What it printed, waited for, and the figure in it."""
    ended = program.waited(until_s)
    text = program.printed()
    row = _ROW.search(text)
    if not ended:
        return {"trouble": f"`{' '.join(program.words)}` did not end within {_LIMIT_S:.0f} s and "
                f"was ended: {meaning(text, versions)}"}  # fmt: skip
    if row is None or (test.tool != LATENCY and _GBITS not in text):
        return {"trouble": meaning(text, versions)}
    figure = {} if test.tool == LATENCY else {"median_gbits": float(row[2])}
    return {**figure, "text": text}
