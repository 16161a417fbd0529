"""Which known tool wrote this text: a file or a paste -> Raws, cut where one tool's output ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from msgspec import Struct
from msgspec.structs import replace

from preflight import capture, software_signatures
from preflight.benchmark_signatures import BEHIND_WORDS
from preflight.enclosed import with_matrix
from preflight.errors import UnrecognisedError, UsageError
from preflight.model import Raw
from preflight.nccl_text import speaks, taken_out
from preflight.pasted import MAX_BYTES, text_of
from preflight.probes.bug_report import bug_report_of
from preflight.probes.nvidia_smi.reports import tables, text_reports, xml_reports
from preflight.probes.nvidia_smi.sentences import is_sentence
from preflight.probes.stack.env_text import script_line, without_others, without_values
from preflight.signatures import (
    BOUNDARIES,
    GOES_ON,
    INDENTED,
    INSTEAD,
    KNOWN_BUT_UNREAD,
    LOG_FORMS,
    PROMPTS,
    READS,
    SENTENCES,
    TOOLS,
)
from preflight.unpack import unpacked

_GZIP, _NESTED = b"\x1f\x8b", 3  # gzip within gzip

_BLANK = re.compile(r"[ \t\n]*\n")
_REST = re.compile(r"[ \t]*\n?")
_OBJECT = re.compile(r"\s*\{")
_REPORT = re.compile(r'"schema"\s*:\s*"preflight\.report/\d')
#: Tools of which one text holds one report: how many it holds, and what is typed for one.
_SINGLE: dict[str, tuple[Callable[[str], int], str]] = {
    "nvidia-smi": (xml_reports, "nvidia-smi -q -x"),
    "nvidia-smi-q": (text_reports, "nvidia-smi -q"),
    "nvidia-smi-table": (tables, "nvidia-smi"),
    **{
        probe: (partial(software_signatures.reports, probe), typed)
        for probe, (_, typed) in software_signatures.SINGLE.items()
    },
}
#: Texts with variables, and what leaves those out that are nobody's business here.
_ENV = "env"
_VARIABLES = {_ENV: without_others, "collect-env": without_values, "ds-report": without_values}
_XML, _XML_BEGIN, _XML_END = "nvidia-smi", "<nvidia_smi_log", "</nvidia_smi_log>"
_TEXT, _TABLE, _LOG = "nvidia-smi-q", "nvidia-smi-table", "kernel-log"
#: What `cat` makes of a report without a last line end and a log behind it.
_JOINED = re.compile(r"</nvidia_smi_log>[ \t]*[^ \t\n<]")
#: Above the lines of a boot before this one in nvidia-bug-report.log.
_EARLIER = r"journalctl -b -[1-9]\b[^\n]{0,200}\n\s{0,9}\Z"
_LIMITS = "ulimit"
_OF_A_LOG = (_LOG, "a system log with no line of the kernel")
_SENTENCE = "sentence"  # a row of _line, and the tool of a part until it is known whose it is


def _one_of(rows: Iterable[tuple[str, Iterable[str]]], blanks: str) -> re.Pattern[str]:
    """Matches a line and names the row; `added`: indentation or mail quotes around the paste."""
    groups = (f"(?P<{name}>{'|'.join(patterns)})" for name, patterns in rows)
    return re.compile(
        rf"(?P<added>(?:[ \t]*> ?){{0,9}}{blanks})(?:{'|'.join(groups)})", re.MULTILINE
    )


_PATTERNS = {**TOOLS, **KNOWN_BUT_UNREAD}
_TOOL_OF_GROUP = {f"n{i}": name for i, name in enumerate(_PATTERNS)}
_ROWS = [(f"n{i}", patterns) for i, patterns in enumerate(_PATTERNS.values())]


@cache
def _line() -> re.Pattern[str]:
    """Any line that tells something. Compiled late: it costs more than to read most reports."""
    rows = [_ROWS[0], ("boundary", (*BOUNDARIES, *PROMPTS)), (_SENTENCE, SENTENCES), *_ROWS[1:]]
    return _one_of(rows, r"[ \t]{0,64}(?![ \t])")


@cache
def _indented() -> re.Pattern[str]:
    rows = [(f"n{i}", INDENTED[name]) for i, name in enumerate(_PATTERNS) if name in INDENTED]
    return _one_of(rows, r"[ \t]{0,64}?")


class _Part(Struct):
    """Lines of one tool. `line`: lines of the text before it; `added`: what each begins with."""

    tool: str
    start: int
    line: int
    added: str
    end: int = 0


def recognise(data: bytes, source: str) -> list[Raw]:
    """One Raw (without a host) for each tool whose output is in `data`; a capture's Raws as stored.

    Raises UsageError that says what it is instead, and what is read. `source` is the name shown.
    Where one tool wrote several parts, the lines between them are left empty: lines count as in
    the source. Two reports of one tool are refused: whether of two hosts or of one at two times, a
    fault in one would be hidden by the other.
    """
    cut = False
    for _ in range(_NESTED):
        if capture.is_capture(data):
            return list(capture.Reader(data, source))
        if not data.startswith(_GZIP):
            break
        data, cause = unpacked(data, MAX_BYTES + 1)
        cut |= bool(cause)
    text = text_of(data, source)
    if _OBJECT.match(text) and _REPORT.search(text):
        raise UsageError(f"{source} is a report, not recorded output", f"preflight report {source}")
    joined = _JOINED.search(text)
    if joined:
        line = text.count("\n", 0, joined.start()) + 1
        what = f"{source}:{line}: two files were joined in the middle of a line"
        raise UsageError(what, "give each file by itself: --from A --from B")
    if _is_one_document(text):
        return [Raw("", _XML, stdout=text, source=source, truncated=cut)]
    from preflight.relayed import plain  # late: most reports are one document

    nccl, text = taken_out(text, source)
    text = plain(text, source)
    parts = list(_parts(text))
    nccl = [raw for raw in nccl if speaks(str(raw.stdout)) or not parts]
    if any(part.tool == _LOG for part in parts):
        for part in parts:  # a program's lines in a log that is the kernel's as well
            part.tool = _LOG if part.tool in _OF_A_LOG else part.tool
    mine = {tool: _parts_of(tool, parts, text) for tool in TOOLS}
    before = _taken_out(mine[_LOG], _of_earlier_boot, text)
    hard = _taken_out(mine[_LIMITS], software_signatures.is_hard, text)
    raws = [_raw(tool, text, mine[tool], source) for tool in TOOLS if mine[tool]]
    raws += _behind_words(text, source, raws)
    raws = list(map(_without_secrets, _without_scripts([*raws, *nccl], text, source)))
    raws = with_matrix(raws)
    if before:
        raws.append(_earlier_boots(_raw(_LOG, text, before, source)))
    if hard:
        raws.append(_raw(f"{_LIMITS}-hard", text, hard, source))
    if not raws:
        raise _unrecognised(source, parts, text)
    _refuse_several(text, raws, source)
    report = bug_report_of(text, source)
    last = parts[-1].tool if parts and parts[-1].end == len(text) else ""
    # A bug report tells itself that it is cut; of other inputs nothing else would.
    ends = {raw.probe for raw in raws if not report or raw.probe.partition("#")[0] == last}
    told = [replace(raw, truncated=cut and raw.probe in ends) for raw in raws]
    return [*told, report] if report else told


def _behind_words(text: str, source: str, raws: list[Raw]) -> list[Raw]:
    """A table of nccl-tests or perftest whose lines nobody took for it: what stands before them is
    no label that is known. It is not read, but its reader says so."""
    told = {raw.probe for raw in raws}
    return [
        Raw("", probe, stdout=text[found.start() :], source=source,
            line_offset=text.count("\n", 0, found.start()))
        for probe, pattern in BEHIND_WORDS.items()
        if probe not in told and (found := re.search(pattern, text, re.MULTILINE))
    ]  # fmt: skip


def _without_secrets(raw: Raw) -> Raw:
    """Before anything stores it."""
    change = _VARIABLES.get(raw.probe)
    return replace(raw, stdout=change(str(raw.stdout))) if change else raw


def _without_scripts(raws: list[Raw], text: str, source: str) -> list[Raw]:
    """Without what sets variables and is not `env`: what it would set is not known. UsageError
    where nothing else is there."""
    told = [raw for raw in raws if raw.probe == _ENV]
    lines = [script_line(str(raw.stdout), raw.line_offset) for raw in told]
    line = 1 if text.startswith("#!") and told else max(lines, default=0)
    if line and len(raws) == 1:
        what = f"{source}:{line}: this is of a script or notes, not of `env`"
        raise UsageError(what, "record what it sets: bash -c '. ./SCRIPT; env' > env.txt, or `env` "
                         "in the job before its start")  # fmt: skip
    return [raw for raw in raws if raw.probe != _ENV or not line]


def _taken_out(
    parts: list[_Part], is_another: Callable[[str, str], bool], text: str
) -> list[_Part]:
    """Those parts that, by what stands above them and in them, are of something else."""
    found = [
        one for one in parts
        if is_another(text[max(0, one.start - 300) : one.start], text[one.start : one.end])
    ]  # fmt: skip
    parts[:] = [one for one in parts if one not in found]
    return found


def _of_earlier_boot(above: str, _text: str) -> bool:
    return re.search(_EARLIER, above) is not None


def _earlier_boots(raw: Raw) -> Raw:
    """What nvidia-bug-report.sh shows of boots before this one, with the boot that ended them."""
    return replace(raw, probe=f"{_LOG}#2", stdout=f"{str(raw.stdout).rstrip()}\n-- Reboot --\n")


def _is_one_document(text: str) -> bool:
    """Whether the text is nvidia-smi's XML and nothing else."""
    begins = text.startswith(("<?xml", "<!DOCTYPE nvidia_smi_log", _XML_BEGIN))
    return begins and text.count(_XML_BEGIN) == 1 and text.rstrip().endswith(_XML_END)


