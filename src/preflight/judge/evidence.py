"""The lines behind results: looked up in the raws, once, for what did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from preflight.assemble import answer_text, probe_of
from preflight.model import Evidence, Raw, Result
from preflight.printable import printable
from preflight.redact.secrets import secrets

#: Characters of a line that a report shows.
_SHOWN = 300


def attach(results: Iterable[Result], raws: Sequence[Raw]) -> None:
    """Give each result's evidence its text and the field's own line, in place."""
    by_probe = {raw.probe: raw for raw in raws}
    lines: dict[str, list[str]] = {}
    for one in results:
        if one.evidence:
            found = (_found(evidence, by_probe, lines) for evidence in one.evidence)
            one.evidence = tuple(evidence for evidence in found if evidence is not None)


def _found(
    evidence: Evidence, by_probe: Mapping[str, Raw], lines: dict[str, list[str]]
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
        lines[evidence.probe] = text.split("\n")
    shown = lines[evidence.probe][line - 1 : line]
    return replace(
        evidence,
        text=secrets(printable(shown[0].strip()[:_SHOWN])) if shown else "",
        line=line + raw.line_offset,
        source=raw.source,
        field="",
    )
