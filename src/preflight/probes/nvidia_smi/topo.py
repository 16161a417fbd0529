"""How GPUs and network adapters are joined, from `nvidia-smi topo -m`; and whether one GPU may
reach the memory of another, from `nvidia-smi topo -p2p`.

Drivers print tabs, pastes hold blanks. Adapters are columns by their own name (mlx5_0), or since
driver 525 by a label that a legend explains (NIC0: mlx5_1). The words are those of the legend that
nvidia-smi prints below the matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from preflight.errors import ParseError
from preflight.facts.topology import PATHS, Link, Matrix, MatrixDevice, P2p, P2pPair
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.printable import printable
from preflight.probes.nvidia_smi.topo_table import Row, Table, tables
from preflight.probes.spec import probe

_MATRIX, _P2P = "nvidia-smi-topo", "nvidia-smi-p2p"
_BONDED = re.compile(r"NV(\d{1,3})")
_OLD_WORDS = {"SOC": "SYS"}
_LEGEND = re.compile(r"^[ \t>]*(NIC\d{1,3}): (\w[\w.-]{0,63})[ \t]*$", re.MULTILINE)
_GPU = re.compile(r"GPU(\d{1,3})")
#: Letters after -p2p (nvidia-smi topo --help).
_ASKED = re.compile(r"topo (?:-p2p|--p2p_capabilities)[ =]([rwnap])\b")
_CAPABILITY = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "prop"}
#: Worst first: what nvidia-smi says of a pair that may not, then what it cannot say.
P2P_STATUS = ("CNS", "TNS", "DR", "NS", "U", "GNS", "OK")
_NO_STATUS = ("ERR!", "N/A", "?")
_UNSUPPORTED = re.compile(r"^.{0,120}\bnot supported\b.{0,80}$", re.IGNORECASE | re.MULTILINE)
_CPUS = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?){0,511}")
_NODE = re.compile(r"\d{1,4}")
_NO_CPUS = Missing("not-applicable", "the driver names no processors for it")
_NO_NODE = Missing("not-applicable", "the driver names no NUMA node for it")
_CUT = Missing("unreadable", "nvidia-smi topo -m: this part of the matrix is cut off")


@probe(_MATRIX, ["nvidia-smi", "topo", "-m"], timeout_s=30, waits_for="driver")
def matrix(text: str) -> Known[Matrix]:
    """The links of each pair and the processors near each GPU. Raises ParseError."""
    found = list(tables(text))
    if not found:
        return _without_table(text, "`nvidia-smi topo -m`")
    if len(found) > 1:
        what = "a second matrix begins here: of another host or time? give each by itself"
        raise ParseError(what, found[1].line)
    table = found[0]
    names = _names(table, text)
    if not any(label.startswith("GPU") for label in table.labels):
        raise ParseError("no GPU is in the matrix", table.line)
    whole = table.whole and all(_is_path(cell) for row in table.rows for cell in row.cells)
    devices = tuple(_device(table, at, name) for at, name in enumerate(names) if name)
    return Matrix(devices, tuple(_links(table, names)), whole, table.line, _MATRIX)


@probe(_P2P, ["nvidia-smi", "topo", "-p2p", "r"], timeout_s=30, waits_for="driver")
def p2p(text: str) -> Known[tuple[P2p, ...]]:
    """One record for each table in the text. Raises ParseError."""
    found = list(tables(text))
    if not found:
        return _without_table(text, "`nvidia-smi topo -p2p r`")
    asked: list[Known[str]] = [_CAPABILITY[letter] for letter in _ASKED.findall(text)]
    told = asked if len(asked) == len(found) else [NOT_IN_INPUT] * len(found)
    return tuple(
        P2p(tuple(_pairs(table)), capability, table.line, _P2P)
        for table, capability in zip(found, told, strict=True)
    )


def _without_table(text: str, what: str) -> Missing:
    sentence = _UNSUPPORTED.search(text)
    if sentence:
        return Missing("not-applicable", f"nvidia-smi: {printable(sentence[0].strip())}")
    got = printable(text.strip()[:60])
    raise ParseError(f"expected the table of {what}, got '{got}'", 1)


def _names(table: Table, text: str) -> list[str]:
    """What each column is called, by the legend where it has one; "" where that is not known."""
    legend = dict(_LEGEND.findall(text))
    names = [
        f"gpu{int(gpu[1])}" if (gpu := _GPU.fullmatch(label)) else legend.get(label, label)
        for label in table.labels
    ]
    known = [name for name in names if name]
    return names if len(set(known)) == len(known) else table.labels


def _device(table: Table, at: int, name: str) -> MatrixDevice:
    label = table.labels[at]
    row = table.row_of(label)
    gpu = _GPU.fullmatch(label) is not None
    cpus: Known[str] = NOT_IN_INPUT
    node: Known[int] = NOT_IN_INPUT
    if gpu and (row is None or len(row.cells) < len(table.labels)):
        cpus = node = _CUT
    elif gpu and row is not None:
        cpus, node = _cpus(row), _node(row, table)
    line = row.line if row else table.line
    return MatrixDevice(name, "gpu" if gpu else "nic", label, cpus, node, line, _MATRIX)


def _cpus(row: Row) -> Known[str]:
    told = row.rest[0] if row.rest else ""
    return told if _CPUS.fullmatch(told) else _NO_CPUS


def _node(row: Row, table: Table) -> Known[int]:
    """The node, where it is one: a GPU may be near several (0-1)."""
    if len(row.rest) < 2:
        return _NO_NODE if table.tells_nodes else NOT_IN_INPUT
    told = row.rest[1]
    if _NODE.fullmatch(told):
        return int(told)
    return Missing("not-applicable", f"several NUMA nodes: {told}") if told[:1].isdecimal() \
        else _NO_NODE  # fmt: skip


def _links(table: Table, names: list[str]) -> Iterator[Link]:
    """Each pair once; where the row of one is cut, the row of the other tells."""
    for (a, first), (b, second) in _each_pair(names):
        cells = [cell for cell in (table.cell(a, b), table.cell(b, a)) if cell]
        row = table.row_of(table.labels[a]) or table.row_of(table.labels[b])
        path, bonded = _path(cells)
        yield Link(first, second, path, bonded, row.line if row else table.line, _MATRIX)


def _each_pair(names: list[str]) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    return combinations(((at, name) for at, name in enumerate(names) if name), 2)


def _path(cells: list[str]) -> tuple[Known[str], int]:
    if not cells:
        return _CUT, 0
    if len(set(cells)) > 1:
        text = f"the matrix says both {' and '.join(map(printable, cells))} of one pair"
        return Missing("unreadable", text), 0
    bonded = _BONDED.fullmatch(cells[0])
    if bonded:
        return "NV", int(bonded[1])
    word = _OLD_WORDS.get(cells[0], cells[0])
    if word in PATHS:
        return word, 0
    return Missing("unreadable", f"'{printable(word[:20])}' is no path that is known"), 0


def _is_path(cell: str) -> bool:
    return cell == "X" or not isinstance(_path([cell])[0], Missing)


def _pairs(table: Table) -> Iterator[P2pPair]:
    """Each pair once, by the worse of its two directions."""
    for (a, first), (b, second) in _each_pair(_names(table, "")):
        told = [cell for cell in (table.cell(a, b), table.cell(b, a)) if cell]
        row = table.row_of(table.labels[a]) or table.row_of(table.labels[b])
        line = row.line if row else table.line
        yield P2pPair(first, second, _status(told), line, _P2P)


def _status(told: list[str]) -> Known[str]:
    """The worse of two; what is not told, or no status, is no access and no refusal."""
    unread = next((cell for cell in told if cell in _NO_STATUS), None)
    worst = min((cell for cell in told if cell not in _NO_STATUS), key=_badness, default="")
    if worst not in ("", "OK"):
        return worst
    if unread is not None:
        return Missing("unreadable", f"nvidia-smi topo -p2p says {unread}")
    return worst or Missing("unreadable", "nvidia-smi topo -p2p is cut off")


def _badness(status: str) -> int:
    return P2P_STATUS.index(status) if status in P2P_STATUS else -1
