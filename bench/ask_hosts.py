"""Ask hosts one question over preflight's own transports, and print whose answer came.

    python -m bench.ask_hosts uname|passive|slow NAMES own|system

A line for each host: its name and the kernel's release, or its name and `bench last 0 0` where all
answers of the passive script came.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from preflight.hostlists import Target, parse
from preflight.model import Command, Raw
from preflight.transports.fan import Fan
from preflight.transports.ways import Way

SLOW_S = 10
QUESTIONS = {
    "uname": ("uname", "-r"),
    "slow": ("sh", "-c", f"sleep {SLOW_S}; uname -r"),
}


def way(targets: Sequence[Target], how: str) -> Way:
    """preflight's own SSH, or the system's."""
    if how == "system":
        from preflight.transports.ssh import system

        return system.make(targets)
    from preflight.transports.ssh import builtin

    return builtin.make(targets)


def commands(question: str) -> list[Command]:
    """What is asked: the questions of a quick run of all domains, or one."""
    if question != "passive":
        return [Command(question, QUESTIONS[question])]
    from preflight.assemble.sources import commands_for
    from preflight.judge.load import DOMAINS, load

    return commands_for(load(DOMAINS).checks)


def shown(host: str, raws: Sequence[Raw]) -> str:
    """One host's line."""
    missing = next((raw.missing.text for raw in raws if raw.missing), "")
    if missing:
        return f"{host}: no answer: {missing}"
    if len(raws) > 1:
        return f"{host}: bench last 0 0"
    return f"{host}: {str(raws[0].stdout).rstrip()}"


def main() -> None:
    question, names, how = sys.argv[1:]
    targets = parse([names]).targets
    fan = Fan(tuple(target.name for target in targets), way(targets, how))
    for host, raws in fan.run(commands(question)):
        print(shown(host, raws), flush=True)


if __name__ == "__main__":
    main()
