"""GPU state, from the table that `nvidia-smi` prints when it is asked for nothing in particular.

Drivers 375 to 610: narrow and wide columns, with and without the row for MIG, lists of MIG devices
and processes. A cell's values stand in a fixed order; where they stand in the line does not count.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.model import NOT_IN_INPUT, Missing
from preflight.printable import printable
from preflight.probes.nvidia_smi.block import Block, Head
from preflight.probes.nvidia_smi.cells import ROWS, cells_of, words_of
from preflight.probes.nvidia_smi.gpu import line_of, report
from preflight.probes.nvidia_smi.sentences import (
    driver_silence,
    is_sentence,
    sentence_line,
    sentences,
)
from preflight.probes.spec import probe
from preflight.probes.values import bus_id

_NAME = "nvidia-smi-table"
_HEAD = re.compile(r"\|\s{0,9}NVIDIA-SMI ")
#: Since driver 610 the versions are those of the kernel mode and of the user mode driver.
_VERSION = re.compile(r"(?:Driver|KMD) Version: {0,9}([^\s|]{1,40})")
_CUDA = re.compile(r"CUDA (?:UMD )?Version: {0,9}([^\s|]{1,40})")
_BUS_ID = re.compile(r"[\da-fA-F]{4,8}:[\da-fA-F]{2}:[\da-fA-F]{2}\.[\da-fA-F]")
#: More GPUs than any host has: a number beyond it is damage.
_MOST = 255
_NONE_RUNNING = "No running processes found"
_END_UNSEEN = Missing(
    "not-in-input", "the end of the table (the processes) is not there: GPUs may be cut off"
)
_CHOSEN = Missing(
    "not-in-input", "the table does not begin with GPU 0: how many GPUs there are is not told (-i?)"
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
    chosen = min(table.blocks, default=0) > 0
    known = table.whole and not chosen
    table.head.attached = str(max(table.blocks, default=-1) + 1) if known else None
    found = report("text", _NAME, table.head, blocks, said)
    gpus = tuple(_as_read(gpu, table) for gpu in found.gpus)
    unknown = _CHOSEN if chosen else _END_UNSEEN
    attached = unknown if found.attached is NOT_IN_INPUT else found.attached
    return replace(found, gpus=gpus, attached=attached, cut=table.open)


def _as_read(gpu: Gpu, table: _Table) -> Gpu:
    """With what its row as a whole tells, and its processes where they are shown."""
    # What every GPU has. One that fell off the bus has ERR! in all of it, and no sentence.
    read = (gpu.product, gpu.temperature.gpu_c, gpu.performance_state)
    gone = all(isinstance(value, Missing) and value.kind == "unreadable" for value in read)
    if gone and gpu.reset_required is not True:
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
    if is_sentence(line):
        return  # of standard error, anywhere between the rows
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
        table.rows.append((number, cells_of(line)))
    elif table.section == "mig-rows":
        _instance(table, cells_of(line))
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


def _finish(table: _Table) -> bool:
    """One GPU of two or three rows of three cells; False where it is none."""
    rows = table.rows
    first = words_of(rows[0][1][0])
    if len(rows) < 2 or len(rows[0][1]) < 3 or len(first) < 2 or not first[0].isdecimal():
        return False
    index = int(first[0][:4])
    if index in table.blocks or index > _MOST:
        return False
    address = _BUS_ID.search(rows[0][1][1])
    block = Block(bus_id(address[0]) if address else "", rows[0][0], index=index)
    for (number, cells), read in zip(rows, ROWS, strict=False):
        for path, text in read(cells) if len(cells) >= 3 else ():
            if text:
                block.fields[path], block.lines[path] = text, number
    table.blocks[index] = block
    return True


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
