"""A host has several kernel logs: what one has lost or never had, another still tells."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.model import HostReport, Raw, Result, Status

DATE_S = 1740327858  # 2025-02-23T16:24:18Z
IDENTITY = "hostname node-07\nboot_id b\ndate 2025-02-23T16:24:18Z\nuptime 10000.00 1.0\nuid 0\n"
QUIET = "[    0.000000] Linux version 6.8.0\n[ 9999.000000] usb 1-2: new device\n"


def xid(code: int, bus: str = "3b", rest: str = "pid=1, name=a, x") -> str:
    return f"NVRM: Xid (PCI:0000:{bus}:00): {code}, {rest}\n"


def journal(time: str, message: str) -> str:
    return f"2025-02-23T{time}.000000+0000 node-07 kernel: {message}"


def judged(identity: str = IDENTITY, **logs: str) -> HostReport:
    texts = {"identity": identity, **{name.replace("_", "-"): text for name, text in logs.items()}}
    raws = [Raw("node-07", probe, (probe,), 0, text) for probe, text in texts.items() if text]
    return examine("node-07", raws, load(DOMAINS).checks)


def of(report: HostReport, check: str) -> Result:
    (one,) = [one for one in report.results if one.check == check]
    return one


def test_an_xid_that_the_ring_buffer_lost_is_found_in_the_journal() -> None:
    """However many more lines dmesg has."""
    late = "".join(f"[ {at}.000000] usb 1-{at}: new device\n" for at in range(7000, 7100))
    lost = of(judged(dmesg=late, journalctl=journal("16:00:00", xid(79))), "gpu.xid.79")
    assert lost.status is Status.FAIL
    (shown,) = lost.evidence
    assert (shown.probe, shown.line) == ("journalctl", 1)
    assert "Xid (PCI:0000:3b:00): 79" in shown.text


def test_an_xid_that_only_dmesg_has_is_found_there() -> None:
    lost = of(judged(dmesg=QUIET + "[ 9999.5] " + xid(79),
                     journalctl=journal("16:00:00", "usb 1-2: x\n")), "gpu.xid.79")  # fmt: skip
    assert (lost.status, lost.evidence[0].probe, lost.evidence[0].line) == (
        Status.FAIL, "dmesg", 3,
    )  # fmt: skip
    # 10,000 s of uptime at 16:24:18: half a second before that.
    assert "at 2025-02-23 16:24:17" in lost.reason


def test_an_event_of_both_logs_is_one() -> None:
    both = judged(
        dmesg=QUIET + "[ 9000.0] " + xid(94) + "[ 9900.0] " + xid(94),
        journalctl=journal("16:07:39", xid(94)) + journal("16:22:38", xid(94)),
    )
    assert of(both, "gpu.xid.94").measured == 2
    more = judged(
        dmesg="[ 9900.0] " + xid(94),
        journalctl=journal("15:00:00", xid(94)) + journal("16:22:38", xid(94)),
    )
    assert of(more, "gpu.xid.94").measured == 2
    other = judged(dmesg="[ 9900.0] " + xid(94), journalctl=journal("16:22:38", xid(94, "4c")))
    assert len([one for one in other.results if one.check == "gpu.xid.94"]) == 2


@pytest.mark.parametrize("identity", ["", "hostname node-07\n"])
def test_without_the_hosts_clock_the_times_of_one_log_are_unknown(identity: str) -> None:
    report = judged(
        identity,
        dmesg=QUIET + "[ 9000.0] " + xid(94) + "[ 9000.5] " + xid(48, "4c"),
        journalctl=journal("16:07:39", xid(94)) + journal("16:07:40", xid(79, "5d")),
    )
    assert of(report, "gpu.xid.94").measured == 1
    assert of(report, "gpu.xid.48").status is Status.FAIL
    assert "at an unknown time" in of(report, "gpu.xid.79").reason


@pytest.mark.parametrize("closed", ["", "-- No entries --\n", "Permission denied\n"])
def test_a_journal_that_is_closed_hurts_nobody_where_dmesg_answers(closed: str) -> None:
    raws = [Raw("node-07", "identity", (), 0, IDENTITY), Raw("node-07", "dmesg", (), 0, QUIET)]
    raws.append(Raw("node-07", "journalctl", ("journalctl",), 1, closed, "not permitted"))
    report = examine("node-07", raws, load(DOMAINS).checks)
    assert of(report, "gpu.xid.79").status is Status.PASS
    assert not [one for one in report.missing if one.probe == "journalctl"]


def test_a_consequence_in_one_log_follows_its_root_in_the_other() -> None:
    switch = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 48 x\n"
    report = judged(dmesg=f"{QUIET}[ 9000.0] {switch}", journalctl=journal("16:07:30", xid(79)))
    assert of(report, "gpu.sxid.20034").status is Status.WARN
    assert "follows Xid 79 on 00000000:3b:00.0 8 s earlier" in of(report, "gpu.sxid.20034").reason


def test_an_unread_line_of_either_log_counts() -> None:
    report = judged(dmesg=QUIET, journalctl=journal("16:00:00", "NVRM: Xid (x): garbled 79 (\n"))
    one = of(report, "gpu.xid.79")
    assert (one.status, one.evidence[0].probe) == (Status.ERROR, "journalctl")
