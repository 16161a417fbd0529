"""The report as one JSON document (report.schema.json describes it), and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.model import Report

SCHEMA = "preflight.report/1"
_NO_REPORT = "give a file that `preflight ... --save report.json` wrote"

# JSON escapes only the C0 controls; these too change what a terminal or an editor shows.
_UNSAFE = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def render(report: Report, *, verbose: int, quiet: bool, facts: bool) -> Iterator[str]:
    """The whole document, its schema first, in pieces: a thousand hosts are never one string."""
    document = msgspec.to_builtins(replace(report, hosts=()))
    first = {key: document.pop(key) for key in ("schema", "preflight")}
    # A quotation mark inside a text is escaped: the first of these is the key itself.
    before, key, after = encode({**first, **document}, indent=1).partition('"hosts": []')
    if not report.hosts:
        yield f"{before}{key}{after}\n"
        return
    yield f'{before}"hosts": ['
    without_facts = len(report.hosts) > 1 and not facts
    for number, host in enumerate(report.hosts):
        shown = replace(host, facts=None) if without_facts and host.facts else host
        text = encode(shown, indent=1).replace("\n", "\n  ")
        yield f"{',' if number else ''}\n  {text}"
    yield f"\n ]{after}\n"


def encode(value: Any, *, indent: int = -1) -> str:
    """JSON without bare characters that a terminal obeys; NaN and infinity become null."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair: a byte that was no UTF-8
        encoded = msgspec.json.encode(_whole(value))
    if indent >= 0:
        encoded = msgspec.json.format(encoded, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", encoded.decode())


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, (list, tuple)) else value


def read(text: str | bytes, name: str = "the input") -> Report:
    """A report from its JSON; raises UsageError on anything else, and says what it is."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
        if schema != SCHEMA:
            what = f"its schema is {schema!r}" if schema else "it names no schema"
            raise UsageError(f"{name} is no preflight report: {what}, not {SCHEMA!r}", _NO_REPORT)
        return msgspec.json.decode(data, type=Report)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name} is no preflight report: {error}", _NO_REPORT) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        cut = "truncated" in str(error)
        what = (
            "ends in the middle: it was cut off" if cut and data.strip() else f"is no JSON: {error}"
        )
        raise UsageError(f"{name} {what}", _NO_REPORT) from error


class _Head(msgspec.Struct):
    schema: str = ""
