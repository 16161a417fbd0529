"""The control groups above the shell: processors, memory, processes. Both versions, in a container
or not: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1 of the kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.system import UNLIMITED, Amount, Cgroup, Unlimited
from preflight.model import Known, Missing
from preflight.probes.spec import probe
from preflight.probes.state.cgroup_tree import (
    Level,
    by_controller,
    counted,
    first_line,
    limit_of,
    quota_of,
    trees_of,
)

_PROBE = "cgroup"

# One `group CONTROLLERS VERSION` block for each tree that matters: the files of the shell's own
# group, then of every group above it, as `FILE:LINE`. In a container the tree is mounted from
# somewhere within (`root` of mountinfo), which the path of the group may or may not begin with.
_ASK = """\
v2="cpu.max cpu.stat memory.max memory.current memory.stat memory.events pids.max pids.current
pids.events"
v1="cpu.cfs_quota_us cpu.cfs_period_us cpu.stat memory.limit_in_bytes memory.usage_in_bytes
memory.stat memory.oom_control pids.max pids.current pids.events"
keep='^(max|-?[0-9]+)( [0-9]+)?$|^(nr_|throttled_|oom_kill |max |(total_)?(in)?active_file )'
path_of() {
  while IFS=: read -r n c p; do
    case $1,$n,,$c, in v2,0,,,|v1,*,*,"$2",*) r=$p; return ;; esac
  done </proc/self/cgroup
  return 1
}
tree() {
  top=$2; path_of "$1" "$4" || return
  # A group outside of what is mounted, in a namespace of its own: its files are not here.
  case $3,$r in /..*|*,/..*) return ;; esac
  case $r in "$3"|"$3"/*) [ "$3" = / ] || r=${r#"$3"} ;; esac
  d=$top${r%/}; [ -d "$d" ] || d=$top
  echo "group $1 $5 $r"
  case $1 in v2) files=$v2 ;; *) files=$v1 ;; esac
  set --
  while [ -n "$d" ]; do
    for f in $files; do set -- "$@" "$d/$f"; done
    [ "$d" != "$top" ] || break
    d=${d%/*}
  done
  grep -s -H -E "$keep" "$@"
}
one() {
  while read -r i q e root point rest; do
    case $point in /sys/fs/cgroup|/sys/fs/cgroup/*) ;; *) continue ;; esac
    case $rest in
      *" - cgroup2 "*) tree v2 "$point" "$root" "" all ;;
      *" - cgroup "*)
        for c in cpu memory pids; do
          case ",${rest##* }," in *",$c,"*) tree v1 "$point" "$root" "$c" "$c" ;; esac
        done ;;
    esac
  done
}
if [ -e /proc/self/cgroup ]; then
  while IFS=: read -r n c p; do [ -z "$c" ] || echo "v1 $c"; done </proc/self/cgroup
  grep -E ' - cgroup2? ' /proc/self/mountinfo | one
else echo none; fi
grep -s Cpus_allowed_list: /proc/self/status
echo end"""

_UNREAD = Missing("unreadable", "the files of the control groups cannot be read in /sys/fs/cgroup")


_LIMITS = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max",)}
_UNCOUNTED = Missing("not-applicable", "this kernel does not count what a limit refused")


#: Field -> the controller and the files that show it.
_SHOWN = {
    "quota_cores": ("cpu", "cpu.max", "cpu.cfs_quota_us"),
    "cores": ("cpu", "cpu.max", "cpu.cfs_quota_us"),
    "throttled_percent": ("cpu", "cpu.stat"),
    "memory_limit_bytes": ("memory", "memory.max", "memory.limit_in_bytes"),
    "memory_used_percent": ("memory", "memory.current", "memory.usage_in_bytes"),
    "oom_kills": ("memory", "memory.events", "memory.oom_control"),
    "pids_used_percent": ("pids", "pids.current"),
    "pids_refused": ("pids", "pids.events"),
}


_KEYS = {"throttled_percent": "nr_throttled ", "oom_kills": "oom_kill "}


def locate(text: str, start: int, field: str) -> int:
    """The line that shows a field, of the group whose limit is the tightest."""
    if field not in _SHOWN:
        return start
    lines = [line.strip() for line in text.split("\n")]
    controller, *names = _SHOWN[field]
    levels = by_controller(lines, list(trees_of(lines)))[controller]
    if field != "oom_kills":
        levels = sorted(levels, key=lambda each: _tightness(controller, each))
    shown = (level.files[name] for level in levels for name in names if name in level.files)
    first, told = next(shown, (start, []))
    key = _KEYS.get(field, "\0")
    return first + next((at for at, line in enumerate(told) if line.startswith(key)), 0)


def _tightness(controller: str, level: Level) -> float:
    most = quota_of(level) if controller == "cpu" else limit_of(level, *_LIMITS[controller])
    return math.inf if most is None else most


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def cgroup(text: str) -> Known[Cgroup]:
    """`group VERSION CONTROLLER PATH`, the files below it, and the processors of the shell."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the control groups are cut short: no closing `end`", len(lines))
    trees = list(trees_of(lines))
    allowed = _allowed(lines)
    if not trees and isinstance(allowed, Missing):
        raise ParseError("expected lines such as `group v2 all /` or `Cpus_allowed_list: 0-7`", 1)
    if "none" in lines:
        return Missing("not-applicable", "this kernel has no control groups")
    own = by_controller(lines, trees)
    versions = {version for version, _, _, _ in trees}
    quota, throttled = _cpu(own["cpu"])
    return Cgroup(
        version="hybrid" if len(versions) > 1 else next(iter(versions), "none"),
        path=next((path for _, name, path, _ in trees if name in ("all", "memory")), ""),
        cpus_allowed=allowed,
        quota_cores=quota,
        cores=_cores(allowed, quota),
        **throttled,
        **_memory(own["memory"]),
        **_pids(own["pids"]),
        probe=_PROBE,
    )


def _allowed(lines: Sequence[str]) -> Known[int]:
    told = next((line for line in lines if line.startswith("Cpus_allowed_list:")), "")
    spans = re.findall(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", told)
    count = sum(int(last or first) - int(first) + 1 for first, last in spans)
    return count or Missing("unreadable", "the kernel does not tell Cpus_allowed_list")


def _cpu(levels: Sequence[Level]) -> tuple[Known[float | Unlimited], dict[str, Any]]:
    """The tightest quota on the way up, and how often that one held processes back."""
    names = ("throttled_percent", "throttled_s", "periods")
    limited = [(most, each) for each in levels if (most := quota_of(each)) is not None]
    if not limited:
        none = Missing("not-applicable", "no control group limits the processors")
        # The top of the tree has no such files, nor has a group that was not given the controller.
        quota: Known[float | Unlimited] = UNLIMITED if levels else _UNREAD
        return quota, dict.fromkeys(names, none if levels else _UNREAD)
    cores, level = min(limited, key=lambda each: each[0])
    periods = counted(level, "cpu.stat", "nr_periods")
    held = counted(level, "cpu.stat", "nr_throttled")
    micros = counted(level, "cpu.stat", "throttled_usec")
    nanos = counted(level, "cpu.stat", "throttled_time")
    if periods is None or held is None:
        return cores, dict.fromkeys(names, _UNREAD)
    seconds = micros / 1e6 if micros is not None else _UNREAD if nanos is None else nanos / 1e9
    share = 100 * held / periods if periods else 0.0
    return cores, dict(zip(names, (share, seconds, periods), strict=True))


def _cores(allowed: Known[int], quota: Known[float | Unlimited]) -> Known[float]:
    if isinstance(allowed, Missing):
        return allowed
    if isinstance(quota, Missing):
        return quota
    return float(allowed) if isinstance(quota, str) else min(float(allowed), quota)


def _memory(levels: Sequence[Level]) -> dict[str, Any]:
    """The tightest limit, and what its group has of it without the page cache, which is given back
    when somebody needs it."""
    told = ("memory_used_bytes", "memory_used_percent", "oom_kills")
    if not levels:
        return {"memory_limit_bytes": _UNREAD, **dict.fromkeys(told, _UNREAD)}
    files = _LIMITS["memory"]
    limited = [(most, each) for each in levels if (most := limit_of(each, *files)) is not None]
    none = Missing("not-applicable", "no control group limits the memory")
    if not limited:  # whom the kernel ended then, it ended for want of memory on the whole host
        return {"memory_limit_bytes": UNLIMITED, **dict.fromkeys(told, none)}
    most, level = min(limited, key=lambda each: each[0])
    used = _used(level)
    percent = used if isinstance(used, Missing) else 100 * used / most if most else 100.0
    return {
        "oom_kills": _kills(levels),
        "memory_limit_bytes": most, "memory_used_bytes": used, "memory_used_percent": percent,
    }  # fmt: skip


def _kills(levels: Sequence[Level]) -> Known[int]:
    """Of the nearest group that counts them."""
    for level in levels:
        for name in ("memory.events", "memory.oom_control"):
            if (kills := counted(level, name, "oom_kill")) is not None:
                return kills
    return Missing("not-applicable", "this kernel does not count whom it ended")


def _used(level: Level) -> Known[int]:
    text = first_line(level, "memory.current", "memory.usage_in_bytes")
    if not re.fullmatch(r"[0-9]{1,20}", text):
        return _UNREAD
    cache = [
        counted(level, "memory.stat", f"total_{kind}_file", f"{kind}_file")
        for kind in ("active", "inactive")
    ]
    return max(int(text) - sum(each or 0 for each in cache), 0)


def _pids(levels: Sequence[Level]) -> dict[str, Any]:
    """The limit that is nearest to be reached, and how often one made a fork fail."""
    if not levels:
        return dict.fromkeys(("pids_limit", "pids", "pids_used_percent", "pids_refused"), _UNREAD)
    limits = [(most, each) for each in levels if (most := limit_of(each, "pids.max")) is not None]
    refused = [counted(each, "pids.events", "max") for each in levels]
    none = Missing("not-applicable", "no control group limits the number of processes")
    if not limits:
        return {
            "pids_limit": UNLIMITED, "pids": none, "pids_used_percent": none, "pids_refused": none,
        }  # fmt: skip
    shares = [(_share(each, most), most, each) for most, each in limits]
    share, most, level = max(shares, key=lambda each: each[0])
    text = first_line(level, "pids.current")
    known = bool(re.fullmatch(r"[0-9]{1,12}", text))
    refusals = [each for each in refused if each is not None]
    limit: Amount = most
    return {
        "pids_limit": limit,
        "pids": int(text) if known else _UNREAD,
        "pids_used_percent": share if known else _UNREAD,
        "pids_refused": max(refusals) if refusals else _UNCOUNTED,
    }


def _share(level: Level, most: int) -> float:
    text = first_line(level, "pids.current")
    used = int(text) if re.fullmatch(r"[0-9]{1,12}", text) else 0
    return 100 * used / most if most else 100.0
