"""Variables of the environment that training feels: of the shell, of a process, of NCCL's files."""

from __future__ import annotations

import re
from itertools import pairwise

from preflight.env_names import FELT, FILES, MASK, SECRET, is_felt, known, shown
from preflight.errors import ParseError
from preflight.facts.stack import Environment, EnvTargets, EnvVar
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "environment"

# awk knows the environment itself, so that a value of several lines is one line here. The value of
# a name that we do not know never leaves the host, nor does what looks like a secret. NCCL reads
# $NCCL_CONF_FILE, else ~/.nccl.conf, and then /etc/nccl.conf (NCCL User Guide, Environment
# Variables). Arguments are process ids: the shell is not asked then. /proc/PID/environ is what a
# process was started with.
_ASK = f"""\
p='{FELT}'
s='{SECRET}'
k='{" ".join(sorted(known()))}'
tell='BEGIN {{ c = split(k, w, " "); for (i = 1; i <= c; i++) known[w[i]] }}
function tell(n, v) {{
  if (n in known) print "var " n "=" substr(v, 1, 4000)
  else if (n ~ p && toupper(n) !~ s) print "var " n "={MASK}" }}'
kept() {{
  awk -v p="$p" -v s="$s" -v k="$k" "$tell"'
  {{ at = index($0, "="); if (at > 1) tell(substr($0, 1, at - 1), substr($0, at + 1)) }}'
}}
for n in "$@"; do
  echo "of pid $n"
  if [ ! -e "/proc/$n" ]; then echo gone
  elif grep -q '^State:.[ZX]' "/proc/$n/status" 2>/dev/null; then echo ended
  elif v=$(tr '\\n\\0' ' \\n' 2>/dev/null <"/proc/$n/environ"); then printf '%s\\n' "$v" | kept
  else echo denied; fi
done
if [ $# -eq 0 ]; then
  echo 'of shell'
  awk -v p="$p" -v s="$s" -v k="$k" "$tell"'
  BEGIN {{ for (n in ENVIRON) {{ v = ENVIRON[n]; gsub(/[\\n\\r]/, " ", v); tell(n, v) }} }}'
  for v in {" ".join(FILES)}; do
    eval "f=\\${{$v-}}"
    if [ -n "$f" ] && [ ! -r "$f" ]; then echo "unreadable $v"; fi
  done
fi
for f in "${{NCCL_CONF_FILE:-$HOME/.nccl.conf}}" /etc/nccl.conf; do
  if [ -f "$f" ] && [ -r "$f" ]; then echo "of $f"; kept <"$f"; fi
done
if [ -d /sys/class/net ]; then
  echo netdevs
  for d in /sys/class/net/*; do if [ -e "$d" ]; then echo "netdev ${{d##*/}}"; fi; done
  echo adapters
  for d in /sys/class/infiniband/*; do
    [ -e "$d" ] || continue
    l=; {{ read -r l <"$d/ports/1/link_layer"; }} 2>/dev/null
    echo "adapter ${{d##*/}} $l"
  done
fi
echo end"""

_VARIABLE = re.compile(r"var ([A-Za-z][A-Za-z0-9_]{0,100})=(.*)", re.ASCII)
_NOT_ASKED = Missing("not-asked", "those that a process names are not looked for")
_NO_LIST = Missing("unreadable", "/sys/class/net cannot be read")


@probe(_PROBE, ["sh", "-c", _ASK, "sh"], timeout_s=10)
def environment(text: str) -> Known[Environment]:
    """`of WHOSE` begins a part, `var NAME=VALUE` a variable of it; then what the host has."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end" or not lines[0].startswith("of "):
        raise ParseError("the environment is cut short: `of`, then a closing `end`", len(lines))
    for before, line in pairwise(lines):
        if line in ("gone", "ended", "denied"):
            return _not_read(before.removeprefix("of "), line)
    return Environment(_variables(lines), _targets(lines), probe=_PROBE)


def _not_read(whose: str, word: str) -> Missing:
    if word == "gone":
        return Missing("unreadable", f"{whose}: there is no such process")
    if word == "ended":
        return Missing("unreadable", f"{whose}: it has ended (zombie)")
    return Missing("denied", f"{whose}: its environment may only be read by its user and by root")


def _variables(lines: list[str]) -> tuple[EnvVar, ...]:
    """By whose they are, as told, and by name: awk tells them in no order."""
    found: list[EnvVar] = []
    of = ""
    for number, line in enumerate(lines, 1):
        if line.startswith("of "):
            of = line[3:]
        elif (match := _VARIABLE.fullmatch(line)) and is_felt(match[1]):
            value = shown(match[1], match[2].strip())
            found.append(EnvVar(match[1], value, of, number, _PROBE))
    order = {one.of: at for at, one in reversed(list(enumerate(found)))}
    return tuple(sorted(found, key=lambda one: (order[one.of], one.name)))


def _targets(lines: list[str]) -> EnvTargets:
    told: dict[str, list[list[str]]] = {}
    for line in lines:
        key, *words = line.split(" ")
        told.setdefault(key, []).append(words)
    unreadable: Known[tuple[str, ...]] = tuple(
        words[0] for words in told.get("unreadable", []) if words
    )
    if ["shell"] not in told["of"]:
        unreadable = _NOT_ASKED
    if "netdevs" not in told or "adapters" not in told:
        return EnvTargets(_NO_LIST, _NO_LIST, _NO_LIST, unreadable)
    adapters = [words for words in told.get("adapter", []) if words]
    return EnvTargets(
        netdevs=tuple(words[0] for words in told.get("netdev", []) if words),
        adapters=tuple(words[0] for words in adapters),
        link_layers=tuple(sorted({words[1] for words in adapters if len(words) > 1 and words[1]})),
        unreadable=unreadable,
    )
