"""The script that makes the changes: for a person to read, in POSIX sh, and safe to run again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TypeVar

from preflight.nodesets import fold
from preflight.printable import printable
from preflight.settings.apply import NR_OPEN, of_docker
from preflight.settings.dropins import (
    DropIn,
    dropins,
    glob,
    limits_pattern,
    nearer_pattern,
    sysctl_pattern,
)
from preflight.settings.later import MARKS, VARIABLES
from preflight.settings.wanted import Change, LeftOut, Wanted, by_reason

T = TypeVar("T")

_HEAD = """\
set -u
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

# failed WHAT WHY: the rest is done all the same.
failed() {
  echo "$1: $2" >&2
  left=1
}

# now NAME VALUE FILE...: the running value; where there is no such file, there is no such driver.
now() {
  name=$1 value=$2
  shift 2
  for file in "$@"; do
    if [ ! -e "$file" ]; then
      echo "$name: not on this machine"
      return
    fi
    if ! { printf '%s\\n' "$value" >"$file"; } 2>/dev/null; then
      failed "$name" "$file cannot be written here"
      return
    fi
  done
  echo "$name: $value"
}

# others FILE PATTERN: its lines that do not match; an error of the disk is one.
others() {
  [ -f "$1" ] || return 0
  grep -v -E -e "$2" "$1" || [ $? = 1 ]
}

# keep FILE PATTERN LINE...: so that it stays; lines that match PATTERN give way, others stay.
keep() {
  file=$1 pattern=$2
  shift 2
  if [ -h "$file" ]; then
    failed "$file" "it is a link, and stays as it is"
    return
  fi
  new=$file.new.$$
  if mkdir -p "${file%/*}" && others "$file" "$pattern" >"$new" &&
    printf '%s\\n' "$@" >>"$new" && mv -f "$new" "$file"; then
    echo "wrote $file"
  else
    failed "$file" "cannot be written, and is as it was; after the next boot or login too"
    rm -f "$new"
  fi
  new=
}

