"""The lines behind results: looked up in the raws, once, for what did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from preflight.assemble.answers import answer_text
from preflight.assemble.sources import probe_of
from preflight.model import Evidence, Raw, Result
from preflight.printable import printable
from preflight.probes.kernel_log.gaps import Gaps, gaps
from preflight.redact.secrets import secrets

#: The probe whose lines say little without the sections that they stand in.
_SECTIONED = "nvidia-smi-q"
#: Characters of a line that a report shows.
_SHOWN = 300


class Lines:
    """The lines of one host's answers, each answer split once, when it is first looked into."""

    def __init__(self, raws: Sequence[Raw]) -> None:
        self._by_probe = {raw.probe: raw for raw in raws}
        self._lines: dict[str, tuple[list[str], Gaps]] = {}

    def shown(self, evidence: Evidence) -> Evidence | None:
        """The evidence with its text and the field's own line; None where there is no such line."""
        return _found(evidence, self._by_probe, self._lines)


def attach(results: Iterable[Result], lines: Lines) -> None:
    """Give each result's evidence its text and the field's own line, in place."""
    for one in results:
        if one.evidence:
            found = map(lines.shown, one.evidence)
            one.evidence = tuple(evidence for evidence in found if evidence is not None)


def _shown(lines: Sequence[str], line: int, probe: str) -> str:
    if not 0 < line <= len(lines):
        return ""
    return _with_sections(lines, line) if probe == _SECTIONED else lines[line - 1].strip()


def _with_sections(lines: Sequence[str], line: int) -> str:
    """`Link Width / Current : 8x`: half of the labels are "Current" or "Pending"."""
    parts, indent = [lines[line - 1].strip()], _indent(lines[line - 1])
    for above in reversed(lines[max(line - 80, 0) : line - 1]):
        if above.strip() and _indent(above) < indent:
            indent = _indent(above)
            if not indent:  # the GPU itself
                break
            if " : " not in above:
                parts.append(above.strip())
    return " / ".join(reversed(parts))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _found(
    evidence: Evidence,
    by_probe: Mapping[str, Raw],
    lines: dict[str, tuple[list[str], Gaps]],
) -> Evidence | None:
    raw = by_probe.get(evidence.probe)
    if raw is None or evidence.line is None:
        return None
    probe = probe_of(evidence.probe)
    text = answer_text(raw, probe)
    line = evidence.line
    if probe and probe.locate and evidence.field:
        line = probe.locate(text, line, evidence.field)
    if evidence.probe not in lines:
        lines[evidence.probe] = (text.split("\n"), gaps(text))
    all_lines, left_out = lines[evidence.probe]
    shown = _shown(all_lines, left_out.line_of_text(line), raw.probe)
    return replace(
        evidence,
        text=secrets(printable(shown[:_SHOWN])),
        line=line + raw.line_offset,
        source=raw.source,
        field="",
    )