def _refuse_several(text: str, raws: list[Raw], source: str) -> None:
    for raw in raws:
        if raw.probe not in _SINGLE:
            continue
        count, tool = _SINGLE[raw.probe]
        number = count(text if raw.probe == _XML else str(raw.stdout))
        if number > 1:
            hint = "give each its own file, --from NAME=FILE; of one host's polls (-l) keep one"
            raise UsageError(f"{source} holds {number} reports of {tool}", hint)


def _unrecognised(source: str, parts: list[_Part], text: str) -> UnrecognisedError:
    if parts:
        tool = parts[0].tool
        unread = "not read in this form" if tool in INSTEAD else "not read yet by this version"
        return UnrecognisedError(f"{source} looks like {tool}: {unread}", INSTEAD.get(tool, READS))
    if "NVRM: " in text or " kernel: " in text:
        what = f"{source} reads like a kernel log, but its lines have no form that is known"
        return UnrecognisedError(what, LOG_FORMS)
    return UnrecognisedError(f"{source}: not recognised as the output of a known tool", READS)


def begin_of_log(text: str) -> int | None:
    """How many blank lines stand before the log in a text that is a system's log and nothing else;
    None where there is anything else."""
    parts = list(_parts(text))
    if not parts or any(part.added or part.tool not in _OF_A_LOG for part in parts):
        return None
    ends = [*(part.start for part in parts[1:]), len(text)]
    if any(text[part.end : end].strip() for part, end in zip(parts, ends, strict=True)):
        return None
    return parts[0].line


