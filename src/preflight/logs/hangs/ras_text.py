"""The text of NCCL's RAS service, line by line. Forms: its user guide, and examples beside it."""

from __future__ import annotations

import re
from typing import Any

from preflight.facts.ras import Comm, CommGroup, CommRank, Counted, Failed, Peer, RasReport

_MOST_UNREAD, _MOST_ROWS = 20, 1_000_000
_VERSION = re.compile(r"NCCL version (\S{1,60})")
_GROUP = re.compile(
    r"\s*(\d{1,7})\s+(\d{1,9})\s+(\d{1,9})\s+\d[\d-]*\s+(\d{1,9})\s+(\d{1,9})\s+([A-Z]+)\s+([A-Z,]+)$"
)
_INTEGERS = re.compile(r"\s*\d{1,9}(?:\s+\d{1,9})*$")
_COMM = re.compile(r"(#\d{1,7}-\d{1,7}) \(([0-9a-f]{1,16})\) (INCOMPLETE|ERROR|MISMATCH)$")
_BLOCK = re.compile(r"(INCOMPLETE|DEAD|TIMEOUT)$")
_BY = (
    r"(?: -- (?:GPU (?P<gpu>.+?) managed by process (?P<pid>\d{1,10}) on node (?P<host>\S{1,100})"
    r"|\[.*\]))?$"
)
_PEER = re.compile(
    r"(?:\s*|\[[-\d: ]{10,25}\] (?P<event>PEER_DEAD): )Process (?P<pid>\d{1,10}) on node "
    r"(?P<host>\S{1,100}) managing GPUs? (?P<gpu>[\d,]+(?: \(NVML [\d,]+\))?)"
)
_ROW = re.compile(r"\s+Rank (?P<rank>\d{1,9})(?P<says>(?: [a-zA-Z]\S*| \d+)*?)" + _BY)
_MANY = re.compile(r"\s+(?P<number>\d{1,9}) ranks? (?P<says>(?:have|has|reported) .{1,120})$")
_LAUNCHED = re.compile(r"(?:have|has) launched up to operation (\d{1,18})$")
_STATUS = re.compile(r"(?:have|has) status ([A-Z]{1,20})$")
_OPERATION = re.compile(r"\s+Communicator ranks have different (\S{1,40}) operation counts$")
_MISSING = re.compile(r"\s+Missing communicator data from (\d{1,9}) (job process|rank)")
_THE_MISSING = re.compile(r"\s+The missing ranks?: ([\d, ]{1,2000})")
_DEAD = re.compile(r"\s+(\d{1,9}) job process(?:es are| is) considered dead")
_TIMEOUTS = re.compile(r"\s+Encountered (\d{1,9}) communication timeout")
_KNOWN = re.compile(
    r"\s*$|[=-]+$|CUDA runtime|SERVER PROTOCOL|OK$|Job summary|\s*(?:Nodes|Processes) +\w+"
    r"|\s*(?:per node|per process)|Group +Comms|\s*# +in group|Errors$|Warnings$|RAS Monitor Mode"
    r"|\s+Communicator ranks have different status$"
    r"|\s+(?:Initialization|Asynchronous) errors? on \d|\s+\[could not find"
    r"|No communicator data collected|The outlier node|\s+Node \S+ running process|[$#] ?\S"
)


