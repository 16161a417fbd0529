"""What divergence-rescue does beyond looking, each only where it is asked for by name: moving what
must not be resumed from, naming another checkpoint, undoing that, sending the signal to save."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from preflight.checkpoints.lines import scans
from preflight.cli.asking import Captures, ask_here
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.diagnosis.checkpoint.verdicts import Judged as Checkpoint
from preflight.diagnosis.checkpoint.whole import verdict
from preflight.diagnosis.divergence.plan import QUARANTINE, Framework, Move, Plan, Step, Write
from preflight.errors import PreflightError, UsageError
from preflight.ship import checkpoint_command

#: What was done, beside what was moved.
UNDO = "preflight-undo.json"
_WROTE = {"wrote", "before", "after"}


def checkpoints_in(folders: Sequence[str], options: Options, streams: Streams) -> list[Checkpoint]:
    """All below these folders, each read whole; UsageError for one that is not there."""
    if not folders:
        return []
    paths = [str(Path(one).absolute()) for one in folders]
    for one in paths:
        if not Path(one).is_dir():
            raise UsageError(f"--checkpoints {one}: there is no such folder",
                             "the folder of the run's checkpoints")  # fmt: skip
    command = checkpoint_command({"paths": paths}, tuple(shlex.split(options.python)))
    raws = ask_here([command], options, streams, Captures([]))
    found: list[Checkpoint] = []
    for raw in raws:
        text = raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
        if raw.missing is not None or not text.strip():
            why = raw.missing.text if raw.missing else f"the scan ended with status {raw.rc}"
            hint = f"preflight checkpoint verify {shlex.quote(paths[0])}"
            raise PreflightError(f"the checkpoints were not read: {why}", hint)
        found += verdict(list(scans(text, ""))).judged
    return found


def execute(plan: Plan | None, names: str, run: str, stamp: str) -> Iterator[str]:
    """The steps of these names, in the order of the plan; each told. Before anything is changed
    it is written down how it is undone; UsageError for what the plan has not."""
    wanted = [one.strip() for one in names.split(",") if one.strip()]
    known = {step.name for step in plan.steps if step.name} if plan else set()
    unknown = [one for one in wanted if one not in known]
    if unknown or not wanted or plan is None:
        told = ", ".join(sorted(known)) or "nothing"
        raise UsageError(
            f"--execute {names}: the plan has no such step that can be done for you",
            f"it has {told}; all others are yours, for they stop or start the run",
        )
    place = Path(run) / f"{QUARANTINE}{stamp}"
    place.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, Any]] = []
    for step in plan.steps:
        if step.name in wanted:
            yield from _done(step, done, place / UNDO)
    yield f"to undo it: preflight divergence-rescue --undo {shlex.quote(str(place / UNDO))}"


def _done(step: Step, done: list[dict[str, Any]], record: Path) -> Iterator[str]:
    for move in step.moves:
        _hold_move(move)
        done.append({"moved": move.path, "to": move.to})
        _record(record, done)
        Path(move.to).parent.mkdir(parents=True, exist_ok=True)
        _rename(move)
        yield f"moved {move.path} to {move.to}"
    for write in step.writes:
        before = Path(write.path).read_text(encoding="utf-8")
        done.append({"wrote": write.path, "before": before, "after": write.text})
        _record(record, done)
        _write(write)
        yield f"{write.path} says {write.text}"


def _hold_move(move: Move) -> None:
    if not Path(move.path).exists():
        raise PreflightError(f"{move.path} is not there any more", "make the plan again")
    if Path(move.to).exists():
        raise PreflightError(f"{move.to} is there already", "move it away first")


def _rename(move: Move) -> None:
    """Within one file system only: a copy of a checkpoint that breaks off would be another one
    that is damaged."""
    try:
        os.rename(move.path, move.to)  # noqa: PTH104
    except OSError as error:
        why = "it is another file system" if error.errno == errno.EXDEV else error.strerror
        hint = "move it by hand, to a place on the same file system"
        raise PreflightError(f"{move.path} was not moved to {move.to}: {why}", hint) from None


def _record(path: Path, done: Sequence[dict[str, Any]]) -> None:
    """Whole or not at all, and on the disk before anything is changed."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump({"preflight": "undo/1", "done": list(done)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _write(write: Write) -> None:
    path = Path(write.path)
    part = path.with_name(f".{path.name}.part")
    part.write_text(write.text, encoding="utf-8")
    part.replace(path)


def undo(name: str) -> Iterator[str]:
    """What a record says, backwards; what was changed since is left alone and told."""
    path = Path(name)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        steps = convert(told["done"], list[dict[str, str]]) if told["preflight"] == "undo/1" else []
        if not steps or not all({"moved", "to"} <= set(one) or set(one) >= _WROTE for one in steps):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        raise UsageError(f"--undo {name}: no record of what was done", f"the file {UNDO}") from None
    for one in reversed(steps):
        if "moved" in one:
            yield _back(Move(one["to"], one["moved"]))
        else:
            yield _restored(Path(one["wrote"]), one["before"], one["after"])


def _back(move: Move) -> str:
    if not Path(move.path).exists():
        return f"{move.path} is not there: nothing to move back"
    if Path(move.to).exists():
        return f"left alone: {move.to} is there again"
    _rename(move)
    return f"moved {move.path} back to {move.to}"


def _restored(path: Path, before: str, after: str) -> str:
    now = path.read_text(encoding="utf-8") if path.exists() else ""
    if now != after:
        return f"left alone: {path} says {now!r} now"
    _write(Write(str(path), before))
    return f"{path} says {before!r} again"


def send(pid: int, framework: Framework, *, finite: bool) -> Iterator[str]:
    """The signal on which this framework saves, where the process catches it and what it would
    save is worth it. PreflightError where it is not sent, with what would be lost."""
    caught = _caught(pid)
    ready = [one for one in framework.saves_on if getattr(signal, f"SIG{one}") in caught]
    names = {one.value: one.name for one in signal.Signals}
    told = ", ".join(sorted(names.get(one, f"signal {one}") for one in caught)) or "none"
    if not finite:
        raise PreflightError(
            f"no signal was sent to {pid}: what it would save is no number, or diverged",
            "stop it (kill -9) and go on from an older checkpoint, as the plan says",
        )
    if not ready:
        raise PreflightError(
            f"no signal was sent to {pid}: {framework.title}: {framework.signal}; it catches "
            f"{told}",
            "what was done since the last save is lost when it is stopped: preflight.guard saves "
            "on a signal",
        )
    try:
        os.kill(pid, getattr(signal, f"SIG{ready[0]}"))
    except OSError as error:
        raise PreflightError(f"SIG{ready[0]} was not sent to {pid}: {error.strerror}",
                             "as the user of the process, or with sudo") from None  # fmt: skip
    yield f"sent SIG{ready[0]} to {pid}, which catches it: {framework.signal}"


def _caught(pid: int) -> set[int]:
    """Signals that the process has a handler of its own for (SigCgt, proc(5)), but those that
    Python has for itself."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        raise UsageError(f"--signal {pid}: there is no such process", "pgrep -f train.py") from None
    found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", text, re.MULTILINE)
    mask = int(found.group(1), 16) if found else 0
    return {one for one in range(1, 32) if mask >> (one - 1) & 1} - {signal.SIGINT}