def _lines(text: str) -> Iterator[tuple[int, int, int]]:
    """Begin, end and number (from 0) of each line that is not blank."""
    start = number = 0
    while start < len(text):
        if text[start] in " \t\n" and (blank := _BLANK.match(text, start)):
            number += text.count("\n", start, blank.end())
            start = blank.end()
            continue
        end = text.find("\n", start) + 1 or len(text)
        yield start, end, number
        start, number = end, number + 1


def _parts(text: str) -> Iterator[_Part]:
    """Who wrote which lines. One without a signature belongs to the tool above it."""
    here: _Part | None = None
    left: _Part | None = None  # whom the tool of `here` interrupted
    known = 0  # how far a part reaches whose end was seen at its beginning
    for start, end, number in _lines(text):
        if start < known:
            continue
        if here and not _has(here.added, text, start, end):
            here.end = start
            yield here
            here = None
        if here and _goes_on(here, text, start):
            continue
        found = _line().match(text, start)
        if found is None and text[start] in " \t>":
            found = _indented().match(text, start)
        bounds = found is not None and found.lastgroup == "boundary"
        fresh = _fresh(found, here, number) or _resumed(left, text, start, number)
        if not (fresh or bounds):
            continue
        if here:
            here.end = start
            yield here
        left, here = None if bounds else here, fresh
        if fresh and found and (whole := _whole(fresh, found, text, end)):
            fresh.end = known = whole
            yield fresh
            here = None
    if here:
        here.end = len(text)
        yield here


