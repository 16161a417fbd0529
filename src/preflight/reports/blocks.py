"""One group, finding or silent host as lines: what, why, what to do, what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.model import Evidence, Finding, Status
from preflight.nodesets import fold
from preflight.reports.groups import LONG, Group, Place, Variant, followers_told, headline, where
from preflight.reports.layout import GLUE, Line, Span, Style, flow
from preflight.reports.silent import Silence
from preflight.reports.wording import ACTIONS, explain, some, source, value, weight

STYLES: dict[Status, Style] = {
    Status.PASS: "pass",
    Status.WARN: "warn",
    Status.FAIL: "fail",
    Status.ERROR: "error",
    Status.SKIP: "skip",
}
_HANG = 7
_LABELLED = 15
#: Log lines can be pages long: what is shown of one unless all is asked for.
_EVIDENCE_CHARACTERS = 300


class View(Struct, frozen=True):
    """How much is shown, and how wide. `hosts`: whether results carry their host's name."""

    width: int
    verbose: int
    hosts: bool
    box: bool = False  # the stream can show the characters that trees are drawn with

    def most(self, count: int) -> int:
        """How many of a list are shown: `count`, or all with -v."""
        return count if not self.verbose else 1_000_000


#: Of what is unlike over hosts this is told first: by it jobs end.
_FIRST = (f"torch{GLUE}", "nccl")


def first_line(status: Status, body: Sequence[Span], view: View) -> Iterator[Line]:
    """The first line of a block."""
    word = Span(f"{status.value:<{_HANG}}", STYLES[status])
    return flow([word], body, hang=_HANG, width=view.width)


def labelled(
    label: str, text: str, view: View, style: Style = "", *, advice: bool = False
) -> Iterator[Line]:
    """One indented line `label  text`; without a label it goes on where the last one began."""
    name = f"{label}:" if label else ""
    title = Span(" " * _HANG + f"{name:<{_LABELLED - _HANG}}", "dim")
    return flow([title], [Span(text, style)], hang=_LABELLED, width=view.width, advice=advice)


def _where(places: Sequence[Place], view: View) -> str:
    """The places, of which a line may end only after a comma."""
    text = where(places, hosts=view.hosts, brief=not view.verbose)
    return text.replace(" ", GLUE).replace(f",{GLUE}", ", ")


def group_block(group: Group, followed_by: Sequence[Group], view: View) -> Iterator[Line]:
    """All that a person needs to know of one group, and how much follows from it."""
    at = _where(group.places, view)
    if group.status is Status.ERROR:
        yield from _undetermined(group, at, view)
        return
    body = [Span(group.checks[0], "bold"), Span(f"  {at}"), Span(f"  {headline(group)}")]
    yield from first_line(group.status, body, view)
    reasons = {variant.reason for variant in group.variants}
    reason = group.variants[0].reason if len(reasons) == 1 else ""
    if reason:
        yield from flow([Span(" " * _HANG)], [Span(reason)], hang=_HANG, width=view.width)
    elif group.title and len(reasons) == 1:
        # A title says how it should be: without the word it reads as what was found.
        yield from labelled("wanted", group.title, view)
    if len(group.variants) > 1:
        yield from _variants(group, view, with_reason=len(reasons) > 1)
    # A warning can wait for -v with all but what to do.
    in_full = group.status is Status.FAIL or view.verbose > 0
    if group.why and in_full:
        yield from labelled("why", group.why, view, advice=True)
    if group.cause:
        yield from labelled("from", f"this follows from {group.cause}", view)
    if followed_by:
        more = "" if view.verbose else " (-v shows them)"
        told = followers_told(followed_by, hosts=view.hosts, most=view.most(4), more=more)
        yield from labelled("also", told, view)
    yield from steps(ACTIONS[group.action], group.advice, view)
    if in_full:
        yield from _devices(group, view)
        yield from evidence(list(group.evidence), view)
    yield from _more(group, view)


def _more(group: Group, view: View) -> Iterator[Line]:
    command = explain(group.status, group.checks, group.runbook)
    if command:
        yield from labelled("more", command, view, advice=True)


def _undetermined(group: Group, at: str, view: View) -> Iterator[Line]:
    reason = group.variants[0].reason or "could not be determined"
    one = len(group.checks) == 1
    name = group.checks[0] if one else f"{len(group.checks)} checks"
    yield from first_line(
        group.status, [Span(name, "bold"), Span(f"  {at}"), Span(f"  {reason}")], view
    )
    if not one:
        yield from labelled("checks", some(group.checks, view.most(4)), view)
    yield from steps("", group.advice, view)
    yield from _devices(group, view)
    yield from evidence(list(group.evidence), view)
    yield from _more(group, view)


