"""Running preflight in the SSH lab, and what its report says of each host."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from preflight.model import HostReport, MissingProbe, Report, Status
from tests.lab.sshd import Lab

#: Exit statuses with which a report was given.
REPORTED = (0, 1, 3)
#: Check, subject and status of each result.
Judged = tuple[tuple[str, str, Status], ...]


def asked(made: Lab, names: str, *words: str, env: Mapping[str, str] | None = None) -> Report:
    """The report of one run."""
    done = made.preflight("run", "--hosts", names, "--format", "json", *words, env=env)
    assert done.returncode in REPORTED, done.stderr
    return msgspec.json.decode(done.stdout, type=Report)


def by_host(report: Report) -> dict[str, HostReport]:
    """The hosts of a report, in which each stands once."""
    assert len({host.host for host in report.hosts}) == len(report.hosts)
    return {host.host: host for host in report.hosts}


def faults(host: HostReport) -> list[str]:
    """The names of what is wrong with the whole host."""
    return [missing.fault for missing in host.missing if missing.fault]


def the_fault(host: HostReport) -> MissingProbe:
    """The one thing that is wrong with it."""
    [found] = [missing for missing in host.missing if missing.fault]
    return found


#: Of what is so in one moment and not in the next, whatever runs beside.
_OF_A_MOMENT = ("system.processes.",)


def judged(host: HostReport) -> Judged:
    """What its checks came to, the host itself called `host`, so that hosts can be compared."""
    return tuple(
        sorted(
            (one.check, "host" if one.subject == host.host else one.subject, one.status)
            for one in host.results
            if not one.check.startswith(_OF_A_MOMENT)
        )
    )


@cache
def alone(made: Lab, name: str = "node-1") -> Judged:
    """What a sound host's checks come to in a run of its own."""
    found = judged(by_host(asked(made, name))[name])
    assert len(found) > 20
    return found


def wait_for(path: Path, limit_s: float = 10) -> None:
    """Until a file is there."""
    deadline_s = time.monotonic() + limit_s
    while not path.exists():
        assert time.monotonic() < deadline_s, f"{path} never came"
        time.sleep(0.02)
