"""The topology file that NCCL would read: found as NCCL finds it, or given by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from preflight.errors import ParseError
from preflight.facts.nccl_topo import FileDevice, FileNet, NcclTopo
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.xml_text import parsed

_PROBE = "nccl-topo"
_MOST_BYTES = 4 << 20
_DEEPEST = 64  # far deeper than PCI is

# The environment counts before $NCCL_CONF_FILE, else ~/.nccl.conf, and that before /etc/nccl.conf
# (NCCL User Guide, Environment Variables). Where nothing names a file, NCCL looks for the one of
# nvidia-topologyd. Arguments are process ids: then their environment counts, and their file system.
_ASK = f"""\
f=; w=; r=
for p in "$@"; do
  [ -z "$f" ] || break
  s=; if [ ! -d "/proc/$p" ]; then s=gone; elif [ ! -r "/proc/$p/environ" ]; then s=hidden; fi
  if [ -n "$s" ]; then echo "named pid $p"; echo "state $s"; echo end; exit 0; fi
  f=$(tr '\\n\\0' ' \\n' 2>/dev/null <"/proc/$p/environ" | sed -n 's/^NCCL_TOPO_FILE=//p')
  w="pid $p" r=/proc/$p/root
done
if [ $# -eq 0 ]; then f=${{NCCL_TOPO_FILE-}} w=shell; fi
for c in "${{NCCL_CONF_FILE:-$HOME/.nccl.conf}}" /etc/nccl.conf; do
  if [ -z "$f" ] && [ -f "$r$c" ] && [ -r "$r$c" ]; then
    while read -r l || [ -n "$l" ]; do
      case $l in NCCL_TOPO_FILE=*) f=${{l#*=}} w=$c; break ;; esac
    done <"$r$c"
  fi
done
d=/var/run/nvidia-topologyd/virtualTopology.xml
if [ -z "$f" ]; then f=$d w=default; [ -e "$r$f" ] || {{ echo 'state none'; echo end; exit 0; }}; fi
echo "named $w"; echo "path $f"
if [ ! -e "$r$f" ]; then echo 'state absent'
elif [ ! -r "$r$f" ] || [ ! -f "$r$f" ]; then echo 'state denied'
else echo 'state read'; head -c {_MOST_BYTES} "$r$f"; echo; fi
echo end"""

_HEAD = re.compile(r"(named|path|state) (\S.{0,4000})")
_BEGIN = re.compile(r"<system[\s>]")
_END = "</system>"
_ADDRESS = re.compile(r"([0-9a-f]{1,8}):([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])")
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s")
_STOPS_NCCL = (
    (re.compile(r"<[?]"), "it begins with an XML declaration, which NCCL does not take"),
    (re.compile(r"(?:^|>)[ \r\n]*\t"), "a tab between elements, where NCCL takes blanks only"),
)
_UNNAMED = Missing("not-in-input", "the file leaves it out, and NCCL asks the kernel or the driver")
#: A width that the kernel does not know is 0 or 255 (drivers/pci/pci.c, PCIE_LNK_WIDTH_UNKNOWN).
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
# NCCL takes files of version 1 (NCCL_TOPO_XML_VERSION of src/graph/xml.h).
_VERSION = "1"


class _Place(NamedTuple):
    """What is known above an element."""

    numa_node: Known[int] = _UNNAMED
    bridges: tuple[str, ...] = ()
    address: str = ""
    depth: int = 0


@probe(_PROBE, ["sh", "-c", _ASK, "sh"], timeout_s=10)
def nccl_topo(text: str) -> Known[NcclTopo]:
    """The answer of the question, whose head tells where the file is, or a file alone. A file that
    NCCL cannot read is `broken`; an answer or a given file that is cut short is a ParseError."""
    begin = _BEGIN.search(text)
    head = text[: begin.start()] if begin else text
    told = dict(_told(head))
    if "state" not in told:
        return _given(text, begin)
    if not text.rstrip().endswith("end"):
        raise ParseError("the answer is cut short: no closing `end`", text.count("\n") + 1)
    found = NcclTopo(told["state"], told.get("path", ""), told.get("named", ""), probe=_PROBE)
    if found.state == "gone":
        return Missing("unreadable", f"{found.named}: there is no such process")
    if found.state == "hidden":
        told_of = f"the environment of {found.named} may only be read by its user and by root"
        return Missing("denied", told_of)
    if found.state != "read":
        return found
    if len(text) >= _MOST_BYTES:
        raise ParseError(f"{found.path} is larger than {_MOST_BYTES >> 20} MiB")
    start = text.index("\n", text.index("state read")) + 1
    document = text[start : text.rstrip().rfind("end")]
    return _read(document, text.count("\n", 0, start) + 1, found)


def _told(head: str) -> Iterator[tuple[str, str]]:
    for line in head.split("\n"):
        if match := _HEAD.fullmatch(line.rstrip()):
            yield match[1], match[2]


def _given(text: str, begin: re.Match[str] | None) -> NcclTopo:
    if begin is None:
        raise ParseError('expected NCCL\'s topology file: <system version="1"> ...', 1)
    end = text.rfind(_END)
    if end < 0:
        raise ParseError("the file is cut short: no </system>", text.rstrip().count("\n") + 1)
    found = NcclTopo("read", named="input", probe=_PROBE)
    line = text.count("\n", 0, begin.start()) + 1
    return _filled(found, "\n" * (line - 1) + text[begin.start() : end + len(_END)])


def _read(document: str, line: int, found: NcclTopo) -> NcclTopo:
    """The file of a host, which begins at that line of the answer. What stops NCCL's own reader,
    which is stricter than XML, is told by the lines of the file."""
    try:
        _hold(document, line)
        return _filled(found, "\n" * (line - 1) + document)
    except ParseError as error:
        told = str(error).removeprefix(f"line {error.line}: ")
        fault = f"line {max(error.line - line + 1, 1)}: {told}"
        return NcclTopo("broken", found.path, found.named, fault, line=error.line, probe=_PROBE)


def _hold(document: str, line: int) -> None:
    """xmlGetNode of src/graph/xml.cc skips blanks and line ends between elements, no tab, and knows
    no declaration."""
    for pattern, told in _STOPS_NCCL:
        if match := pattern.search(document):
            raise ParseError(told, line + document.count("\n", 0, match.end()))


def _filled(found: NcclTopo, document: str) -> NcclTopo:
    root, lines = parsed(document)
    version = root.get("version")
    if root.tag != "system" or version != _VERSION:
        told = f'expected <system version="1">, got <{root.tag[:40]} version={version!r:.20}>'
        raise ParseError(told, lines[root])
    parts = [
        part for cpu in root.iterfind("cpu")
        for part in _below(cpu, _Place(_int(cpu.get("numaid"))), lines)
    ]  # fmt: skip
    return NcclTopo(
        "read", found.path, found.named, "",
        tuple(part for part in parts if isinstance(part, FileDevice)),
        tuple(part for part in parts if isinstance(part, FileNet)),
        lines[root], _PROBE,
    )  # fmt: skip


def _below(
    element: Element, place: _Place, lines: dict[Element, int]
) -> Iterator[FileDevice | FileNet]:
    if place.depth > _DEEPEST:
        raise ParseError("the elements nest too deep", lines[element])
    for child in element:
        if child.tag == "pci":
            address = _address(child.get("busid"))
            kind = _kind(child)
            if kind:
                yield _device(child, kind, address, place, lines[child])
            above = place.bridges if kind else (address, *place.bridges)
            inside = _Place(place.numa_node, above, address, place.depth + 1)
            yield from _below(child, inside, lines)
        elif child.tag == "nic":
            for net in child.iterfind("net"):
                yield _net(net, place.address, lines[net])


def _kind(pci: Element) -> str:
    """What a function is: by what hangs on it, else by its class (PCI Code and ID Assignment
    Specification: 03h display, 02h network)."""
    if pci.find("gpu") is not None:
        return "gpu"
    if pci.find("nic") is not None:
        return "nic"
    kinds = {"0x03": "gpu", "0x02": "nic"}
    return kinds.get((pci.get("class") or "")[:4].lower(), "")


def _device(pci: Element, kind: str, address: str, place: _Place, line: int) -> FileDevice:
    speed = _SPEED.match(pci.get("link_speed") or "")
    width = _int(pci.get("link_width"))
    links = pci.findall("gpu/nvlink")
    counts = [_int(link.get("count")) for link in links]
    return FileDevice(
        address, kind, place.numa_node, place.bridges,
        float(speed[1]) if speed else _UNNAMED,
        width if width in _WIDTHS else _UNNAMED,
        sum(one for one in counts if isinstance(one, int)) if links else _UNNAMED,
        line, _PROBE,
    )  # fmt: skip


def _net(net: Element, address: str, line: int) -> FileNet:
    speed = _int(net.get("speed"))  # Mbit/s
    rate = speed / 1000 if isinstance(speed, int) and speed > 0 else _UNNAMED
    return FileNet(net.get("name") or "?", address or NOT_IN_INPUT, rate, line, _PROBE)


def _address(told: str | None) -> str:
    """In the form of sysfs, 0000:18:00.0; as it is where it is none."""
    match = _ADDRESS.fullmatch((told or "").strip().lower())
    if not match:
        return (told or "?")[:40]
    return f"{match[1].zfill(4)}:{match[2].zfill(2)}:{match[3].zfill(2)}.{match[4]}"


def _int(told: str | None) -> Known[int]:
    return int(told) if told and re.fullmatch(r"-?[0-9]{1,9}", told) else _UNNAMED
