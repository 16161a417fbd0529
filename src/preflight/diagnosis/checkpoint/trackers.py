"""Files that say which checkpoint is the newest, leftovers, and what to resume from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from posixpath import basename, dirname
from shlex import quote

from msgspec import Struct

from preflight.diagnosis.checkpoint.damage import seen
from preflight.diagnosis.checkpoint.found import is_left
from preflight.diagnosis.checkpoint.layouts import Tracker, layouts
from preflight.diagnosis.checkpoint.verdicts import Judged
from preflight.facts.checkpoints import Scan, ScannedFile
from preflight.model import Finding, Status

_MOST = 5
#: A folder of a checkpoint in which there is no file.
_EMPTY = re.compile(r"(?:checkpoint|step|iter|global_step)[-_]?\d+")


def trackers(scan: Scan, all_: Sequence[Judged]) -> Iterator[Finding]:
    """Those that name what is not there, or cannot be resumed from. Files that are read for one
    are text; a link is one too."""
    for file in scan.files:
        rows, name = layouts().trackers, basename(file.path)
        row = next((one for one in rows if fnmatchcase(name, one.file)), None)
        text = file.told.get("text", "").strip()
        if row is None or file.kind not in ("text", "json") or not text or len(text) > 300:
            continue
        finding = _tracker(scan, file, row, text, all_)
        if finding is not None:
            yield finding


def _tracker(
    scan: Scan, file: ScannedFile, row: Tracker, text: str, all_: Sequence[Judged]
) -> Finding | None:
    folder = dirname(file.path)
    number = f"{int(text):07d}" if text.isdecimal() and len(text) < 19 else text
    names = [one.format(text=text, number=number) for one in row.names]
    paths = {f"{folder}/{one}" if folder else one for one in names}
    target = next((one for one in all_ if one.found.scan is scan
                   and (one.found.path in paths or one.found.folder in paths)), None)  # fmt: skip
    inside = {one for one in (*scan.folders, *(each.path for each in scan.files)) if one in paths}
    if not inside:
        what = f"it says {text!r}, and there is no such checkpoint beside it"
    elif target is not None and target.finding.status is Status.FAIL:
        what = f"it says {text!r}, and that is {target.finding.finding.partition('.')[2]}"
    else:
        return None
    path = f"{scan.source.rstrip('/')}/{file.path}"
    good = next((one for one in all_ if one.can_resume and one.found.scan is scan
                 and dirname(one.found.path) == folder), None)  # fmt: skip
    fix = "take it away, or let it name a checkpoint that is whole"
    if good is not None and good.found.path:
        step = "" if good.found.step is None else str(good.found.step)
        name = quote(basename(good.found.path))
        fix = f"`{row.write.format(name=name, step=step, path=quote(path))}`"
    return Finding("checkpoint.tracker", Status.FAIL, path, text=what, fix=(fix,),
                   evidence=(seen(file.path, text),), runbook="checkpoint-incomplete")  # fmt: skip


class Pointer(Struct, frozen=True):
    """A tracker beside a checkpoint. `text`: what it has to say to name it; `command`: the same,
    to be typed; `right`: it does already."""

    path: str
    text: str
    command: str
    right: bool


def pointers(one: Judged) -> Iterator[Pointer]:
    """Trackers in the folder of a checkpoint."""
    found = one.found
    folder, name = dirname(found.path), basename(found.path)
    step = "" if found.step is None else str(found.step)
    for file in found.scan.files:
        row = next((row for row in layouts().trackers
                    if fnmatchcase(basename(file.path), row.file)), None)  # fmt: skip
        told = file.told.get("text", "").strip()
        if row is None or dirname(file.path) != folder or file.kind != "text" or not told:
            continue
        path = f"{found.scan.source.rstrip('/')}/{file.path}"
        text = step if "{step}" in row.write else name
        command = row.write.format(name=quote(name), step=step, path=quote(path))
        yield Pointer(path, text, command, told == text)


def leftovers(scan: Scan) -> Iterator[Finding]:
    """What saves left behind that did not end."""
    paths = (*scan.folders, *(each.path for each in scan.files))
    names = [one for one in paths if is_left(one)]
    filled = {dirname(one.path) for one in scan.files} | {dirname(one) for one in scan.folders}
    names += [one for one in scan.folders if _EMPTY.fullmatch(basename(one)) and one not in filled]
    kept = set(names)
    outer = sorted(one for one in kept if dirname(one) not in kept)
    if outer:
        more = f" and {len(outer) - _MOST:,} more" if len(outer) > _MOST else ""
        yield Finding(
            "checkpoint.leftover", Status.WARN, scan.source,
            text=f"left by a save that did not end: {', '.join(outer[:_MOST])}{more}",
            fix=("move it away once no run writes here any more",),
            evidence=(seen(outer[0], "by its name"),), runbook="checkpoint-incomplete",
        )  # fmt: skip


def advice(all_: Sequence[Judged]) -> tuple[str, ...]:
    """What to resume from; empty where there is nothing to resume."""
    if not all_:
        return ()
    good = [one for one in all_ if one.can_resume]
    if not good:
        return ("nothing here can be resumed from",)
    newest = good[0]
    step = "" if newest.found.step is None else f" (step {newest.found.step:,})"
    told = f"resume from {newest.found.shown}{step}"
    newer = all_.index(newest)
    if newer:
        told += f"; {newer} newer cannot be: move what is damaged away, do not delete it"
    if len(all_) > 1 and len(good) < 3:
        told += f"; {len(good)} whole {'one is' if len(good) == 1 else 'ones are'} kept: keep 3"
    return (told,)
