"""The file systems that are mounted, by the kernel's own list, and whether servers answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.storage import CachePlace, Mount, Mounts
from preflight.model import Known, Missing
from preflight.probes.spec import probe
from preflight.probes.storage.kinds import AUTOFS, KINDS, OTHERS, pattern
from preflight.probes.storage.lines import Told, mounts_of, unescaped

_PROBE = "mounts"
#: Seconds after which a server counts as one that does not answer: leptonai/gpud, its check of NFS.
ANSWER_S = 7
#: Directories that ranks of many hosts lock, map or compile in.
CACHES = ("HF_HOME", "HF_DATASETS_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR")
#: So many file systems of the network are asked, all at once.
_MOST = 32

# The kernel's list waits for nobody. What a server has to answer is asked in the background, a
# process for each: one whose server is gone may hang so that nothing ends it, and is left behind.
# A process that has ended is a zombie (Z) until the shell waits for it. One that comes back after
# the question is over ($$ is gone) says nothing: its line would stand in the answer to another.
_ASK = f"""\
list=/proc/self/mountinfo
[ -r "$list" ] || {{ echo "$list cannot be read" >&2; exit 2; }}
for v in {" ".join(CACHES)}; do
  eval "p=\\${{$v-}}"
  case $p in *'
'*) ;; /*) printf 'cache %s %s\\n' "$v" "$p" ;; esac
done
shown() {{
  grep -E ' - ({pattern()}) ' "$list" | grep -v -E '^([^ ]+ ){{4}}({OTHERS}) '
}}
served() {{
  shown | grep -E ' - ({"|".join(kind.replace(".", "[.]") for kind in KINDS["network"])}) ' |
  head -n {_MOST}
}}
ask() {{
  p=$1; case $p in *\\\\*) p=$(printf %b "$p") ;; esac
  v=$(timeout -k 1 {ANSWER_S} stat -f -c '%S %b %f %a %c %d' "$p" 2>&1)
  r=$?; kill -0 $$ 2>/dev/null || return 0
  printf 'answer %s %s %s\\n' "$r" "$1" "$v"
  if [ "$2" = lustre ] && command -v lfs >/dev/null; then
    c=$(timeout -k 1 {ANSWER_S} lfs getstripe -d -c "$p" 2>/dev/null) &&
      s=$(timeout -k 1 {ANSWER_S} lfs getstripe -d -S "$p" 2>/dev/null) && kill -0 $$ 2>/dev/null &&
      printf 'stripe %s %s %s\\n' "$1" "$c" "$s"
  fi
}}
shown
command -v stat >/dev/null && command -v timeout >/dev/null || {{ echo 'no stat'; echo end; exit; }}
asked=
while read -r id above device root point rest; do
  [ -n "$point" ] || continue
  kind=${{rest#* - }}
  printf 'asked %s\\n' "$point"
  ask "$point" "${{kind%% *}}" </dev/null &
  asked="$asked $!"
done <<EOF
$(served)
EOF
waits=0
while [ -n "$asked" ] && [ $waits -lt {(ANSWER_S + 2) * 20} ]; do
  left=
  for j in $asked; do
    s=Z; {{ read -r a b s c <"/proc/$j/stat"; }} 2>/dev/null
    [ "$s" = Z ] || left="$left $j"
  done
  asked=$left waits=$((waits + 1))
  [ -z "$asked" ] || sleep 0.05
done
echo end"""

#: proc_pid_mountinfo(5): id, id of the mount above, device, root, point, options, optional fields,
#: `-`, kind, source, options of the file system.
_LINE = re.compile(
    r"(\d{1,9}) (\d{1,9}) (\d{1,6}:\d{1,9}) (\S{1,4000}) (/\S{0,4000}) (\S{1,4000})"
    r"(?: [a-z_]{1,30}(?::\d{1,9})?){0,4} - (\S{1,40}) (\S{0,4000}) (\S{1,8000})",
    re.ASCII,
)
_CACHE = re.compile(r"cache ([A-Z_]{1,40}) (/.*)")
_ASKED = re.compile(r"asked (/\S{0,4000})", re.ASCII)
_ANSWER = re.compile(r"answer (\d{1,3}) (/\S{0,4000}) (.*)", re.ASCII)
_STRIPE = re.compile(r"stripe (/\S{0,4000}) (-?\d{1,9}) (\d{1,18})", re.ASCII)
_STATFS = re.compile(r"\d{1,20}(?: \d{1,20}){5}", re.ASCII)
#: timeout(1) has ended it.
_OVER = ("124", "137")
_NOT_MINE = "Permission denied"
_UNASKED = Missing("not-asked", f"only the first {_MOST} file systems of the network are asked")
_NO_STAT = Missing("no-tool", "stat and timeout (coreutils) are not installed")
_DENIED = Missing("not-applicable", "only the user who mounted it may look at it")
_NONE = Missing("not-applicable", "no file system that holds files of people is mounted")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=20)
def mounts(text: str) -> Known[Mounts]:
    """Lines of mountinfo, the directories that variables name, and what servers answered."""
    lines = text.strip().split("\n")
    if lines[-1].strip() != "end":
        raise ParseError("the list of mounts is cut short: no closing `end`", len(lines))
    found = read_mountinfo(lines, _PROBE)
    if not found:
        return _NONE
    return Mounts(tuple(_with_answers(found, lines)), tuple(_caches(lines)), probe=_PROBE)


@probe("mountinfo", ["cat", "/proc/self/mountinfo"])
def mountinfo(text: str) -> Known[Mounts]:
    """The kernel's list as it is: what a server answers is not in it."""
    found = read_mountinfo(text.split("\n"), "mountinfo")
    if not found and not any(_LINE.fullmatch(line.strip()) for line in text.split("\n")):
        raise ParseError("expected lines as /proc/self/mountinfo has them", 1)
    return Mounts(found, probe="mountinfo") if found else _NONE


def read_mountinfo(lines: Sequence[str], name: str) -> tuple[Mount, ...]:
    """The mounts in lines of mountinfo; other lines are passed over."""
    told: list[Told] = []
    automounts: set[int] = set()
    for number, line in enumerate(lines, 1):
        if match := _LINE.fullmatch(line.strip()):
            at, above, device, root, point, options, kind, source, own = match.groups()
            if kind == AUTOFS:
                automounts.add(int(at))
            words = (*options.split(","), *own.split(","))
            told.append(Told(unescaped(point), unescaped(source), kind, words, number, device,
                             unescaped(root), int(above)))  # fmt: skip
    return mounts_of(told, name, frozenset(automounts))


def _caches(lines: Sequence[str]) -> Iterator[CachePlace]:
    for number, line in enumerate(lines, 1):
        if match := _CACHE.fullmatch(line):
            yield CachePlace(match[1], match[2].rstrip(), line=number, probe=_PROBE)


def _with_answers(found: Sequence[Mount], lines: Sequence[str]) -> Iterator[Mount]:
    """The mounts; those that the network serves with what was answered for them."""
    asked = {unescaped(match[1]) for line in lines if (match := _ASKED.fullmatch(line.strip()))}
    answers = {
        unescaped(match[2]): (match[1], match[3].strip())
        for line in lines
        if (match := _ANSWER.fullmatch(line.strip()))
    }
    stripes = {
        unescaped(match[1]): (int(match[2]), int(match[3]))
        for line in lines
        if (match := _STRIPE.fullmatch(line.strip()))
    }
    for one in found:
        if one.reach != "network":
            yield one
            continue
        why = _NO_STAT if "no stat" in lines else _UNASKED if one.name not in asked else None
        told = _unknown(one, why) if why else _answered(one, *answers.get(one.name, ("124", "")))
        count, size = stripes.get(one.name, (told.stripes, told.stripe_bytes))
        yield replace(told, stripes=count, stripe_bytes=size)


def _answered(mount: Mount, status: str, said: str) -> Mount:
    """With its space, or with what was said in place of it."""
    if status == "0" and _STATFS.fullmatch(said):
        return _filled(mount, [int(word) for word in said.split()])
    words = said.rpartition(": ")[2].strip()[:80]
    if words == _NOT_MINE:
        return _unknown(mount, _DENIED)
    trouble = f"no answer within {ANSWER_S} s" if status in _OVER or not words else words
    gone = Missing("not-applicable", f"it does not answer: {trouble}")
    return replace(_unknown(mount, gone), answers=False, trouble=trouble)


def _unknown(mount: Mount, why: Missing) -> Mount:
    return replace(mount, answers=why, size_bytes=why, free_bytes=why, used_percent=why,
                   inodes_used_percent=why)  # fmt: skip


def _filled(mount: Mount, told: Sequence[int]) -> Mount:
    """statfs(2): size of a block, blocks, free ones, free for all users, inodes, free ones."""
    block, blocks, free, mine, inodes, inodes_free = told
    used = blocks - free
    unlimited = Missing("not-applicable", "it tells no size")
    return replace(
        mount,
        answers=True,
        size_bytes=block * blocks or unlimited,
        free_bytes=block * mine if blocks else unlimited,
        used_percent=100 * used / (used + mine) if used + mine > 0 and blocks else unlimited,
        inodes_used_percent=100 * (inodes - inodes_free) / inodes
        if inodes_free <= inodes and inodes > 0
        else Missing("not-applicable", "it tells no number of inodes"),
    )
