"""What disks say of their own health: `nvme smart-log` and `smartctl -j`, asked or recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from preflight.errors import ParseError
from preflight.facts.storage import DiskHealth
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "disk-health"
# nvme-cli for NVMe, smartctl for all; -n standby wakes no disk. smartctl's exit status tells what
# it found, so that it is no error here. Both ask the disk and wait for nothing else.
_ASK = """\
exec 2>/dev/null
[ "$(id -u)" = 0 ] || { echo denied; echo end; exit; }
none=none
for d in /sys/class/nvme/nvme[0-9]* /sys/block/sd*; do
  [ -e "$d" ] || continue
  n=${d##*/}; none=
  [ -e "/dev/$n" ] || continue
  case $n in nvme*)
    if command -v nvme >/dev/null; then
      m=; read -r m <"$d/model"
      echo "disk $n $m"; timeout -k 1 5 nvme smart-log -o json "/dev/$n"; echo; continue
    fi ;;
  esac
  if command -v smartctl >/dev/null; then
    echo "disk $n"; timeout -k 1 5 smartctl -n standby -j -a "/dev/$n"; echo; continue
  fi
  echo "no tool $n"
done
[ -z "$none" ] || echo none
echo end"""

#: NVM Express Base Specification, SMART / Health Information, Critical Warning.
_BITS = (
    "its spare blocks are used up",
    "its temperature is beyond a limit",
    "its reliability is degraded",
    "it takes no more writes",
    "its memory for power loss has failed",
    "its persistent memory has become read-only",
)
_OPENS = re.compile(r"^[ \t]*\{", re.MULTILINE)
_DISK = re.compile(r"disk (\S{1,60})(?: (.{1,80}))?")
_HEAD = re.compile(r"Smart Log for NVME device:\s*(\S{1,60})")
_FIELD = re.compile(r"([A-Za-z][\w %]{1,60}?)\s*:\s*(.{1,120})", re.ASCII)
_NUMBER = re.compile(r"(-?\d[\d,]{0,30})", re.ASCII)
#: Above this a temperature is in kelvin, as NVMe counts it.
_KELVIN, _ZERO_K = 200, 273
#: Sectors that wait to be written anew, and such as could not be read (smartctl(8), -A).
_ATA_ERRORS = (197, 198)
_DENIED = Missing("not-asked", "only root may ask disks: run preflight as root, or with --sudo")
_NO_TOOL = Missing(
    "no-tool", "neither nvme nor smartctl is installed: `sudo apt install nvme-cli smartmontools`"
)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=30, needs_root=True)
def disk_health(text: str) -> Known[tuple[DiskHealth, ...]]:
    """`disk NAME MODEL` and then what its tool printed, for each disk; those of a cloud tell
    nothing."""
    lines = text.rstrip().split("\n")
    if lines[-1].strip() != "end":
        raise ParseError("the answers of the disks are cut short: no closing `end`", len(lines))
    if "denied" in lines:
        return _DENIED
    if "none" in lines:
        return ()
    starts = [(at, match) for at, line in enumerate(lines) if (match := _DISK.fullmatch(line))]
    found = []
    for (at, match), (end, _) in pairwise([*starts, (len(lines) - 1, None)]):
        assert match is not None
        told = _one("\n".join(lines[at + 1 : end]), at + 1, match[1], match[2] or "")
        found += [told] if told else []
    if not starts:
        return _NO_TOOL
    return tuple(found)


def _one(text: str, line: int, name: str, model: str) -> DiskHealth | None:
    """What one disk told; None where it answered and has nothing to tell, as a disk of a cloud."""
    try:
        read = list(_read(text, line, name, model))
    except ParseError as error:
        return _unread(name, Missing("unreadable", f"{name}: {error}"), line)
    if not read:
        return _unread(name, Missing("exited", f"{name}: its tool told nothing"), line)
    return read[0] if _tells(read[0]) else None


def _unread(name: str, why: Missing, line: int) -> DiskHealth:
    return DiskHealth(name, why, why, why, why, why, why, why, line, _PROBE)


@probe("smart", ["nvme", "smart-log", "-o", "json", "/dev/nvme0"], needs_root=True)
def smart(text: str) -> tuple[DiskHealth, ...]:
    """Outputs of either tool one after another, of a disk each."""
    found = tuple(one for one in _read(text, 0, "", "") if _tells(one))
    if not found:
        raise ParseError("expected `nvme smart-log` or the JSON of `smartctl -j -a`, whole", 1)
    return found


def _tells(disk: DiskHealth) -> bool:
    fields = (disk.warnings, disk.worn_percent, disk.media_errors, disk.temperature_c)
    return not all(isinstance(field, Missing) for field in fields)


def _read(text: str, above: int, name: str, model: str) -> Iterator[DiskHealth]:
    """The disks in a text; `above`: lines that stand before it."""
    decoder, at, line, count = json.JSONDecoder(), 0, above, 0
    while (brace := _OPENS.search(text, at)) is not None:
        yield from _plain(text[at : brace.start()], line, name, model)
        line += text.count("\n", at, brace.end())
        try:
            told, after = decoder.raw_decode(text, brace.end() - 1)
        except (ValueError, RecursionError) as error:
            raise ParseError("the JSON of a disk is cut short, or is none", line + 1) from error
        count += 1
        yield _of_json(told, name or f"disk {count}", model, line + 1)
        line += text.count("\n", brace.end(), after)
        at = after
    yield from _plain(text[at:], line, name, model)


def _of_json(told: Mapping[str, Any], name: str, model: str, line: int) -> DiskHealth:
    if "smartctl" in told or "json_format_version" in told:
        return _of_smartctl(told, name, line)
    return _nvme(told.get, _JSON_NAMES, name, model, line)


#: Field -> what nvme-cli calls it in JSON; in text.
_JSON_NAMES = {"warning": "critical_warning", "worn": "percent_used", "spare": "avail_spare",
               "least": "spare_thresh", "errors": "media_errors",
               "temperature": "temperature"}  # fmt: skip
_TEXT_NAMES = {**_JSON_NAMES, "worn": "percentage_used", "spare": "available_spare",
               "least": "available_spare_threshold"}  # fmt: skip
_SMARTCTL_NAMES = _TEXT_NAMES


def _nvme(
    get: Callable[[str], Any], names: Mapping[str, str], name: str, model: str, line: int
) -> DiskHealth:
    found = {field: _whole(get(called)) for field, called in names.items()}
    if isinstance(found["worn"], Missing):  # newer versions write it as in text
        found["worn"] = _whole(get("percentage_used"))
    degrees = found["temperature"]
    if isinstance(degrees, int) and degrees > _KELVIN:
        degrees -= _ZERO_K
    return DiskHealth(
        name=name,
        model=model or NOT_IN_INPUT,
        warnings=_warnings(found["warning"]),
        worn_percent=found["worn"],
        spare_percent=found["spare"],
        spare_least_percent=found["least"],
        media_errors=found["errors"],
        temperature_c=degrees,
        line=line,
        probe=_PROBE,
    )


def _warnings(bits: Known[int]) -> Known[tuple[str, ...]]:
    if isinstance(bits, Missing):
        return bits
    unknown = (f"bit {at} of its critical warning" for at in range(len(_BITS), 8) if bits >> at & 1)
    return (*(word for at, word in enumerate(_BITS) if bits >> at & 1), *unknown)


def _whole(value: object) -> Known[int]:
    """`3`, "3%", "0x4", "1,234", or of newer nvme-cli an object with its `value`."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return NOT_IN_INPUT
    if isinstance(value, int):
        return value
    if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", value.strip()):
        return int(value.strip(), 16)
    match = _NUMBER.match(value.strip())
    return int(match[1].replace(",", "")) if match else NOT_IN_INPUT


