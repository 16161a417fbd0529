"""Answers of one host from several files, as one; and which of them give way to others."""

from __future__ import annotations

import re

from msgspec.structs import replace

from preflight.model import Raw

#: Its -d sections, given as several files, are one answer.
_SECTIONED = "nvidia-smi-q"
#: So are states, errors and capabilities of links, the states of services, and what is known of the
#: driver's module (`lsmod`, /proc/driver/nvidia/version).
_ADD_UP = ("nvlink", "services", "driver-module")
#: Logs add up, each read by itself: a ring buffer, a journal and the fabric manager's log; and what
#: NCCL wrote in each process; and every benchmark. The second of a host is called kernel-log#2.
_LOGS = ("kernel-log", "nccl-log", "nccl-tests", "all-reduce-bench", "perftest", "fio")
#: Forms of one answer, the better first: only one of them is judged.
_SAME = ("nvidia-smi", "nvidia-smi-q", "nvidia-smi-table")
_FULL_REPORT = re.compile(r"^ {4}Product Name +: ", re.MULTILINE)
Bad = list[tuple[str, str]]  # (file, why)


def merged(pieces: list[list[Raw]], bad: Bad) -> list[Raw]:
    """The answers of one host from several files, in the files' order; `bad` is told of answers
    that a later file displaces, lest a fault in one of them goes unseen."""
    answers: dict[str, list[Raw]] = {}
    for piece in pieces:
        fresh: dict[str, list[Raw]] = {}
        for raw in piece:
            fresh.setdefault(raw.probe, []).append(raw)
        for probe, raws in fresh.items():
            earlier = answers.get(probe)
            if (log := probe.partition("#")[0]) in _LOGS and earlier:
                another = f"{log}#{sum(name.startswith(log) for name in answers) + 1}"
                answers[another] = [replace(raw, probe=another) for raw in raws]
                continue
            adds = earlier is not None and _adds(probe, raws[0])
            if earlier and not adds and _text(earlier[-1]) != _text(raws[0]):
                bad.append(_displaced(earlier[-1], raws[0]))
            answers[probe] = [_joined(earlier[-1], raws[0])] if earlier and adds else raws
    better, *others = [probe for probe in _SAME if probe in answers] or [""]
    for other in others:
        if not _beside(answers[better][-1], answers[other][-1]):
            bad.append(_displaced(answers[other][-1], answers[better][-1]))
            del answers[other]
    return [raw for raws in answers.values() for raw in raws]


def _beside(better: Raw, table: Raw) -> bool:
    """Whether the table stands in the same paste as a full report: it tells nothing more, and is
    read only where the report cannot be."""
    return table.probe == _SAME[-1] and better.source == table.source


def _adds(probe: str, raw: Raw) -> bool:
    """Whether an answer goes on where an earlier one ended, in place of displacing it."""
    return probe in _ADD_UP or (probe == _SECTIONED and not _FULL_REPORT.search(_text(raw)))


def _displaced(earlier: Raw, later: Raw) -> tuple[str, str]:
    by = f"{later.source or 'a later capture'} answers the same for host {later.host}"
    why = f"not judged: {by}; give each host its name, --from NAME=FILE"
    return earlier.source or f"a capture of {earlier.host}", why


def _joined(first: Raw, second: Raw) -> Raw:
    """Two texts as one; the source says from which line on they are the second's, and blank lines
    make up for those that its file has before it."""
    text = _text(first)
    text += "" if text.endswith("\n") else "\n"
    begins = first.line_offset + text.count("\n") + 1
    source = (
        f"{first.source or 'a capture'}, then {second.source or 'a capture'} from line {begins}"
    )
    stdout = text + "\n" * second.line_offset + _text(second)
    truncated = first.truncated or second.truncated
    return replace(first, stdout=stdout, source=source, truncated=truncated)


def _text(raw: Raw) -> str:
    return raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
