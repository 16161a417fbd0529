"""ipmitool's sensors in all its layouts: supplies, fans, air, and what they do not tell."""

from __future__ import annotations

import time

import pytest

from preflight.errors import ParseError
from preflight.facts.chassis import Chassis
from preflight.model import Missing
from preflight.probes.ipmi.sdr import ipmi_sdr
from tests.conftest import sample


def chassis(text: str) -> Chassis:
    found = ipmi_sdr(text)
    assert isinstance(found, Chassis)
    return found


def supplies(text: str) -> list[tuple[object, ...]]:
    found = chassis(text).power_supplies
    assert not isinstance(found, Missing)
    return [
        (one.name, one.present, one.failed, one.failure_predicted, one.input_lost) for one in found
    ]


def test_a_supply_without_ac_is_told_by_its_state_not_by_its_status() -> None:
    assert supplies(sample("ipmi_sdr/sdr_elist_psu2_ac_lost_fragment.txt")) == [
        ("Power Supply 1", True, False, False, False),
        ("Power Supply 2", True, True, False, True),
    ]


def test_supplies_that_are_all_called_status_are_told_apart_by_their_entity() -> None:
    text = (
        "Status           | 64h | ok  | 10.1 | Presence detected\n"
        "Status           | 65h | ok  | 10.2 | Presence detected, Power Supply AC lost\n"
        "Status           | 66h | ok  | 10.3 | Presence detected, Predictive failure\n"
        "Status           | 67h | ns  | 10.4 | No Reading\n"
        "PS Redundancy    | 74h | ok  |  7.1 | Redundancy Degraded\n"
    )
    assert supplies(text) == [
        ("Status 10.1", True, False, False, False),
        ("Status 10.2", True, False, False, True),
        ("Status 10.3", True, False, True, False),
    ]
    found = chassis(text)
    assert not isinstance(found.redundancy, Missing)
    assert [(one.name, one.reserve) for one in found.redundancy] == [("PS Redundancy", "degraded")]
    assert found.without_reading == 1


@pytest.mark.parametrize(
    ("state", "reserve"),
    [
        ("Fully Redundant", "full"),
        ("Redundancy Lost", "lost"),
        ("Non-Redundant: Sufficient from Redundant", "lost"),
        ("Non-Redundant: Insufficient Resources", "insufficient"),
        ("Fully Redundant, Redundancy Degraded", "degraded"),
    ],
)
def test_redundancy(state: str, reserve: str) -> None:
    found = chassis(f"PSU Redundancy   | E8h | ok  | 21.1 | {state}\n").redundancy
    assert not isinstance(found, Missing)
    assert found[0].reserve == reserve


def test_the_short_layout_does_not_show_a_supplys_state() -> None:
    found = chassis(sample("ipmi_sdr/sdr_v1_ibm_x_full_ok.txt"))
    assert not isinstance(found.power_supplies, Missing)
    assert [one.name for one in found.power_supplies] == ["Power Supply 1", "Power Supply 2"]
    for one in found.power_supplies:
        assert isinstance(one.input_lost, Missing)
        assert one.input_lost.kind == "not-in-input"
    assert found.air.inlet_c == 20.0
    assert found.fans_turning == 6
    assert found.without_reading == 2


def test_the_layout_with_thresholds() -> None:
    text = (
        "Inlet Temp       | 23.000     | degrees C  | ok    | na        | na        | -7.000    "
        "| 3.000     | 42.000    | 47.000    \n"
        "CPU1 Temp        | 96.000     | degrees C  | ucr   | na        | na        | na        "
        "| 90.000    | 95.000    | na        \n"
        "FAN5             | na         | RPM        | na    | na        | 500.000   | 700.000   "
        "| na        | na        | na        \n"
        "FAN6             | 0,000      | RPM        | lnr   | 300,000   | 500,000   | 700,000   "
        "| na        | na        | na        \n"
        "PSU1_Status      | 0x0        | discrete   | 0x0180| na        | na        | na        "
        "| na        | na        | na        \n"
        "PSU2_Status      | 0x0        | discrete   | 0x0980| na        | na        | na        "
        "| na        | na        | na        \n"
        "PSU3_Status      | 0x0        | discrete   | 0x0280| na        | na        | na        "
        "| na        | na        | na        \n"
    )
    found = chassis(text)
    assert not isinstance(found.sensors, Missing)
    assert {one.name: one.status for one in found.sensors} == {
        "Inlet Temp": "ok", "CPU1 Temp": "critical", "FAN6": "non-recoverable",
    }  # fmt: skip
    assert found.air.inlet_c == 23.0
    assert found.fans_turning == 0
    first, second, third = supplies(text)
    assert first[1:] == (True, False, False, False)
    assert second[1:] == (True, False, False, True)
    # The bits of a vendor's own sensor say nothing that is sure.
    assert isinstance(third[2], Missing)


