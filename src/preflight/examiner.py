"""Many hosts and their answers -> their reports: on all cores, few hosts at a time in memory."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from preflight.collect import Examined, examine_one_of_many
from preflight.judge.readings import Reading, Readings, about_one
from preflight.model import Check, HostReport, MissingProbe, Raw, Result, Status

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess
    from types import TracebackType

#: So many hosts are judged in this process before others are started, which costs about 50 ms and
#: gains by what this one has loaded by then.
FIRST_HOSTS = 8
#: Different results that are kept to be shared; at most about 50 MB.
_SHARED_MAX = 50_000

T = TypeVar("T")
Answers = tuple[str, list[Raw]]


def examine_all(
    hosts: Iterable[Answers],
    checks: Sequence[Check],
    *,
    all_facts: bool = False,
    one_hosts_facts: bool = False,
    drawn: bool = False,
    nics: str = "",
) -> Iterator[Examined]:
    """Every host in the order given. Facts are kept of all hosts, or of one where there is only
    one."""
    waiting = iter(hosts)
    first = list(islice(waiting, 2))
    facts = all_facts or (one_hosts_facts and len(first) == 1)
    if len(first) == 1:  # it is compared with nobody
        checks = [check for check in checks if check.across != "fleet" or about_one(check)]
    waiting = chain(_given_away(first), waiting)
    told: set[Reading] = set()
    for name, raws in islice(waiting, FIRST_HOSTS):
        yield examine_one_of_many(
            name, raws, checks, facts=facts, drawn=drawn, told=told, nics=nics
        )
    beyond = list(islice(waiting, 1))
    if beyond:
        with Examiner(checks, facts=all_facts, drawn=drawn, nics=nics) as examiner:
            yield from _in_order(chain(_given_away(beyond), waiting), examiner)


def _given_away(hosts: list[Answers]) -> Iterator[Answers]:
    """The hosts, of which the list keeps none that was taken."""
    while hosts:
        yield hosts.pop(0)


def _in_order(hosts: Iterator[Answers], examiner: Examiner) -> Iterator[Examined]:
    early: dict[int, Examined] = {}
    due = 0
    for found in chain((_put(examiner, host) for host in hosts), [examiner.rest()]):
        early.update(found)
        while due in early:
            yield early.pop(due)
            due += 1


def _put(examiner: Examiner, host: Answers) -> Iterable[tuple[int, Examined]]:
    examiner.put(*host)
    return examiner.poll()


class Examiner:
    """Judges hosts in processes of their own, which are forked at once: make it before the first
    thread is started. Each process has one host; `put` waits for one that is free, so no more
    hosts are in memory than there are processes.

    `workers`: how many; 0 judges in this process. To be used by one thread.
    """

    def __init__(
        self, checks: Sequence[Check], *, facts: bool = False, drawn: bool = False,
        nics: str = "", workers: int | None = None,
    ) -> None:  # fmt: skip
        self._checks = checks
        self._keep: dict[str, Any] = {"facts": facts, "drawn": drawn, "nics": nics}
        self._unpack = msgspec.msgpack.Decoder(_Packed).decode
        self._results: _Shared[Result] = _Shared(Result)
        self._readings: _Shared[Reading] = _Shared(Reading)
        self._told: set[Reading] = set()
        self._put, self._ready = 0, list[tuple[int, Examined]]()
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, tuple[_Worker, int, str]] = {}
        gc.collect()
        gc.freeze()  # the processes need not look through what they share with this one
        for _ in range(_cores() if workers is None else workers):
            self._idle.append(_Worker.start(checks, self._keep, [one.pipe for one in self._idle]))

    def __enter__(self) -> Examiner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in [*self._idle, *(worker for worker, _, _ in self._busy.values())]:
            worker.stop(at_once=error is not None)
        self._idle, self._busy = [], {}
        gc.unfreeze()

    def put(self, name: str, raws: list[Raw]) -> None:
        """Have this host judged; its number is how many were put before it."""
        while not self._idle and self._busy:
            self._receive(None)
        number, self._put = self._put, self._put + 1
        if self._idle:
            worker = self._idle.pop()
            self._busy[worker.pipe] = worker, number, name
            with suppress(OSError):  # that it has ended is seen when its answer is awaited
                worker.pipe.send((name, raws))
        else:
            one = examine_one_of_many(name, raws, self._checks, told=self._told, **self._keep)
            self._ready.append((number, one))

    def poll(self) -> list[tuple[int, Examined]]:
        """Those that are done by now, with their numbers, each once. Does not wait."""
        self._receive(0)
        done, self._ready = self._ready, []
        return done

    def rest(self) -> Iterator[tuple[int, Examined]]:
        """All others that were put, as they are done."""
        while self._ready or self._busy:
            yield from self.poll()
            if self._busy:
                self._receive(None)

    def _receive(self, timeout_s: float | None) -> None:
        """Take what has come; at least one where there is no limit to the waiting."""
        from multiprocessing.connection import Connection, wait

        for pipe in wait(list(self._busy), timeout_s) if self._busy else ():
            assert isinstance(pipe, Connection)
            worker, number, name = self._busy.pop(pipe)
            try:
                packed, error = pipe.recv()
            except (EOFError, OSError):
                worker.stop(at_once=True)
                self._ready.append((number, _given_up(name)))
                continue
            self._idle.append(worker)
            if error:
                raise RuntimeError(error)
            self._ready.append((number, self._unpacked(packed)))

    def _unpacked(self, packed: bytes) -> Examined:
        told = self._unpack(packed)
        host = told.report.host
        name = host.encode("utf-8", "surrogatepass")
        results = tuple(_of_host(self._results.of(one, name), host) for one in told.results)
        read = tuple(self._readings.of(one, name) for one in told.readings)
        report = replace(told.report, results=results)
        return Examined(report, Readings(host, read), tuple(told.measured))


class _Shared(Generic[T]):
    """Records out of bytes; equal bytes are one record, for most hosts are alike. What names its
    host is like no other's and is not kept."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._found: dict[bytes, T] = {}

    def of(self, packed: bytes, host: bytes) -> T:
        """The record that the bytes are; `host`: the name of the one that it is of."""
        one = self._found.get(packed)
        if one is None and host in packed:
            return self._decode(packed)
        if one is None:
            if len(self._found) >= _SHARED_MAX:
                self._found.clear()
            one = self._found[packed] = self._decode(packed)
        return one


