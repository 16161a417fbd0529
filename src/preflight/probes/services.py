"""The services that GPUs depend on, from systemd and the list of processes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.errors import ParseError
from preflight.facts.services import Service, Services
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "services"
_UNITS = (
    "nvidia-fabricmanager nvidia-persistenced nvidia-imex nvidia-dcgm nvidia-mig-manager "
    "nvidia-powerd nvidia-gridd"
)
_PROPERTIES = "Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result"
# A daemon may run without a unit: in the driver's container (GPU operator), under another init. The
# kernel keeps 15 characters of a name: nv-fabricmanage. One that ends meanwhile has no file.
_ASK = f"""\
for f in /proc/[0-9]*/comm; do
  {{ read -r n <"$f"; }} 2>/dev/null || continue
  case $n in nv-fabricmanage|nvidia-persiste|nvidia-imex|nv-hostengine|nvidia-powerd|nvlsm)
    echo "daemon $n";; esac
done
if command -v nv-fabricmanager >/dev/null 2>&1; then nv-fabricmanager --version
else echo 'nv-fabricmanager: none'; fi
if [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; then
  echo 'systemd: yes'
  systemctl show --no-pager -p {_PROPERTIES} {_UNITS} || exit 2
else echo 'systemd: no'; fi
echo end"""

_VERSION = re.compile(r"^[ \t]*Fabric Manager version is : (\S{1,40})", re.MULTILINE)
_DAEMON = re.compile(r"^daemon (\S{1,15})$", re.MULTILINE)
_SYSTEMD = re.compile(r"^systemd: (yes|no)$", re.MULTILINE)
#: `systemctl status`: * nvidia-fabricmanager.service - NVIDIA fabric manager service
_STATUS = re.compile(r"^[ \t]*[●○×*•↻] ([\w@-]{1,60})\.service(?: - .*)?$", re.MULTILINE)
_LOADED = re.compile(r"^[ \t]+Loaded: ([\w-]+)(?: \([^;\n]*; ([\w-]+))?", re.MULTILINE)
_ACTIVE = re.compile(
    r"^[ \t]+Active: ([\w-]+)(?: \(([\w-]+)\))?(?: \(Result: ([\w-]+)\))?", re.MULTILINE
)
_NOT_FOUND = re.compile(r"^[ \t]*Unit ([\w@-]{1,60})\.service could not be found", re.MULTILINE)
_OUTCOMES = {"inactive": "ended", "deactivating": "ended"}
_NO_SYSTEMD = Missing("not-applicable", "this host does not run systemd")
_NO_VERSION = Missing("unreadable", "`nv-fabricmanager --version` printed no version")
_NOT_INSTALLED = Missing("not-applicable", "nv-fabricmanager is not installed in the host's PATH")


#: Field of the fabric manager -> how the line begins that shows it.
_SHOWN = {
    "running": ("ActiveState=", "Active: "), "state": ("ActiveState=", "Active: "),
    "enabled": ("UnitFileState=",),
    "restarts": ("NRestarts=",), "version": ("Fabric Manager version is",),
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The line that shows a field of the unit whose block begins at `start`."""
    lines = text.split("\n")
    wanted = _SHOWN.get(field, ())
    first = 1 if field == "version" else start
    for number, line in enumerate(lines[first - 1 :], first):
        if line.lstrip().startswith(wanted):
            return number
        if not line.strip() and field != "version":
            break
    return start


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=20, locate=locate)
def services(text: str) -> Services:
    """Also of a recording: `systemctl show` or `status` of any units, and the version alone."""
    lines = text.split("\n")
    units = (*_units(lines), *_shown_by_status(text))
    version, line = _version(text)
    live = _SYSTEMD.search(text)
    if not (units or live or isinstance(version, str)):
        raise ParseError("expected what systemctl or nv-fabricmanager --version prints", 1)
    if live and "end" not in lines:
        raise ParseError("the answer is cut short: no closing `end`", len(lines))
    return Services(
        units=_NO_SYSTEMD if live and live[1] == "no" else units or NOT_IN_INPUT,
        daemons=tuple(sorted(set(_DAEMON.findall(text)))) if live else NOT_IN_INPUT,
        fabric_manager_version=version,
        version_line=line,
        probe=_PROBE,
    )


def _version(text: str) -> tuple[Known[str], int]:
    found = _VERSION.search(text)
    if found:
        return found[1], text.count("\n", 0, found.start(1)) + 1
    if not _SYSTEMD.search(text):
        return NOT_IN_INPUT, 0
    return (_NOT_INSTALLED if "nv-fabricmanager: none\n" in text else _NO_VERSION), 0


def _units(lines: list[str]) -> Iterator[Service]:
    """Blocks of `Key=value` with an empty line between them; the keys come in any order."""
    told: dict[str, str] = {}
    start = 0
    for number, line in enumerate([*lines, ""], 1):
        key, equals, value = line.strip().partition("=")
        if equals and key.isalnum():
            start = start if told else number
            told.setdefault(key, value)
        elif told:
            if "Id" in told:
                yield _unit(told, start)
            told = {}


def _outcome(active: Known[str], sub: Known[str]) -> Known[str]:
    """systemd's own word, also of a unit that it starts again and again."""
    if active == "failed" or sub == "auto-restart":
        return "failed"
    return active if isinstance(active, Missing) else _OUTCOMES.get(active, "running")


def _unit(told: dict[str, str], line: int) -> Service:
    restarts = told.get("NRestarts", "")
    return Service(
        name=told["Id"].removesuffix(".service"),
        load=_word(told, "LoadState"),
        active=_word(told, "ActiveState"),
        sub=_word(told, "SubState"),
        enabled=_word(told, "UnitFileState"),
        restarts=int(restarts) if restarts.isdecimal() and len(restarts) < 10 else NOT_IN_INPUT,
        result=_word(told, "Result"),
        outcome=_outcome(_word(told, "ActiveState"), _word(told, "SubState")),
        line=line,
        probe=_PROBE,
    )


def _shown_by_status(text: str) -> Iterator[Service]:
    """What `systemctl status` tells a person."""
    heads = list(_STATUS.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    line, counted = 1, 0
    for head, end in zip(heads, ends, strict=False):
        loaded, active = (
            _LOADED.search(text, head.end(), end),
            _ACTIVE.search(text, head.end(), end),
        )
        here = active.start() if active else head.start()
        line, counted = line + text.count("\n", counted, here), here
        yield Service(
            name=head[1],
            load=loaded[1] if loaded else NOT_IN_INPUT,
            active=active[1] if active else NOT_IN_INPUT,
            sub=(active and active[2]) or NOT_IN_INPUT,
            enabled=(loaded and loaded[2]) or NOT_IN_INPUT,
            result=(active and active[3]) or NOT_IN_INPUT,
            outcome=_outcome(active[1], active[2] or "") if active else NOT_IN_INPUT,
            line=line,
            probe=_PROBE,
        )
    absent = _NOT_FOUND.search(text)
    if absent:
        line = text.count("\n", 0, absent.start()) + 1
        yield Service(absent[1], "not-found", "inactive", "dead", outcome="ended", line=line,
                      probe=_PROBE)  # fmt: skip


def _word(told: dict[str, str], key: str) -> Known[str]:
    """systemd leaves a value empty that a unit does not have: the file state of one not found."""
    value = told.get(key)
    if value is None:
        return NOT_IN_INPUT
    return value or Missing("not-applicable", f"the unit has no {key}")
