"""The limits of all that were asked, as one list."""

from __future__ import annotations

from typing import Any

from preflight.assemble.limits import limit_facts
from preflight.assemble.tables import SUPPLIERS
from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import NOT_IN_INPUT, Missing, Raw, Status
from preflight.probes.limits.limits import limits
from preflight.probes.limits.process import process
from preflight.probes.limits.service_limits import service_limits
from tests.system_text import LIMITS, PROCESS, SERVICE_LIMITS


def _parts(**known: Any) -> dict[str, Any]:
    return dict.fromkeys(SUPPLIERS, NOT_IN_INPUT) | known


def test_of_the_shell_of_services_and_of_processes() -> None:
    found = limit_facts(_parts(
        limits=limits(LIMITS), service_limits=service_limits(SERVICE_LIMITS),
        asked_processes=process(PROCESS),
    ))["limits"]  # fmt: skip
    names = {one.name for one in found if one.resource == "nofile"}
    assert names == {
        "nofile (shell)", "nofile (systemd's default)", "nofile (slurmd.service)",
        "nofile (pid 4711)",
    }  # fmt: skip


def test_without_those_of_the_shell_there_are_none() -> None:
    denied = Missing("denied", "?")
    parts = _parts(limits=denied, service_limits=service_limits(SERVICE_LIMITS))
    assert limit_facts(parts)["limits"] is denied


def test_unlimited_is_more_than_any_number() -> None:
    checks = [one for one in load(("system",)).checks if one.id.startswith("system.limits.")]
    unlimited = LIMITS.replace("1048576              1048576", "unlimited            unlimited")
    report = examine("h", [Raw("h", "limits", ("sh",), 0, unlimited)], checks)
    told = {one.check: (one.status, one.measured) for one in report.results}
    assert told["system.limits.nofile"] == (Status.PASS, "unlimited")
    assert told["system.limits.nofile_hard"] == (Status.PASS, "unlimited")
    assert told["system.limits.memlock"] == (Status.PASS, "unlimited")
