"""GPU state, from the table that `nvidia-smi` prints when it is asked for nothing in particular.

Drivers 375 to 610: narrow and wide columns, with and without the row for MIG, lists of MIG devices
and processes. A cell's values stand in a fixed order; where they stand in the line does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.model import NOT_IN_INPUT, Missing
from preflight.printable import printable
from preflight.probes.nvidia_smi.block import Block, Head
from preflight.probes.nvidia_smi.gpu import line_of, report
from preflight.probes.nvidia_smi.sentences import driver_silence, sentence_line, sentences
from preflight.probes.spec import probe
from preflight.probes.values import bus_id

_NAME = "nvidia-smi-table"
_HEAD = re.compile(r"\|\s{0,9}NVIDIA-SMI ")
#: Since driver 610 the versions are those of the kernel mode and of the user mode driver.
_VERSION = re.compile(r"(?:Driver|KMD) Version: {0,9}([^\s|]{1,40})")
_CUDA = re.compile(r"CUDA (?:UMD )?Version: {0,9}([^\s|]{1,40})")
_BUS_ID = re.compile(r"[\da-fA-F]{4,8}:[\da-fA-F]{2}:[\da-fA-F]{2}\.[\da-fA-F]")
#: Errors of several words that stand where one value should.
_PHRASES = (
    "Unknown Error", "GPU is lost", "GPU requires reset", "Not Supported", "Not Found",
    "Insufficient Permissions", "No Permission", "Not Available",
)  # fmt: skip
_GLUE = "\x00"
#: The compute mode as the column shortens it.
_MODES = {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}
_SWITCHES = {"On": "Enabled", "Off": "Disabled"}
_OTHER = {"Enabled": "Disabled", "Disabled": "Enabled"}
#: More GPUs than any host has: a number beyond it is damage.
_MOST = 255
_NONE_RUNNING = "No running processes found"
_END_UNSEEN = Missing(
    "not-in-input", "the end of the table (the processes) is not there: GPUs may be cut off"
)
#: Inside a container, or for a user who may not see them, the list has a frame and nothing in it.
_HIDDEN = Missing("not-applicable", "nvidia-smi was not shown the processes (in a container?)")


class _Table(Struct):
    """What the lines of one table hold, and where in it the reading is."""

    head: Head = field(default_factory=Head)
    blocks: dict[int, Block] = field(default_factory=dict)
    whole: bool = False  # something stands behind the last GPU
    open: bool = False  # a GPU lacks its end, or cannot be read
    listed: bool = False  # the list of processes is there
    hidden: bool = False  # ... and holds nothing, not even that there are none
    section: str = ""
    rows: list[tuple[int, list[str]]] = field(default_factory=list)  # of the GPU being read


def locate(text: str, record_line: int, field_path: str) -> int:
    """The line of `text` that shows a field of the GPU whose record begins at `record_line`."""
    block = next((b for b in _read(text).blocks.values() if b.line == record_line), None)
    if block is None:
        return record_line
    said = sentence_line(text, block.bus_id, field_path)
    return said or line_of("text", block, field_path) or record_line


@probe(_NAME, ["nvidia-smi"], timeout_s=30, locate=locate)
def nvidia_smi_table(text: str) -> NvidiaSmi:
    """One table; raises ParseError where `text` is none, or ends before its first GPU."""
    said, table = sentences(text), _read(text)
    if not table.head.line and not said.line:
        silence = driver_silence(text, _NAME)
        if silence is None:
            got = printable(text.strip()[:60])
            raise ParseError(f"expected the table of nvidia-smi, got '{got}'")
        return NvidiaSmi(silence, NOT_IN_INPUT, ())
    if not table.blocks and not said.line:
        silence = driver_silence(text, _NAME)
        if silence is not None:
            return NvidiaSmi(silence, NOT_IN_INPUT, ())
        last = text.rstrip().count("\n") + 1
        raise ParseError(f"the table ends at line {last}, before its first GPU is whole", last)
    blocks = [table.blocks[index] for index in sorted(table.blocks)]
    # How many there are is told by the closed table: nothing above it announces them.
    table.head.attached = str(max(table.blocks, default=-1) + 1) if table.whole else None
    found = report("text", _NAME, table.head, blocks, said)
    gpus = tuple(_as_numbered(gpu, table) for gpu in found.gpus)
    attached = _END_UNSEEN if found.attached is NOT_IN_INPUT else found.attached
    return replace(found, gpus=gpus, attached=attached, cut=table.open)


def _as_numbered(gpu: Gpu, table: _Table) -> Gpu:
    """With the number that the table gives it, and its processes where they are shown."""
    index = next((i for i, block in table.blocks.items() if block.line == gpu.line), gpu.index)
    gpu = replace(gpu, index=index, name=f"gpu{index}")
    # What every GPU has. One that fell off the bus has ERR! in all of it, and no sentence.
    read = (gpu.product, gpu.temperature.gpu_c, gpu.performance_state)
    if all(isinstance(value, Missing) and value.kind == "unreadable" for value in read):
        gpu = replace(gpu, answers=False)
    return replace(gpu, processes=_HIDDEN, graphical=_HIDDEN) if table.hidden else gpu


#: What a double rule opens, by the heading above it.
_OPENS = {"head": "gpus", "mig": "mig-rows", "processes": "process-rows"}


# One text is looked into once for all that did not pass.
@lru_cache(maxsize=2)
def _read(text: str) -> _Table:
    table = _Table()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if _HEAD.match(line):
            if table.head.line:
                break  # another table: a second look
            table.head, table.section = _head(line, number), "head"
        elif table.head.line:
            _line(table, number, line)
    table.open |= bool(table.rows)
    for block in table.blocks.values():
        if table.listed and not table.hidden and not block.processes:
            block.fields.setdefault("processes", "None")
    return table


def _line(table: _Table, number: int, line: str) -> None:
    """One line below the head: a rule, a heading or a row."""
    if line.startswith("+"):
        _rule(table)
    elif line.startswith("|="):
        table.section = _OPENS.get(table.section, table.section)
    elif not line.startswith("|"):
        table.whole |= bool(line and table.blocks and not table.rows)
    elif line.startswith(("| Processes:", "| MIG devices:")):
        table.whole |= not table.rows
        table.section = "processes" if line.startswith("| P") else "mig"
    elif table.section == "gpus":
        table.rows.append((number, _cells(line)))
    elif table.section == "mig-rows":
        _instance(table, _cells(line))
    elif table.section == "process-rows":
        _process(table, number, line.strip("|").strip())


def _rule(table: _Table) -> None:
    """A rule ends a GPU, or the list of processes."""
    if table.section == "gpus" and table.rows:
        table.open |= not _finish(table)
        table.rows = []
    elif table.section == "process-rows":
        table.hidden = not table.listed
        table.listed, table.section = True, ""


def _head(line: str, number: int) -> Head:
    version, cuda = _VERSION.search(line), _CUDA.search(line)
    return Head(number, version[1] if version else None, cuda[1] if cuda else None)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _words(cell: str) -> list[str]:
    """The values of a cell; an error of several words is one value."""
    for phrase in _PHRASES:
        if phrase in cell:
            cell = cell.replace(phrase, phrase.replace(" ", _GLUE))
    return [word.replace(_GLUE, " ") for word in cell.split()]


def _finish(table: _Table) -> bool:
    """One GPU of two or three rows of three cells; False where it is none."""
    rows = table.rows
    words = _words(rows[0][1][0])
    if len(rows) < 2 or len(rows[0][1]) < 3 or len(words) < 2 or not words[0].isdecimal():
        return False
    index = int(words[0][:4])
    if index in table.blocks or index > _MOST:
        return False
    address = _BUS_ID.search(rows[0][1][1])
    block = Block(bus_id(address[0]) if address else "", rows[0][0])
    for (number, cells), read in zip(rows, (_first, _second, _third), strict=False):
        for path, text in read(cells) if len(cells) >= 3 else ():
            if text:
                block.fields[path], block.lines[path] = text, number
    table.blocks[index] = block
    return True


def _first(cells: list[str]) -> Iterator[tuple[str, str]]:
    """`0  NVIDIA H100 80GB HBM3   On | 00000000:19:00.0 Off | 0`. On Windows the driver model
    (WDDM, TCC) stands in place of the persistence mode."""
    words = _words(cells[0])
    last = words[-1] if len(words) > 2 else ""
    yield "product name", " ".join(words[1:-1] if last else words[1:])
    if last not in ("WDDM", "TCC", "MCDM"):
        yield "persistence mode", _SWITCHES.get(last, last)
    display = _words(cells[1])[-1:] or [""]
    yield "display active", _SWITCHES.get(display[0], "" if ":" in display[0] else display[0])
    yield from _ecc(cells[2])


def _ecc(cell: str) -> Iterator[tuple[str, str]]:
    """The count of uncorrected errors since the driver was loaded; Off without ECC, On in place of
    the count with MIG. A star: the mode changes at the next reset."""
    count = cell.rstrip("*").strip()
    if count.isdecimal():
        yield "ecc errors/volatile/dram uncorrectable", count
    counted = "Enabled" if count.isdecimal() else count
    mode = {"Off": "Disabled", "On": "Enabled"}.get(count, counted)
    yield "ecc mode/current", mode
    if mode in _OTHER:
        yield "ecc mode/pending", _OTHER[mode] if cell.endswith("*") else mode


def _second(cells: list[str]) -> Iterator[tuple[str, str]]:
    """`N/A   38C    P0   75W / 700W | 3MiB / 81559MiB | 0%      Default`."""
    left, _, limit = cells[0].partition(" / ")
    words = _words(left)
    paths = ("fan speed", "temperature/gpu current temp", "performance state")
    yield from zip(paths, words, strict=False)
    yield "power readings/power draw", words[3] if len(words) > 3 else ""
    yield "power readings/enforced power limit", limit.strip()
    used, slash, total = cells[1].partition(" / ")
    yield "fb memory usage/used", used.strip()
    yield "fb memory usage/total", total.strip() if slash else used.strip()
    busy = _words(cells[2])
    yield "utilization/gpu", busy[0] if busy else ""
    mode = " ".join(busy[1:])
    yield "compute mode", _MODES.get(mode, mode)


def _third(cells: list[str]) -> Iterator[tuple[str, str]]:
    """`| | | Disabled`, the MIG mode; a star: it changes at the next reset."""
    mode = cells[2].rstrip("*").strip()
    yield "mig mode/current", mode
    if mode in _OTHER:
        yield "mig mode/pending", _OTHER[mode] if cells[2].endswith("*") else mode


def _instance(table: _Table, cells: list[str]) -> None:
    """`0    1   0   0 | 37MiB / 40192MiB | 98   0 | 7 0 5 1 1`: GPU, instances, device."""
    which = cells[0].split()
    block = table.blocks.get(int(which[0])) if len(which) == 4 and which[0].isdecimal() else None
    if block is None or len(cells) < 3:
        return
    processors = cells[2].split()
    block.instances.append(
        {
            "gpu instance id": which[1],
            "fb memory usage/total": cells[1].partition(" / ")[2].strip(),
            "multiprocessor count": processors[0] if processors else "N/A",
        }
    )


def _process(table: _Table, number: int, row: str) -> None:
    """`0   N/A  N/A   979223   C   .../bin/python   1512MiB`; before driver 450 without the two
    numbers of the MIG instance."""
    if row.startswith(_NONE_RUNNING):
        table.listed = True
        return
    words = row.split()
    block = table.blocks.get(int(words[0])) if words and words[0].isdecimal() else None
    if block is None:
        return
    table.listed = True
    block.lines.setdefault("processes", number)
    if "Not Supported" in row:
        block.fields["processes"] = "Not Supported"
        return
    rest = words[1:]
    # A process id is a number; of the two before it at least one is N/A without MIG.
    if len(rest) > 3 and rest[2].isdecimal() and not rest[1].isalpha():
        rest = rest[2:]
    if len(rest) < 2 or not rest[0].isdecimal():
        block.fields.setdefault("processes", row)
        return
    block.processes.append(
        {
            "process id": rest[0],
            "type": rest[1],
            "name": " ".join(rest[2:-1]) or "N/A",
            "used gpu memory": rest[-1] if len(rest) > 2 else "N/A",
        }
    )