def _variants(group: Group, view: View, *, with_reason: bool) -> Iterator[Line]:
    texts = [_variant(one, group.expected, view, with_reason) for one in group.variants]
    if with_reason:
        yield from _a_line_each("", texts, view.most(6), view)
    elif any("; " in str(one.measured) for one in group.variants):
        # Sentences: commas between them would be read as a part of them.
        texts.sort(key=lambda text: not any(name in text for name in _FIRST))
        yield from _a_line_each("each", texts, view.most(8), view)
    else:
        yield from labelled("each", some(texts, view.most(8)), view)


def _a_line_each(label: str, texts: Sequence[str], most: int, view: View) -> Iterator[Line]:
    for at, text in enumerate(texts[:most]):
        yield from labelled("" if at else label, text, view)
    if len(texts) > most:
        yield from labelled("", f"and {len(texts) - most} more (-v lists them)", view)


def _variant(variant: Variant, expected: str, view: View, with_reason: bool) -> str:
    at = _where(variant.places, view)
    text = value(variant.measured, unlike=expected)
    if with_reason and variant.reason:
        text = value(variant.measured, variant.unit, unlike=expected)
        told = at if variant.measured is None else f"{at} {text}"
        return f"{told}: {variant.reason}"
    # Where the places are too many to be named they are counted: 87 at 666 subjects on 99 hosts.
    return f"{text}{GLUE}at{GLUE}{at}" if at[:1].isdigit() else f"{at}{GLUE}{text}"


def steps(action: str, fix: Sequence[str], view: View) -> Iterator[Line]:
    """`do:` the action's word, then each step on a line of its own."""
    label = "do"
    for text in ([action] if action else []) + list(fix):
        whole = text.strip()
        if whole.startswith("`") and whole.endswith("`") and whole.count("`") == 2:
            whole = f"$ {whole[1:-1]}"
        style: Style = "bold" if text is action else ""
        yield from labelled(label, whole, view, style, advice=True)
        label = ""


def _devices(group: Group, view: View) -> Iterator[Line]:
    told = [f"{_where(at, view)}{GLUE}{device}" for device, at in group.by_device.items()]
    if told:
        yield from labelled("device", some(told, view.most(8)), view)


def evidence(shown: Sequence[tuple[str, Evidence]], view: View) -> Iterator[Line]:
    """The first lines that show it; all of them with -vv."""
    most = (2, 8, len(shown))[min(view.verbose, 2)]
    label = "seen"
    for host, one in shown[:most]:
        text = " ".join(one.text.split()) or one.field
        if len(text) > _EVIDENCE_CHARACTERS and view.verbose < 2:
            text = f"{text[:_EVIDENCE_CHARACTERS]}..."
        at = source(one, short=view.verbose < 2)
        at = f"{host} {at}" if host and view.hosts else at
        yield from labelled(label, f"{at}  {text}".rstrip(), view)
        label = ""
    if len(shown) > most and view.verbose:
        yield from labelled("", f"and {len(shown) - most} more lines (-vv)", view)


def finding_block(finding: Finding, view: View) -> Iterator[Line]:
    """A diagnosis' conclusion."""
    body = [Span(finding.finding, "bold")]
    body += [Span(f"  {part}") for part in (finding.subject, weight(finding)) if part]
    yield from first_line(finding.status, body, view)
    if finding.text:
        text = [Span(finding.text)]
        yield from flow([Span(" " * _HANG)], text, hang=_HANG, width=view.width)
    for at, looked in enumerate(finding.against if view.verbose else finding.against[:2]):
        yield from labelled("" if at else "held", looked, view)
    yield from steps("", finding.fix, view)
    yield from evidence([("", one) for one in finding.evidence], view)
    if finding.runbook:
        yield from labelled("more", f"preflight explain {finding.runbook}", view, advice=True)


def silence_block(one: Silence, view: View) -> Iterator[Line]:
    """Hosts with one fault: what it is, what happened, what to type."""
    names = Span(brief(one.hosts, view), "bold")
    texts = [_told(text, at, one, view) for text, at in one.texts]
    title = one.title or texts.pop(0)
    yield from first_line(one.status, [names, Span(f"  {title}")], view)
    most = view.most(3)
    for at, text in enumerate(texts[:most]):
        yield from labelled("" if at else "said", text, view)
    if len(texts) > most:
        yield from labelled("", f"and {len(texts) - most} more (-v lists them)", view)
    yield from steps("", one.steps, view)


def _told(text: str, at: Sequence[str], one: Silence, view: View) -> str:
    return text if len(at) == len(one.hosts) else f"{brief(at, view)}: {text}"


def brief(names: Sequence[str], view: View) -> str:
    """Hosts folded, or counted where no person would read them."""
    folded = fold(names)
    return folded if view.verbose or len(folded) <= LONG else f"{len(names):,} hosts"
