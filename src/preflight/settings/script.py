"""The script that makes the changes: for a person to read, in POSIX sh, and safe to run again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TypeVar

from preflight.nodesets import fold
from preflight.printable import printable
from preflight.settings.dropins import DropIn, dropins, glob, sysctl_pattern
from preflight.settings.wanted import Change, LeftOut, Wanted, by_reason

T = TypeVar("T")

_HEAD = """\
set -eu
LC_ALL=C
export LC_ALL
umask 022
[ "$(id -u)" = 0 ] || {
  echo "error: this changes the system and needs root" >&2
  exit 1
}
left=0
new=
trap '[ -z "$new" ] || rm -f "$new"' EXIT

# now NAME VALUE FILE...: the running value; where there is no such file, there is no such driver.
now() {
  name=$1 value=$2
  shift 2
  for file in "$@"; do
    if [ ! -e "$file" ]; then
      echo "$name: not on this machine"
    elif { printf '%s\\n' "$value" >"$file"; } 2>/dev/null; then
      echo "$name: $value"
    else
      echo "$name: $file cannot be written here" >&2
      left=1
    fi
  done
}

# keep FILE PATTERN LINE...: so that it stays; lines that match PATTERN give way, others stay.
keep() {
  file=$1 pattern=$2
  shift 2
  mkdir -p "${file%/*}"
  new=$file.new.$$
  {
    [ ! -f "$file" ] || grep -v -E -e "$pattern" "$file" || :
    printf '%s\\n' "$@"
  } >"$new"
  mv -f "$new" "$file"
  new=
  echo "wrote $file"
}
"""
_LATER = """\
# Of sysctl.d the last file counts, by the order of their names: is there one behind ours?
conf=90-preflight.conf
[ ! -e /etc/sysctl.d/zz-preflight.conf ] || conf=zz-preflight.conf
for file in /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf \\
  /usr/lib/sysctl.d/*.conf /lib/sysctl.d/*.conf /etc/sysctl.conf; do
  case ${file##*/} in 90-preflight.conf | zz-preflight.conf) continue ;; esac
  if [ -f "$file" ] && expr "x${file##*/}" '>' x90-preflight.conf >/dev/null &&
    grep -q -E -e PATTERN "$file"; then
    echo "note: $file sets one of these too, and is read later; take the line out there" >&2
    conf=zz-preflight.conf
  fi
done
"""
_TAIL = """\
if [ -e /run/tuned/tuned.pid ]; then
  echo "note: tuned runs; what its profile sets too, it sets again at the next boot" >&2
fi
echo "check: preflight sysctl"
exit "$left"
"""


def scripts(hosts: Sequence[tuple[str, Wanted]]) -> Iterator[str]:
    """One script for each group of hosts that need the same, each with the names of its hosts."""
    groups: dict[tuple[tuple[str, str, str], ...], list[tuple[str, Wanted]]] = {}
    for name, one in (each for each in hosts if not each[1].unknown):
        key = tuple((change.kind, change.name, change.value) for change in one.changes)
        groups.setdefault(key, []).append((name, one))
    nothing = groups.pop((), [])
    if len(groups) > 1:
        told = f"here are {len(groups)} scripts, each for other hosts: cut them apart"
        yield f"echo '{told}' >&2\nexit 2\n"
    for group in groups.values():
        yield from _script(group)
    for name, one in (each for each in hosts if each[1].unknown):
        yield f"# {_comment(name)}: not known, {_comment(one.unknown)}\n"
    if nothing:
        yield f"# {_names(nothing)}: nothing to change\n"
        yield from _left_out(_distinct(left for _, one in nothing for left in one.left_out))


def _names(group: Sequence[tuple[str, Wanted]]) -> str:
    return _comment(fold([name for name, _ in group]))


def _script(group: Sequence[tuple[str, Wanted]]) -> Iterator[str]:
    changes = group[0][1].changes
    yield f"#!/bin/sh\n# For {_names(group)}, by preflight sysctl.\n"
    yield "# Read it, then run it as root; it may be run again. Nothing here needs a reboot.\n"
    yield from _left_out(_distinct(left for _, one in group for left in one.left_out))
    yield _HEAD
    for at, change in enumerate(changes):
        current = _distinct(one.changes[at].current for _, one in group)
        yield f"\n# {change.check}: it is {_comment(', '.join(current))}.\n"
        yield from (f"# {line}\n" for line in wrap(_comment(change.why), 97))
        yield from _now(change)
    yield "\n"
    for one in dropins(changes):
        yield from _keep(one, changes)
    yield _TAIL


def _now(change: Change) -> Iterator[str]:
    name, value = shlex.quote(change.name), shlex.quote(change.value)
    if change.kind == "sysctl":
        yield f"now {name} {value} /proc/sys/{change.name.replace('.', '/')}\n"
    elif change.kind == "sysfs":
        yield f"now {name} {value} {glob(change.name)}\n"
    else:
        yield f"# {name} {value}: for new logins; services have Limit...= of their own\n"


def _keep(one: DropIn, changes: Sequence[Change]) -> Iterator[str]:
    path, lines = one.path, " \\\n  ".join(map(shlex.quote, one.lines))
    if path.startswith("/etc/sysctl.d/"):
        names = [change.name for change in changes if change.kind == "sysctl"]
        yield _LATER.replace("PATTERN", shlex.quote(sysctl_pattern(names)))
        yield f'keep "/etc/sysctl.d/$conf" {shlex.quote(one.pattern)} \\\n  {lines}\n'
    else:
        yield f"keep {path} {shlex.quote(one.pattern)} \\\n  {lines}\n"


def _left_out(left: Iterable[LeftOut]) -> Iterator[str]:
    """Those of one reason together."""
    for reason, each in by_reason(left).items():
        told = f"Not set, {_comment(reason)}: {', '.join(each)}."
        yield from (f"# {line}\n" for line in wrap(told, 97))


def _distinct(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _comment(text: str) -> str:
    """Text from elsewhere on one line of a comment: nothing of it is ever run."""
    return " ".join(printable(text).split())
