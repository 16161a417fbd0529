"""One verdict for each checkpoint, as a finding."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from preflight.diagnosis.checkpoint import complete
from preflight.diagnosis.checkpoint.damage import Reason, odd, reasons
from preflight.diagnosis.checkpoint.found import VALUES, Found
from preflight.diagnosis.checkpoint.layouts import Layout
from preflight.diagnosis.checkpoint.siblings import beside
from preflight.model import Finding, Status
from preflight.units import format_bytes

#: By the worst of its reasons, the worst first: the finding, its status, its runbook.
_WORST = (
    ("hostile", "checkpoint.hostile", Status.FAIL, "checkpoint-hostile"),
    ("damaged", "checkpoint.damaged", Status.FAIL, "checkpoint-damaged"),
    ("incomplete", "checkpoint.incomplete", Status.FAIL, "checkpoint-incomplete"),
    ("unknown", "checkpoint.unknown", Status.ERROR, "checkpoint-load"),
)
#: What is said of checksums: of all files, and of some.
_CHECKSUMS = {
    "failed": ("every checksum is wrong", "with a wrong checksum"),
    "verified": ("every checksum is right", "with every checksum right"),
    "none": ("no checksum in this format", "of a format without checksums"),
    "off": ("saved without checksums", "saved without checksums"),
    "not-looked": ("checksums were not all looked at", "of which checksums were not looked at"),
}
_MOST_REASONS, _MOST_INTACT = 6, 8
#: After its last write a checkpoint is taken for saved.
_FRESH_S = 120.0


class Judged(Struct, frozen=True):
    """A checkpoint and what became of it. `can_resume`: a run can go on from it."""

    found: Found
    finding: Finding
    can_resume: bool


def judged(found: Found, others: Sequence[Found] = (), since: str = "") -> Judged:
    """`others`: of its run; `since`: when values that are no numbers began in that."""
    told = reasons(found)
    layout = found.layout
    if layout is not None:
        told += complete.missing(found, layout)
    told += beside(found, others)
    if not found.scan.whole:
        told.append(Reason("unknown", found.scan.trouble or "the scan broke off",
                           "run it again"))  # fmt: skip
    for makes, name, status, runbook in _WORST:
        worst = [one for one in told if one.makes == makes]
        if worst:
            finding = _against_it(found, name, status, runbook, worst, told)
            if since and (odd(found, "nans") or odd(found, "infs")):
                finding.text += f"; values that are no numbers {since}"
            return Judged(found, finding, can_resume=False)
    if layout is None or not _was_looked_into(found):
        return Judged(found, _not_known(found), can_resume=False)
    return _whole(found, layout, [one for one in told if one.makes == "note"])


def _against_it(
    found: Found, name: str, status: Status, runbook: str, worst: Sequence[Reason],
    told: Sequence[Reason],
) -> Finding:  # fmt: skip
    texts = [one.text for one in worst[:_MOST_REASONS]]
    if len(worst) > _MOST_REASONS:
        texts.append(f"{len(worst) - _MOST_REASONS:,} more such flaws")
    text = "; ".join([*texts, checked(found)])
    text = f"INCOMPLETE: {text}" if status is Status.ERROR else text
    rest = [one.text for one in told if one not in worst]
    return Finding(
        name, status, found.shown, text=text,
        against=(*intact(found), *_under_way(found), *rest[:8]),
        evidence=tuple(one.evidence for one in worst if one.evidence is not None)[:8],
        fix=tuple(dict.fromkeys(one.fix for one in worst if one.fix))[:3], runbook=runbook,
    )  # fmt: skip


def _under_way(found: Found) -> list[str]:
    """Whether a save may not have ended yet."""
    ago_s = found.scan.now_s - found.modified_s
    if not found.scan.now_s or not 0 <= ago_s < _FRESH_S:
        return []
    return [f"its last file was written {ago_s:.0f} s before: a save may be under way still"]


def intact(found: Found) -> list[str]:
    """Tensors of a damaged checkpoint whose bytes are all there and as they were saved: what a
    partial restore could take."""
    whole = [one.name for one in found.tensors if not (one.damage or one.nans or one.infs)]
    if not whole or len(whole) == len(found.tensors):
        return []
    names = ", ".join(whole[:_MOST_INTACT]) + (" ..." if len(whole) > _MOST_INTACT else "")
    return [f"{len(whole):,} of its {len(found.tensors):,} tensors are intact: {names}"]


def _was_looked_into(found: Found) -> bool:
    return any(one.kind in VALUES or one.kind == "dcp-metadata" for one in found.files.values())


def _not_known(found: Found) -> Finding:
    kinds = ", ".join(sorted({one.kind for one in found.files.values()})[:5])
    what = found.layout.title if found.layout else "no layout that is known here"
    return Finding(
        "checkpoint.unknown", Status.ERROR, found.shown,
        text=f"INCOMPLETE: {what}, of files that nothing here can look into ({kinds})",
        fix=("load it with what wrote it, and compare one batch's loss with the log",),
        runbook="checkpoint-load",
    )  # fmt: skip


def _whole(found: Found, layout: Layout, notes: Sequence[Reason]) -> Judged:
    """Nothing is damaged or missing: what can be done with it."""
    there = complete.parts(found, layout)
    lacks = [part for part in layout.needs if not there.get(part)]
    wants = [part for part in layout.wants if not there.get(part)]
    rest = [part for part, has in there.items() if not has and part not in (*lacks, *wants)]
    told = [one.text for one in notes]
    if rest and not lacks:
        told.append(f"not found in it: {', '.join(complete.WORDS[part] for part in rest)}")
    holds = ", ".join(complete.WORDS[part] for part, has in there.items() if has)
    if lacks or not layout.needs:
        words = ", ".join(complete.WORDS[part] for part in lacks) or "the optimizer's state"
        text = f"{layout.title}: weights, without {words}; a run that goes on from it begins anew"
        return Judged(found, Finding(
            "checkpoint.weights-only", Status.WARN, found.shown, text=f"{text}; {checked(found)}",
            against=tuple(told), runbook="checkpoint-incomplete",
            fix=("for weights alone this is in order; to go on training warm the learning rate up "
                 "again",),
        ), can_resume=False)  # fmt: skip
    if wants:
        words = ", ".join(complete.WORDS[part] for part in wants)
        text = f"{layout.title}: weights, {holds}; without {words}, which start anew"
        return Judged(found, Finding(
            "checkpoint.partly", Status.WARN, found.shown, text=f"{text}; {checked(found)}",
            against=tuple(told), runbook="checkpoint-incomplete",
            fix=("compare learning rate and loss with the log after the resume",),
        ), can_resume=True)  # fmt: skip
    text = f"{layout.title}: weights, {holds}; {checked(found)}"
    return Judged(found, Finding("checkpoint.resumable", Status.PASS, found.shown, text=text,
                                 against=tuple(told)), can_resume=True)  # fmt: skip


def checked(found: Found) -> str:
    """How much of it was read, and what checksums told."""
    files = [one for one in found.files.values() if one.kind in VALUES]
    read = sum(one.checked_bytes for one in files)
    size = sum(one.size for one in files)
    told = [f"checked {format_bytes(read)} of {format_bytes(size)}"]
    counts = {state: sum(one.checksum == state for one in files) for state in _CHECKSUMS}
    for state, words in _CHECKSUMS.items():
        if counts[state] == len(files) > 0:
            told.append(words[0])
        elif counts[state]:
            noun = "file" if counts[state] == 1 else "files"
            told.append(f"{counts[state]:,} {noun} {words[1]}")
    return "; ".join([*told, *_how(found)])


def _how(found: Found) -> list[str]:
    scan = found.scan
    if not scan.values:
        return ["values were not looked at (--quick)"]
    if scan.every > 1:
        return [f"of large tensors one block in {scan.every:,} was read (--sample)"]
    if scan.values_every > 1:
        return [f"values of one block in {scan.values_every:,}: there is neither numpy nor torch"]
    return []
