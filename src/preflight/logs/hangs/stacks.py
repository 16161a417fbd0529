"""Stacks that py-spy, faulthandler or torch.distributed's debug server wrote: text or JSON."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.hangs import StackFile, StackProcess
from preflight.logs.hangs.fault_handler import FaultText
from preflight.logs.hangs.py_spy import SpyText, is_json, of_json
from preflight.logs.hangs.texts import Text

_LEAST_LINE, _MOST_LINE = 4, 4096
#: Frames of all stacks of a file together, and processes in it.
_MOST_FRAMES, _MOST_PROCESSES = 2_000_000, 20_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x00")

_HEADS = (
    r"Process \d+: |Python v\d|Parent Process \d|Thread (?:0x)?[0-9A-Fa-f]+ \("
    r"|Current thread 0x|Timeout \(\d|Fatal Python error: "
)
#: A line of a stack, or one that stands between stacks.
_LINE = re.compile(
    rf"(?:{_HEADS}|Thread 0x|  File \"|    \S|  \.\.\.$|={{3}} Rank \d|-{{20,}}$|\s{{8,}}\S|$)"
)
_BEGINS = re.compile(rf"(?:{_HEADS}|Thread 0x[0-9a-f]+ (?:\[|\()|={{3}} Rank \d+: )")
_FIRST = re.compile(
    r"(?:Current thread|Thread) 0x[0-9a-f]+ (?:\[.*\] )?\(most recent call first\):\n  File \""
)
#: What launchers write before a line: torch, srun --label, pdsh.
_LABEL = re.compile(
    r"(?:\[(?:rank|default)(?P<rank>\d{1,7})\]:? ?|(?P<task>\d{1,6}): "
    rf"|(?P<host>[A-Za-z][\w.-]{{0,80}}): )(?={_LINE.pattern})"
)
#: Before the stacks of a rank: by torch's debug server, `tail -n +1 rank*.txt`, a shell's echo.
_SECTION = re.compile(
    r"[=#*>\[-].{0,120}?\brank[ =:_#-]{0,3}(\d{1,7})(?!\d)(?:: (http\S{0,200}))?",
    re.IGNORECASE,
)
#: py-spy that could not look says so, and nothing else.
_DENIED = re.compile(r"\s*(?:Permission Denied: Try running|Error: Failed to (?:\w+ )+)")
_RANK = re.compile(r"rank[-_. ]?(\d{1,7})(?!\d)", re.IGNORECASE)
_TIME = re.compile(r"(?<!\d)(20\d{6})[-_T.]?([0-2]\d[0-5]\d[0-5]\d)(?!\d)")


_RULES = frozenset("=#*>[-")


def sniff(head: bytes, name: str) -> bool:
    """Stacks from its first lines on: a log in which stacks stand is a log."""
    if is_json(head):
        return True
    if b"\0" in head[:4096]:
        return False
    lines = [
        one for one in _texts(head.decode("utf-8", "replace").split("\n")[:400]) if one.strip()
    ]
    if not lines:
        return False
    if _DENIED.match(lines[0]):
        return True
    plain = [_unlabelled(one) for one in lines]
    first = next((at for at, one in enumerate(plain) if _BEGINS.match(one)), None)
    if first is None:
        return False
    if _FIRST.match("\n".join(plain[:2])):  # what else is written into its file may be longer
        return True
    fits = sum(_LINE.match(one) is not None for one in plain[first:])
    # Before the first a few words of the shell that asked, or ranks that gave no answer.
    before = (
        (first <= 10 and "Process " in plain[first]) or plain[0].startswith("PARTIAL DATA: ")
        or (first == 1 and _SECTION.match(plain[0]) is not None)
    )  # fmt: skip
    return (first == 0 or before) and fits >= 0.7 * (len(plain) - first)


def read(path: Path, tell: Callable[[str], None]) -> StackFile:
    """ParseError where there is no stack in it, with what py-spy said instead."""
    text, head = Text(path), Text(path).head(1 << 16)
    found = StackFile(str(path), "py-spy", rank=rank_of(path.name), time_s=time_of(path.name))
    if is_json(head):
        found.processes = of_json(text.whole(), str(path))
    else:
        _take(text.lines(), found, with_spy=True)
    found.truncated = found.truncated or bool(text.cut)
    if not any(thread.frames for one in found.processes for thread in one.threads):
        raise ParseError(_why_none(head))
    return found


def _why_none(head: bytes) -> str:
    text = head[:4096].decode("utf-8", "replace")
    told = next((one.strip() for one in text.splitlines() if one.strip()), "")
    if _DENIED.match(text):
        return f"py-spy could not look: {told[:160]}; as root, or with SYS_PTRACE in a container"
    return "it holds no stack: it is cut before the first, or of another form"


def rank_of(name: str) -> int | None:
    """By a word for it in the file's name; another number may be a PID, a host or a time."""
    found = _RANK.findall(name)
    return int(found[-1]) if found else None