class RasText:
    """The lines of one text in turn."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self._found: list[RasReport] = []
        self._rows = 0
        self._columns = 0  # of totals, that the next row of numbers has
        self._in_table = False
        self._comm: dict[str, Any] | None = None
        self._comms: dict[str, dict[str, Any]] = {}
        self._peers: list[Peer] = []
        self._groups: list[CommGroup] = []
        self._operation = ""
        self._block = ""

    def take(self, number: int, line: str) -> None:
        """One line."""
        self._rows += 1
        for one in (self._heads, self._tables, self._blocks, self._rank_rows):
            if one(number, line):
                return
        if len(self.unread) < _MOST_UNREAD and not _KNOWN.match(line):
            self.unread.append(line.strip()[:200])

    def done(self) -> tuple[RasReport, ...]:
        """All answers."""
        self._close()
        return tuple(one for one in self._found
                     if one.groups or one.comms or one.peers or one.nodes is not None)  # fmt: skip

    @property
    def full(self) -> bool:
        """Whether it is more than any job can say."""
        return self._rows > _MOST_ROWS

    @property
    def _report(self) -> RasReport:
        if not self._found:
            self._found.append(RasReport())
        return self._found[-1]

    def _begin(self, number: int) -> RasReport:
        """Another answer, unless the last one has told nothing yet."""
        last = self._report
        if self._groups or self._comms or self._peers or last.nodes is not None:
            self._close()
            self._found.append(RasReport(line=number))
        return self._report

    def _close(self) -> None:
        if self._found or self._comms or self._groups or self._peers:
            last = self._report
            last.comms = tuple(map(_comm, self._comms.values()))
            last.groups, last.peers = tuple(self._groups), tuple(self._peers)
            last.dead = max(last.dead, sum(one.dead for one in self._peers))
        self._comms, self._groups, self._peers = {}, [], []
        self._comm, self._block, self._in_table = None, "", False

    def _heads(self, number: int, line: str) -> bool:
        if line[0] not in "NJCG" and "(total)" not in line:
            return False
        if version := _VERSION.match(line):
            self._begin(number).version = version[1]
        elif line.startswith("Job summary"):
            if self._report.nodes is not None or self._groups:
                self._begin(number)
        elif line.startswith("Communicators..."):
            if self._groups or self._comms:
                self._begin(number)
        elif "(total)" in line:
            totals = line.replace("per node", "x").replace("per process", "x").split()
            self._columns = len(totals)
        elif re.match(r"Group +Comms +Nodes", line):
            if self._groups:
                self._begin(number)
            self._in_table = True
        else:
            return False
        return True

    def _tables(self, number: int, line: str) -> bool:
        if self._in_table and (row := _GROUP.match(line)):
            errors = tuple(one for one in row[7].split(",") if one and one != "OK")
            self._groups.append(CommGroup(
                int(row[1]), int(row[2]), int(row[3]), int(row[4]), int(row[5]), row[6], errors,
                number))  # fmt: skip
            return True
        if self._columns in (3, 5) and _INTEGERS.match(line):
            values = [int(one) for one in line.split()]
            if len(values) == self._columns:
                self._report.nodes = values[0]
                self._report.processes, self._report.gpus = values[-2], values[-1]
                self._columns = 0
            return True
        return line[-1].isdecimal() and _INTEGERS.match(line) is not None

    def _blocks(self, number: int, line: str) -> bool:
        if line[0] not in "#IDTP[ ":
            return False
        if found := _COMM.match(line):
            self._in_table, self._block, self._operation = False, found[3], ""
            self._comm = self._comms.setdefault(found[1], {
                "name": found[1], "hash": found[2], "line": number, "counts": [], "failed": [],
                "missing": [], "statuses": {}, "number": 0,
            })  # fmt: skip
        elif block := _BLOCK.match(line):
            self._comm, self._block, self._in_table = None, block[1], False
        elif dead := _DEAD.match(line):
            self._report.dead = int(dead[1])
        elif timeouts := _TIMEOUTS.match(line):
            self._report.timeouts = int(timeouts[1])
        elif missing := _MISSING.match(line):
            if missing[2] == "rank" and self._comm is not None:
                self._comm["number"] = int(missing[1])
            else:
                self._report.missing = int(missing[1])
        elif peer := _PEER.match(line):
            gone = self._block == "DEAD" or peer["event"] is not None
            self._peers.append(Peer(peer["host"], int(peer["pid"]), peer["gpu"], gone, number))
        else:
            return False
        return True

    def _rank_rows(self, number: int, line: str) -> bool:
        if self._comm is None:
            return False
        if operation := _OPERATION.match(line):
            self._operation = operation[1]
        elif ranks := _THE_MISSING.match(line):
            found = re.findall(r"\d{1,9}", ranks[1])
            self._comm["missing"] += [CommRank(int(one)) for one in found]
        elif many := _MANY.match(line):
            return self._says(many["says"], int(many["number"]), None, number)
        elif row := _ROW.match(line):
            rank = CommRank(int(row["rank"]), row["host"] or "",
                            int(row["pid"]) if row["pid"] else None, row["gpu"] or "")  # fmt: skip
            says = row["says"].strip()
            if says:
                return self._says(says, 1, rank, number)
            self._listed(rank)
        else:
            return False
        return True

    def _says(self, says: str, many: int, rank: CommRank | None, number: int) -> bool:
        comm = self._comm or {}
        ranks = [rank] if rank is not None else []
        if launched := _LAUNCHED.match(says):
            comm["counts"].append([self._operation, int(launched[1]), many, ranks, number])
        elif says.endswith("not launched any operations"):
            comm["counts"].append([self._operation, 0, many, ranks, number])
        elif status := _STATUS.match(says):
            comm["statuses"][status[1]] = many
            comm["last"] = None
            return True
        elif says.startswith("reported "):
            comm["failed"].append([says.removeprefix("reported "), many, ranks, number])
        else:
            return False
        comm["last"] = ranks
        return True

    def _listed(self, rank: CommRank) -> None:
        """A rank of the row before."""
        assert self._comm is not None
        if self._block == "INCOMPLETE":
            self._comm["missing"].append(rank)
        elif self._comm.get("last") is not None:
            self._comm["last"].append(rank)


def _comm(told: dict[str, Any]) -> Comm:
    return Comm(
        told["name"], told["hash"], None, tuple(told["missing"]),
        max(told["number"], len(told["missing"])),
        tuple(Counted(a, b, c, tuple(ranks), line) for a, b, c, ranks, line in told["counts"]),
        tuple(Failed(a, b, tuple(ranks), line) for a, b, ranks, line in told["failed"]),
        told["statuses"], told["line"],
    )  # fmt: skip
