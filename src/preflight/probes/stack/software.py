"""What is installed beside the driver: libraries that the loader would take, CUDA, OFED."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from preflight.errors import ParseError
from preflight.facts.setup import Software
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "software"

#: Library as the loader asks for it -> our name; those of the driver itself are judged with it. The
#: version stands in the name of the file that the link leads to: libnccl.so.2 -> libnccl.so.2.21.5.
_LIBRARIES = {
    "libnvidia-nscq.so.2": "nscq",  # how DCGM sees NVSwitches
    "libnvidia-container.so.1": "container-toolkit",
    "libnccl.so.2": "nccl",
    "libnccl-net.so": "nccl-net",  # a plugin of the network's vendor
    "libcudart.so.11.0": "cudart-11",
    "libcudart.so.12": "cudart-12",
    "libcudart.so.13": "cudart-13",
    "libcudnn.so.8": "cudnn-8",
    "libcudnn.so.9": "cudnn-9",
    "libcublas.so.12": "cublas-12",
    "libcublas.so.13": "cublas-13",
    "libgdrapi.so.2": "gdrcopy",
    "libdcgm.so.3": "dcgm-3",
    "libdcgm.so.4": "dcgm-4",
    "libibverbs.so.1": "rdma-core",  # 1.14.39.0: the interface's 1.14, then rdma-core's own 39.0
}
#: The same of what the loader would take before: LD_LIBRARY_PATH and LD_PRELOAD of this shell. A
#: libcuda there is of a forward-compatibility package, or the driver's own in a place of its own.
_BEFORE = {
    "path libnccl.so.2": "nccl-path",
    "path libcudnn.so.8": "cudnn-8-path",
    "path libcudnn.so.9": "cudnn-9-path",
    "path libcuda.so.1": "compat-driver",
    "preload libnccl.so.2": "nccl-preload",
    "absent libnccl.so.2": "nccl-preload",
}
#: Where vendors put NCCL's network plugins -> our name.
_PLUGINS = {
    "/opt/amazon/ofi-nccl": "nccl-net-aws-ofi",
    "/opt/aws-ofi-nccl": "nccl-net-aws-ofi",
    "/opt/hpcx/nccl_rdma_sharp_plugin": "nccl-net-sharp",
    "/usr/local/gib": "nccl-net-gib",  # Google's, for RoCE
    "/var/lib/tcpx": "nccl-net-tcpx",
    "/var/lib/tcpxo": "nccl-net-tcpxo",
}
_UNTOLD = Missing("not-applicable", "a plugin's file has no version in its name")
# `ldconfig -p` lists 32-bit libraries with nothing but "libc6"; of several the first is taken. The
# nvcc is the one that builds torch's extensions: that of CUDA_HOME, of PATH, of /usr/local/cuda.
# A NCCL whose name has no version tells it in its text, which lies before the code for GPUs.
_ASK = f"""\
inside() {{
  case $1 in *libnccl.so.*.*) ;; *libnccl.so*)
    v=$(head -c 67108864 "$1" 2>/dev/null | grep -a -o -m 1 'NCCL version [0-9][0-9.]*')
    if [ -n "$v" ]; then echo "inside $1 $v"; fi ;;
  esac
}}
ldconfig -p 2>/dev/null | while read -r n o; do
  case $n in
    {"|".join(_LIBRARIES)}) ;;
    *) continue ;;
  esac
  case $o in *,*) f=$(readlink -f "${{o##*=> }}"); echo "library $n $f"; inside "$f" ;; esac
done
d=$(readlink -f /usr/local/cuda) && [ -d "$d" ] && echo "cuda $d" && \\
  for f in version.json version.txt; do
    if [ -r "$d/$f" ]; then echo "begin $f"; cat "$d/$f"; echo; echo "end $f"; break; fi
  done
set -f; IFS=:
for d in $LD_LIBRARY_PATH; do
  for n in libnccl.so.2 libcudnn.so.9 libcudnn.so.8 libcuda.so.1; do
    if [ -e "$d/$n" ]; then f=$(readlink -f "$d/$n"); echo "path $n $f"; inside "$f"; fi
  done
