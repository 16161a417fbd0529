"""One line of a kernel log in any of its forms: when, who wrote it, and what it says.

Forms: dmesg(1) with every time format and with `-x`, pstore, /dev/kmsg, journalctl(1) with the
output modes short* and json, rsyslog and syslogd files (RFC 3164 and RFC 5424), the fabric
manager's log, bare messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from preflight.probes.kernel_log.dates import MONTH, TIME, YEARLESS, ZONE, seconds_of

#: boot: seconds since boot; wall: seconds since 1970; yearless: seconds since 1970 if the year was
#: YEARLESS, because syslog writes none (RFC 3164, 4.1.2): only differences mean something;
#: relative: seconds since the line above.
Clock = Literal["boot", "wall", "yearless", "relative", "none"]

#: What is added from one New Year's Eve to the next day on.
YEAR_S = 366 * 86400.0


class Line(Struct, frozen=True):
    """`program` is "kernel" where nothing says otherwise; `known` is False for a bare line, `named`
    is True where a syslog tag names the program. `times`: how often it came, as rsyslog tells;
    `again`: how often syslogd says that the line above it came again. `zoned`: the time has a zone.
    """

    message: str
    program: str = "kernel"
    clock: Clock = "none"
    at_s: float | None = None
    known: bool = True
    named: bool = False
    times: int = 1
    again: int = 0
    zoned: bool = False


#: No message of the kernel is longer: LOG_LINE_MAX is 1024 less its prefix (kernel/printk).
_MESSAGE_MAX = 1024

# /dev/kmsg: Documentation/ABI/testing/dev-kmsg. The facility is the priority over eight.
_KMSG = re.compile(r"(?P<priority>\d{1,4}),\d+,(?P<us>\d{1,18}),[^;]*;(?P<rest>.*)")
_FACILITIES = r"kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|res\d|local\d"
# <6> of pstore and `dmesg -r`, or "kern  :warn  : " of `dmesg -x`.
_LEVEL = re.compile(r"<(?P<priority>\d{1,4})>|(?P<facility>" + _FACILITIES + r") *: ?[a-z]+ *: ")
# [  123.456], with the difference of `dmesg -d` and the caller id of CONFIG_PRINTK_CALLER.
_BOOT = re.compile(r"\[ *(?P<seconds>\d{1,12}\.\d{1,9})(?: *<[^>]*>)?\](?: ?\[ *[TC]\d+\])? ?")
# [Sun Feb 23 16:24:18 2025] of `dmesg -T`, with the difference of -d.
_CTIME = re.compile(
    rf"\[[A-Z][a-z]{{2}} {MONTH} +(?P<day>\d{{1,2}}) {TIME} (?P<year>\d{{4}})(?: *<[^>]*>)?\] ?"
)
# [Jan 6 10:00] of `dmesg -H`, and [  +0.000003] for the lines of the same minute.
_MINUTE = re.compile(rf"\[{MONTH} ?(?P<day>\d{{1,2}}) (?P<h>\d\d):(?P<m>\d\d)\] ?")
_LATER = re.compile(r"\[ *\+(?P<seconds>\d{1,9}\.\d{1,9})\] ?")
# [<    0.000003>] of `dmesg -t -d`.
_DIFFERENCE = re.compile(r"\[ *<[ \d.]+>\] ?")
# [Feb 25 2025 15:10:02] [ERROR] [tid 12727] of the fabric manager.
_FABRIC = re.compile(
    rf"\[{MONTH} +(?P<day>\d{{1,2}}) (?P<year>\d{{4}}) {TIME}\] (?:\[\w+\] )?(?:\[tid \d+\] )?"
)
# 2025-01-21T04:41:44,285060+00:00; a weekday before it and a zone's name after it in short-full.
_ISO = re.compile(
    r"(?P<open>\[)?(?:[A-Z][a-z]{2} )?(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ]"
    rf"{TIME}{ZONE}(?: [A-Z]{{3,5}}(?= ))?\]?:?(?: |(?=\[))"
)
# 1 TIME HOST APP PROCID MSGID SD MSG, its <PRI> taken off: RFC 5424, 6. A dash stands for nothing.
_RFC5424 = re.compile(
    rf"1 (?:-|(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)T{TIME}{ZONE}) \S{{1,255}} "
    r"(?P<program>\S{1,48}) \S{1,128} \S{1,32} (?:-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: \ufeff?|$)"
)
# 2025-01-01T00:00:00.123456789Z stdout F of the container runtime interface (Kubernetes).
_CRI = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] ")
_SYSLOG = re.compile(rf"{MONTH} +(?P<day>\d{{1,2}}) {TIME} ")
_UNIX = re.compile(r"(?P<seconds>\d{9,11}\.\d{1,9}) ")

_TAG = re.compile(r"\S+ (?:[a-z]+\d?\.[a-z]+ )?(?P<program>[^\s:\[]+)(?:\[\d+\])?: ")
# After a time since boot only these are taken for programs (`journalctl -o short-monotonic`):
# "mlx5_core 0000:9d:00.1: text" of a driver looks just like "host program: text".
_NAMED_TAG = re.compile(
    r"(?:\S+ )?(?P<program>kernel|systemd-networkd|nv-fabricmanager|dmesg|klogd|netconsole"
    r"|vmunix|kern)(?:\[\d+\])?: "
)
# In dmesg's view of a record that a program wrote to /dev/kmsg there is no host name.
_OWN_TAG = re.compile(r"(?P<program>[^\s:\[]+)(?:\[\d+\])?: ")
#: Programs that pass the kernel's messages on: klogd(8), `dmesg` piped into logger(1), netconsole,
#: and the tags of BSD's and Solaris' syslogd and of syslog-ng.
_RELAYS = frozenset({"dmesg", "klogd", "netconsole", "vmunix", "kern", "genunix", "kmsg"})
#: logger(1) passes on whatever it is given; with the kernel's own time it was the kernel's.
_LOGGERS = frozenset({"logger", "root"})
# rsyslog, msgReduction; its message begins with a blank. syslogd(8) writes a line without a tag.
_REPEATED = re.compile(r"message repeated (?P<times>\d{1,9}) times: \[ ?(?P<message>.*?)\]?$")
_AGAIN = re.compile(r"(?:\S+ )?(?:-{1,3} )?last message repeated (?P<times>\d{1,9}) times?\b")
# A message that a kernel log holds and hardly any other text, for logs without times.
_BARE = re.compile(r"(?:kernel: |Linux version \d|NVRM: |nvidia-nvswitch\d|mlx5_core \w{4}:)")


def read_line(text: str) -> Line:
    """Read one line, its end taken off. An unknown form is a bare message of the kernel."""
    if text.startswith("{"):
        return _json(text)
    if " std" in text[:44]:
        inner = _CRI.match(text)
        if inner and (line := _wrapped(text[inner.end() :])):
            return line
    kmsg = _KMSG.match(text)
    if kmsg:
        line = Line(kmsg["rest"][:_MESSAGE_MAX], clock="boot", at_s=int(kmsg["us"]) / 1e6)
        return _by_facility(line, int(kmsg["priority"]) // 8 == 0)
    level = _LEVEL.match(text)
    rest = text[level.end() :] if level else text
    line = _dated(rest) or _bare(rest)
    if level:
        known = replace(line, known=True)
        of_kernel = level["facility"] == "kern" if level["facility"] else int(level[1]) < 8
        return _by_facility(known, of_kernel)
    return line


def _dated(text: str) -> Line | None:
    for pattern, read in _FORMS:
        match = pattern.match(text)
        if match:
            return read(match, text[match.end() : match.end() + _MESSAGE_MAX])
    return None


def _bare(text: str) -> Line:
    tag = _NAMED_TAG.match(text)
    message = text[tag.end() :] if tag else text
    program = tag["program"] if tag else "kernel"
    return Line(message[:_MESSAGE_MAX], program, known=bool(_BARE.match(text)))


def _rfc5424(match: re.Match[str], rest: str) -> Line:
    at_s = seconds_of(match, int(match["year"])) if match["year"] else None
    named = match["program"] != "-"
    clock: Clock = "wall" if match["year"] else "none"
    if not named:
        return Line(_without_boot_time(rest), "kernel", clock, at_s)
    return replace(_of_program(match["program"], rest, clock, at_s), zoned=bool(match["zone"]))


def _minute(match: re.Match[str], rest: str) -> Line:
    return Line(rest, "kernel", "yearless", seconds_of(match, YEARLESS))


def _later(match: re.Match[str], rest: str) -> Line:
    return Line(rest, "kernel", "relative", float(match["seconds"]))


def _difference(match: re.Match[str], rest: str) -> Line:
    return Line(rest)


def _boot(match: re.Match[str], rest: str) -> Line:
    tag = _NAMED_TAG.match(rest)
    message, program = (rest[tag.end() :], tag["program"]) if tag else (rest, "kernel")
    program = "kernel" if program in _RELAYS else program
    return Line(message, program, "boot", float(match["seconds"]))


def _untagged(match: re.Match[str], rest: str) -> Line:
    return Line(rest, "kernel", "wall", seconds_of(match, int(match["year"])))


def _fabric(match: re.Match[str], rest: str) -> Line:
    return Line(rest, "nv-fabricmanager", "wall", seconds_of(match, int(match["year"])))


def _iso(match: re.Match[str], rest: str) -> Line:
    at_s = seconds_of(match, int(match["year"]))
    # Only dmesg writes a comma before the fraction, and dmesg names no host.
    if match["open"] or (match["fraction"] or "").startswith(","):
        line = Line(_without_boot_time(rest), "kernel", "wall", at_s)
    else:
        line = _tagged(rest, "wall", at_s)
    return replace(line, zoned=True) if match["zone"] else line


def _syslog(match: re.Match[str], rest: str) -> Line:
    return _tagged(rest, "yearless", seconds_of(match, YEARLESS))


def _unix(match: re.Match[str], rest: str) -> Line:
    return replace(_tagged(rest, "wall", float(match["seconds"])), zoned=True)


def _tagged(rest: str, clock: Clock, at_s: float | None) -> Line:
    """What follows the time in a journal or a syslog file: host, program, message."""
    tag = _TAG.match(rest) or _NAMED_TAG.match(rest)
    if tag:
        return _of_program(tag["program"], rest[tag.end() :], clock, at_s)
    if again := _AGAIN.match(rest):
        return Line("", "syslogd", clock, at_s, named=True, again=int(again["times"]))
    # A time alone is written by many: only a kernel's message makes it a kernel's line.
    return Line(rest, "kernel", clock, at_s, known=bool(_BARE.match(rest)))


def _of_program(program: str, said: str, clock: Clock, at_s: float | None) -> Line:
    """The line of a program that a syslog tag names; who only passes it on is not named."""
    message = _without_boot_time(said)
    if program in _RELAYS or (program in _LOGGERS and message is not said):
        program = "kernel"
    if not message.startswith("message repeated "):
        return Line(message, program, clock, at_s, named=True)
    folded = _REPEATED.match(message)
    times = int(folded["times"]) if folded else 1
    message = _without_boot_time(folded["message"]) if folded else message
    return Line(message, program, clock, at_s, named=True, times=times)


def _without_boot_time(message: str) -> str:
    """rsyslog and consoles keep the kernel's own time as well."""
    inner = _BOOT.match(message)
    return message[inner.end() :] if inner else message


