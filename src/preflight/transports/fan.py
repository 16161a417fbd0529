"""Many hosts at once: few arrive at a time, many are waited for, one thread reads them all.

A handshake costs CPU and is done in a thread of its own; a host that works on its answers costs
nothing but a place in the selector. So a host that is down holds up nobody: after a moment it no
longer counts as arriving.
"""

from __future__ import annotations

import gc
import os
import queue
import resource
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct, field

from preflight.capture import pack, unpack
from preflight.faults import fault
from preflight.model import Command, Missing, Raw
from preflight.transports.conversation import Conversation
from preflight.transports.endings import closing, ended_early, late
from preflight.transports.progress import Progress
from preflight.transports.ways import Session, Unreached, Way

#: Hosts that arrive at the same time. More than this thrash a small machine: at 48 the wall time
#: of 128 loopback hosts on two cores grew by half.
ARRIVING = 16
#: After so long in a phase a host that has not arrived waits for a network, not for a CPU: to be
#: connected takes none, to be greeted that of a fork there.
WAITING_AFTER_S = {"connect": 0.2, "banner": 0.5, "login": 2.0, "session": 2.0}
#: Hosts that are open at the same time.
OPEN = 512
#: File descriptors that one host takes: its socket and the pipe that tells of bytes, or a process'
#: three pipes.
_DESCRIPTORS = 4
#: Bytes of answers not yet complete, beyond which no further host is begun.
_HELD_BYTES = 96_000_000
#: Of one host: nvidia-smi's XML of 16 GPUs is 600 kB, a full kernel ring buffer 1 to 16 MB.
_CAP_BYTES = 64_000_000
_LOOK_EVERY_S = 0.25
#: Connections that ended lie in cycles of about 100 kB, which the collector comes to late.
_SWEEP_EVERY = 128


class _Talk(Struct):
    """One host that was begun."""

    host: str
    conversation: Conversation
    began_s: float
    phase: str = "connect"
    phase_s: float = 0.0  # since when
    session: Session | None = None
    over: bool = False


class Fan(Struct):
    """All hosts of a run, asked over one kind of way."""

    hosts: tuple[str, ...]
    way: Way
    deadline_s: float = 60.0
    sudo: bool = False
    progress: Callable[[Progress], None] = lambda _: None
    interrupted: threading.Event = field(default_factory=threading.Event)

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[str, list[Raw]]]:
        """Each host with its answers, as it is done. What broke the asking of a host off stands in
        a last Raw of the probe `connection`.

        Once `interrupted` is set, what came so far of the hosts that are not done is yielded.
        """
        loop = _Loop(self, commands)
        loop.start()
        try:
            yield from loop.finished()
        finally:
            loop.ended.set()  # where the caller stops early


