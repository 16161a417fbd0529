"""Processes that the user named: their limits, what they have of them, the NCCL they run on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from preflight.errors import ParseError
from preflight.facts.system import AskedProcess, Limit, NodeShare
from preflight.model import Known, Missing
from preflight.probes.limits.limits import RESOURCES, read_limits
from preflight.probes.spec import probe

_PROBE = "process"

# The process ids are the arguments. A process of somebody else shows neither limits nor files. A
# library is read as the process sees it, which may be in a container; one whose name has no version
# tells it in its text, which lies before the code for GPUs.
# numa_maps counts pages by node, each of the page's own size (proc_pid_numa_maps(5)); to count them
# the kernel walks all of the process' memory. A GPU's file is told by its minor number.
_ASK = r"""count() { set -- "$1"/*; if [ -L "$1" ]; then echo "files $#"; else echo "files 0"; fi; }
nodes() {
  if [ ! -e "$1" ]; then echo 'nodes none'; return; fi
  { $t cat "$1" 2>/dev/null; echo "rc $?"; } | awk '
  $1 == "rc" { r = $2; next }
  p == "" { p = $2 }
  / file=/ && !/ file=\/(dev\/shm|dev\/zero|memfd:|SYSV|anon_hugepage)/ { next }
  { s = 4; split("", c)
    for (i = 3; i <= NF; i++) {
      split($i, w, "=")
      if (w[1] ~ /^N[0-9]+$/) c[substr(w[1], 2)] = w[2]
      else if (w[1] == "kernelpagesize_kB") s = w[2] }
    for (n in c) k[n] += c[n] * s }
  END { if (r != 0) { print "nodes rc", r; exit }
    if (p != "") print "policy", p
    for (n in k) printf "node %s %.0f\n", n, k[n]
    print "nodes end" }'
}
t=; if command -v timeout >/dev/null 2>&1; then t='timeout 2'; fi
for i in /proc/driver/nvidia/gpus/*/information; do
  b=${i%/*}; m=
  [ -r "$i" ] && while read -r a c d; do [ "$a $c" != 'Device Minor:' ] || m=$d; done <"$i"
  [ -z "$m" ] || echo "minor $m ${b##*/}"
done
for p in "$@"; do
  echo "process $p"
  if [ ! -d "/proc/$p" ]; then echo gone; continue; fi
  cat "/proc/$p/limits" 2>/dev/null || echo denied
  grep -s -E '^(Name|State|Threads|CapEff|Cpus_allowed_list|Mems_allowed_list):' "/proc/$p/status"
  if maps=$(grep -s -o '/[^ ]*/libnccl[.]so[^ ]*' "/proc/$p/maps"); [ $? -le 1 ]; then
    f=${maps%%"
"*}; echo "maps $f"
    case $f in *libnccl.so.*.*|'') ;; *)
      head -c 67108864 "/proc/$p/root$f" 2>/dev/null |
        grep -a -o -m 1 'NCCL version [0-9][0-9.]*' ;;
    esac
  fi
  if [ -r "/proc/$p/fd" ]; then
    count "/proc/$p/fd"
    ls -l "/proc/$p/fd" 2>/dev/null | sed -n 's|.* -> /dev/nvidia\([0-9][0-9]*\)$|opens \1|p'
  else echo "files denied"; fi
  nodes "/proc/$p/numa_maps"
done
echo end"""

_PAIR = re.compile(
    r"(Name|State|Threads|files|policy|Cpus_allowed_list|Mems_allowed_list)(?::\s*| )(.{1,4000})"
)
_MINOR = re.compile(r"minor ([0-9]{1,4}) ([0-9a-f:.]{7,16})")
_NODE = re.compile(r"node ([0-9]{1,4}) ([0-9]{1,15})")
_TIMED_OUT = 124  # timeout(1)
_NO_POLICY = Missing("unreadable", "the kernel does not tell its memory policy")
_NCCL_FILE = re.compile(r"libnccl\.so\.([0-9]+(?:\.[0-9]+){1,3})$")
_NCCL_TEXT = re.compile(r"NCCL version ([0-9]+(?:\.[0-9]+){1,3})")

_DENIED = Missing(
    "denied", "the process is another user's: run preflight as that user, as root or with --sudo"
)


@probe(_PROBE, ["sh", "-c", _ASK, "sh"], timeout_s=30, needs_root=True)
def process(text: str) -> tuple[AskedProcess, ...]:
    """A block for each process, which begins with `process PID`; before them the GPUs' files."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the processes are cut short: no closing `end`", len(lines))
    starts = [at for at, line in enumerate(lines) if re.fullmatch(r"process [0-9]+", line)]
    if not starts:
        raise ParseError("expected a line `process PID`", 1)
    ends = [*starts[1:], len(lines) - 1]
    minors = {match[1]: match[2] for line in lines if (match := _MINOR.fullmatch(line))}
    return tuple(
        _one(lines[start:end], start + 1, minors) for start, end in zip(starts, ends, strict=True)
    )


