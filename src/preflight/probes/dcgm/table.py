"""The table that `dcgmi diag` prints: rows of tests, their messages wrapped over several rows."""

from __future__ import annotations

import re

from msgspec import Struct, field

from preflight.probes.dcgm.errors import Message

#: "Pass - All", "Fail - GPUs: 0, 3", "Pass"; DCGM 4 has a row "GPU3: Fail" for each GPU below.
_RESULT = re.compile(
    r"(Pass|Fail|Warn(?:ing)?|Skip(?:ped)?|Not Run)(?: ?- ?(All|(?:GPU|CPU)s?:? ?[0-9, ]{1,400}))?",
    re.IGNORECASE,
)
_OF_ONE = re.compile(
    r"((?:GPU|CPU|Switch|Link|NIC)) ?([0-9]{1,4}): ?(Pass|Fail|Warn(?:ing)?|Skip(?:ped)?|Not Run)",
    re.IGNORECASE,
)
#: "Error", "Warning", "Info"; DCGM 4 "Warning: GPU0".
_MESSAGE = re.compile(r"(Error|Warning|Info)s?(?::? ?((?:GPU|CPU|Switch) ?[0-9]{1,4}))?:?", re.I)
_SECTION = re.compile(r"\s*[|+]-{3,}  ([A-Za-z][\w ]{0,40}?)  -")
_RULE = re.compile(r"\s*\+-{5,}\+-{5,}\+\s*")
_HEAD = re.compile(r"\s*\| Diagnostic {2,}\| Result")
_ROW = re.compile(r"\s*\|([^|\n]{1,40})\|(.*)")
#: Rows of one test that are looked at: a host has up to 16 GPUs.
_NEAR = 64
#: Cells end in two blanks (dcgmi/Diag.cpp: 45 characters of text in a cell of 48).
_PADDED = 2


class TableResult(Struct):
    """One test's result for some devices (none told: all of them) and what was said of it."""

    test: str
    category: str
    status: str
    line: int
    devices: list[str] = field(default_factory=list)
    for_all: bool = False
    messages: list[tuple[str, Message]] = field(default_factory=list)  # device or "", message
    info: list[str] = field(default_factory=list)


class Table(Struct):
    """Everything in the table; `whole`: its closing rule was seen."""

    results: list[TableResult] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    first: int = 0


class _Reader:
    """Goes from row to row: whose message a row without a name continues is known from above."""

    def __init__(self) -> None:
        self.table = Table()
        self._category = ""
        self._test: list[TableResult] = []
        self._kind = self._device = self._key = ""
        self._pieces: list[str] = []
        self._begun = 0

    def read(self, text: str) -> Table:
        for number, line in enumerate(text.split("\n"), 1):
            section, row = _SECTION.match(line), _ROW.match(line)
            if section or _RULE.fullmatch(line) or _HEAD.match(line):
                self._close()
                self._first(number)
                self.table.whole = bool(self.table.results) and not section
                self._category = section[1] if section else self._category
                self._test = [] if section else self._test
            elif row and not line.lstrip().startswith(("|--", "+=")):
                self._first(number)
                self._row(row[1].strip(), row[2], number)
        self._close()
        return self.table

    def _first(self, number: int) -> None:
        self.table.first = self.table.first or number

    def _row(self, name: str, cell: str, number: int) -> None:
        told = cell.strip().rstrip("|").strip()
        self.table.whole = False
        message = _MESSAGE.fullmatch(name)
        one, result = _OF_ONE.fullmatch(told), _RESULT.fullmatch(told)
        if message:
            self._close()
            self._kind, self._device = message[1].lower(), _device(message[2] or "")
            self._pieces, self._begun = [_piece(cell)], number
        elif one and (not name or self._category != "Metadata"):
            self._result(name, one[3], number, [_device(f"{one[1]}{one[2]}")])
        elif result and self._category != "Metadata":
            devices = _devices(result[2] or "")
            self._result(name, result[1], number, devices, "all" in (result[2] or "").lower())
        elif name:
            self._close()
            self._key, self._pieces = name, [_piece(cell)]
        else:
            self._pieces.append(_piece(cell))

    def _result(
        self, name: str, status: str, number: int, devices: list[str], for_all: bool = False
    ) -> None:
        self._close()
        if name:
            self._test = []
        test = name or (self._test[0].test if self._test else self._category or "a test")
        found = TableResult(test, self._category, status.lower()[:4], number, devices, for_all)
        self._test.append(found)
        self.table.results.append(found)

    def _close(self) -> None:
        """The message or field that ends here."""
        text = re.sub(r"\s{2,}", " ", "".join(self._pieces)).strip()
        kind, device, key = self._kind, self._device, self._key
        self._pieces, self._kind, self._device, self._key = [], "", "", ""
        if not text:
            return
        if key and not kind:
            self.table.metadata.setdefault(key, text)
            return
        if not self._test:
            self._orphan(kind)
        device = device or _named(text)
        about = self._about(device)
        if kind == "info":
            about.info.append(text)
        else:
            about.messages.append((device, Message(text)))

    def _about(self, device: str) -> TableResult:
        """The result that a message belongs to: its device's, else the bad one nearest above."""
        near = self._test[-_NEAR:]
        of_device = [one for one in near if device and device in one.devices]
        bad = [one for one in near if one.status in ("fail", "warn")]
        return (of_device or bad or near)[-1]

    def _orphan(self, kind: str) -> None:
        """A message whose test stands above the part that was pasted."""
        status = {"error": "fail", "warning": "warn"}.get(kind, "info")
        test = self._category or "a test"
        self._test = [TableResult(test, self._category, status, self._begun)]
        if status != "info":
            self.table.results.append(self._test[0])


def _piece(cell: str) -> str:
    """The part of a message in one cell, with the blanks at which it was cut."""
    text = cell.rstrip()
    if text.endswith("|"):
        return text[1:-1][:-_PADDED] if len(text) > _PADDED + 2 else ""
    return text[1:] if text.startswith(" ") else text


def _device(text: str) -> str:
    return text.replace(" ", "").lower()


def _devices(text: str) -> list[str]:
    kind = "cpu" if text.lower().startswith("cpu") else "gpu"
    return [f"{kind}{int(number)}" for number in re.findall(r"[0-9]{1,4}", text)]


def _named(text: str) -> str:
    """The GPU that a message names."""
    match = re.search(r"\bGPU ?([0-9]{1,4})\b", text, re.IGNORECASE)
    return f"gpu{int(match[1])}" if match else ""


def read_table(text: str) -> Table:
    """The table in the text."""
    return _Reader().read(text)
