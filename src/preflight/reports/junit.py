"""JUnit XML, for CI systems: a suite per host, a case per check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from msgspec import Struct

from preflight.model import SEVERITY, Finding, HostReport, Report, Result, Status
from preflight.nodesets import fold
from preflight.printable import printable
from preflight.reports.silent import silences
from preflight.reports.wording import ACTIONS, against, explain, source, typed, weight
from preflight.verdict import verdict_of

_ELEMENTS = {Status.FAIL: "failure", Status.ERROR: "error", Status.SKIP: "skipped"}
_COUNTED = {Status.FAIL: "failures", Status.ERROR: "errors", Status.SKIP: "skipped"}


class Case(Struct, frozen=True):
    """One check on one host, with what is to be said of each of its subjects."""

    name: str
    domain: str
    status: Status
    message: str = ""
    text: str = ""
    fault: str = ""


def render(report: Report, *, verbose: int, quiet: bool, facts: bool) -> Iterator[str]:
    """The document, a suite at a time: of a thousand hosts only the text is held."""
    counts: Counter[Status] = Counter()
    suites = []
    for name, cases in _suites(report):
        counts.update(case.status for case in cases)
        suite = _suite(name, cases, report)
        ElementTree.indent(suite, level=1)
        suites.append(ElementTree.tostring(suite, encoding="unicode"))
    root = ElementTree.Element("testsuites", {"name": f"preflight {report.command}"})
    _count(root, counts, report.elapsed_s)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    whole = ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)
    start, end = whole[: -len("</testsuites>")], "</testsuites>\n"
    yield f"{start}\n"
    for text in suites:
        yield f"  {text.rstrip()}\n"
    yield end


def _suites(report: Report) -> Iterator[tuple[str, list[Case]]]:
    for host in report.hosts:
        yield host.host, [*_answers(host), *_cases(host.results)]
    if report.fleet:
        yield "fleet", _cases(report.fleet)
    if report.findings:
        yield "findings", [_finding_case(finding) for finding in report.findings]


def _answers(host: HostReport) -> Iterator[Case]:
    """A case for a host that gave no answer, or none any more."""
    for one in silences([host]):
        texts = [text for text, _ in one.texts]
        lines = [*texts, *(f"do: {step}" for step in one.steps)]
        message = ": ".join(part for part in (one.title, texts[0]) if part)
        yield Case("host.answers", "host", one.status, message, "\n".join(lines), one.fault)


def _cases(results: Sequence[Result]) -> list[Case]:
    by_check: dict[str, list[Result]] = {}
    for result in results:
        by_check.setdefault(result.check, []).append(result)
    return [_case(check, found) for check, found in by_check.items()]


def _case(check: str, results: Sequence[Result]) -> Case:
    status = verdict_of(result.status for result in results)
    told: dict[str, list[str]] = {}
    for result in sorted(results, key=lambda one: SEVERITY.index(one.status)):
        if result.status is not Status.PASS:
            told.setdefault(f"{result.status.value} {{}}: {_sentence(result)}", []).append(
                result.subject
            )
    lines = [line.replace("{}", fold(subjects), 1) for line, subjects in told.items()]
    message = lines[0].partition(" ")[2] if lines and status is not Status.PASS else ""
    for part in (_advice, _seen, _more):
        lines += dict.fromkeys(line for result in results for line in part(result))
    return Case(check, check.partition(".")[0], status, message, "\n".join(lines))


def _sentence(result: Result) -> str:
    told = ": ".join(part for part in (against(result), result.reason) if part)
    told = told or result.title
    return f"{told}; follows from {result.cause}" if result.cause else told


def _advice(result: Result) -> Iterator[str]:
    if result.status in (Status.FAIL, Status.WARN):
        action = ACTIONS[result.action]
        told = ((f"why: {result.why}", result.why), (f"do: {action}", action))
        yield from (text for text, known in told if known)
        where = ([result.subject], [result.device])
        yield from (f"  - {typed(step, *where)}" for step in result.fix)
    elif result.status is Status.ERROR and not result.why:
        yield from (f"do: {step}" for step in result.fix)


def _seen(one: Result | Finding) -> Iterator[str]:
    return (f"seen: {source(line)}  {line.text or line.field}" for line in one.evidence)


def _more(result: Result) -> Iterator[str]:
    if result.status not in (Status.PASS, Status.SKIP):
        yield f"more: {explain(result.status, [result.check], result.runbook)}"


def _finding_case(finding: Finding) -> Case:
    name = " ".join(part for part in (finding.finding, finding.subject) if part)
    steps = (f"do: {step}" for step in finding.fix)
    text = "\n".join([*finding.against, *steps, *_seen(finding)])
    message = ": ".join(part for part in (weight(finding), finding.text) if part)
    return Case(name, "finding", finding.status, message or finding.finding, text)


def _suite(name: str, cases: Sequence[Case], report: Report) -> ElementTree.Element:
    suite = ElementTree.Element(
        "testsuite",
        {"name": printable(name), "hostname": printable(name), "timestamp": report.started_at},
    )
    _count(suite, Counter(case.status for case in cases), report.elapsed_s)
    for case in cases:
        # GitLab and Jenkins tell cases apart by these two; the host keeps equal checks apart.
        names = {"classname": f"{name}.{case.domain}", "name": case.name, "time": "0"}
        element = ElementTree.SubElement(
            suite, "testcase", {key: printable(told) for key, told in names.items()}
        )
        _outcome(element, case)
    return suite


def _outcome(element: ElementTree.Element, case: Case) -> None:
    # Line by line: what is unsafe becomes an escape, and the line ends stay.
    text = "\n".join(map(printable, case.text.split("\n")))
    if case.status in _ELEMENTS:
        attributes = {"message": printable(case.message)}
        if case.status is not Status.SKIP:
            attributes["type"] = case.fault or case.status.value
        told = None if text == f"SKIP {attributes['message']}" else text
        ElementTree.SubElement(element, _ELEMENTS[case.status], attributes).text = told
    elif text:
        ElementTree.SubElement(element, "system-out").text = text


def _count(element: ElementTree.Element, counts: Counter[Status], elapsed_s: float) -> None:
    element.set("tests", str(counts.total()))
    for status, attribute in _COUNTED.items():
        element.set(attribute, str(counts[status]))
    element.set("time", f"{elapsed_s:.3f}")