done
IFS=' :'
for f in $LD_PRELOAD; do
  case $f in *libnccl.so*)
    case $f in */*) [ -e "$f" ] || {{ echo "absent libnccl.so.2 $f"; continue; }} ;; esac
    f=$(readlink -f "$f" || echo "$f"); echo "preload libnccl.so.2 $f"; inside "$f" ;;
  esac
done
unset IFS; set +f
for d in {" ".join(_PLUGINS)}; do
  for f in "$d"/lib/libnccl-net*.so "$d"/lib64/libnccl-net*.so; do
    if [ -e "$f" ]; then echo "plugin $d $(readlink -f "$f")"; break; fi
  done
done
n=${{CUDA_HOME:-/none}}/bin/nvcc
[ -x "$n" ] || n=$(command -v nvcc) || n=/usr/local/cuda/bin/nvcc
if [ -x "$n" ]; then echo "nvcc $n"; "$n" --version 2>/dev/null; fi
for d in /usr/local/cuda-*; do if [ -d "$d/bin" ]; then echo "toolkit $d"; fi; done
if command -v ofed_info >/dev/null 2>&1; then printf 'ofed '; ofed_info -s; fi
printf 'libc '; getconf GNU_LIBC_VERSION 2>/dev/null || echo
echo end"""

_VERSION = re.compile(r"\.so\.([0-9][\w.]{0,40})$", re.ASCII)
_INSIDE = re.compile(r"inside (.{1,300}) NCCL version ([0-9]+(?:\.[0-9]+){1,3})\.?")
_RDMA_CORE = re.compile(r"[0-9]+\.[0-9]+\.([0-9]+(?:\.[0-9]+)?)", re.ASCII)
_TXT = re.compile(r"CUDA Version ([0-9][0-9.]{0,20})")
_DIRECTORY = re.compile(r"cuda-([0-9]{1,3}\.[0-9]{1,3})$", re.ASCII)
_NVCC = re.compile(r"Cuda compilation tools, release [0-9.]{1,10}, V([0-9.]{1,20})")
_OFED = re.compile(r"([\w.-]{1,80}?):?", re.ASCII)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def software(text: str) -> tuple[Software, ...]:
    """Each piece once, the first that is told. What is not installed is not in the list."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of software is cut short: no closing `end`", len(lines))
    found: dict[str, Software] = {}
    for one in (*_libraries(lines), *_cuda(lines), *_nvcc(lines), *_others(lines)):
        found.setdefault(one.name, one)
    return tuple(found.values())


def _libraries(lines: list[str]) -> Iterator[Software]:
    inside = {match[1]: match[2] for line in lines if (match := _INSIDE.fullmatch(line))}
    for number, line in enumerate(lines, 1):
        kind, _, rest = line.partition(" ")
        soname, _, path = rest.partition(" ")
        plugin = next((_PLUGINS[place] for place in _PLUGINS if soname.endswith(place)), "")
        if kind == "plugin" and plugin:
            told = _of_file("", path)
            told = _UNTOLD if isinstance(told, Missing) else told
            yield Software(plugin, told, path.strip(), number, _PROBE)
        name = _LIBRARIES.get(soname, "") if kind == "library" else _BEFORE.get(f"{kind} {soname}")
        if name:
            told = inside.get(path.strip()) or _of_file(name, path)
            if kind == "absent":
                told = Missing("not-applicable", f"LD_PRELOAD names {path.strip()}: no such file")
            yield Software(name, told, path.strip(), number, _PROBE)


def _of_file(name: str, path: str) -> Known[str]:
    match = _VERSION.search(path.strip())
    if not match:
        return Missing("unreadable", f"no version in the name of {path.strip()[:200] or name}")
    if name in _BEFORE.values() and "." not in match[1]:  # libcuda.so.1 is what it is asked for by
        return Missing("unreadable", f"{path.strip()[:200]} tells no version in its name")
    inner = _RDMA_CORE.fullmatch(match[1]) if name == "rdma-core" else None
    return inner[1] if inner else match[1]


def _cuda(lines: list[str]) -> Iterator[Software]:
    """The toolkit below /usr/local/cuda: by its own file, else by the directory's name."""
    at = next((at for at, line in enumerate(lines) if line.startswith("cuda /")), None)
    if at is None:
        return
    path = lines[at].partition(" ")[2]
    named = _DIRECTORY.search(path)
    told = _in_json(lines) or _in_txt(lines) or (named[1] if named else "")
    unread = Missing("unreadable", f"no version in {path[:200]}")
    yield Software("cuda-toolkit", told or unread, path, at + 1, _PROBE)


def _nvcc(lines: list[str]) -> Iterator[Software]:
    """The compiler that extensions are built with, and all toolkits that are installed."""
    at = next((at for at, line in enumerate(lines) if line.startswith("nvcc /")), None)
    if at is not None:
        path = lines[at].partition(" ")[2]
        told = next((match[1] for line in lines[at:] if (match := _NVCC.match(line))), "")
        unread = Missing("unreadable", f"{path[:200]} --version tells no version")
        yield Software("nvcc", told or unread, path, at + 1, _PROBE)
    found = [(at, match[1]) for at, line in enumerate(lines, 1)
             if line.startswith("toolkit /") and (match := _DIRECTORY.search(line))]  # fmt: skip
    if found:
        yield Software(
            "cuda-toolkits", ", ".join(name for _, name in found), "", found[0][0], _PROBE
        )


def _in_json(lines: list[str]) -> str:
    """{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, ...}"""
    if not {"begin version.json", "end version.json"} <= set(lines):
        return ""
    body = lines[lines.index("begin version.json") + 1 : lines.index("end version.json")]
    try:
        version = json.loads("\n".join(body))["cuda"]["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return version[:40] if isinstance(version, str) else ""


def _in_txt(lines: list[str]) -> str:
    """CUDA 10 and older: CUDA Version 10.2.89"""
    return next((match[1] for line in lines if (match := _TXT.match(line))), "")


def _others(lines: list[str]) -> Iterator[Software]:
    """`ofed MLNX_OFED_LINUX-5.8-1.1.2.1:` and `libc glibc 2.35`."""
    for number, line in enumerate(lines, 1):
        kind, _, value = line.partition(" ")
        if kind == "ofed" and (match := _OFED.fullmatch(value.strip())):
            yield Software("ofed", match[1], "", number, _PROBE)
        if kind == "libc" and value.strip():
            yield Software("libc", value.strip()[:60], "", number, _PROBE)
