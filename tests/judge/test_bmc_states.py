"""The words of sensors: one table for readings and for the event log."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.judge.bmc_states import severity
from preflight.judge.load import load
from preflight.model import Raw, Result

FAIL = [
    ("Sys Fan 3", "Transition to Critical from less severe"),
    ("GPU3 Status", "Transition to Non-recoverable"),
    ("Power Unit", "Failure detected"),
    ("PCIe Slot 5", "Fault Status, Device Installed"),
    ("Leak Sensor", "Leak Detected"),
    ("Leak_Detect", "State Asserted"),
    ("GPU3 Thermal Trip", "State Asserted"),
    ("Board", "Undetermined system hardware failure"),
    ("PCIe Bus", "Bus Timeout"),
]
WARN = [
    ("PS3 Status", "Presence detected, Config Error: Vendor Mismatch"),
    ("Critical Interrupt PCIe", "Bus Degraded"),
    ("OS Stop/Shutdown", "Run-time critical stop"),
    ("CPU1 Status", "Presence detected, Throttled"),
    ("MEM Status", "Presence Detected, Disabled"),
    ("ROMB Battery", "Low"),
    ("BMC", "Sensor access degraded or unavailable"),
]
SOUND = [
    ("Sys Fan 3", "Transition to OK"),
    ("PS2 Status", "Power Supply Inactive"),
    ("P1_DIMM_A1", "Spare"),
    ("CPU2 Status", "Disabled"),
    ("Power Good", "State Asserted"),
    ("PSU1_FAULT", "State Deasserted"),
    ("PROCHOT", "Limit Not Exceeded"),
    ("Drive 1", "Predictive Failure Deasserted"),
    ("Event Logging Disabled SEL", "Log area reset/cleared"),
    ("Drive 2", "Drive Present, Parity Check In Progress"),
    ("PCIe", "Bus Correctable error"),
]


@pytest.mark.parametrize(
    ("sensor", "states", "wanted"),
    [(*one, word) for word, rows in (("FAIL", FAIL), ("WARN", WARN), ("", SOUND)) for one in rows],
)
def test_each_state_is_decided_once_for_sensors_and_log(
    sensor: str, states: str, wanted: str
) -> None:
    assert getattr(severity(sensor, states), "value", "") == wanted
    sdr = f"{sensor:16} | 30h | ok  | 29.1 | {states}\n"
    assert bad("ipmi-sdr", sdr).get("chassis.part.state", "") == wanted
    # an event is one state of a kind of sensor
    told = bad("ipmi-sel", f"   1 | 11/28/2026 | 10:12:12 | {sensor} | {states} | Asserted\n")
    assert bool(told) is bool(wanted), told


def bad(probe: str, text: str) -> dict[str, str]:
    return {one.check: one.status.value for one in results(probe, text)}


def results(probe: str, text: str) -> list[Result]:
    report = examine("node-07", [Raw("node-07", probe, stdout=text)], load(["chassis"]).checks)
    return [one for one in report.results if one.status.value in ("FAIL", "WARN")]


@pytest.mark.parametrize(
    ("entry", "check"),
    [
        ("Critical Interrupt #0x18 | Bus Uncorrectable error", "pcie"),
        ("Memory #0x02 | Critical Overtemperature", "temperature"),
        ("Memory #0x02 | Uncorrectable ECC", "memory_uncorrected"),
        ("Add-in Card #0x52 | Transition to Non-recoverable", "state"),
        ("Module / Board #0x10 | Transition to Critical from less severe", "state"),
        ("Slot / Connector #0x51 | Fault Status", "state"),
        ("Power Supply #0x52 | Config Error", "state"),
    ],
)
def test_an_entry_is_told_once_under_what_it_is_about(entry: str, check: str) -> None:
    told = bad("ipmi-sel", f"   6 | 11/28/2026 | 10:12:12 | {entry} | Asserted\n")
    assert list(told) == [f"chassis.sel.{check}"]


def test_what_is_over_is_over() -> None:
    card = "| 11/28/2026 | 10:12:12 | Add-in Card #1 |"
    text = f"   6 {card} Transition to Critical from less severe | Asserted\n"
    assert bad("ipmi-sel", text) == {"chassis.sel.state": "FAIL"}
    text += f"   7 {card} Transition to OK | Asserted\n"
    assert bad("ipmi-sel", text) == {}


def test_advice_saves_the_log_before_it_clears_it() -> None:
    for check in load(["chassis"]).checks:
        for line in check.fix:
            assert "sel clear" not in line or line.index("sel save") < line.index("sel clear")


def test_a_supply_with_two_sensors_of_its_state_is_judged_by_both() -> None:
    text = (
        "PS1 Status       | C8h | ok  | 10.1 | Presence detected\n"
        "PS1 Fail         | C9h | ok  | 10.1 | Failure detected\n"
    )
    assert bad("ipmi-sdr", text) == {"chassis.psu.failed": "FAIL"}


def test_what_cannot_be_is_no_reading() -> None:
    text = "Inlet Temp       | 20h | ok | 7.1 | -128 degrees C\n"
    second = "Inlet Temp 2     | 21h | ok | 7.1 | 40 degrees C\n"
    report = examine("n", [Raw("n", "ipmi-sdr", stdout=text)], load(["chassis"]).checks)
    (air,) = [one for one in report.results if one.check == "chassis.air.inlet"]
    assert air.status.value == "ERROR"
    assert "no reading" in (air.reason or "")
    assert bad("ipmi-sdr", text + second) == {"chassis.air.inlet": "FAIL"}


def test_the_reserve_of_fans_is_not_the_supplys() -> None:
    text = (
        "PSU2 Status      | C9h | ok  | 10.2 | Presence detected, Power Supply AC lost\n"
        "PWR_RED_PSU      | 77h | ok  |  7.1 | Redundancy Lost\n"
        "Fan Redundancy   | 75h | ok  |  7.1 | Redundancy Lost\n"
    )
    told = {one.subject: one.cause for one in results("ipmi-sdr", text)}
    assert told == {
        "PSU2 Status": "", "PWR_RED_PSU": "chassis.psu.input", "Fan Redundancy": ""
    }  # fmt: skip


def test_redundancy_that_is_switched_off_is_no_fault_and_no_riddle() -> None:
    text = "PS Redundancy    | 77h | ok  |  7.1 | Redundancy Disabled\n"
    report = examine("n", [Raw("n", "ipmi-sdr", stdout=text)], load(["chassis"]).checks)
    (reserve,) = [one for one in report.results if one.check == "chassis.redundancy"]
    assert reserve.status.value == "SKIP"