def _has(added: str, text: str, start: int, end: int) -> bool:
    """Whether the line has what stands before the others; a quoted blank line ends with it."""
    return text.startswith(added, start) or text[start:end].rstrip() == added.rstrip()


def _fresh(found: re.Match[str] | None, here: _Part | None, number: int) -> _Part | None:
    """What begins with this line; None where nothing does, or where it goes on."""
    group = found.lastgroup if found else None
    tool = _SENTENCE if group == _SENTENCE else _TOOL_OF_GROUP.get(group or "")
    if found is None or tool is None:
        return None
    of_gpu = tool == _SENTENCE and is_sentence(found.string[found.end("added") : found.end()])
    own = {tool, *((_XML, _TEXT) if tool == _SENTENCE else ()), *((_TABLE,) if of_gpu else ())}
    again = tool == _XML and found.string.startswith("<?xml", found.end("added"))
    if here and here.tool in own and not again:
        return None
    return _Part(tool, found.start(), number, found["added"])


def _resumed(left: _Part | None, text: str, start: int, number: int) -> _Part | None:
    if left and _goes_on(left, text, start):
        return _Part(left.tool, start, number, left.added)
    return None


@cache
def _surely(tool: str) -> re.Pattern[str] | None:
    return re.compile(GOES_ON[tool]) if tool in GOES_ON else None


def _goes_on(part: _Part, text: str, start: int) -> bool:
    """Whether this line is surely of that tool, whatever else it looks like."""
    surely = _surely(part.tool)
    begins = text.startswith(part.added, start)
    return bool(surely and begins and surely.match(text, start + len(part.added)))


def _whole(part: _Part, found: re.Match[str], text: str, end: int) -> int:
    """Where the part ends, if its first line tells: a sentence, an XML document; else 0."""
    if part.tool == _SENTENCE:
        return end
    if part.tool != _XML:
        return 0
    opened = text.find(_XML_BEGIN, part.start) + 1
    following = text.find(_XML_BEGIN, opened) if opened else -1
    closed = text.find(_XML_END, part.start, following if following > 0 else len(text))
    if closed < 0:
        return 0
    rest = _REST.match(text, closed + len(_XML_END))  # not the next document in the same line
    return rest.end() if rest else 0


def _parts_of(tool: str, parts: list[_Part], text: str) -> list[_Part]:
    """What one tool wrote; of several XML documents the last that is whole, or the last.

    A sentence goes with the fullest report beside it: it may tell of a GPU that the report lacks,
    and only the best answer is judged; what the driver says for itself is better than a table.
    """
    mine = [part for part in parts if part.tool == tool]
    whole = [part for part in mine if text.find(_XML_END, part.start, part.end) >= 0]
    mine = (whole or mine)[-1:] if tool == _XML else mine
    tools = {part.tool for part in parts}
    full = _XML if _XML in tools else _TEXT
    of_gpus = _TABLE if _TABLE in tools and not tools & {_XML, _TEXT} else full
    for part in parts if tool in (full, of_gpus) else ():
        of_gpu = part.tool == _SENTENCE and is_sentence(text[part.start : part.end])
        if part.tool == _SENTENCE and tool == (of_gpus if of_gpu else full):
            mine.append(part)
    return sorted(mine, key=lambda part: part.start)


def _raw(tool: str, text: str, parts: list[_Part], source: str) -> Raw:
    """The parts as one text, with empty lines for those between them."""
    pieces, line = [], parts[0].line
    for part in parts:
        piece = _without(part.added, text[part.start : part.end])
        pieces += ["\n" * (part.line - line), piece]
        line = part.line + piece.count("\n")
    stdout = pieces[1] if len(pieces) == 2 else "".join(pieces)
    return Raw("", tool, stdout=stdout, source=source, line_offset=parts[0].line)


def _without(added: str, lines: str) -> str:
    """The lines without what stands before each of them."""
    if not added:
        return lines
    blank = rf"{re.escape(added.rstrip())}[ \t]*$|[ \t]+$"
    return re.sub(rf"^(?:{re.escape(added)}|{blank})", "", lines, flags=re.MULTILINE)