def _of_smartctl(told: Mapping[str, Any], name: str, line: int) -> DiskHealth:
    device = _below(told, "device", "name")
    own = device.rpartition("/")[2] if isinstance(device, str) else name
    model = told.get("model_name")
    named = model if isinstance(model, str) else ""
    log = told.get("nvme_smart_health_information_log")
    if isinstance(log, dict):
        return _nvme(log.get, _SMARTCTL_NAMES, own, named, line)
    passed = _below(told, "smart_status", "passed")
    said = {True: (), False: ("it says of itself that it fails",)}
    return DiskHealth(
        name=own,
        model=named or NOT_IN_INPUT,
        warnings=said[passed] if isinstance(passed, bool) else NOT_IN_INPUT,
        worn_percent=_whole(_below(told, "endurance_used", "current_percent")),
        media_errors=_ata_errors(_below(told, "ata_smart_attributes", "table")),
        temperature_c=_whole(_below(told, "temperature", "current")),
        line=line,
        probe=_PROBE,
    )


def _below(told: Mapping[str, Any], *names: str) -> Any:
    value: Any = told
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _ata_errors(table: object) -> Known[int]:
    rows = [row for row in table if isinstance(row, dict)] if isinstance(table, list) else []
    counts = [_whole(_below(row, "raw", "value")) for row in rows if row.get("id") in _ATA_ERRORS]
    known = [count for count in counts if isinstance(count, int)]
    return max(known) if known else NOT_IN_INPUT


def _plain(text: str, above: int, name: str, model: str) -> Iterator[DiskHealth]:
    """`nvme smart-log` for people: a heading, then `field : value` lines."""
    lines = text.split("\n")
    starts = [at for at, line in enumerate(lines) if _HEAD.match(line.strip())]
    for at, end in pairwise([*starts, len(lines)]):
        head = _HEAD.match(lines[at].strip())
        told = _fields(lines[at + 1 : end])
        yield _nvme(told.get, _TEXT_NAMES, name or (head[1] if head else ""), model, above + at + 1)


def _fields(lines: Sequence[str]) -> dict[str, str]:
    """Named as in JSON: critical_warning. Each is told once, before the temperatures of sensors."""
    found: dict[str, str] = {}
    for line in lines:
        if match := _FIELD.fullmatch(line.strip()):
            found.setdefault(match[1].strip().lower().replace(" ", "_"), match[2].strip())
    return found
