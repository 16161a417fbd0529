"""The BMC's event log: layouts, what is over, what is old."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.errors import ParseError, UsageError
from preflight.facts.chassis import EventLog
from preflight.judge.load import load
from preflight.judge.sel import sel_checks
from preflight.model import Missing, Raw, Result, Status
from preflight.probes.ipmi.sel import ipmi_sel

NOW = "hostname node-07\ndate 2026-01-02T03:04:05Z\nuid 0\n"
LOST = "Power Supply PS2 Status | Power Supply AC lost"


def log(text: str) -> EventLog:
    found = ipmi_sel(text)
    assert isinstance(found, EventLog)
    return found


def bad(text: str, identity: str = NOW) -> dict[str, Result]:
    raws = [Raw("node-07", "ipmi-sel", ("ipmitool",), 0, text)]
    if identity:
        raws.append(Raw("node-07", "identity", ("sh",), 0, identity))
    report = examine("node-07", raws, load(["chassis"]).checks)
    return {
        one.check.removeprefix("chassis.sel."): one
        for one in report.results
        if one.status not in (Status.PASS, Status.SKIP)
    }


@pytest.mark.parametrize(
    ("line", "at_s"),
    [
        ("   1 | 06/14/2023 | 10:01:17 | Fan FAN1 | Presence detected | Asserted", 1686736877),
        ("  3a | 12/14/22 | 23:09:44 CET | Memory #0x88 | Correctable ECC | Asserted", 1671059384),
        ("  34 | 02/25/2025 | 04:50:09 PM EST | Memory #0x02 | Parity | Asserted", 1740502209),
        ("fe3c | 2008-04-10 | 14:50:13 | Power Unit Power Redundancy | Fully Redundant", None),
        ("   9 | 01/01/1970 | 00:00:12 | Fan #0x30 | Upper Critical going high | Asserted", None),
        ("   5 |  Pre-Init  |0000000123| System Event #0x01 | Clock Sync | Asserted", None),
    ],
)
def test_layouts(line: str, at_s: int | None) -> None:
    found = log(line + "\n")
    assert (found.total, found.unread) == (1, 0)
    assert found.entries[0].at_s == at_s
    assert found.entries[0].asserted


def test_what_an_entry_says() -> None:
    text = (
        "  34 | 02/25/2025 | 04:50:09 | Memory #0x02 "
        "| Uncorrectable ECC (UnCorrectable ECC |  DIMMD7) | Asserted\n"
        "  35 | 02/25/2025 | 04:50:10 | Temperature Inlet | Upper Critical going high | Deasserted"
        " | Reading 40 < Threshold 42 degrees C\n"
        "  36 | OEM record dd | 000137 | 1a2b3c\n"
        "  37 | 02/25/2025 | 04:50:11 | OEM record c0 | 00157d | 0102030405\n"
    )
    found = log(text)
    assert (found.total, found.unread) == (4, 2)
    first, second = found.entries
    assert (first.number, first.sensor, first.line) == (0x34, "Memory #0x02", 1)
    assert first.event == "Uncorrectable ECC (UnCorrectable ECC | DIMMD7)"
    assert (second.event, second.asserted) == ("Upper Critical going high", False)


def test_an_entry_before_the_clock_was_set_is_no_younger_than_the_next() -> None:
    text = (
        f"   1 |  Pre-Init  |0000000011| {LOST} | Asserted\n"
        "   2 | 03/01/2024 | 10:00:00 | System Event | OS boot | Asserted\n"
    )
    assert log(text).entries[0].at_s == log(text).entries[1].at_s
    assert bad(text) == {}


def test_an_empty_log_is_an_answer() -> None:
    assert log("SEL has no entries\n").total == 0
    assert bad("SEL has no entries\n") == {}


def test_a_lost_supply_complains_while_it_is_recent() -> None:
    recent = f"   1 | 01/01/2026 | 20:00:00 | {LOST} | Asserted\n"
    found = bad(recent)["power_supply"]
    assert (found.status, found.subject) == (Status.FAIL, "Power Supply PS2 Status")
    assert "7 h ago" in found.reason
    assert found.evidence[0].line == 1


def test_old_entries_do_not_complain_for_ever() -> None:
    assert bad(f"   1 | 12/20/2025 | 20:00:00 | {LOST} | Asserted\n") == {}


def test_what_was_deasserted_is_over() -> None:
    text = (
        f"   1 | 01/01/2026 | 20:00:00 | {LOST} | Asserted\n"
        f"   2 | 01/01/2026 | 20:10:00 | {LOST} | Deasserted\n"
    )
    assert bad(text) == {}
    again = f"{text}   3 | 01/01/2026 | 21:00:00 | {LOST} | Asserted\n"
    assert bad(again)["power_supply"].measured == 1
    other = text.replace(
        "PS2 Status | Power Supply AC lost | De", "PS1 Status | Power Supply AC lost | De"
    )
    assert "power_supply" in bad(other)


def test_full_redundancy_ends_what_was_lost() -> None:
    lost = "   1 | 01/01/2026 | 20:00:00 | Power Supply Redun | Redundancy Lost | Asserted\n"
    back = "   2 | 01/01/2026 | 21:00:00 | Power Supply Redun | Fully Redundant | Asserted\n"
    assert bad(lost)["redundancy"].status is Status.WARN
    assert bad(lost + back) == {}


def test_without_the_hosts_date_the_age_is_counted_from_the_last_entry() -> None:
    text = (
        "   1 | 03/01/2020 | 10:00:00 | Memory #0x53 | Uncorrectable ECC | Asserted\n"
        f"   2 | 03/01/2024 | 10:00:00 | {LOST} | Asserted\n"
    )
    assert set(bad(text, identity="")) == {"power_supply"}
    assert "the host's date is not in the input" in bad(text, identity="")["power_supply"].reason


def test_an_entry_without_any_time_counts_as_new() -> None:
    found = bad(f"   1 |  Pre-Init  |0000000011| {LOST} | Asserted\n")["power_supply"]
    assert "counted as new" in found.reason


@pytest.mark.parametrize(
    ("entry", "check"),
    [
        ("Memory #0x53 | Uncorrectable ECC", "memory_uncorrected"),
        ("Memory P1-DIMMA1 | Correctable ECC logging limit reached", "memory_limit"),
        ("Power Supply #0x3b | Failure detected", "power_supply"),
        ("Power Supply #0x3b | Predictive failure", "power_supply"),
        ("Fan FAN3 | Lower Critical going low", "fan"),
        ("Fan FAN3 | Lower Non-recoverable going low", "fan"),
        ("Processor CPU1 Status | Thermal Trip", "temperature"),
        ("Temperature Inlet | Upper Critical going high", "temperature"),
        ("Critical Interrupt PCIE | Bus Fatal Error", "pcie"),
        ("Critical Interrupt | PCI SERR", "pcie"),
        ("Processor #0x60 | IERR", "processor"),
        ("Voltage P12V | Lower Critical going low", "voltage"),
        ("Watchdog2 #0xca | Hard reset", "watchdog"),
        ("Event Logging Disabled #0x72 | Log full", "log_full"),
    ],
)
def test_each_kind_is_told_by_one_check(entry: str, check: str) -> None:
    assert set(bad(f"   1 | 01/01/2026 | 20:00:00 | {entry} | Asserted\n")) == {check}


@pytest.mark.parametrize(
    "entry",
    [
        "Power Supply PS1 Status | Presence detected",
        "Event Logging Disabled #0x72 | Log area reset/cleared",
        "Memory #0x53 | Correctable ECC",
        "Temperature Inlet | Upper Non-critical going high",
        "System Event #0x01 | Timestamp Clock Sync",
        "Physical Security Intrusion | General Chassis intrusion",
        "Critical Interrupt PCIE | Bus Correctable error",
        "Fan FAN3 | Lower Non-critical going low ",
        "Watchdog2 OS | Timer interrupt",
        "Drive Slot / Bay #0x42 | Drive Present",
        "Power Unit #0x50 | Power off/down",
        "Power Unit #0x50 | AC lost",
        "Voltage P12V | Upper Non-critical going high",
    ],
)
def test_what_is_no_fault(entry: str) -> None:
    assert bad(f"   1 | 01/01/2026 | 20:00:00 | {entry} | Asserted\n") == {}


def test_what_is_no_answer() -> None:
    with pytest.raises(ParseError):
        ipmi_sel("nothing\n")
    gone = ipmi_sel("Could not open device at /dev/ipmi0: No such file or directory")
    assert isinstance(gone, Missing)


def test_a_row_that_cannot_be_read_is_told_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"x\.yaml:row 1: .*title"):
        sel_checks([{"id": "chassis.sel.x"}], "x.yaml")