def _one(lines: Sequence[str], first_line: int, minors: Mapping[str, str]) -> AskedProcess:
    name = f"pid {lines[0].split()[1]}"
    told = dict(_pairs(lines))
    if ended := _ended(name, lines[1:2], told):
        return _unknown(name, ended, first_line)
    if "denied" in lines:
        limits = _unread(name, first_line)
    else:
        limits = read_limits(lines, name, _PROBE, first_line)
    of = {each.resource: each for each in limits}
    files = _number(told.get("files", ""))
    return AskedProcess(
        name, told.get("Name") or _DENIED, _number(told.get("Threads", "")), files,
        _percent(files, of["nofile"].soft), _nccl(lines),
        **{resource: limit.soft for resource, limit in of.items()},
        memlock_lifted=of["memlock"].lifted, limits=limits,
        cpus_allowed=told.get("Cpus_allowed_list") or _DENIED,
        mems_allowed=told.get("Mems_allowed_list") or _DENIED,
        memory_policy=told.get("policy") or _NO_POLICY, memory=_memory(lines),
        gpus_open=_gpus_open(lines, minors), line=first_line, probe=_PROBE,
    )  # fmt: skip


def _ended(name: str, first: Sequence[str], told: Mapping[str, str]) -> Missing | None:
    """Why nothing of it can be looked at. A zombie keeps its limits and shows no open file."""
    if "gone" in first:
        return Missing("unreadable", f"there is no process {name[4:]}: ended, or mistyped")
    if told.get("State", "")[:1] not in ("Z", "X"):
        return None
    if told.get("Threads", "1") in ("0", "1"):
        return Missing("unreadable", f"process {name[4:]} has ended (zombie): nothing of it runs")
    text = f"the main thread of process {name[4:]} has ended (zombie): others of it still run"
    return Missing("unreadable", text)


def _unknown(name: str, why: Missing, first_line: int) -> AskedProcess:
    return AskedProcess(
        name, why, why, why, why, why, why, why, why, why, why, cpus_allowed=why, mems_allowed=why,
        memory_policy=why, memory=why, gpus_open=why, line=first_line, probe=_PROBE,
    )  # fmt: skip


def _unread(name: str, first_line: int) -> tuple[Limit, ...]:
    return tuple(
        Limit(f"{resource} ({name})", resource, name, _DENIED, _DENIED, _DENIED,
              line=first_line, probe=_PROBE)
        for resource in RESOURCES.values()
    )  # fmt: skip


def _nccl(lines: Sequence[str]) -> Known[str]:
    """The version of the NCCL that it has loaded."""
    at = next((at for at, line in enumerate(lines) if line.partition(" ")[0] == "maps"), None)
    if at is None:
        return _DENIED
    path = lines[at].partition(" ")[2]
    if not path:
        return Missing("not-applicable", "it has loaded no NCCL, or has it inside another library")
    found = _NCCL_FILE.search(path) or _NCCL_TEXT.match(
        lines[at + 1] if at + 1 < len(lines) else ""
    )
    return found[1] if found else Missing("unreadable", f"no version in {path[:200]}")


def _memory(lines: Sequence[str]) -> Known[tuple[NodeShare, ...]]:
    """What it holds of each node's memory."""
    if "nodes none" in lines:
        return Missing("not-applicable", "this kernel does not count memory by NUMA node")
    if f"nodes rc {_TIMED_OUT}" in lines:
        return Missing("timeout", "its memory was not counted by NUMA node within 2 s")
    if "nodes end" not in lines:
        return _DENIED
    found = (_NODE.fullmatch(line) for line in lines)
    shares = (NodeShare(int(match[1]), int(match[2]) << 10) for match in found if match)
    return tuple(sorted(shares, key=lambda share: share.node))


def _gpus_open(lines: Sequence[str], minors: Mapping[str, str]) -> Known[tuple[str, ...]]:
    """The GPUs whose files it has open, which may be more than it computes on: CUDA opens all that
    it sees."""
    if "files denied" in lines:
        return _DENIED
    numbers = {line.partition(" ")[2] for line in lines if line.startswith("opens ")}
    if numbers - set(minors):
        return Missing("unreadable", "/proc/driver/nvidia/gpus does not name the GPUs it has open")
    return tuple(sorted(minors[number] for number in numbers))


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if match := _PAIR.fullmatch(line):
            yield match[1], match[2]


def _number(text: str) -> Known[int]:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else _DENIED


def _percent(files: Known[int], limit: Known[int | str]) -> Known[float]:
    if isinstance(files, Missing):
        return files
    if isinstance(limit, Missing):
        return limit
    return 100 * files / limit if isinstance(limit, int) and limit else 0.0
