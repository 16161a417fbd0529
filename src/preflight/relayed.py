"""A log as it was written, from what pipes, collectors and other output modes made of it.

Each line stays where it is: what a line begins with is taken off, and of a record of many lines the
message stands in the line where it stood, the others are left empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from preflight.errors import UsageError

#: A form is looked for in so much of the text: it shows in the first lines or not at all.
_HEAD = 1 << 15

_CLOCK = r"\d\d:\d\d:\d\d"
_SYSLOG = rf"(?:[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}|\d{{4}}-\d\d-\d\d[T ]{_CLOCK}\S{{0,16}})"
#: What only the kernel's log begins with.
_KERNEL = (
    rf"(?:<\d{{1,3}}>)?(?:\[ *\d{{1,9}}\.\d{{6}}\]|\[[A-Z]\w\w [A-Z]\w\w [ \d]\d {_CLOCK} \d{{4}}\]"
    rf"|{_SYSLOG} \S{{1,255}} kernel: |NVRM: )"
)
_LINE = rf"(?:{_KERNEL}|(?:<\d{{1,3}}>)?{_SYSLOG} )"

# grep -n, and grep in several files; a dash before the lines around a match (-C).
_GREP = re.compile(
    rf"^(?=[\w./])(?:[\w./@+-]{{1,200}}?[:-]\d{{1,9}}[:-]|\d{{1,9}}[:-]|[\w./@+-]{{1,200}}?[:-])"
    rf"(?={_LINE})",
    re.MULTILINE,
)
# pdsh, clush, srun -l
_HOST = re.compile(rf"^(?!kernel: )(?P<host>[\w.-]{{1,255}}): (?={_KERNEL})", re.MULTILINE)
# 2025-01-01T00:00:00.123456789Z of `kubectl logs --timestamps` and `docker logs -t`; after it, in
# the files of the container runtime interface, the stream and whether the line is a full one.
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}(?:Z|[+-]\d\d:\d\d)"
_STAMPED = re.compile(rf"^{_STAMP} (?={_LINE}|\{{\")", re.MULTILINE)
_CRI = re.compile(rf"^(?P<time>{_STAMP} )(?P<stream>std(?:out|err)) (?P<end>[FP])(?: |$)", re.M)
_OWN_TIME = re.compile(rf"{_LINE}|\{{|\d{{1,4}},\d+,\d+,")

#: LC_TIME's short names of months that are not English, each the same month in all its languages:
#: German, Dutch, Swedish, Danish; French; Spanish, Italian, Portuguese; Polish, Czech; Russian;
#: Turkish. Chinese, Japanese and Korean write a number.
_MONTHS = {
    "Jan": "janv ene gen sty led янв oca", "Feb": "févr fév fev lut úno фев şub",
    "Mar": "mär märz mrt mars mrz marzo bře мар", "Apr": "avr avril abr kwi dub апр nis",
    "May": "mai mei maj mag kvě мая май", "Jun": "juni juin giu cze čen июн haz",
    "Jul": "juli juil lug lip čec июл tem", "Aug": "août ago sie srp авг ağu",
    "Sep": "sept set wrz zář сен eyl", "Oct": "okt out ott paź říj окт eki",
    "Nov": "lis ноя kas", "Dec": "dez déc dic des gru pro дек ara",
}  # fmt: skip
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ENGLISH = {word: month for month, words in _MONTHS.items() for word in words.split()}
_ENGLISH.update(
    (f"{number}{word}", month) for word in "月월" for number, month in enumerate(_MONTHS, 1)
)
_ENGLISH.update((month.lower(), month) for month in _MONTHS)
_DATE = re.compile(
    r"^(?P<before>(?:<\d{1,3}>)?(?:\[\w{1,4}\.?,? )?) ?(?P<month>[^\W\d_]{3,5}\.?|\d{1,2}[月월])"
    rf" +(?P<day>\d{{1,2}}) (?P<clock>{_CLOCK})(?P<year> \d{{4}}(?=[\] ]))?",
    re.MULTILINE,
)


class _Records(Struct, frozen=True):
    """A form with a record in many lines. `field` names key and value, `ends` the line after one
    or, with a time, before one; `message` is the key of the text."""

    sign: re.Pattern[str]
    field: re.Pattern[str]
    ends: re.Pattern[str]
    message: str
    write: Callable[[dict[str, str]], str]


def plain(text: str, source: str) -> str:
    """The text without what was put around its lines; UsageError for lines of several hosts."""
    head = text[:_HEAD]
    if _HOST.search(head):
        text = _of_one_host(text, source)
    elif _GREP.search(head):
        text = _GREP.sub("", text)
    if _CRI.search(text, 0, _HEAD):
        text = "\n".join(_unwrapped(text))
    elif _STAMPED.search(text, 0, _HEAD):
        text = _STAMPED.sub("", text)
    for form in _FORMS:
        if form.sign.search(text, 0, _HEAD):
            text = "\n".join(_lines_of(form, text))
    if any(_is_foreign(date) for date in _DATE.finditer(text, 0, _HEAD)):
        text = _DATE.sub(_in_english, text)
    return text


def _of_one_host(text: str, source: str) -> str:
    hosts = list(dict.fromkeys(match["host"] for match in _HOST.finditer(text)))
    if len(hosts) > 1:
        more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
        what = f"{source} holds the logs of several hosts: {', '.join(hosts[:3])}{more}"
        hint = "a file for each host, such as `dshbak -d DIR -f` makes of pdsh's output: --from DIR"
        raise UsageError(what, hint)
    return _HOST.sub("", text)


def _unwrapped(text: str) -> Iterator[str]:
    """The lines that a container runtime wrapped, one that it cut in pieces where it began."""
    open_: dict[str, list[str]] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = _CRI.match(line)
        if not found:
            continue
        rest = line[found.end() :]
        pieces = open_.setdefault(found["stream"], [])
        lines[number] = ""
        if not pieces:
            begins = rest if _OWN_TIME.match(rest) else found["time"] + rest
            pieces += [str(number), begins]
        else:
            pieces.append(rest)
        if found["end"] == "F":
            lines[int(pieces[0])] = "".join(pieces[1:])
            pieces.clear()
    for pieces in filter(None, open_.values()):
        lines[int(pieces[0])] = "".join(pieces[1:])
    yield from lines


def _lines_of(form: _Records, text: str) -> Iterator[str]:
    lines = text.split("\n")
    fields: dict[str, str] = {}
    at = -1
    for number, line in enumerate([*lines, ""]):
        field, ends = form.field.match(line), form.ends.match(line)
        if field:
            fields[field["key"]] = field["value"]
            at = number if field["key"] == form.message else at
        if (ends or number == len(lines)) and at >= 0:
            lines[at], fields, at = form.write(fields), {}, -1
        if ends:
            fields = {**ends.groupdict(""), **(fields if at >= 0 else {})}
        if (field or ends) and at != number and number < len(lines):
            lines[number] = ""
    yield from lines


def _of_dmesg(fields: dict[str, str]) -> str:
    """As `dmesg -r` writes it."""
    priority, time = fields.get("pri", ""), fields.get("time", "")
    level = f"<{priority}>" if priority.isdigit() else ""
    return f"{level}[{float(time):12.6f}] {_said(fields['msg'])}" if time else _said(fields["msg"])


def _of_journal(fields: dict[str, str]) -> str:
    """As `journalctl -o short-iso` or `-o json` writes it."""
    told = {key: _said(value) for key, value in fields.items()}
    if told.get("day"):
        program = re.sub(r"[\s:\[]", "_", _program(told))
        zone = "Z" if told.get("zone") == "UTC" else ""
        at = f"{told['day']}T{told['clock']}{zone}"
        return f"{at} {told.get('_HOSTNAME') or 'localhost'} {program}: {told['MESSAGE']}"
    kept = ("__REALTIME_TIMESTAMP", "_BOOT_ID", "_TRANSPORT", "SYSLOG_IDENTIFIER", "_COMM")
    record = {key: told[key] for key in (*kept, "MESSAGE") if key in told}
    return json.dumps(record, ensure_ascii=False)


def _program(told: dict[str, str]) -> str:
    if told.get("_TRANSPORT") == "kernel":
        return "kernel"
    return told.get("SYSLOG_IDENTIFIER") or told.get("_COMM") or "unknown"


def _said(value: str) -> str:
    """A value in one line, without JSON's quotes."""
    if value.startswith('"'):
        try:
            value = str(json.loads(value, strict=False))
        except ValueError:
            value = value.strip('"')
    return value.replace("\n", " ")


