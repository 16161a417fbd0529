"""The same questions to 128 hosts over SSH: preflight beside clush and pdsh.

    python -m bench.fanout [--rounds 5] [--hosts 128]

Needs root, sshd and pdsh. All hosts are this machine, so the server's CPU is the floor of every
wall time. All sides ask in turn, first to last and back; what is judged is the median over the
rounds of the ratio to the better of the two others in the same round. CPU is the client's: that of
the program and of all the processes that it starts. Every side must get every answer: clush and
pdsh exit with 0 where hosts failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import preflight
from bench.programs import ROOT, installed
from bench.table import Row, show
from preflight.assemble.sources import commands_for
from preflight.judge.load import DOMAINS, load
from preflight.transports.script import render
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import Lab, lab, lacking

HOSTS = 128
ROUNDS = 5
#: Times the better of clush and pdsh: wall clock of both, client CPU of each.
WALL_TARGET = 1.0
CPU_TARGETS = {"uname": 0.2, "passive": 0.25}
#: Times the slow question's own time and what `uname -r` took.
SLOW_TARGET = 1.3
SLOW_S = 10
OTHERS = ("clush", "pdsh")
OURS, SYSTEM = "preflight", "preflight --ssh system"
SIDES = (*OTHERS, OURS, SYSTEM)
FAN = 64
TITLES = {"uname": "uname -r", "passive": "passive script", "slow": f"{SLOW_S} s question"}


class Took(NamedTuple):
    """One side's run of one question."""

    wall_s: float
    cpu_s: float


Round = Mapping[str, Took]


def lines(question: str) -> tuple[str, str]:
    """What clush and pdsh run for a question, and what their output shows of each answer."""
    return {
        "uname": ("uname -r", re.escape(os.uname().release)),
        "passive": ("sh /srv/passive.sh", "bench last 0 0"),
        "slow": (f"sleep {SLOW_S}; uname -r", re.escape(os.uname().release)),
    }[question]


def argv(side: str, question: str, names: str) -> list[str]:
    """The command by which one side asks."""
    line, _ = lines(question)
    if side == "clush":
        program = str(installed().with_name("clush"))
        return [program, "-w", names, "-f", str(FAN), line]
    if side == "pdsh":
        return ["pdsh", "-R", "ssh", "-l", "dash", "-w", names, "-f", str(FAN), line]
    how = "system" if side == SYSTEM else "own"
    return [sys.executable, "-m", "bench.ask_hosts", question, names, how]


def ask(made: Lab, side: str, question: str) -> Took:
    """Let one side ask all hosts once; ends the benchmark where an answer is missing."""
    names = f"node[001-{len(made.hosts):03}]"
    out, err = made.base / "out", made.base / "err"
    paths = f"{Path(preflight.__file__).parents[1]}:{ROOT}"
    # As its user runs it: byte code and tables may be kept.
    shown = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": ""}
    command = made.inside(argv(side, question, names), shown)
    with out.open("wb") as stdout, err.open("wb") as stderr:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    pattern = rf"^(node\d+): {lines(question)[1]}$"
    answered = set(re.findall(pattern, out.read_text(errors="replace"), re.MULTILINE))
    if process.returncode or len(answered) != len(made.hosts):
        told = err.read_text(errors="replace")[:2000].rstrip()
        sys.exit(
            f"error: {side}: {len(answered)} of {len(made.hosts)} hosts answered {question}\n{told}"
        )
    return Took(wall_s, used.ru_utime + used.ru_stime)


def asked(made: Lab, question: str, rounds: int, sides: tuple[str, ...]) -> list[Round]:
    """The rounds of one question; the order of the sides is turned round each time."""
    found: list[Round] = []
    for number in range(rounds):
        order = sides[::-1] if number % 2 else sides
        found.append({side: ask(made, side, question) for side in order})
        print(f"{TITLES[question]}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def ratios(rounds: list[Round], what: str) -> list[float]:
    """Ours to the better of the others, `what` being a field of Took."""
    return [
        getattr(each[OURS], what) / min(getattr(each[side], what) for side in OTHERS)
        for each in rounds
    ]


def row(what: str, found: list[float], target: float) -> Row:
    """The median ratio beside its target."""
    middle = median(found)
    spread = f"{middle:.2f} x [{min(found):.2f}, {max(found):.2f}]"
    return Row(what, spread, f"{target:g} x", middle <= target)


def beside(question: str, rounds: list[Round]) -> Iterator[Row]:
    """Wall time and CPU of one question, beside the others'."""
    yield row(f"{TITLES[question]}: wall time", ratios(rounds, "wall_s"), WALL_TARGET)
    yield row(f"{TITLES[question]}: client CPU", ratios(rounds, "cpu_s"), CPU_TARGETS[question])


def slow(rounds: list[Round], quick: list[Round]) -> Row:
    """The slow question beside what it takes at least."""
    pairs = zip(rounds, quick, strict=True)
    found = [one[OURS].wall_s / (SLOW_S + other[OURS].wall_s) for one, other in pairs]
    return row(f"{TITLES['slow']} / ({SLOW_S} s + that of uname -r)", found, SLOW_TARGET)


def print_seconds(question: str, rounds: list[Round]) -> None:
    """What each side took, as medians."""
    for side in rounds[0]:
        wall_s = median(each[side].wall_s for each in rounds)
        cpu_s = median(each[side].cpu_s for each in rounds)
        print(f"  {TITLES[question]:<16} {side:<24} {wall_s:6.1f} s wall {cpu_s:6.1f} s CPU")


def write_passive(base: Path) -> None:
    """The script that preflight sends, as a file that every host can read."""
    commands = commands_for(load(DOMAINS).checks)
    (base / "passive.sh").write_text(render(commands, "bench"), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask many hosts, beside clush and pdsh.")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    options = parser.parse_args()
    hosts = {f"node{number:03}": LabHost() for number in range(1, options.hosts + 1)}
    missing = lacking(hosts) or ("" if shutil.which("pdsh") else "pdsh")
    if missing:
        sys.exit(f"error: bench.fanout needs {missing}\nhint: as root: make packages")
    with tempfile.TemporaryDirectory() as name, lab(Path(name), hosts) as made:
        write_passive(made.base)
        installed()  # and compiled
        asked(made, "passive", 1, (OURS,))
        quick = asked(made, "uname", options.rounds, SIDES)
        passive = asked(made, "passive", options.rounds, SIDES)
        waited = asked(made, "slow", options.rounds, (OURS,))
    rows = [*beside("uname", quick), *beside("passive", passive), slow(waited, quick)]
    title = f"{options.hosts} hosts over SSH, medians of {options.rounds} rounds [lowest, highest]"
    status = show(f"{title}; x the better of clush and pdsh -f {FAN}", rows)
    for question, rounds in (("uname", quick), ("passive", passive), ("slow", waited)):
        print_seconds(question, rounds)
    print(flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