def time_of(name: str) -> float | None:
    """Unix seconds by a date and time in the file's name."""
    found = _TIME.search(name)
    try:
        return (
            time.mktime(time.strptime("".join(found.groups()), "%Y%m%d%H%M%S")) if found else None
        )
    except (ValueError, OverflowError):
        return None


def stacks_in(lines: Iterator[str], source: str) -> tuple[StackProcess, ...]:
    """Those of faulthandler among other lines, as a log has them."""
    found = StackFile(source, "faulthandler")
    _take(lines, found, with_spy=False)
    return found.processes


class _Texts:
    """What one label of a text, or all of it, has: parsers that keep where they are."""

    def __init__(self, label: re.Match[str] | None, source: str) -> None:
        self.rank = int(label["rank"]) if label and label["rank"] else None
        self.host = (label["host"] or "") if label else ""
        self.task = (label["task"] or "") if label else ""
        self.spy, self.fault = SpyText(source), FaultText(source)

    def begin(self, rank: int, host: str) -> None:
        """A section of another rank."""
        self.rank, self.host = rank, host
        self.spy.close()
        self.fault.close()

    def take(self, number: int, line: str, *, with_spy: bool) -> bool:
        if with_spy and self.spy.take(number, line, self.rank, self.host):
            self.fault.close()
            return True
        if self.fault.take(number, line, self.rank, self.host or self.task):
            self.spy.close()
            return True
        return False


def _take(lines: Iterator[str], found: StackFile, *, with_spy: bool) -> None:
    texts: dict[str, _Texts] = {}
    for number, line in enumerate(_texts(lines), 1):
        if len(line) < _LEAST_LINE:
            found.unread += bool(line)
            continue
        label = _label(line)
        key = label[0] if label else ""
        if key not in texts:
            if len(texts) >= _MOST_PROCESSES:
                found.truncated = True
                break
            texts[key] = _Texts(label, found.source)
        one, told = texts[key], line[label.end() :] if label else line
        if with_spy and told[:1] in _RULES and (section := _SECTION.match(told)):
            one.begin(int(section[1]), (section[2] or "").partition("/handler")[0])
        elif not one.take(number, told, with_spy=with_spy) and told.strip():
            found.unread += 1
        if number % 4096 == 0 and _too_many(texts):
            found.truncated = True
            break
    spied = [process for one in texts.values() for process in one.spy.done()]
    others = [process for one in texts.values() for process in one.fault.done()]
    if not spied and others:
        found.form = "faulthandler"
    found.processes = tuple(sorted([*spied, *others], key=lambda one: one.line))


def _too_many(texts: dict[str, _Texts]) -> bool:
    frames = sum(one.spy.frames + one.fault.frames for one in texts.values())
    count = sum(one.spy.count + one.fault.count for one in texts.values())
    return frames > _MOST_FRAMES or count > _MOST_PROCESSES


def _texts(lines: Iterator[str] | list[str]) -> Iterator[str]:
    """Without colours; long ones cut."""
    for line in lines:
        if "\x1b" in line or "\r" in line or "\0" in line:
            yield _ANSI.sub("", line[:_MOST_LINE]).rstrip()
        else:
            yield line[:_MOST_LINE].rstrip()


def _unlabelled(line: str) -> str:
    label = _label(line)
    return line[label.end() :] if label else line


def _label(line: str) -> re.Match[str] | None:
    """What a launcher wrote before a line of a stack."""
    if line[0] == " " or (":" not in line and line[0] != "["):
        return None
    return _LABEL.match(line)
