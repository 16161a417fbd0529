"""What the text of an event decides, for checks whose row of the table leaves it to the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from preflight import datafiles, strict_yaml
from preflight.judge.kernel_log.nvlink_decode import decoded
from preflight.judge.rules import RULES
from preflight.model import Action, Check

_NOTHING = "nothing: this is how it should be"
#: Of a pattern what is no text: groups that look on, word boundaries, beginnings, any word.
_NO_TEXT = re.compile(r"\(\?[^)]*\)|\\b|\^|\\S\+ ?")


def as_told(check: Check, text: str) -> Check:
    """The check with what is to be done after a line with this text behind the code."""
    # The kernel log's own words for the severity of an SXid begin with a capital.
    by_text = (one for one in _by_text(check) if re.search(one["matches"], text, re.IGNORECASE))
    branch = next(by_text, None)
    if branch:
        fix = branch.get("fix") or [_NOTHING if branch["action"] == "none" else ""]
        return replace(check, fix=tuple(filter(None, fix)) or check.fix)
    code, table = check.row.get("code"), check.row.get("decode", "")
    found = table and isinstance(code, int) and decoded(table, code, text, again=False, alone=True)
    if not found:
        return check
    first = check.fix[:1] if found.action is not Action.NONE else ()
    return replace(check, fix=(f"{found.means} ({found.action.value})", *first))


def known_bad(check: Check) -> Iterator[str]:
    """Of a row of versions known to be bad: which, and who says so."""
    if bad := check.row.get("known_bad"):
        when = " with ".join(f"{name} {versions}" for name, versions in bad["when"].items())
        yield f"{'fails' if bad['status'] == 'FAIL' else 'warns':10} {when}\n"
        yield f"source     {bad['confidence']}: {bad['source']}\n"


def judged_by_rule(check: Check) -> Iterator[str]:
    """Of a check without thresholds: what it is held against."""
    if not check.rule or "status" in check.row or check.fail_unless or check.warn_unless:
        return
    if RULES[check.rule].worst == "WARN":
        yield f"{'warns':<10} unless {check.title[:1].lower()}{check.title[1:]}\n"
    else:
        yield f"{'judged':<10} by the rule {check.rule}: a result says what it was held against\n"


def branches(check: Check) -> Iterator[str]:
    """One line for each thing that the text may say."""
    for one in _by_text(check):
        steps = "; ".join(one.get("fix", ()))
        words = _readable(one["matches"]) or "another text"
        yield f"{words}: {one['status']}, {one['action']}{f': {steps}' if steps else ''}"
    if table := check.row.get("decode"):
        rows = strict_yaml.load(
            (datafiles.root() / "checks" / "data" / f"{table}.yaml").read_text(encoding="utf-8"),
            f"checks/data/{table}.yaml",
        )["rows"]
        yield from map(_bits, rows) if table == "xid74" else _units(check.row.get("code"), rows)


def _by_text(check: Check) -> list[dict[str, Any]]:
    return list(check.row.get("by_text", ()))


def _readable(pattern: str) -> str:
    plain = re.sub(r"(?<!\\)[()]", "", _NO_TEXT.sub("", pattern))
    words = re.sub(r"\\(.)", r"\1", plain.replace("-?", "-")).replace("|", " or ")
    return f"{words} ...)" if words.count("(") > words.count(")") else words


def _bits(row: dict[str, Any]) -> str:
    bits = ", ".join(map(str, row["bits"]))
    return (
        f"register {row['register']}, bits {bits}: {row['means']}; {row['status']}, {row['action']}"
    )


#: Key of a row -> what is to be done about the status words that stand there.
_DONE = {"ignore": "handled", "follow": "an Xid 154 tells", "reset": "needs a reset"}


def _units(code: Any, rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["xid"] != code:
            continue
        words = [
            f"{', '.join(map(_hex, row[key]))} {what}" for key, what in _DONE.items() if key in row
        ]
        words = [f"of any value {_DONE[row['always']]}"] if "always" in row else words
        yield f"{row['unit']}, status " + "; ".join(words)


def _hex(word: Any) -> str:
    return word if isinstance(word, str) else f"{word:#x}"