# later FOLDER PATTERN FILE...: the last file counts, by the order of their names. Where one of
# these is behind ours and sets the same, ours gets the later name.
later() {
  conf=90-preflight.conf pattern=$2
  [ ! -e "$1/zz-preflight.conf" ] || conf=zz-preflight.conf
  shift 2
  for file in "$@"; do
    case ${file##*/} in 90-preflight.conf | zz-preflight.conf) continue ;; esac
    if [ -f "$file" ] && expr "x${file##*/}" '>' x90-preflight.conf >/dev/null &&
      grep -q -E -e "$pattern" "$file"; then
      echo "note: $file sets one of these too, and is read later; take the line out there" >&2
      conf=zz-preflight.conf
    fi
  done
}
"""
_LATER = """\
later /etc/sysctl.d PATTERN /etc/sysctl.d/*.conf /run/sysctl.d/*.conf \\
  /usr/local/lib/sysctl.d/*.conf /usr/lib/sysctl.d/*.conf /lib/sysctl.d/*.conf /etc/sysctl.conf
"""
_CONTAINER = """\
if CONTAINER; then
  echo "a container has its limits from what started it: STARTED"
else
"""
_LATER_LIMITS = """\
# A line for a user or a group counts before those for everybody.
later /etc/security/limits.d PATTERN /etc/security/limits.d/*.conf
grep -s -H -n -E -e NEARER /etc/security/limits.conf /etc/security/limits.d/*.conf |
  grep -v -E -e ':[[:space:]]*root[[:space:]]' |
  sed 's/^/note: for them this line counts: /' >&2
"""
_NR_OPEN = """\
# The kernel refuses more open files than fs.nr_open, and a login may then be refused.
most=$(cat /proc/sys/fs/nr_open 2>/dev/null) || most=NOFILE
if [ "$most" -lt NOFILE ]; then
  now fs.nr_open NOFILE /proc/sys/fs/nr_open
"""
_NR_OPEN_LOW = """\
  most=$(cat /proc/sys/fs/nr_open)
fi
if [ "$most" -lt NOFILE ]; then
  failed nofile "left alone: fs.nr_open could not be raised, and logins might be refused"
else
"""
_ELSEWHERE = """\
[ "$(uname -n | cut -d. -f1)" = HOST ] ||
  echo "warning: this was made for HOST, and here is $(uname -n)" >&2
"""
_TAIL = """\
if [ -e /run/tuned/tuned.pid ]; then
  echo "note: tuned runs; what its profile sets too, it sets again at the next boot" >&2
fi
[ "$left" = 0 ] || echo "error: not all of it could be done, as told above" >&2
echo "check: preflight sysctl"
exit "$left"
"""
#: No address: a machine is not called so.
_HOST = re.compile(
    r"(?![0-9.]+\Z)[A-Za-z0-9][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9._-]{0,190})?", re.ASCII
)


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
        yield from _not_set(nothing)


def _names(group: Sequence[tuple[str, Wanted]]) -> str:
    return _comment(fold([name for name, _ in group]))


def _script(group: Sequence[tuple[str, Wanted]]) -> Iterator[str]:
    changes = group[0][1].changes
    yield f"#!/bin/sh\n# For {_names(group)}, by preflight sysctl.\n"
    yield "# Read it, then run it as root; it may be run again. Nothing here needs a reboot.\n"
    yield from _not_set(group)
    yield _HEAD
    if len(group) == 1 and _HOST.fullmatch(group[0][0]):
        yield _ELSEWHERE.replace("HOST", group[0][0].partition(".")[0])
    for at, change in enumerate(changes):
        current = _distinct(one.changes[at].current for _, one in group)
        yield f"\n# {change.check}: it is {_comment(', '.join(current))}.\n"
        yield from (f"# {line}\n" for line in wrap(_comment(change.why), 97))
        yield from _now(change)
    yield "\n"
    limits = [change for change in changes if change.kind == "limit"]
    for one in dropins([change for change in changes if change.kind != "limit"]):
        yield from _keep(one, changes)
    yield from _limits(limits) if limits else ()
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
    folder = path.rpartition("/")[0]
    names = [change.name for change in changes if change.kind == "sysctl"]
    if folder == "/etc/sysctl.d":
        yield _LATER.replace("PATTERN", shlex.quote(sysctl_pattern(names)))
    path = path if folder == "/etc/tmpfiles.d" else f'"{folder}/$conf"'
    yield f"keep {path} {shlex.quote(one.pattern)} \\\n  {lines}\n"


def _limits(changes: Sequence[Change]) -> Iterator[str]:
    """Limits of logins: not in a container; open files only as far as the kernel gives them."""
    marks = " || ".join(f"[ -e {mark} ]" for mark in MARKS)
    variables = "".join(f"${{{name}-}}" for name in VARIABLES)
    started = "; ".join(map(of_docker, changes))
    in_container = f'{marks} ||\n  [ -n "{variables}" ]'
    yield _CONTAINER.replace("CONTAINER", in_container).replace("STARTED", started)
    nofile = next((one.value for one in changes if one.name == "nofile"), "")
    if nofile.isdigit():
        first = [Change("sysctl", NR_OPEN, nofile)]
        yield _NR_OPEN.replace("NOFILE", nofile)
        for one in dropins(first):
            yield from _keep(one, first)
        yield _NR_OPEN_LOW.replace("NOFILE", nofile)
    names = [one.name for one in changes]
    later = _LATER_LIMITS.replace("PATTERN", shlex.quote(limits_pattern(names)))
    yield later.replace("NEARER", shlex.quote(nearer_pattern(names)))
    for one in dropins(changes):
        yield from _keep(one, changes)
    yield "fi\nfi\n" if nofile.isdigit() else "fi\n"


def _not_set(group: Sequence[tuple[str, Wanted]]) -> Iterator[str]:
    """What the checks say and the script does not mend."""
    yield from _left_out(_distinct(left for _, one in group for left in one.left_out))
    for one in _distinct(each for _, needed in group for each in needed.by_hand):
        yield f"# Not set, by hand: {one.check}: {_comment(one.step)}\n"


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