_FORMS = (
    _Records(  # dmesg -J
        re.compile(r"^\s{0,8}\"dmesg\": ?\[", re.MULTILINE),
        re.compile(
            r"\s{0,16}\"(?P<key>\w{1,16})\": ?"
            r"(?P<value>\"(?:[^\"\\]|\\.)*\"|\d{1,12}(?:\.\d{1,9})?),?$"
        ),
        re.compile(r"\s{0,16}(?:\},?|\"dmesg\": ?\[)\s*$"), "msg", _of_dmesg,
    ),
    _Records(  # journalctl -o export
        re.compile(r"^__CURSOR=", re.MULTILINE),
        re.compile(r"(?P<key>[A-Z_][A-Z0-9_]{0,63})=(?P<value>.*)"),
        re.compile(r"\s*$"), "MESSAGE", _of_journal,
    ),
    _Records(  # journalctl -o verbose
        re.compile(rf"^(?:\w{{2,5}} )?\d{{4}}-\d\d-\d\d {_CLOCK}\S* \S+ \[s=", re.MULTILINE),
        re.compile(r" {4}(?P<key>[A-Z_][A-Z0-9_]{0,63})=(?P<value>.*)"),
        re.compile(
            rf"(?:\w{{2,5}} )?(?P<day>\d{{4}}-\d\d-\d\d) (?P<clock>{_CLOCK}\S*) (?P<zone>\S+) \["
        ),
        "MESSAGE", _of_journal,
    ),
    _Records(  # journalctl -o json-pretty
        re.compile(r"^\s{0,8}\"__CURSOR\" ?: ?\"", re.MULTILINE),
        re.compile(r"\s{0,8}\"(?P<key>\w{1,64})\" ?: ?(?P<value>\"(?:[^\"\\]|\\.)*\"),?$"),
        re.compile(r"\s{0,8}\},?\s*$"), "MESSAGE", _of_journal,
    ),
)  # fmt: skip


def _month(date: re.Match[str]) -> str:
    return _ENGLISH.get(date["month"].lower().rstrip("."), "")


def _is_foreign(date: re.Match[str]) -> bool:
    day = date["before"].partition("[")[2].rstrip(",. ")
    return bool(_month(date)) and (
        date["month"] != _month(date) or (day != "" and day not in _DAYS)
    )


def _in_english(date: re.Match[str]) -> str:
    """The date as an English locale writes it."""
    if not _is_foreign(date):
        return date[0]
    level, bracket, _ = date["before"].partition("[")
    told = f"{_month(date)} {date['day']:>2} {date['clock']}{date['year'] or ''}"
    return f"{level}{bracket}{_weekday(date)} {told}" if bracket else f"{level}{told}"


def _weekday(date: re.Match[str]) -> str:
    month = [*_MONTHS].index(_month(date)) + 1
    try:
        return _DAYS[datetime(int(date["year"] or 1), month, int(date["day"])).weekday()]
    except ValueError:
        return _DAYS[0]