class _Packed(Struct, array_like=True):
    """One host on its way from a worker: its report without the results, and these one by one."""

    report: HostReport
    results: list[bytes]
    readings: list[bytes]
    measured: list[dict[str, Any]]


def _packed(one: Examined) -> bytes:
    read = one.readings.of if one.readings else ()
    bare, pack = replace(one.report, results=()), msgspec.msgpack.Encoder().encode
    results = [pack(_of_any_host(result, bare.host)) for result in one.report.results]
    return pack(_Packed(bare, results, list(map(pack, read)), list(one.measured)))


#: On the way from a worker the subject of what is about the host itself: so that equal results of
#: many hosts are equal bytes, and one record but for the name.
_THE_HOST = "\0"


def _of_any_host(one: Result, host: str) -> Result:
    return replace(one, subject=_THE_HOST) if one.subject == host else one


def _of_host(one: Result, host: str) -> Result:
    return replace(one, subject=host) if one.subject == _THE_HOST else one


def _given_up(name: str) -> Examined:
    what = "the process that judged it was killed; is memory short?"
    missing = MissingProbe("preflight", "exited", what)
    return Examined(HostReport(name, Status.ERROR, (missing,)), Readings(name))


class _Worker(Struct):
    """A process and this side's end of the pipe to it."""

    process: ForkProcess
    pipe: Connection

    @classmethod
    def start(
        cls, checks: Sequence[Check], keep: dict[str, Any], others: Sequence[Connection]
    ) -> _Worker:
        """`others`: the ends of earlier workers, which a fork copies and this one must not keep."""
        from multiprocessing import get_context  # 15 ms that one host need not wait for

        fork = get_context("fork")
        mine, theirs = fork.Pipe()
        process = fork.Process(
            target=_work, args=(theirs, checks, keep, [mine, *others]), daemon=True
        )
        process.start()
        theirs.close()
        return cls(process, mine)

    def stop(self, *, at_once: bool) -> None:
        """End it: closing the pipe tells it to."""
        self.pipe.close()
        if at_once:
            self.process.kill()
        self.process.join()


def _work(
    pipe: Connection, checks: Sequence[Check], keep: dict[str, Any], others: Sequence[Connection]
) -> None:
    """Judge what comes through the pipe until it is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent, which gets it too, decides
    for other in others:
        other.close()
    told: set[Reading] = set()
    gc.disable()  # what one host leaves behind is looked through once, not all the time
    with suppress(EOFError, OSError):
        while True:
            name, raws = pipe.recv()
            try:
                one = examine_one_of_many(name, raws, checks, told=told, **keep)
                pipe.send((_packed(one), ""))
            except Exception:  # noqa: BLE001 - a bug is told by the parent, with where it was
                pipe.send((b"", f"{name}: {traceback.format_exc()}"))
            del raws
            gc.collect()


def _cores() -> int:
    return min(len(os.sched_getaffinity(0)), 16)
