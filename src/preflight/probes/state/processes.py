"""Processes that hang, or that nobody has collected, from one look over /proc and, if need be, a
second one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from preflight.errors import ParseError
from preflight.facts.system import Processes
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "processes"

# One process reads the states of all. Those in uninterruptible sleep (D) are looked at again after
# a moment: a process that was not awake in between waits for one thing, and the count of its
# switches is the same. Threads of the kernel, children of the second process in no session, often
# wait so for a disk and are no reason to look again. A name may hold anything but ends with the
# last `)`.
_ASK = """\
set -- /proc/[0-9]*; echo "count $#"
{ read -r a b c n l </proc/loadavg && echo "threads ${n#*/}"; } 2>/dev/null
grep -s -H '' /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max
look() { grep -s -h -E '[)] [DZ] ' /proc/[0-9]*/stat | cut -c1-160; }
waits() { printf '%s\\n' "$1" | grep -E '[)] D ' | grep -v '[)] D 2 0 0 0 -1 '; }
more() {
  for p in $1; do
    w=; { read -r w </proc/$p/wchan; } 2>/dev/null
    echo "wchan $p $w"
    grep -s ctxt_switches: /proc/$p/status | while read -r k n; do echo "$2 $p $k $n"; done
  done
}
first=$(look)
echo "zombies $(printf '%s\\n' "$first" | grep -c -E '[)] Z ')"
echo look; waits "$first" | head -n 64
waiting=$(waits "$first" | cut -d' ' -f1 | head -n 64)
if [ -n "$waiting" ]; then
  more "$waiting" before; sleep 0.5 2>/dev/null || sleep 1; more "$waiting" after
  echo again; waits "$(look)"
fi
echo end"""

_STAT = re.compile(r"([0-9]+) \((.*)\) D((?: -?[0-9]+){6})(?: .*)?", re.DOTALL)
#: A thread of the kernel (include/linux/sched.h), in the seventh field behind the name.
_KERNEL_THREAD = 0x00200000


class _Look(NamedTuple):
    pid: str
    name: str
    of_kernel: bool


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def processes(text: str) -> Processes:
    """Counts, then lines of /proc/PID/stat of the processes in state D, in one or two looks."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end" or "look" not in lines:
        raise ParseError("the processes are cut short: no closing `end`", len(lines))
    head = lines[: lines.index("look")]
    told = dict(line.rpartition("/")[2].replace(":", " ").partition(" ")[::2] for line in head)
    first = list(_looks(lines))
    threads, most = _number(told, "threads"), _most(told)
    return Processes(
        count=_number(told, "count"),
        threads=threads,
        threads_limit=most,
        threads_used_percent=_percent(threads, most),
        zombies=_number(told, "zombies"),
        stuck=tuple(_stuck(lines, first)),
        line=lines.index("look") + 1,
        probe=_PROBE,
    )


def _looks(lines: Sequence[str], title: str = "look") -> Iterator[_Look]:
    if title not in lines:
        return
    for line in lines[lines.index(title) + 1 :]:
        match = _STAT.fullmatch(line)
        if match is None:
            return
        flags = int(match[3].split()[5])
        yield _Look(match[1], match[2][:40], bool(flags & _KERNEL_THREAD))


def _stuck(lines: Sequence[str], first: Sequence[_Look]) -> Iterator[str]:
    """The kernel's own threads may wait like this for as long as they like."""
    still = {each.pid for each in _looks(lines, "again")}
    for each in first:
        if each.of_kernel or each.pid not in still:
            continue
        before, after = (_switches(lines, word, each.pid) for word in ("before", "after"))
        if before != after:
            continue
        where = _where(lines, each.pid)
        yield f"{each.name} ({each.pid}){f' in {where}' if where else ''}"


def _switches(lines: Sequence[str], word: str, pid: str) -> list[str]:
    prefix = f"{word} {pid} "
    return [line[len(prefix) :] for line in lines if line.startswith(prefix)]


def _where(lines: Sequence[str], pid: str) -> str:
    """The function of the kernel that it waits in; 0 for those who may not know."""
    found = next((line.split()[2:] for line in lines if line.startswith(f"wchan {pid} ")), [])
    return found[0][:60] if found and found[0] != "0" else ""


def _number(told: dict[str, str], key: str) -> Known[int]:
    text = told.get(key, "")
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else Missing("unreadable", f"no {key}")


def _most(told: dict[str, str]) -> Known[int]:
    """Each thread takes a number of pid_max and counts against threads-max."""
    found = [n for key in ("pid_max", "threads-max") if isinstance(n := _number(told, key), int)]
    return min(found) if found else Missing("unreadable", "neither pid_max nor threads-max is told")


def _percent(threads: Known[int], most: Known[int]) -> Known[float]:
    if isinstance(threads, Missing) or isinstance(most, Missing):
        return threads if isinstance(threads, Missing) else most
    return 100 * threads / most if most else 100.0
