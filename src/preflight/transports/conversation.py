"""One host's side of a run: the script that asks it, and its bytes as answers.

Knows neither sockets nor processes: whoever has the two streams feeds them in.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import datetime, timezone

from preflight.model import Command, Missing, Raw, tool_of
from preflight.transports.script import NOT_ASKED, Frame, FrameReader, render

#: Bytes of all answers of one host that are kept.
HOST_CAP_BYTES = 256 * 1024 * 1024

OUT, ERR = 0, 1


def new_mark() -> str:
    """A word that no answer holds. Hosts that get one script between them have one mark."""
    return "preflight-" + secrets.token_hex(16)


class Conversation:
    """The questions to one host and what came of them so far.

    `feed` takes the bytes of either stream as they come and returns each answer that they complete;
    `cut` returns the rest, with `missing` set, once no more will come.
    """

    def __init__(
        self, host: str, commands: Sequence[Command], *, sudo: bool = False,
        cap_bytes: int = HOST_CAP_BYTES, mark: str = "",
    ) -> None:  # fmt: skip
        self.host = host
        self.commands = commands
        self._mark = mark or new_mark()
        self._sudo = sudo
        caps = [command.max_bytes for command in commands]
        self._readers = [FrameReader(self._mark, caps, cap_bytes) for _ in (OUT, ERR)]
        self._half: dict[int, tuple[int, Frame]] = {}
        self.told: list[Raw] = []

    @property
    def script(self) -> bytes:
        """What goes to the standard input of `sh -s`."""
        return render(self.commands, self._mark, sudo=self._sudo, host=self.host).encode()

    @property
    def done(self) -> bool:
        """Whether both streams came to the last mark."""
        return all(reader.done for reader in self._readers)

    @property
    def begun(self) -> bool:
        """Whether the script was seen to run."""
        return any(reader.begun for reader in self._readers)

    @property
    def said(self) -> str:
        """What came before the script ran: a banner, or why it never did. At most some lines."""
        stray = b"\n".join(reader.stray for reader in reversed(self._readers))
        return " ".join(stray.decode(errors="replace").split())

    @property
    def held_bytes(self) -> int:
        """How much of its answers is in memory."""
        return sum(reader.kept_bytes for reader in self._readers)

    @property
    def waits_for(self) -> str:
        """The probe whose answer is due; empty at the end."""
        at = len(self.told)
        return self.commands[at].probe if at < len(self.commands) else ""

    @property
    def latest(self) -> str:
        """The last whole line of the answer that is coming in; empty where there is none yet."""
        return self._readers[OUT].latest.decode(errors="replace")

    def stream_done(self, stream: int) -> bool:
        """Whether that stream came to its last mark: more of it is nobody's answer."""
        return self._readers[stream].done

    def feed(self, stream: int, data: bytes, now_s: float) -> list[Raw]:
        """Answers that `data` completes, in order. `now_s`: time.monotonic()."""
        found = []
        for frame in self._readers[stream].feed(data, now_s):
            first = self._half.pop(frame.number, None)
            if first is None:
                self._half[frame.number] = (stream, frame)
                continue
            out, err = (frame, first[1]) if stream == OUT else (first[1], frame)
            found.append(self._answer(self.commands[frame.number], out, err))
        return found

    def settle(self) -> bool:
        """At the end of the streams: whether standard output tells all there is, because login
        files led standard error into it, or away; then the answers are whole without that.

        The other way round they are not: every answer would be there and empty, and an empty
        kernel log reads like a sound one.
        """
        if not self._readers[OUT].done or self._readers[ERR].begun:
            return False
        for number, (_, frame) in sorted(self._half.items()):
            none = Frame(number, b"", rc=frame.rc, began_s=frame.began_s, ended_s=frame.ended_s)
            self._answer(self.commands[number], frame, none)
        self._half.clear()
        return True

    @property
    def mute(self) -> bool:
        """Whether the script ran to its end and its standard output never came."""
        return self._readers[ERR].done and not self._readers[OUT].begun

    def cut(self, missing: Missing, now_s: float) -> list[Raw]:
        """What did not come to its end, with what arrived of the first of them; the others were
        never asked. `missing` says why."""
        before = _those_that_hung(self.told)
        found: list[Raw] = []
        for number, command in enumerate(self.commands[len(self.told) :], len(self.told)):
            frames = [self._half_of(number, stream, now_s) for stream in (OUT, ERR)]
            begun = next((frame for frame in frames if frame), None)
            after_s = begun.ended_s - begun.began_s if begun else 0
            why = missing.text
            text = f"{why} {after_s:.0f} s after it was asked" if begun else f"not asked: {why}"
            out, err = (frame or Frame(number, b"") for frame in frames)
            told = Missing(missing.kind, text + before, missing.fault)
            found.append(_raw(self.host, command, out, err, told))
            if begun:
                tool = tool_of(command.probe, command.argv)
                before = before or f"; {tool} was waited for until then"
        self.told += found
        return found

    def _half_of(self, number: int, stream: int, now_s: float) -> Frame | None:
        """What one stream has of a question of which the other has not."""
        side, frame = self._half.get(number, (stream, None))
        if frame is not None and side == stream:
            return frame
        return self._readers[stream].unfinished(now_s)

    def _answer(self, command: Command, out: Frame, err: Frame) -> Raw:
        self.told.append(_raw(self.host, command, out, err, _not_asked(command, out, self.told)))
        return self.told[-1]


def _not_asked(command: Command, out: Frame, told: Sequence[Raw]) -> Missing | None:
    if out.rc != NOT_ASKED:
        return None
    return Missing("timeout", f"not asked ({' '.join(command.argv[:4])}){_those_that_hung(told)}")


def _those_that_hung(told: Sequence[Raw]) -> str:
    """What to say of commands that took their whole limit, 124 and 137 by timeout(1); 137 before
    it is that somebody else killed it."""
    each = []
    for raw in told:
        if raw.reached_limit:
            each.append(f"{raw.tool} hung for {raw.elapsed_s:.0f} s")
        elif raw.rc == 137:
            each.append(f"{raw.tool} was killed")
    return f"; before it {', '.join(each)}" if each else ""


def _raw(
    host: str, command: Command, out: Frame, err: Frame, missing: Missing | None = None
) -> Raw:
    elapsed_s = max(out.ended_s - out.began_s, 0.0)
    started = datetime.now(timezone.utc).timestamp() - (time.monotonic() - out.began_s)
    return Raw(
        host=host,
        probe=command.probe,
        argv=command.argv,
        rc=None if out.rc == NOT_ASKED else out.rc,
        stdout=text_of(out.data),
        stderr=text_of(err.data),
        started_at=f"{datetime.fromtimestamp(started, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
        if out.began_s
        else "",
        elapsed_s=round(elapsed_s, 3),
        limit_s=command.timeout_s,
        truncated=out.truncated or err.truncated,
        missing=missing,
    )


def text_of(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
