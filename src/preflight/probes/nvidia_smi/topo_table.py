"""A square table of devices as `nvidia-smi topo` prints it: a header of names, then a row for each.

The header may be cut off, rows may end early, and a narrow terminal may have wrapped both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from preflight.errors import ParseError

#: Far more than a host has.
_MOST = 256
#: Colours, also where the escape itself was lost: nvidia-smi underlines the header.
_COLOUR = re.compile(r"(?:\x1b?\[|\x9b)[\d;]{0,8}m")
#: X for itself, NV18, PIX, SYS, OK, CNS; whatever word a later version prints; ERR! of a GPU that
#: does not answer.
_CELL = re.compile(r"NV\d{1,3}|[A-Z]{1,5}!?|N/A|\?")
_WORD = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC|OK|CNS|GNS|TNS|DR|NS|U|N/A")
_NAME = re.compile(r"GPU\d{1,3}|NIC\d{1,3}|(?=[\w.-]{0,63}\d)[a-z][\w.-]{1,63}")
_AFFINITY = ("CPU", "NUMA")
#: What a line may begin with that a terminal has broken: the V18 of NV18.
_PIECE = re.compile(r"N?V\d{1,3}|[A-Z]{1,5}!?|N/A|\?|[\d,-]{1,4000}")
#: What stands in the columns behind the paths.
_NEAR = re.compile(r"[\d,-]{1,4000}|N/A")


class Row(Struct):
    """What stands behind a name: its cells, then the columns of affinity."""

    label: str
    line: int
    cells: list[str]
    rest: list[str]


class Table(Struct):
    """`labels`: the columns, by the header or by where each row has its X; "" where a column has
    neither."""

    labels: list[str]
    line: int
    rows: list[Row] = field(default_factory=list)
    tells_nodes: bool = False
    whole: bool = True
    by_label: dict[str, Row] = field(default_factory=dict)

    def row_of(self, label: str) -> Row | None:
        """The row of a column."""
        return self.by_label.get(label)

    def cell(self, row: int, column: int) -> str:
        """What stands between two columns in the row of the first; "" where that is cut off."""
        found = self.by_label.get(self.labels[row])
        return found.cells[column] if found and column < len(found.cells) else ""


def tables(text: str) -> Iterator[Table]:
    """Every table in the text; ParseError where one contradicts itself."""
    here: Table | None = None
    last = 0  # the last line that was of the table
    for number, line in enumerate(_COLOUR.sub("", text).split("\n"), 1):
        words = line.split()
        kind = _kind(words)
        begins = kind == "header" and not (here and not here.rows and number == last + 1)
        if begins or (kind == "row" and here is None):
            if here and here.rows:
                yield _finished(here)
            here = Table([], number)
        if here and kind == "header":
            _head(here, words)  # of a narrow terminal it has several lines
        elif here and kind == "row":
            here.rows.append(_row(here, line, words, number))
        elif here and here.rows and kind == "more" and number == last + 1:
            _goes_on(here.rows[-1], len(here.labels), words)
        else:
            continue
        last = number
    if here and here.rows:
        yield _finished(here)


def _kind(words: list[str]) -> str:
    """header, row, more (the rest of a wrapped row), or "" for what is none of the table."""
    if not words:
        return ""
    first = words[0]
    if _is_name(first):
        if len(words) > 1 and _CELL.fullmatch(words[1]) and words[1] not in _AFFINITY:
            return "row"
        return "header" if all(map(_is_name, _before_affinity(words))) else ""
    both = all(_CELL.fullmatch(word) or _NEAR.fullmatch(word) for word in words[1:])
    both = both and bool(_PIECE.fullmatch(first))
    return "more" if both else ""


def _is_name(word: str) -> bool:
    return bool(_NAME.fullmatch(word))


def _before_affinity(words: list[str]) -> list[str]:
    at = next((at for at, word in enumerate(words) if word in _AFFINITY), len(words))
    return words[:at]


def _head(table: Table, words: list[str]) -> None:
    table.labels += _before_affinity(words)
    table.tells_nodes |= "NUMA" in words
    if len(table.labels) > _MOST:
        raise ParseError(f"{len(table.labels)} columns: no host has so many devices", table.line)
    if len(set(table.labels)) < len(table.labels):
        raise ParseError("two columns have one name", table.line)


def _row(table: Table, line: str, words: list[str], number: int) -> Row:
    """The cells end where the header does, or with the first word that is none."""
    if len(table.rows) >= _MOST:
        raise ParseError(f"more than {_MOST} rows: no host has so many devices", number)
    cells = _cells(table, words[1:])
    fields = [part.strip() for part in line.strip(" >").split("\t")]
    behind = 1 + len(cells)
    rest = fields[behind:] if fields[:1] == words[:1] and len(fields) > 2 else words[behind:]
    return Row(words[0], number, cells, rest)


def _cells(table: Table, words: list[str]) -> list[str]:
    most = len(table.labels) or len(words)
    end = next((at for at, word in enumerate(words) if not _CELL.fullmatch(word)), len(words))
    return words[: min(end, most)]


def _goes_on(row: Row, columns: int, words: list[str]) -> None:
    """Add a line to the row that a narrow terminal has broken, maybe within a word."""
    missing = columns - len(row.cells)
    if row.cells and not row.rest and (missing > 0 or not words[0].isdecimal()):
        joined = row.cells[-1] + words[0]
        parts = (row.cells[-1], words[0])
        if not all(map(_WORD.fullmatch, parts)) and _WORD.fullmatch(joined):
            row.cells[-1], words = joined, words[1:]
        more = [word for word in words[:missing] if _CELL.fullmatch(word)]
        row.cells += more
        words = words[len(more) :]
    row.rest += words


def _finished(table: Table) -> Table:
    """With its rows by name, after what must hold of them."""
    table.labels = table.labels or _labels_by_diagonal(table)
    for row in table.rows:
        if row.label in table.by_label:
            raise ParseError(f"a second row of {row.label}: two hosts in one text?", row.line)
        table.by_label[row.label] = row
    columns = {label: at for at, label in enumerate(table.labels)}
    for row in table.rows:
        at = columns.get(row.label)
        if at is None:
            raise ParseError(f"{row.label} has a row and no column", row.line)
        if at < len(row.cells) and row.cells[at] != "X":
            raise ParseError(f"expected X below {row.label}, got {row.cells[at]!r}", row.line)
    full = all(len(row.cells) == len(table.labels) for row in table.rows)
    table.whole = full and len(table.rows) == len(table.labels)
    return table


def _labels_by_diagonal(table: Table) -> list[str]:
    """Where the header is lost: each row has its X in its own column. The column of a row that is
    lost as well has no name."""
    labels = [""] * max(len(row.cells[:_MOST]) for row in table.rows)
    for row in table.rows:
        at = row.cells.index("X") if "X" in row.cells[:_MOST] else _MOST
        if at >= _MOST:
            raise ParseError(f"neither a header, nor an X in the row of {row.label}", row.line)
        if labels[at]:
            raise ParseError(f"{labels[at]} and {row.label} have their X in one column", row.line)
        labels[at] = row.label
    return labels
