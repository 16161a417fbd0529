"""One srun and what its tasks say: who speaks, who is done, who failed, and what is cut when."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from preflight import nodesets
from preflight.errors import UsageError
from preflight.faults import CONNECTION, fault
from preflight.model import Missing, Raw
from preflight.transports.conversation import OUT, Conversation
from preflight.transports.slurm.labelled import Labelled
from preflight.transports.slurm.plan import Plan
from preflight.transports.slurm.queue import Job
from preflight.transports.slurm.srun import Srun
from preflight.transports.slurm.tools import cancel, fallen, job_named
from preflight.transports.slurm.words import Ended, Told, refused

#: Of one host: nvidia-smi's XML of 16 GPUs is 600 kB, a full kernel ring buffer 1 to 16 MB.
_CAP_BYTES = 64_000_000
_LOOK_EVERY_S = 0.25
#: The queue is looked at after so long without a word of any task, then after twice as long, ...
_QUEUE_AFTER_S, _QUEUE_EVERY_S = 1.0, 16.0
#: What a command ends with that SIGKILL or SIGTERM ended. Where Slurm ends a step the script may
#: live on for a moment and tell this of what was killed under it: no answer of the host.
_KILLED = (137, 143)
#: So long it is then waited for srun to tell of that.
_HELD_S = 0.5
#: For the tasks to end by themselves, and to do so once they were asked to.
_LEAVE_S, _ASKED_S = 3.0, 2.0
_INTERRUPTED = fault("interrupted", "it was interrupted")

#: Each task says first which node it is on; harmless where the script is cut short behind it. Told
#: to end, it waits for what it has asked, which was told too: what a task leaves behind is killed.
_HELLO = """\
trap 'exit 143' TERM
printf '\\nnode of %s %s %s %s\\n' {mark} \
"$SLURMD_NODENAME" "$SLURM_STEP_NODELIST" "$SLURM_JOB_ID.$SLURM_STEP_ID"
"""


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
        #: Hosts that are done, if srun does not tell the end of all tasks before that time.
        self._held: dict[str, tuple[float, Conversation]] = {}
        self._told = Told()
        self._queued = Job()
        self._queue_s, self._pause_s = time.monotonic() + _QUEUE_AFTER_S, _QUEUE_AFTER_S
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
            self._plan.interrupted.set()
            yield from self._cut_all()
            raise
        finally:
            if not srun.end(_LEAVE_S if whole else self._ask_to_end(srun)):
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
            yield from self._settle(time.monotonic())
            if not self.launched_s and time.monotonic() >= self._queue_s:
                self._look()
            self._progress(self)

    def _over(self) -> bool:
        stop = self._plan.interrupted.is_set() or bool(self._queued.never)
        return stop or time.monotonic() >= self._until_s

    def _look(self) -> None:
        """What the queue says of the job that this srun has made: its nodes, or why it waits."""
        self._queue_s = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _QUEUE_EVERY_S)
        if not self._plan.job:
            self._queued = job_named(self._plan.mark)
        if not self.nodes:
            self.nodes = list(self._told.nodes or self._queued.nodes)

    def _all_done(self) -> bool:
        return bool(self.nodes) and self.done.issuperset(self.nodes)

    def _hear(self, stream: int, data: bytes) -> Iterator[tuple[str, list[Raw]]]:
        now_s = time.monotonic()
        for task, said in self._streams[stream].feed(data):
            if task is None:
                self._told.hear(said.decode(errors="replace"), now_s)
                continue
            if stream != OUT:
                self._told.hear_step(said.decode(errors="replace"))
            if task not in self._talks:
                self._talks[task] = self._talk()
            talk = self._talks[task]
            if talk is None:
                continue
            if stream == OUT and not talk.host:
                said = self._name(task, talk, said, now_s)
            talk.feed(stream, said, now_s)
            if not (talk.done and talk.host):
                continue
            if _last_killed(talk) is None:
                yield self._finish(talk)
            else:
                self._held.setdefault(talk.host, (now_s + _HELD_S, talk))

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

    def _settle(self, now_s: float) -> Iterator[tuple[str, list[Raw]]]:
        """Nodes whose end srun told before `now_s`, as far as it is theirs."""
        if not self.nodes:
            return
        all_ended = self._told.relaunch or self._told.over
        for due_s, talk in list(self._held.values()):
            if due_s <= now_s and not all_ended:
                yield self._finish(talk)
        for ended in self._told.due(now_s):
            own = ended.missing.fault != "died" or not all_ended
            if own and ended.node in self.nodes and ended.node not in self.done:
                yield self._finish(*self._ended(ended))

    def _ended(self, ended: Ended) -> tuple[Conversation, Missing]:
        """A task that ended before the script began has Slurm's daemon to tell why."""
        silent = self._talks.get(-1 if ended.task is None else ended.task)
        if silent and not silent.host:
            silent.host = ended.node
        talk, missing = self._talk_of(ended.node), ended.missing
        if missing.fault == "died" and not talk.begun:
            said = f"{missing.text}; {talk.said}".rstrip("; ")
            missing = fault("no-task", said)
        return talk, missing

    def _talk_of(self, node: str) -> Conversation:
        found = (talk for talk in self._talks.values() if talk and talk.host == node)
        return next(found, None) or self._talk(node)

    def _finish(self, talk: Conversation, missing: Missing | None = None) -> tuple[str, list[Raw]]:
        if missing:
            talk.cut(missing, time.monotonic())
        self.done.add(talk.host)
        self._held.pop(talk.host, None)
        for task, other in self._talks.items():
            if other is talk:
                self._talks[task] = None
        closing = [Raw(talk.host, CONNECTION, rc=None, missing=missing)]
        return talk.host, [*talk.told, *(closing if missing and missing.fault else [])]

    def _rest(self) -> Iterator[tuple[str, list[Raw]]]:
        """The nodes that are not done, though srun ended or the time is over."""
        late = self._over()
        if not self.launched_s and not self._plan.interrupted.is_set():
            self._look()
        if not self._plan.nodes:
            self.nodes = list(dict.fromkeys([*self.nodes, *self._told.named()]))
        yield from self._settle(float("inf"))
        if self._all_done():
            return
        if self._told.relaunch and not late:
            yield from self._mute()
            # Only without a node that is told: with all of the same it would fail again.
            if self.done:
                self.again = tuple(node for node in self.nodes if node not in self.done)
                return
        heard = self._talks or self.done or self._plan.heard
        if not heard and not self._plan.interrupted.is_set():
            self._nothing_came(late)
        yield from self._cut_all(late)

    def _mute(self) -> Iterator[tuple[str, list[Raw]]]:
        """Where srun gave up and named no node: those that said nothing, if others did."""
        spoke = {talk.host for talk in self._talks.values() if talk}
        if self.done or not spoke:
            return
        for node in [node for node in self.nodes if node not in spoke]:
            said = f"srun gave up before it said anything: {self._told.last_words()}"
            yield self._finish(self._talk(node), fault("silent", said))

    def _nothing_came(self, late: bool) -> None:
        """Raises UsageError where not one task ran, Slurm knows why, and it is no node's."""
        if self._queued.never:
            raise UsageError(f"Slurm will give no nodes: {self._queued.waits}", self._queued.never)
        if not late and not self._told.over:
            raise refused("srun", self._told.lines)
        if self._queued.waits and not self._plan.nodes:
            raise UsageError(
                f"Slurm gave no nodes within {self._plan.deadline_s:g} s: {self._queued.waits}",
                "salloc first and run it there; or wait longer: --host-timeout 10m",
            )
        if not self.nodes:
            raise refused("srun", [*self._told.lines, *filter(None, [self._told.cancelled])])

    def _cut_all(self, late: bool = False) -> Iterator[tuple[str, list[Raw]]]:
        """All that are not done, each with why."""
        down = fallen() if late and not self._plan.interrupted.is_set() else {}
        for node in [node for node in self.nodes if node not in self.done]:
            talk = self._talk_of(node)
            missing = down.get(node) or self._why(talk, late)
            killed = _last_killed(talk)
            if missing.fault == "step-ended" and killed is not None:
                del talk.told[killed:]
            yield self._finish(talk, missing)

    def _why(self, talk: Conversation, late: bool) -> Missing:
        """Why a node is not done that neither srun nor Slurm says is broken."""
        words = self._told.last_words()
        if self._plan.interrupted.is_set():
            return _INTERRUPTED
        limit = f"the host's limit of {self._plan.deadline_s:g} s was reached"
        if self._queued.waits or (late and self._told.waits_for_room()):
            return fault("node-busy", f"{limit}: {self._queued.waits or words}")
        if late and talk.begun:
            return Missing("timeout", limit)
        if late:
            said = talk.said or words
            return fault("silent", f"{limit} before the script began; it said: {said}")
        if self._told.over:
            return fault("step-ended", f"Slurm says: {self._told.cancelled or words}")
        return fault("died" if talk.begun else "no-task", f"srun ended; it said: {words}")

    def _ask_to_end(self, srun: Srun) -> float:
        """Have a step that still runs told to end, before srun kills it: work removes what it has
        made. The seconds that it then gets."""
        if not self._id or not srun.speaks:
            return 0.0
        cancel(["--signal=TERM", self._id])
        return _ASKED_S

    def _cancel(self) -> None:
        """What srun left in Slurm: its step in our allocation, or the job that it made."""
        what = [self._id] if self._id and self._plan.job else [f"--name={self._plan.mark}"]
        if self._plan.job and not self._id:
            return
        cancel(what)


def _last_killed(talk: Conversation) -> int | None:
    """Which of its answers is the last that a signal ended, if any."""
    found = [at for at, raw in enumerate(talk.told) if raw.rc in _KILLED]
    return found[-1] if found else None