def test_names_that_begin_with_what_is_measured() -> None:
    rest = "| na        " * 6
    text = (
        f"STATUS_PSU0      | 0x0        | discrete   | 0x0180{rest}\n"
        f"STATUS_PSU1      | 0x0        | discrete   | 0x0b80{rest}\n"
        f"SPD_FAN_PSU0_F   | 9000.000   | RPM        | ok    {rest}\n"
        f"SPD_FAN_SYS0_F   | 8000.000   | RPM        | ok    {rest}\n"
    )
    assert [one[1:] for one in supplies(text)] == [
        (True, False, False, False), (True, True, False, True),
    ]  # fmt: skip
    found = chassis(text)
    assert not isinstance(found.fans, Missing)
    assert not isinstance(found.psu_fans, Missing)
    assert [one.name for one in found.fans] == ["SPD_FAN_SYS0_F"]
    assert [one.name for one in found.psu_fans] == ["SPD_FAN_PSU0_F"]


def test_a_reading_before_the_state() -> None:
    text = (
        "Power Supply 1   | 06h | ok  | 10.1 | 0 Watts, Presence detected, Failure detected\n"
        "Power Supply 2   | 07h | ok  | 10.2 | 95 Watts, Presence detected\n"
        "Power Supplies   | 08h | ok  | 10.3 | Non-Redundant: Sufficient from Redundant\n"
        "Fan Block 1      | 09h | ok  |  7.1 | 21.56 percent, Transition to Running\n"
    )
    assert supplies(text) == [
        ("Power Supply 1", True, True, False, False),
        ("Power Supply 2", True, False, False, False),
    ]
    found = chassis(text)
    assert not isinstance(found.fans, Missing)
    assert (found.fans[0].speed, found.fans[0].unit, found.fans[0].turning) == (
        21.56, "percent", True,
    )  # fmt: skip


def test_errors_between_readings_are_counted_and_passed_over() -> None:
    found = chassis(sample("ipmi_sdr/sdr_v1_with_command_errors.txt"))
    assert found.unanswered == 3
    assert not isinstance(found.sensors, Missing)
    assert {one.status for one in found.sensors} == {"ok"}


def loads(*watts: int, failed: str = "") -> str:
    return "".join(
        f"PS{n} Status       | 7{n}h | ok  | 10.{n} | Presence detected{failed if n == 1 else ''}\n"
        f"PS{n} Output       | 8{n}h | ok  | 10.{n} | {load} Watts\n"
        for n, load in enumerate(watts, 1)
    )


def test_balance_is_of_the_supplies_that_work_under_load() -> None:
    assert chassis(loads(1200, 600)).balance.lowest_percent == 50.0
    assert isinstance(chassis(loads(120, 60)).balance.lowest_percent, Missing)
    one_of_two = chassis(loads(0, 1200, failed=", Power Supply AC lost"))
    assert isinstance(one_of_two.balance.lowest_percent, Missing)


def test_the_air_is_the_rooms_not_a_parts() -> None:
    text = (
        "GPU1 Inlet Temp  | 01h | ok  | 11.1 | 41 degrees C\n"
        "PS1 Inlet Temp   | 02h | ok  | 10.1 | 39 degrees C\n"
        "01-Inlet Ambient | 03h | ok  | 64.1 | 77 degrees F\n"
        "Exhaust Temp     | 04h | ok  |  7.1 | 45 degrees C\n"
        "Humidity         | 05h | ok  |  7.1 | 38 percent\n"
    )
    air = chassis(text).air
    assert (air.inlet_c, air.exhaust_c, air.humidity_percent) == (25.0, 45.0, 38.0)


def test_without_a_controller_there_is_nothing_to_ask() -> None:
    said = (
        "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: "
        "No such file or directory\n"
    )
    found = ipmi_sdr(said)
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"
    assert "modprobe" in found.text


@pytest.mark.parametrize("text", ["", "no sensors\n", "a | b | c\n", "x | 1 | 2 | 3 | 4\n"])
def test_what_is_no_answer(text: str) -> None:
    with pytest.raises(ParseError):
        ipmi_sdr(text)


@pytest.mark.parametrize(
    "line",
    [
        "|" * 400,
        "a" * 400,
        "PS 1 | 32h | ok | 10.1 | " + "Presence, " * 40,
        "9" * 100 + " | 9 | ok",
    ],
)
def test_a_megabyte_takes_less_than_a_second(line: str) -> None:
    text = f"Fan1 | 30h | ok | 7.1 | 10 RPM\n{(line + chr(10)) * (1_000_000 // len(line))}"
    begun = time.process_time()
    chassis(text)
    assert time.process_time() - begun < 1.5
