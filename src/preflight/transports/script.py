"""All questions of a run as one POSIX sh script, and the reading of what it prints.

Each answer streams straight to stdout and stderr between marks that hold a random 128-bit word:
never through $(...), a pipe or a file, which a process in uninterruptible sleep would hold open.
For the same reason the reader stops at the last mark, not at end of file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from preflight.model import Command

#: Two, because timeout(1) waits for its child for ever: a command that even SIGKILL does not end
#: (uninterruptible sleep) keeps the inner one; the outer one then kills the inner and goes on.
_ASK = """\
ask() {
i=$1; s=$2; w=$3; root=$4; shift 4
if [ "$root" = root ] && command -v sudo >/dev/null 2>&1; then set -- sudo -n "$@"; fi
case " $hung " in *" $w "*) w=;; esac
if [ -z "$w" ]
then (exit 3)
elif [ -n "$feed" ]
then printf '%s' "$feed" 2>/dev/null | timeout -k 2 $((s+4)) timeout -k 2 "$s" "$@"
else timeout -k 2 $((s+4)) timeout -k 2 "$s" "$@" </dev/null
fi
r=$?
case $w,$r in ,3) r=$not_asked;; -,*) ;; *,124|*,137) hung="$hung $w";; esac
mark "end $i $r" "$((i+1))"
}"""
#: The marks between two questions go out in one piece, which is one packet for each stream.
_MARK = """\
mark() {
next="begin $2 0"; [ "$2" -lt "$asked" ] || next="last 0 0"
marks="\\n$mark $next\\n"; [ -z "$1" ] || marks="\\n$mark $1\\n$marks"
printf '%b' "$marks"; printf '%b' "$marks" >&2
}"""

#: In place of an exit status, which is less: an earlier command hung on what this one waits for.
NOT_ASKED = 1000

#: What a login shell says in place of running the script is told; so much of it.
_STRAY_BYTES = 1000
#: Of an answer that comes in so much is looked at for its last line.
_LATEST_BYTES = 4000

#: What follows the word of a mark; another process that writes between may break one in two.
_WORDS = re.compile(rb"\s*(begin|end|last)\s+(\d{1,6})\s+(\d{1,6})\s*")

#: timeout(1) says 125 for its own failure, 126 for a command that cannot be run, 127 for none.
_NO_TIMEOUT = """\
command -v timeout >/dev/null 2>&1 || timeout() { return 125; }"""


#: The name by which a host was asked, for work that several do together; under Slurm each task gets
#: the same script.
_HOST = "PREFLIGHT_HOST=${SLURMD_NODENAME:-}"


def render(commands: Sequence[Command], mark: str, *, sudo: bool = False, host: str = "") -> str:
    """The script for `sh -s`. All of it is one function that the last line calls, so that a script
    cut short on its way does nothing."""
    body = [
        f"PREFLIGHT_HOST={shlex.quote(host)}" if host else _HOST,
        "LC_ALL=C; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/opt/rocm/bin",
        "export LC_ALL PATH PREFLIGHT_HOST",
        f"mark={shlex.quote(mark)}; asked={len(commands)}; feed=; hung=; not_asked={NOT_ASKED}",
        _NO_TIMEOUT,
        _MARK,
        _ASK,
        "mark '' 0",
        _asks(tuple(commands), sudo),
    ]
    return "preflight_ask() {\n" + "\n".join(body) + "\n}\npreflight_ask\n"


@lru_cache(maxsize=4)
def _asks(commands: tuple[Command, ...], sudo: bool) -> str:
    """The questions, which are the same for all hosts of a run."""
    return "\n".join(
        line
        for number, command in enumerate(commands)
        for line in _ask_lines(number, command, sudo)
    )


def _ask_lines(number: int, command: Command, sudo: bool) -> Iterator[str]:
    """A question; what it reads stands in a variable, for a here-document would need a disk."""
    root = "root" if sudo and command.needs_root else "-"  # where there is no sudo: without
    words = (str(number), str(command.timeout_s), command.waits_for or "-", root)
    ask = shlex.join(["ask", *words, *command.argv])
    if not command.stdin:
        yield ask
        return
    yield f"feed={shlex.quote(command.stdin)}"
    yield ask
    yield "feed="


class Frame(Struct):
    """What one stream carried between the two marks of one command."""

    number: int
    data: bytes
    rc: int | None = None
    truncated: bool = False
    began_s: float = 0.0
    ended_s: float = 0.0


class FrameReader:
    """Cuts one stream into frames as its bytes arrive; keeps at most `caps[number]` of each.

    Text outside the marks (login banners, a profile's echo) is dropped, but for the first of it.
    """

    def __init__(self, mark: str, caps: Sequence[int], total_cap: int) -> None:
        self._mark = b"\n" + mark.encode() + b" "
        self._caps = caps
        self._left = self._most = total_cap
        self._pending = bytearray()
        self._open: Frame | None = None
        self._kept = bytearray()
        self.done = False
        self.begun = False
        self.stray = b""

    @property
    def kept_bytes(self) -> int:
        """How much of all answers so far was kept."""
        return self._most - self._left

    @property
    def latest(self) -> bytes:
        """The last whole line of the frame that is coming in."""
        if self._open is None:
            return b""
        coming = bytes(self._kept[-_LATEST_BYTES:]) + bytes(self._pending)
        return coming.rpartition(b"\n")[0].rpartition(b"\n")[2]

    def feed(self, data: bytes, now_s: float) -> Iterator[Frame]:
        """Take `data`, yield the frames that it completes. `now_s`: the reader's own clock."""
        if not self.begun:
            self.stray = (self.stray + data)[-_STRAY_BYTES:]  # what is said last tells why
        self._pending += data
        while not self.done:
            start = self._pending.find(self._mark)
            stop = self._pending.find(b"\n", start + len(self._mark)) if start >= 0 else -1
            if stop < 0:
                break
            told = _WORDS.fullmatch(self._pending, start + len(self._mark), stop)
            words = told.groups() if told else ()  # before what they stand in is taken away
            self._keep(bytes(self._pending[:start]))
            del self._pending[: stop + 1]
            # A host that forges one must not end the run of all.
            known = words and int(words[1]) < max(len(self._caps), 1)
            frame = self._turn(*words, now_s=now_s) if known else None
            if frame is not None:
                yield frame
        # Hold back what may be the beginning of a mark; the rest can go.
        spare = len(self._pending) - len(self._mark) - 32
        if spare > 0 and self._pending.find(self._mark) < 0:
            self._keep(bytes(self._pending[:spare]))
            del self._pending[:spare]

    def unfinished(self, now_s: float) -> Frame | None:
        """The frame whose end never came, with what arrived of it."""
        frame = self._open
        if frame is None:
            return None
        self._keep(bytes(self._pending))
        frame.data, frame.ended_s, self._open = bytes(self._kept), now_s, None
        return frame

    def _turn(self, kind: bytes, number: bytes, status: bytes, *, now_s: float) -> Frame | None:
        rc = int(status)
        self.begun = True
        if kind == b"begin":
            self._open, self._kept = Frame(int(number), b"", began_s=now_s), bytearray()
            return None
        if kind == b"last":
            self.done = True
            return None
        # Where both streams come in one, each mark comes twice: the second end is of nothing.
        if self._open is None or self._open.number != int(number):
            return None
        frame, self._open = self._open, None
        frame.data, frame.rc, frame.ended_s = bytes(self._kept), rc, now_s
        return frame

    def _keep(self, data: bytes) -> None:
        if self._open is None or not data:
            return
        room = min(self._caps[self._open.number] - len(self._kept), self._left)
        kept = data[: max(room, 0)]
        self._open.truncated |= len(kept) < len(data)
        self._kept += kept
        self._left -= len(kept)
