"""preflight explain: what a check, an Xid, an error text or a symptom means and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from preflight import runbooks
from preflight.cli import explain_text, explain_variable
from preflight.cli.exit import Exit
from preflight.cli.explain_rows import branches, judged_by_rule, known_bad
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.cli.wrapped import wrapped
from preflight.errors import UsageError
from preflight.judge import load, overrides
from preflight.judge.operators import OPERATORS, shown
from preflight.model import Check, Override


def run(options: Options, streams: Streams) -> int:
    """Answer by check id, Xid or SXid number, runbook id, a known error text (also in a file or on
    standard input), else by the words of a symptom."""
    words = " ".join(options.words).strip()
    checks = load.load(load.DOMAINS, [Path(name) for name in options.checks]).checks
    if not words:
        streams.report(_overview(checks))
        return Exit.OK
    stated = _stated(options)
    checks = overrides.apply(checks, stated)
    by_id = {check.id: check for check in checks}
    check = by_id.get(words.lower()) or _error_number(words, by_id)
    if check is not None:
        streams.report(_check(check, stated))
    elif fitting := [each for each in checks if fnmatchcase(each.id, words.lower())]:
        streams.report(_catalogue(fitting))
    elif words in runbooks.load():
        streams.report(_runbook(runbooks.load()[words]))
    elif told := explain_variable.explained(words):
        streams.report(told)
    elif _reads_like_a_check(words, checks):
        near = f"preflight explain '{words.partition('.')[0]}.*' lists those that there are"
        raise UsageError(f"there is no check {words}", near)
    else:
        streams.report(_text(options.words, checks))
    return Exit.OK


def _stated(options: Options) -> tuple[Override, ...]:
    """What a profile or --set changes."""
    if not options.profile and not options.set_:
        return ()
    from preflight.cli.plan import changes

    return changes(options)


def _reads_like_a_check(words: str, checks: list[Check]) -> bool:
    first = words.partition(".")[0]
    known = {each.id.partition(".")[0] for each in checks}
    return first in known and bool(re.fullmatch(r"\w+(\.\w+)+", words))


def _text(words: list[str], checks: list[Check]) -> list[str]:
    given = explain_text.read(words)
    told = list(explain_text.explained(given, checks))
    if told:
        return told
    if given.source or "\n" in given.text:
        raise UsageError(
            f"no error text is known in {given.source or 'what was given'}",
            "of a tool's output: preflight run --from FILE; of a symptom: preflight explain WORDS",
        )
    return list(_symptom(given.text, checks))


def _error_number(words: str, by_id: dict[str, Check]) -> Check | None:
    """'79', 'xid 79', 'sxid 20034' -> its check, or the check of all codes without a row."""
    match = re.fullmatch(r"(s?)(?:xid)?\W*([0-9]{1,9})", words.lower())
    if not match:
        return None
    kind = "sxid" if match[1] or int(match[2]) >= 10000 else "xid"
    rows = [check for check in by_id.values() if int(match[2]) in check.row.get("codes", ())]
    same = [check for check in rows if check.id.startswith(f"gpu.{kind}.")]
    return by_id.get(f"gpu.{kind}.{match[2]}") or (same or [by_id[f"gpu.{kind}.other"]])[0]


#: So many checks of one beginning are shown as one, `gpu.ecc.* (12)`; and of more names than these
#: a whole domain, `gpu.* (169)`.
_FOLD, _NAMES_MAX = 2, 12


def _overview(checks: list[Check]) -> Iterator[str]:
    """One screen: what can be asked for."""
    names = [name for domain in _by(1, [check.id for check in checks]) for name in _folded(domain)]
    yield f"{len(checks)} checks: preflight explain ID; of a kind: preflight explain 'gpu.*'\n"
    yield from (line.replace("\xa0", " ") for line in wrapped("  ".join(names), "  "))
    yield f"\n{len(runbooks.load())} runbooks: preflight explain NAME, or the words of a symptom\n"
    yield from wrapped("  ".join(runbooks.load()), "  ")
    yield "\nan error: preflight explain 'RuntimeError: ...', or preflight explain - < err.txt\n"
    yield "an Xid: preflight explain 79\n"


def _by(parts: int, ids: list[str]) -> list[list[str]]:
    """Ids of one beginning together, in the order of the first of each."""
    found: dict[str, list[str]] = {}
    for each in ids:
        found.setdefault(".".join(each.split(".")[:parts]), []).append(each)
    return list(found.values())


def _folded(domain: list[str]) -> list[str]:
    """The kinds of one domain, or the domain alone where they are many."""
    kinds = _by(2, domain)
    if len(kinds) > _NAMES_MAX:
        return [_beginning(1, domain)]
    return [_beginning(2, ids) if len(ids) >= _FOLD else ids[0] for ids in kinds]


def _beginning(parts: int, ids: list[str]) -> str:
    return f"{'.'.join(ids[0].split('.')[:parts])}.*\xa0({len(ids)})"


def _catalogue(checks: list[Check]) -> Iterator[str]:
    yield f"{len(checks)} checks; preflight explain ID tells more\n"
    for check in checks:
        yield f"  {check.id:<28} {check.title}\n"


def _check(check: Check, stated: Sequence[Override] = ()) -> Iterator[str]:
    from preflight.judge.advice import target, typed, value_of

    yield f"{check.id}: {check.title}\n\n"
    yield from wrapped(check.why)
    yield "\nwhat to do:\n"
    for step in typed(check):
        yield from wrapped(_in_words(step, check), "  - ")
    if told := list(branches(check)):
        yield "\nwhat the line's text decides:\n"
        for line in told:
            yield from wrapped(line, "  - ")
    yield f"\naction     {check.action.value}\n"
    yield f"fact       {check.fact}\n"
    yield from known_bad(check)
    for name, label in (("fail_unless", "fails"), ("warn_unless", "warns")):
        for operator, argument in getattr(check, name).items():
            yield f"{label:<10} {_told(operator, argument)}\n"
            yield from _formula(argument)
            if isinstance(argument, dict) and "bound" in argument:
                both = ".warn" if name == "warn_unless" else ".fail"
                side = both if check.fail_unless and check.warn_unless else ""
                yield f"{'instead':<10} --set {check.id}{side}=VALUE\n"
    yield from judged_by_rule(check)
    for one in stated:
        if one.id in (check.id, f"{check.id}.warn", f"{check.id}.fail"):
            yield f"{'value':<10} {shown(one.value)}, by {one.source}\n"
    if check.set:
        yield f"{'sets':<10} {target(check)[1]} {value_of(check)} (--fix-script, --apply)\n"
    for name in ("when", "where"):
        for path, wanted in getattr(check, name).items():
            yield f"{'only where':<10} {path.lstrip('.')} is {_condition(wanted)}\n"
    yield from _over_the_fleet(check) if check.across == "fleet" else ()
    for key in ("status", "window_h", "burst", "source"):
        if key in check.row:
            yield f"{key:<10} {shown(check.row[key])}\n"
    yield f"declared   {check.source}\n"
    yield f"runbook    preflight explain {check.runbook}\n"


def _formula(argument: object) -> Iterator[str]:
    """What a bound is made of: the first sentence of its text."""
    if isinstance(argument, dict) and "bound" in argument:
        from preflight.expect.bounds import BOUNDS  # late: most checks name none

        text = " ".join((BOUNDS[argument["bound"]].__doc__ or "").split())
        yield from wrapped(re.split(r"(?<=[.]) ", text)[0], f"{'bound':<10} ")


def _in_words(step: str, check: Check) -> str:
    """A step with words in place of what only a result knows."""
    if check.across != "fleet":
        return step
    step = re.sub(r"\bNAME\b", "<the odd name>", step)
    return re.sub(r"\bHOSTS\b", "<the odd hosts>", step)


def _over_the_fleet(check: Check) -> Iterator[str]:
    """How the hosts of one command are compared."""
    declared = check.fail_unless | check.warn_unless
    alike = " and ".join(path.lstrip(".") for path in check.like)
    among = f", among those alike in {alike}" if alike else ""
    yield f"{'compared':<10} between the hosts of one command{among}\n"
    if "uniform" in declared:
        yield f"{'majority':<10} what more than half have is usual; without it all are named\n"
    if "uniform" in declared and ".name" not in check.like:
        yield f"{'instead':<10} --set {check.id}=VALUE holds every host against a value\n"
    if check.everywhere:
        yield f"{'everywhere':<10} what half of the hosts or more have and one has not is odd too\n"
    least = declared.get("outlier", {}).get("of", 1 if "median" in declared else 2)
    yield f"{'least':<10} {least} {'host' if least == 1 else 'values'}\n"


def _told(operator: str, argument: object) -> str:
    """unless at least 40; unless it is near; if it is yes."""
    if operator == "equals" and isinstance(argument, bool):
        return f"if it is {shown(not argument)}"
    plain = operator == "equals" and not isinstance(argument, dict)
    return f"unless {'it is ' if plain else ''}{_argument(operator, argument)}"


def _argument(operator: str, argument: object) -> str:
    if isinstance(argument, dict) and not OPERATORS[operator].many:
        if "fact" in argument:
            return _phrase(operator, f"the fact {argument['fact'].lstrip('.')}")
        share = f"{argument['fraction']:.0%} of " if "fraction" in argument else ""
        return _phrase(operator, f"{share}the bound {argument['bound']}")
    return OPERATORS[operator].phrase(argument)


def _phrase(operator: str, told: str) -> str:
    """At least the bound of that name."""
    if operator == "equals":
        return f"equal to {told}"
    return OPERATORS[operator].phrase(7).replace("7", told)  # no phrase has a word for it


def _condition(wanted: object) -> str:
    if isinstance(wanted, dict):
        ((operator, argument),) = wanted.items()
        return _argument(operator, argument)
    return shown(wanted)


def _runbook(book: runbooks.Runbook) -> Iterator[str]:
    yield f"{book.title}\n\n{book.body}"


def _short(words: str) -> str:
    return words if len(words) <= 80 else f"{words[:80]}..."


def _no_file(words: str) -> str:
    looks_like_one = re.fullmatch(r"[^\s*]*/\S*|\S+\.(?:log|txt|out|err)", words)
    return ", and there is no such file" if looks_like_one else ""


def _symptom(words: str, checks: list[Check]) -> Iterator[str]:
    # The name of a file is no symptom, whatever word it holds.
    found = [] if _no_file(words) else runbooks.search(words, 9)
    if not found:
        raise UsageError(
            f"nothing is known about {_short(words)!r}{_no_file(words)}",
            "preflight explain lists what is known; an Xid is explained by its number",
        )
    if len(found) > (0 if runbooks.vague(words) else 3 if len(words.split()) == 1 else 9):
        yield f"{words}: which of these?\n"
        for book in found:
            yield f"  preflight explain {book.id:<22} {book.title}\n"
        return
    yield from _runbook(found[0])
    used = [check.id for check in checks if check.runbook == found[0].id]
    if used:
        yield "\n"
        yield from wrapped(f"checks that point here: {', '.join(used)}")
    for book in found[1:3]:
        yield f"see also: preflight explain {book.id}   ({book.title})\n"
