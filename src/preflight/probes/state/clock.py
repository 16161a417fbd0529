"""Who keeps the host's clock, and how far it is from its source: chrony, ntpd, systemd, PTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from preflight.errors import ParseError
from preflight.facts.system import Clock
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "clock"

#: What keeps a clock, by the name of the process (comm, at most 15 characters): NTP, PTP, and what
#: a hypervisor's tools do in a guest.
_KEEPERS = (
    "chronyd", "ntpd", "ntpd-rs", "ntp-daemon", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys",
    "timemaster", "VBoxService", "vmtoolsd", "xntpd", "sntp", "timed",
)  # fmt: skip
#: These steer the clock without telling the kernel that it is synchronised.
_SILENT = frozenset({"ptp4l", "phc2sys", "timemaster", "VBoxService", "vmtoolsd"})

# Only the tool of the daemon that runs is asked: another would wait for an answer in vain.
_ASK = f"""\
k=$(grep -s -h -x -E '{"|".join(_KEEPERS)}' /proc/[0-9]*/comm | sort -u)
for n in $k; do echo "keeper $n"; done
[ -r /proc/1/comm ] || echo hidden  # hidepid: others' processes are not shown
have() {{ command -v "$1" >/dev/null 2>&1; }}
case " "$k in
  *chronyd*) have chronyc && {{ echo begin chronyc; timeout 3 chronyc -n tracking 2>&1; }} ;;
  *ntpd*) have ntpq && {{ echo begin ntpq; timeout 3 ntpq -pn 2>&1; }} ;;
  *systemd-timesyn*)
    have timedatectl && {{ echo begin timesync; timeout 3 timedatectl timesync-status 2>&1; }} ;;
esac
if [ -d /run/systemd/system ] && have timedatectl; then
  echo begin timedatectl
  timeout 3 timedatectl show -p NTPSynchronized 2>/dev/null || timeout 3 timedatectl 2>/dev/null
fi
if [ -e /run/systemd/timesync/synchronized ]; then echo begin file; fi
echo end"""


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=12)
def clock(text: str) -> Clock:
    """`keeper NAME` lines, then what the tools print, each behind `begin TOOL`."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("what is known of the clock is cut short: no closing `end`", len(lines))
    keepers = [line[7:] for line in lines if line.startswith("keeper ")]
    answers = _answers(lines)
    synchronised, offset, source = _told(keepers, answers)
    return Clock(
        keeper=_keeper(keepers, "hidden" in lines, synchronised),
        synchronised=synchronised,
        offset_s=offset,
        source=source,
        probe=_PROBE,
    )


def _keeper(keepers: Sequence[str], hidden: bool, synchronised: Known[bool]) -> Known[str]:
    """What keeps the clock; one that is synchronised is kept by something, known here or not."""
    if keepers:
        return ", ".join(keepers).replace("systemd-timesyn", "systemd-timesyncd")
    if synchronised is True:
        return "a service of another name"
    if hidden:
        return Missing("denied", "processes of others are hidden here (hidepid): run it as root")
    return "none"


def _answers(lines: Sequence[str]) -> dict[str, str]:
    """Tool -> what it printed."""
    found: dict[str, list[str]] = {}
    tool = ""
    for line in lines[:-1]:
        if line.startswith("begin "):
            tool = line[6:]
            found[tool] = []
        elif tool:
            found[tool].append(line)
    return {tool: "\n".join(told) for tool, told in found.items()}


_Told = tuple[Known[bool], Known[float], Known[str]]


def _told(keepers: Sequence[str], answers: dict[str, str]) -> _Told:
    """By the daemon's own tool; whether it is synchronised also by what the kernel was told."""
    unread = Missing("unreadable", "no tool told how far the clock is from its source")
    synchronised: Known[bool] = _by_kernel(answers)
    offset: Known[float] = unread
    source: Known[str] = unread
    for tool, parse in _TOOLS.items():
        if tool in answers:
            own, offset, source = parse(answers[tool])
            synchronised = synchronised if isinstance(own, Missing) else own
    if not keepers and synchronised is not True:
        nobody = Missing("not-applicable", "no service that keeps the time runs")
        return nobody, nobody, nobody
    if set(keepers) <= _SILENT and keepers and synchronised is not True:
        quiet = Missing("not-applicable", f"{keepers[0]} keeps the clock and is not asked")
        return quiet, quiet, quiet
    if isinstance(offset, Missing) and offset.kind == "exited" and isinstance(synchronised, bool):
        offset = Missing("not-applicable", f"{offset.text}; the kernel tells no distance")
    if not set(_TOOLS) & set(answers):
        absent = Missing("not-applicable", "the tool of the service that keeps the time is absent")
        return synchronised, absent, absent
    return synchronised, offset, source