class _Loop(threading.Thread):
    """The one thread that begins hosts, reads what they say, and ends them."""

    def __init__(self, fan: Fan, commands: Sequence[Command]) -> None:
        super().__init__(daemon=True)
        self._fan, self._commands = fan, commands
        self._waiting = deque(fan.hosts)
        self._talks: dict[str, _Talk] = {}
        self._finished: queue.SimpleQueue[tuple[str, list[Raw] | bytes] | BaseException | None]
        self._finished = queue.SimpleQueue()
        self._opened: queue.SimpleQueue[tuple[_Talk, Session | Missing]] = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe()
        self.ended = threading.Event()
        self._done = 0
        self._told_s = 0.0
        self._most = min(OPEN, _more_descriptors(len(fan.hosts)) // _DESCRIPTORS)

    def finished(self) -> Iterator[tuple[str, list[Raw]]]:
        """Hosts that are done, until there are no more."""
        while True:
            try:
                item = self._finished.get(timeout=_LOOK_EVERY_S)  # signals are heard meanwhile
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            if item is None:
                self._finished.put(None)
                return
            host, answers = item
            yield host, unpack(answers) if isinstance(answers, bytes) else answers

    def run(self) -> None:
        """The loop; an error in it is raised where the answers are read."""
        gc.freeze()  # what was there before is not looked through each time
        try:
            self._selector.register(self._woken, selectors.EVENT_READ)
            while (self._waiting or self._talks) and not self._is_over():
                self._begin_hosts()
                self._read()
                self._welcome()
                self._end_late()
                self._tell()
            self._end_all()
            self._finished.put(None)
        except BaseException as error:  # noqa: BLE001 - told to the one who waits
            self._finished.put(error)
        finally:
            self._selector.close()
            gc.unfreeze()

    def _is_over(self) -> bool:
        return self._fan.interrupted.is_set() or self.ended.is_set()

    def _begin_hosts(self) -> None:
        while self._waiting and self._room():
            host = self._waiting.popleft()
            talk = _Talk(
                host,
                Conversation(host, self._commands, sudo=self._fan.sudo, cap_bytes=_CAP_BYTES),
                time.monotonic(),
            )
            self._talks[host] = talk
            threading.Thread(target=self._open, args=(talk,), daemon=True).start()

    def _room(self) -> bool:
        now_s = time.monotonic()
        arriving = sum(_arrives(talk, now_s) for talk in self._talks.values())
        held = sum(talk.conversation.held_bytes for talk in self._talks.values())
        return arriving < ARRIVING and len(self._talks) < self._most and held < _HELD_BYTES

    def _open(self, talk: _Talk) -> None:
        """In a thread of its own."""

        def phase(name: str) -> None:
            talk.phase, talk.phase_s = name, time.monotonic()

        opened: Session | Missing
        try:
            opened = self._fan.way.open(talk.host, talk.conversation.script, phase)
        except Unreached as error:
            opened = error.missing
        except BaseException as error:  # noqa: BLE001 - a bug must not look like a silent host
            self._finished.put(error)
            return
        self._opened.put((talk, opened))
        with suppress(OSError):
            os.write(self._wake, b"x")

    def _welcome(self) -> None:
        with suppress(queue.Empty):
            while True:
                talk, opened = self._opened.get_nowait()
                if isinstance(opened, Missing):
                    if not talk.over:
                        self._finish(talk, opened)
                elif talk.over:  # its time was over meanwhile
                    _close(opened)
                else:
                    talk.session = opened
                    for fileno in opened.filenos():
                        self._selector.register(fileno, selectors.EVENT_READ, talk)

    def _read(self) -> None:
        for key, _ in self._selector.select(_LOOK_EVERY_S):
            if key.fd == self._woken:
                os.read(self._woken, 4096)
                continue
            talk: _Talk = key.data
            assert talk.session
            if not talk.over:
                self._hear(talk, talk.session, key.fd)

    def _hear(self, talk: _Talk, session: Session, fileno: int) -> None:
        conversation, ended = talk.conversation, False
        for stream, data in session.read(fileno):
            conversation.feed(stream, data, time.monotonic())
            ended |= not data
        if conversation.done or (ended and conversation.settle()):
            self._finish(talk)
        elif ended:
            with suppress(KeyError):
                self._selector.unregister(fileno)
            if not any(one in self._selector.get_map() for one in session.filenos()):
                self._finish(talk, ended_early(conversation, session))

    def _end_late(self) -> None:
        now_s = time.monotonic()
        for talk in list(self._talks.values()):
            if now_s - talk.began_s >= self._fan.deadline_s:
                self._finish(
                    talk, late(self._fan.deadline_s, talk.conversation, talk.session, talk.phase)
                )

    def _end_all(self) -> None:
        for talk in list(self._talks.values()):
            self._finish(talk, fault("interrupted", "it was interrupted"))
        for host in self._waiting:
            missing = fault("interrupted", "interrupted before it was asked")
            raws = Conversation(host, self._commands).cut(missing, time.monotonic())
            self._give(host, [*raws, closing(host, missing)])

    def _finish(self, talk: _Talk, missing: Missing | None = None) -> None:
        del self._talks[talk.host]
        talk.over = True
        conversation = talk.conversation
        if missing:
            conversation.cut(missing, time.monotonic())
        raws = list(conversation.told)
        if missing and missing.fault:
            raws.append(closing(talk.host, missing))
        if talk.session:
            for fileno in talk.session.filenos():
                with suppress(KeyError, ValueError):
                    self._selector.unregister(fileno)
            _close(talk.session)
        self._give(talk.host, raws)
        self._done += 1
        if self._done % _SWEEP_EVERY == 0:
            gc.collect()

    def _give(self, host: str, raws: list[Raw]) -> None:
        """Packed where another waits already: whoever judges may be slower than the hosts, and must
        not hold up their reading."""
        self._finished.put((host, raws if self._finished.empty() else pack(raws)))

    def _tell(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= _LOOK_EVERY_S:
            self._told_s = now_s
            self._fan.progress(self._progress())

    def _progress(self) -> Progress:
        slowest = min(self._talks.values(), key=lambda talk: talk.began_s, default=None)
        if slowest is None:
            return Progress(len(self._fan.hosts), self._done)
        waits_for = slowest.conversation.waits_for if slowest.session else slowest.phase
        taken_s = time.monotonic() - slowest.began_s
        latest = slowest.conversation.latest
        return Progress(len(self._fan.hosts), self._done, slowest.host, waits_for, taken_s, latest)


def _arrives(talk: _Talk, now_s: float) -> bool:
    """Whether it takes CPU to let this host in, here and there."""
    after_s = WAITING_AFTER_S.get(talk.phase, 0.2)  # behind a jump host that is not reached yet
    return not talk.conversation.begun and now_s - max(talk.began_s, talk.phase_s) < after_s


def _close(session: Session) -> None:
    threading.Thread(target=session.close, daemon=True).start()


def _more_descriptors(hosts: int) -> int:
    """Raise the soft limit as far as these hosts take and the hard one lets; the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hosts, OPEN) * _DESCRIPTORS + 128
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - 128, _DESCRIPTORS) if soft != resource.RLIM_INFINITY else wanted
