"""One srun and what its tasks say: who speaks, who is done, who failed, and what is cut when."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from preflight import nodesets
from preflight.errors import UsageError
from preflight.faults import CONNECTION, fault
from preflight.model import Command, Missing, Raw
from preflight.transports.conversation import OUT, Conversation
from preflight.transports.slurm.labelled import Labelled
from preflight.transports.slurm.nodes import Ended, endings, is_down, refused, told_of
from preflight.transports.slurm.srun import Srun
from preflight.transports.slurm.tools import node_states, said_by

#: Of one host: nvidia-smi's XML of 16 GPUs is 600 kB, a full kernel ring buffer 1 to 16 MB.
_CAP_BYTES = 64_000_000
#: srun tells that a task ended on another connection than what the task said: so long it may lag.
_LAG_S = 0.5
_LOOK_EVERY_S = 0.25
#: For the tasks to end by themselves.
_LEAVE_S = 3.0
#: Lines of srun's own that are kept, to tell why it failed.
_LINES = 40
_INTERRUPTED = fault("interrupted", "it was interrupted")

#: Each task says first which node it is on; harmless where the script is cut short behind it.
_HELLO = """\
printf '\\nnode of %s %s %s %s\\n' {mark} \
"$SLURMD_NODENAME" "$SLURM_STEP_NODELIST" "$SLURM_JOB_ID.$SLURM_STEP_ID"
"""


class Plan(Struct, frozen=True):
    """What one srun is to do. `nodes` is empty where srun is to get them; `job` is the allocation
    that we are in; `heard` says that another srun of the same run has told of hosts already."""

    argv: Sequence[str]
    environ: dict[str, str]
    nodes: tuple[str, ...]
    commands: Sequence[Command]
    mark: str
    sudo: bool
    deadline_s: float
    job: str
    heard: bool
    interrupted: threading.Event


class Step:
    """A run of srun. `again` are the nodes that it ended though nothing was wrong with them."""

    def __init__(self, plan: Plan, progress: Callable[[Step], None]) -> None:
        self._plan, self._progress = plan, progress
        self.nodes = list(plan.nodes)
        self.done: set[str] = set()
        self.again: tuple[str, ...] = ()
        self.launched_s = 0.0
        self._id = ""
        #: By the task's number; None once its host is done.
        self._talks: dict[int, Conversation | None] = {}
        self._streams = (Labelled(), Labelled())
        self._said: deque[str] = deque(maxlen=_LINES)
        self._ended: deque[tuple[float, Ended]] = deque()
        self._relaunch = False
        self._until_s = 0.0

    def run(self) -> Iterator[tuple[str, list[Raw]]]:
        """Each node as it is done. Raises UsageError where srun refuses, or gets no nodes."""
        script = _HELLO.format(mark=self._plan.mark).encode() + self._talk().script
        srun = Srun(self._plan.argv, self._plan.environ, script)
        self._until_s = time.monotonic() + self._plan.deadline_s
        whole = False
        try:
            for host in self._until_the_end(srun):
                yielded_s = time.monotonic()
                yield host
                # The time that the caller takes for a host is not the other hosts'.
                self._until_s += time.monotonic() - yielded_s
            whole = self._all_done()
            yield from self._rest()
        except KeyboardInterrupt:
            yield from self._cut_all(_INTERRUPTED)
            raise
        finally:
            if not srun.end(_LEAVE_S if whole else 0):
                self._cancel()

    @property
    def slowest(self) -> Conversation | None:
        """The one with the fewest answers of those that are not done; all began together."""
        left = [talk for talk in self._talks.values() if talk and talk.host]
        return min(left, key=lambda talk: len(talk.told), default=None)

    def _until_the_end(self, srun: Srun) -> Iterator[tuple[str, list[Raw]]]:
        """What comes until all are done, srun ends, the time is over, or we are interrupted."""
        while srun.speaks and not self._all_done() and not self._over():
            for stream, data in srun.read(_LOOK_EVERY_S):
                yield from self._hear(stream, data)
            yield from self._settle()
            self._progress(self)

    def _over(self) -> bool:
        return time.monotonic() >= self._until_s or self._plan.interrupted.is_set()

    def _all_done(self) -> bool:
        return bool(self.nodes) and self.done.issuperset(self.nodes)

    def _hear(self, stream: int, data: bytes) -> Iterator[tuple[str, list[Raw]]]:
        now_s = time.monotonic()
        for task, said in self._streams[stream].feed(data):
            if task is None:
                self._listen(said.decode(errors="replace"), now_s)
                continue
            if task not in self._talks:
                self._talks[task] = self._talk()
            talk = self._talks[task]
            if talk is None:
                continue
            if stream == OUT and not talk.host:
                said = self._name(task, talk, said, now_s)
            talk.feed(stream, said, now_s)
            if talk.done and talk.host:
                yield self._finish(talk)

    def _talk(self, host: str = "") -> Conversation:
        return Conversation(
            host, self._plan.commands, sudo=self._plan.sudo, cap_bytes=_CAP_BYTES,
            mark=self._plan.mark,
        )  # fmt: skip

    def _name(self, task: int, talk: Conversation, said: bytes, now_s: float) -> bytes:
        """Find out from a task's own words which node it is; the rest of them."""
        hello = f"node of {self._plan.mark} ".encode()
        line = next((one for one in said.splitlines() if one.startswith(hello)), b"")
        words = line.removeprefix(hello).decode(errors="replace").split()
        if len(words) != 3:
            return said
        node, nodes, self._id = words
        if not self.launched_s:
            self.launched_s = now_s
            self._until_s = now_s + self._plan.deadline_s
        if not self.nodes:
            with contextlib.suppress(UsageError):
                self.nodes = nodesets.expand(nodes)
        if node in self.done or any(other and other.host == node for other in self._talks.values()):
            self._talks[task] = None  # more than one task there: --slurm-args asked for it
            return b""
        talk.host = node
        if node not in self.nodes:
            self.nodes.append(node)
        return said.replace(line + b"\n", b"", 1)

    def _listen(self, text: str, now_s: float) -> None:
        """Lines of srun itself."""
        for line in text.splitlines():
            self._said.append(line)
            for ended in endings(line):
                self._relaunch |= ended.relaunch
                self._ended.append((now_s + _LAG_S, ended))

    def _settle(self) -> Iterator[tuple[str, list[Raw]]]:
        """Nodes whose end srun told a moment ago."""
        while self._ended and self._ended[0][0] <= time.monotonic():
            _, ended = self._ended.popleft()
            if (
                ended.node in self.nodes
                and ended.node not in self.done
                and not (
                    self._relaunch and not ended.relaunch  # srun ended it, for another's sake
                )
            ):
                yield self._finish(self._talk_of(ended.node), ended.missing)

    def _talk_of(self, node: str) -> Conversation:
        found = (talk for talk in self._talks.values() if talk and talk.host == node)
        return next(found, None) or self._talk(node)

    def _finish(self, talk: Conversation, missing: Missing | None = None) -> tuple[str, list[Raw]]:
        if missing:
            talk.cut(missing, time.monotonic())
        self.done.add(talk.host)
        for task, other in self._talks.items():
            if other is talk:
                self._talks[task] = None
        closing = [Raw(talk.host, CONNECTION, rc=None, missing=missing)]
        return talk.host, [*talk.told, *(closing if missing and missing.fault else [])]

    def _rest(self) -> Iterator[tuple[str, list[Raw]]]:
        """The nodes that are not done, though srun ended or the time is over."""
        self._ended = deque((0.0, ended) for _, ended in self._ended)
        yield from self._settle()
        if self._all_done():
            return
        if self._plan.interrupted.is_set():
            yield from self._cut_all(_INTERRUPTED)
            return
        late = self._over()
        # Only without a node that is told: with all of the same it would fail again.
        if self._relaunch and self.done and not late:
            self.again = tuple(node for node in self.nodes if node not in self.done)
            return
        if not self._talks and not self._plan.heard:
            self._nothing_came(late)
        yield from self._cut_all(self._why(late), _down() if late else {})

    def _nothing_came(self, late: bool) -> None:
        """Raises UsageError where not one task ran and Slurm knows why."""
        if not late:
            raise refused("srun", self._said)
        queued = _queued(self._plan)
        if queued:
            raise UsageError(
                f"Slurm gave no nodes within {self._plan.deadline_s:g} s: {queued}",
                "salloc first and run it there; or wait longer: --host-timeout 10m",
            )

    def _why(self, late: bool) -> Missing:
        if late:
            return Missing(
                "timeout", f"the host's limit of {self._plan.deadline_s:g} s was reached"
            )
        return fault("died", f"srun ended; it said: {self._last_words() or 'nothing'}")

    def _last_words(self) -> str:
        return "; ".join(line for line in list(self._said)[-3:])

    def _cut_all(
        self, missing: Missing, down: dict[str, Missing] | None = None
    ) -> Iterator[tuple[str, list[Raw]]]:
        """All that are not done. `down`: those of which Slurm knows better why."""
        for node in [node for node in self.nodes if node not in self.done]:
            talk = self._talk_of(node)
            silent = missing.kind == "timeout" and not missing.fault and not talk.begun
            why = self._silent(missing, talk) if silent else missing
            yield self._finish(talk, (down or {}).get(node, why))

    def _silent(self, missing: Missing, talk: Conversation) -> Missing:
        said = talk.said or self._last_words() or "nothing"
        return fault("silent", f"{missing.text} before the script began; it said: {said}")

    def _cancel(self) -> None:
        """What srun left in Slurm: its step in our allocation, or the job that it made."""
        what = [self._id] if self._id and self._plan.job else [f"--name={self._plan.mark}"]
        if self._plan.job and not self._id:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["scancel", *what], capture_output=True, timeout=10, check=False)


def _queued(plan: Plan) -> str:
    """The job of this srun that waits for nodes, and Slurm's reason; empty where none waits."""
    if plan.job:
        return ""
    argv = ("squeue", "-h", f"--name={plan.mark}", "--states=PENDING", "-o", "job %i waits (%r)")
    with contextlib.suppress(UsageError):
        return said_by(argv).strip()
    return ""


def _down() -> dict[str, Missing]:
    """The nodes that Slurm has found down meanwhile, or that do not respond to it."""
    with contextlib.suppress(UsageError):
        return {
            node: fault("node-failed", told_of(one))
            for node, one in node_states().items() if is_down(one)
        }  # fmt: skip
    return {}
