"""Scans of checkpoints -> findings, the advice, and a row for each checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.diagnosis.checkpoint.damage import seen
from preflight.diagnosis.checkpoint.found import below
from preflight.diagnosis.checkpoint.layouts import flaw_table, named_like
from preflight.diagnosis.checkpoint.shapes import against as compared
from preflight.diagnosis.checkpoint.shapes import inside, shape_at
from preflight.diagnosis.checkpoint.siblings import groups, near, since
from preflight.diagnosis.checkpoint.trackers import advice, leftovers, trackers
from preflight.diagnosis.checkpoint.verdicts import Judged, judged
from preflight.facts.checkpoints import Scan, ScannedFile
from preflight.model import Finding, Status


class Verdict(Struct, frozen=True):
    """Of all paths together. Checkpoints are in the order of the paths, the newest first."""

    judged: tuple[Judged, ...]
    findings: tuple[Finding, ...]
    hints: tuple[str, ...]


def verdict(scans: Sequence[Scan], against: Scan | None = None) -> Verdict:
    """Findings of every checkpoint, of trackers and leftovers; ERROR for a path without any."""
    all_: list[Judged] = []
    findings: list[Finding] = []
    for scan in scans:
        found = below(scan)
        here = [judged(one, near(run, at), told)
                for run in groups(found.found) for told in [since(run)]
                for at, one in enumerate(run)]  # fmt: skip
        order = {id(one): at for at, one in enumerate(found.found)}
        here.sort(key=lambda one: order[id(one.found)])
        findings += [one.finding for one in here]
        findings += [each for one in here for each in inside(one.found)]
        findings += _apart(scan, here)
        findings += [*trackers(scan, here), *leftovers(scan), *_hostile(scan, found.others)]
        if not here and not any(one.finding == "checkpoint.hostile" for one in findings):
            findings.append(_none(scan))
        all_ += here
    if against is not None and all_:
        findings.append(compared(all_[0].found, shape_at(against)))
    return Verdict(tuple(all_), tuple(findings), advice(all_))


def _apart(scan: Scan, here: Sequence[Judged]) -> list[Finding]:
    """Parts on disks of several hosts that are whole only together."""
    whole = [one.found.shown for one in here if one.can_resume]
    if not scan.host or not whole:
        return []
    return [Finding(
        "checkpoint.apart", Status.WARN, whole[0],
        text=f"no host has all of it: the files of {scan.host} are whole together",
        fix=("gather the files of all hosts in one folder before the resume, or resume each rank "
             "on the host that has its files",), runbook="checkpoint-incomplete",
    )]  # fmt: skip


def _hostile(scan: Scan, others: Sequence[ScannedFile]) -> Iterator[Finding]:
    """Of files that are no checkpoint: those whose pickle harms whoever reads it."""
    for file in others:
        named = [one for one in file.globals if named_like(one, flaw_table().hostile)]
        if named:
            yield Finding(
                "checkpoint.hostile", Status.FAIL, f"{scan.source.rstrip('/')}/{file.path}",
                text=f"its pickle would call {', '.join(named[:5])}",
                fix=("do not load it; ask whoever made it",), runbook="checkpoint-hostile",
                evidence=(seen(file.path, ", ".join(named[:5])),),
            )  # fmt: skip


def _none(scan: Scan) -> Finding:
    """There is nothing in it that is known for a checkpoint."""
    kinds: dict[str, int] = {}
    for file in scan.files:
        kinds[file.kind] = kinds.get(file.kind, 0) + 1
    told = ", ".join(f"{count:,} x {kind}" for kind, count in sorted(kinds.items())[:6])
    flaws = [f"{file.path}: {flaw.text}" for file in scan.files for flaw in file.flaws]
    text = scan.trouble or (f"no checkpoint is known in it ({told or 'no files'})")
    return Finding(
        "checkpoint.unknown", Status.ERROR, scan.source, text=f"INCOMPLETE: {text}",
        against=tuple(flaws[:5]),
        fix=("name the folder of one checkpoint, or that of the run: "
             "preflight checkpoint verify RUN/checkpoint-100",), runbook="checkpoint-load",
    )  # fmt: skip
