"""The box asked live: in a container, without the tool, without root, by a BMC that is silent."""

from __future__ import annotations

import pytest

from preflight.assemble.sources import commands_for
from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import HostReport, Raw, Status
from tests.conftest import sample

CHECKS = load(["chassis", "dcgm"]).checks
METAL = "hostname node-07\ndate 2026-01-02T03:04:05Z\nuid 0\n"
SDR = sample("ipmi_sdr/sdr_elist_psu2_ac_lost_fragment.txt")
NO_DEVICE = (
    "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: "
    "No such file or directory"
)
NO_EDAC = Raw("n", "edac", ("sh",), 0, "end\n")


def report(*raws: Raw, identity: str = METAL) -> HostReport:
    return examine("n", [Raw("n", "identity", ("sh",), 0, identity), NO_EDAC, *raws], CHECKS)


def reasons(found: HostReport, begin: str) -> set[tuple[str, str]]:
    return {(one.status.value, one.reason) for one in found.results if one.check.startswith(begin)}


def tools(rc: int, stdout: str = "", stderr: str = "") -> list[Raw]:
    names = (("ipmi-sdr", "ipmitool"), ("ipmi-sel", "ipmitool"), ("dmidecode", "dmidecode"))
    return [Raw("n", probe, (tool,), rc, stdout, stderr) for probe, tool in names]


def test_what_is_asked_and_that_dcgmi_is_not() -> None:
    asked = [command.probe for command in commands_for(CHECKS)]
    assert asked[-2:] == ["ipmi-sdr", "ipmi-sel"]
    assert {"edac", "dmidecode"} <= set(asked)
    assert "dcgmi-diag" not in asked


def test_absent_tools_are_skipped_and_say_how_to_get_them() -> None:
    found = report(*tools(127))
    assert {one.status for one in found.results} == {Status.SKIP}
    ((_, reason),) = reasons(found, "chassis.psu")
    assert "apt install ipmitool" in reason
    ((_, reason),) = reasons(found, "chassis.memory.corrected")
    assert "modprobe" in reason
    ((_, reason),) = reasons(found, "dcgm")
    assert "dcgmi diag" in reason


def test_no_controller_is_skipped() -> None:
    found = report(*tools(1, stderr=NO_DEVICE)[:2])
    ((status, reason),) = reasons(found, "chassis.sel")
    assert status == "SKIP"
    assert "/dev/ipmi0" in reason


def test_in_a_container_they_belong_to_the_host() -> None:
    found = report(*tools(127), identity=f"{METAL}container_file /.dockerenv\n")
    assert reasons(found, "chassis") == {("SKIP", "belongs to the host, not to a container")}


@pytest.mark.parametrize(
    ("rc", "stderr", "said"),
    [
        (1, "/dev/mem: Permission denied", "--sudo"),
        (124, "", "did not end within"),
        (1, "Unable to establish IPMI session", "exited with 1"),
    ],
)
def test_an_answer_that_should_be_there_and_is_not_is_an_error(
    rc: int, stderr: str, said: str
) -> None:
    found = report(*tools(rc, stderr=stderr))
    ((status, reason),) = reasons(found, "chassis.air")
    assert status == "ERROR"
    assert said in reason


def test_one_sensor_that_does_not_answer_takes_nothing_from_the_others() -> None:
    raw = Raw("n", "ipmi-sdr", ("ipmitool",), 1, SDR, "Get SDR 00c2 command failed")
    assert ("FAIL", "") in reasons(report(raw), "chassis.psu.input")


def test_a_failed_diagnostic_is_an_answer() -> None:
    text = sample("dcgmi_diag/r4_memtest_persistence_mode_fail.txt")
    found = report(Raw("n", "dcgmi-diag", ("dcgmi",), 226, text))
    assert {one.check for one in found.results if one.status is Status.FAIL} == {"dcgm.config"}