#: Form of the time -> how the line goes on. The first that matches reads it.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Line]], ...] = (
    (_BOOT, _boot),
    (_CTIME, _untagged),
    (_LATER, _later),
    (_MINUTE, _minute),
    (_DIFFERENCE, _difference),
    (_RFC5424, _rfc5424),
    (_FABRIC, _fabric),
    (_ISO, _iso),
    (_SYSLOG, _syslog),
    (_UNIX, _unix),
)


def _by_facility(line: Line, of_kernel: bool) -> Line:
    """Programs may write into the kernel's buffer; the facility tells them (syslog(2))."""
    if of_kernel or line.named or line.program != "kernel":
        return line
    tag = _OWN_TAG.match(line.message)
    if not tag:
        return replace(line, program="user")
    message = line.message[tag.end() :]
    return replace(line, program=tag["program"], message=message)


def _json(text: str) -> Line:
    """A line of `journalctl -o json`; MESSAGE is a list of bytes where it is not plain text."""
    try:
        record: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Line(text[:_MESSAGE_MAX], known=False)
    if isinstance(record, dict) and isinstance(record.get("log"), str):  # Docker's json-file
        return _wrapped(record["log"].rstrip("\n")) or Line(text[:_MESSAGE_MAX], known=False)
    if not isinstance(record, dict) or "MESSAGE" not in record:
        return Line(text[:_MESSAGE_MAX], known=False)
    program = str(record.get("SYSLOG_IDENTIFIER", record.get("_COMM", "kernel")))
    program = "kernel" if record.get("_TRANSPORT") == "kernel" or program in _RELAYS else program
    us = str(record.get("__REALTIME_TIMESTAMP", ""))
    message = _text(record["MESSAGE"])[:_MESSAGE_MAX]
    if us.isascii() and us.isdigit() and len(us) < 18:
        return Line(message, program, "wall", int(us) / 1e6, named=True, zoned=True)
    return Line(message, program, named=True)


def _wrapped(text: str) -> Line | None:
    """The line of a log that a container's runtime wrapped, if it is one with a time of its own."""
    level = _LEVEL.match(text)
    return _dated(text[level.end() :] if level else text)


def _text(message: Any) -> str:
    if isinstance(message, list) and all(type(b) is int and 0 <= b < 256 for b in message):
        return bytes(message).decode("utf-8", "replace")
    return message if isinstance(message, str) else ""