def _by_kernel(answers: dict[str, str]) -> Known[bool]:
    """systemd tells the kernel's own flag (STA_UNSYNC, adjtimex(2))."""
    told = answers.get("timedatectl", "")
    match = re.search(r"(?:NTPSynchronized=|NTP synchronized: |clock synchronized: )(yes|no)", told)
    if match:
        return match[1] == "yes"
    if "file" in answers:  # systemd-timesyncd makes it once it is synchronised
        return True
    return Missing("unreadable", "nothing here tells whether the clock is synchronised")


def _silent(tool: str, text: str) -> _Told:
    """What a tool said in place of an answer."""
    first = text.partition("\n")[0][:100]
    failed = Missing("exited", f"{tool}: {first or 'it printed nothing'}")
    return failed, failed, failed


#: chrony's reference of `local stratum`, 127.127.1.1, and ntpd's driver of the same (127.127.1.u).
_OWN_CLOCK = "7F7F01"
_OWN_PEERS = ("127.127.1.", "LOCAL(")


def _alone(service: str) -> _Told:
    """It follows the clock that it keeps: that is its source when it reaches no other."""
    own = Missing("not-applicable", f"{service} follows this host's own clock and no source")
    return False, own, "its own clock"


def _chronyc(text: str) -> _Told:
    """`System time : 0.000012 seconds slow of NTP time`, `Leap status : Not synchronised`."""
    told = dict(re.findall(r"^(\w[\w ]*?) *: (.*)$", text, re.MULTILINE))
    leap, away = told.get("Leap status", ""), told.get("System time", "")
    if not leap:
        return _silent("chronyc", text)
    if leap.startswith("Not synchronised"):
        none = Missing("not-applicable", "chronyd has no source yet")
        return False, none, none
    if told.get("Reference ID", "").startswith(_OWN_CLOCK):
        return _alone("chronyd")
    match = re.match(r"([0-9]+(?:\.[0-9]+)?) seconds", away)
    unread = Missing("unreadable", "chronyc tells no System time")
    return True, float(match[1]) if match else unread, told.get("Reference ID", unread)


def _ntpq(text: str) -> _Told:
    """The peer that is marked with * (or o, a clock of its own) is the source; times in ms."""
    if "offset" not in text:
        return _silent("ntpq", text)
    for line in text.split("\n"):
        words = line[1:].split()
        if line[:1] in "*o" and len(words) >= 10 and re.fullmatch(r"-?[0-9.]+", words[8]):
            if words[0].startswith(_OWN_PEERS):
                return _alone("ntpd")
            return True, abs(float(words[8])) / 1000, words[0]
    none = Missing("not-applicable", "ntpd has chosen no source yet")
    return False, none, none


#: Seconds in one of the units in which systemd writes a span.
_SPANS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def _timesync(text: str) -> _Told:
    """`Server: 10.0.0.1 (ntp.example)`, `Offset: +1.234ms`; no Offset before the first answer."""
    server = re.search(r"^Server: (.*)$", text, re.MULTILINE)
    offset = re.search(r"^Offset: [+-]?(.*)$", text, re.MULTILINE)
    if server is None:
        return _silent("timedatectl", text)
    unknown = Missing("not-applicable", "systemd-timesyncd has not told an offset yet")
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(us|ms|min|s|h)", offset[1]) if offset else []
    away = sum(float(number) * _SPANS[unit] for number, unit in parts) if parts else unknown
    return unknown, away, server[1]


_TOOLS: dict[str, Callable[[str], _Told]] = {
    "chronyc": _chronyc, "ntpq": _ntpq, "timesync": _timesync,
}  # fmt: skip
