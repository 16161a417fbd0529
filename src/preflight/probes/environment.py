"""Variables of the environment that training feels: of the shell, of a process, of NCCL's files."""

from __future__ import annotations

import re
from itertools import pairwise

from preflight.errors import ParseError
from preflight.facts.stack import Environment, EnvTargets, EnvVar
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "environment"

#: The families that are read, by the beginning of their names, and single names. All others are
#: nobody's business here.
FAMILIES = (
    "NCCL", "TORCH", "TORCHINDUCTOR", "TORCHELASTIC", "PYTORCH", "CUDA", "CUBLAS", "CUBLASLT",
    "CUDNN", "NVTE", "NVIDIA", "NVSHMEM", "NVIDIA_TF32", "OMP", "KMP", "GOMP", "MKL", "OPENBLAS",
    "NUMEXPR", "GLOO", "UCX", "UCC", "FI", "OFI", "RDMAV", "IBV", "SHARP", "MELLANOX", "OMPI_MCA",
    "HCCL", "ASCEND", "ACL", "NPU", "HSA", "ROCR", "HIP", "RCCL", "ROCM", "GPU", "AMD", "MIOPEN",
    "XLA", "TRITON", "DEEPSPEED", "DS", "ACCELERATE", "MALLOC", "TASK_QUEUE",
)  # fmt: skip
_SINGLE = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "TOKENIZERS_PARALLELISM", "PYTHONPATH", "PYTHONHASHSEED",
    "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "COMBINED_ENABLE", "CPU_AFFINITY_CONF",
)  # fmt: skip
#: Variables that name a file which is read.
_FILES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE", "RANK_TABLE_FILE")

# awk knows the environment itself, so that a value of several lines is one line here. What looks
# like a secret by its name never leaves the host. NCCL reads $NCCL_CONF_FILE, else ~/.nccl.conf,
# and then /etc/nccl.conf (NCCL User Guide, Environment Variables). Arguments are process ids: the
# shell is not asked then. /proc/PID/environ is what a process was started with.
_ASK = f"""\
p='^(({"|".join(FAMILIES)})_[A-Za-z0-9_]+|{"|".join(_SINGLE)})$'
s='(^|_)(AUTH|API|ACCESS)?(TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|CREDENTIAL|KEY|AUTH)S?(_|$)'
kept() {{
  awk -v p="$p" -v s="$s" '{{ n = $0; sub(/=.*/, "", n)
    if (n ~ p && n !~ s) print "var " substr($0, 1, 4000) }}'
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
  awk -v p="$p" -v s="$s" 'BEGIN {{ for (n in ENVIRON) if (n ~ p && n !~ s) {{
    v = ENVIRON[n]; gsub(/[\\n\\r]/, " ", v); print "var " n "=" substr(v, 1, 4000) }} }}'
  for v in {" ".join(_FILES)}; do
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
#: A user and a password in an address.
_LOGIN = re.compile(r"(://)[^\s/@]{0,256}@")
_NO_LIST = Missing("unreadable", "/sys/class/net cannot be read")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
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
        elif match := _VARIABLE.fullmatch(line):
            value = _LOGIN.sub(r"\1***@", match[2].strip())
            found.append(EnvVar(match[1], value, of, number, _PROBE))
    order = {one.of: at for at, one in reversed(list(enumerate(found)))}
    return tuple(sorted(found, key=lambda one: (order[one.of], one.name)))


def _targets(lines: list[str]) -> EnvTargets:
    told: dict[str, list[list[str]]] = {}
    for line in lines:
        key, *words = line.split(" ")
        told.setdefault(key, []).append(words)
    unreadable = tuple(words[0] for words in told.get("unreadable", []) if words)
    if "netdevs" not in told or "adapters" not in told:
        return EnvTargets(_NO_LIST, _NO_LIST, _NO_LIST, unreadable)
    adapters = [words for words in told.get("adapter", []) if words]
    return EnvTargets(
        netdevs=tuple(words[0] for words in told.get("netdev", []) if words),
        adapters=tuple(words[0] for words in adapters),
        link_layers=tuple(sorted({words[1] for words in adapters if len(words) > 1 and words[1]})),
        unreadable=unreadable,
    )
