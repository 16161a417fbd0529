"""What limits.conf and limits.d give the user at a login, beside what the shell has now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from preflight.errors import ParseError
from preflight.facts.system import UNLIMITED, Amount, ConfiguredLimit
from preflight.model import Known, Missing
from preflight.probes.limits.limits import amount, read_limits
from preflight.probes.spec import probe

_PROBE = "limits-conf"

# A directory of users that is down holds `id` for long: nobody waits for it here.
# pam_limits(8) reads limits.conf, then limits.d/*.conf in the order of the C locale. Only lines
# that are for this user are told, and not by whose name.
_ASK = """\
cat /proc/self/limits
printf 'nr_open '; cat /proc/sys/fs/nr_open || echo
u=$(id -un 2>/dev/null); g=$(id -Gn 2>/dev/null)
[ -e /etc/security/limits.conf ] || echo none
[ -z "${SLURM_JOB_ID-}" ] || echo job
grep -s -H -n -E '^[^#]*(nofile|memlock|nproc|stack)' \
    /etc/security/limits.conf /etc/security/limits.d/*.conf |
while read -r d t i v x; do
  case $d in *:) d=$d$t; t=$i; i=$v; v=${x%% *} ;; esac  # the line begins with a blank
  at=${d%:*}; d=${d##*:}
  case $d in
    "$u") echo "conf $at user $t $i $v" ;;
    '*') echo "conf $at all $t $i $v" ;;
    @*) case " $g " in *" ${d#@} "*) echo "conf $at group $t $i $v" ;; esac ;;
  esac
done
[ "$(id -u)" = 0 ] && echo root
echo end"""

_CONF = re.compile(r"conf (/\S+):([0-9]+) (user|group|all) (soft|hard|-) (\w+) (\S+)")
#: Bytes in one of limits.conf(5).
_UNITS = {"nofile": 1, "nproc": 1, "memlock": 1024, "stack": 1024}
#: Nearest to the user first: a line for a group does not change what one for the user says.
_SCOPES = ("user", "group", "all")


class _Entry(NamedTuple):
    scope: str
    value: Amount
    file: str
    line: int


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=5)
def limits_conf(text: str) -> Known[tuple[ConfiguredLimit, ...]]:
    """The limits of this shell, then `conf FILE:LINE SCOPE TYPE ITEM VALUE` lines."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the configured limits are cut short: no closing `end`", len(lines))
    if "job" in lines:
        return Missing("not-applicable", "a Slurm job has no limits of a login of its own")
    running = {each.resource: each for each in read_limits(lines, "shell", _PROBE)}
    found = tuple(
        ConfiguredLimit(
            f"{item} {kind}", entry.value, getattr(running[item], kind), entry.file,
            entry.line, _PROBE,
        )
        for (item, kind), entry in _in_force(lines).items()
    )  # fmt: skip
    where = "there is no /etc/security/limits.conf" if "none" in lines else "limits.conf is silent"
    return found or Missing("not-applicable", f"{where}: nothing there sets a limit of this user")


def _in_force(lines: list[str]) -> dict[tuple[str, str], _Entry]:
    """(item, soft or hard) -> the line that counts: the nearest scope, of these the last."""
    chosen: dict[tuple[str, str], _Entry] = {}
    for key, entry in _entries(lines):
        before = chosen.get(key)
        if before is None or _SCOPES.index(entry.scope) <= _SCOPES.index(before.scope):
            chosen[key] = entry
    return chosen


def _entries(lines: list[str]) -> Iterator[tuple[tuple[str, str], _Entry]]:
    root = "root" in lines
    nr_open = next((int(line[8:]) for line in lines if re.fullmatch(r"nr_open \d{1,12}", line)), 0)
    for number, line in enumerate(lines, 1):
        match = _CONF.fullmatch(line)
        if not match or match[5] not in _UNITS or (root and match[3] != "user"):
            continue  # lines for groups and for all are not for root
        value = amount(match[6], _UNITS[match[5]])
        if isinstance(value, Missing):
            continue  # pam_limits leaves out what it cannot read
        if match[5] == "nofile" and value == UNLIMITED and nr_open:
            value = nr_open  # no process can have more
        for kind in ("soft", "hard") if match[4] == "-" else (match[4],):
            yield (match[5], kind), _Entry(match[3], value, f"{match[1]}:{match[2]}", number)
