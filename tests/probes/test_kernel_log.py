"""The kernel log in all its forms: real logs, every time format, and what must not count."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.facts.kernel import KernelEvent, KernelLog, Sxid, Xid
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.kernel_log import log as reader
from preflight.probes.kernel_log.kept import EVENTS_MAX
from preflight.probes.kernel_log.lines import read_line
from preflight.probes.kernel_log.log import parse_kernel_log
from tests.conftest import SAMPLES, sample

NAMES = sorted(path.name for path in (SAMPLES / "kernel_log").glob("*.log"))
X79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python, GPU has fallen off the bus."


def read(name: str) -> KernelLog:
    return parse_kernel_log(sample(f"kernel_log/{name}"))


def records(log: KernelLog) -> list[Xid | Sxid | KernelEvent]:
    return [*log.xids, *log.sxids, *log.events]


def told(log: KernelLog) -> Counter[str]:
    """Code or kind -> how often."""
    return Counter(
        [f"x{one.code}" for one in log.xids]
        + [f"s{one.code}" for one in log.sxids]
        + [one.kind for one in log.events]
    )


#: Sample -> its lines, its clock, its events.
SAMPLED: dict[str, tuple[int, str, dict[str, int]]] = {
    "boot_xe9680_h100_mlx5_insufficient_power.log": (
        2382, "wall", {"nic-power": 12, "nic-unplugged": 2, "link-flap": 5},
    ),
    "fabricmanager_inband_info_12028.log": (101, "wall", {"s12028": 1}),
    "fabricmanager_nvswitch_12028_nonfatal.log": (499, "wall", {"s12028": 18}),
    "gb200_xid149_154_nvlink5.log": (9, "boot", {"x149": 5, "x154": 4}),
    "journal_short_iso_link_events.log": (47, "wall", {"peermem-invalid": 14}),
    "kmsg_raw_format_peermem.log": (8, "boot", {"peermem-invalid": 7}),
    "libnccl_segfault_decoded_iso.log": (2, "wall", {"segfault-cuda": 2}),
    "pcie_limited_by_gen4_switch_h100.log": (3, "boot", {"pcie-limited": 2}),
    "peermem_invalid_context.log": (8, "wall", {"peermem-invalid": 7}),
    "pstore_genoa_panic_test.log": (
        415, "boot", {"panic-asked": 1, "nic-unplugged": 1, "link-flap": 1},
    ),
    "syslog_ib6_link_flaps.log": (14, "wall", {"link-flap": 12}),
    "xid119_gsp_rpc_timeout_h100.log": (43, "wall", {"x119": 5}),
    "xid13_43_pt_main_thread_decoded_iso.log": (400, "wall", {"x13": 394, "x43": 6}),
    "xid63_row_remap_a100.log": (1, "none", {"x63": 1}),
    "xid79_then_sxid20034_fatal.log": (13, "boot", {"x79": 1, "s20034": 4, "off-bus": 1}),
}  # fmt: skip


def test_the_table_has_every_sample() -> None:
    assert set(SAMPLED) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_events_of_a_sample(name: str) -> None:
    log = read(name)
    assert (log.lines, log.clock, dict(told(log))) == SAMPLED[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_line_of_each_event_shows_it(name: str) -> None:
    lines = sample(f"kernel_log/{name}").split("\n")
    for one in records(read(name)):
        assert one.text[-40:] in lines[one.line - 1]


def test_an_xid_in_full() -> None:
    first, *_, last = read("xid119_gsp_rpc_timeout_h100.log").xids
    assert first == Xid(
        code=119,
        bus_id="00000000:9b:00.0",
        line=3,
        at_s=1740327858.0,  # Sun Feb 23 16:24:18 2025
        text="Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 "
        "(GSP_RM_ALLOC) (0x2081 0x4).",
        pid=2024380,
        process="nvidia-smi",
    )
    assert (last.line, last.at_s, last.process) == (43, 1740328213.0, "gpud")


def test_an_unknown_process_is_missing() -> None:
    first, *rest = read("xid13_43_pt_main_thread_decoded_iso.log").xids
    assert isinstance(first.pid, Missing)
    assert isinstance(first.process, Missing)
    assert first.text.startswith("Graphics SM Warp Exception on (GPC 8, TPC 5, SM 0)")
    stopped = next(one for one in rest if one.code == 43)
    assert (stopped.pid, stopped.process, stopped.text) == (
        2815167,
        "pt_main_thread",
        "Ch 00000008",
    )
    (remap,) = read("xid63_row_remap_a100.log").xids
    assert (remap.bus_id, remap.pid, remap.process) == ("00000000:10:1c.0", 1896, NOT_IN_INPUT)
    assert remap.at_s is None


def test_switch_errors_in_full() -> None:
    first, *_ = read("xid79_then_sxid20034_fatal.log").sxids
    assert first == Sxid(
        20034, "nvidia-nvswitch1", 6, 6781753.400584, "fatal", "Link 48 LTSSM Fault Up", 48
    )
    (last,) = read("fabricmanager_inband_info_12028.log").sxids
    assert (last.switch, last.link, last.severity) == ("00000000:86:00.0", 61, "non-fatal")
    assert last.at_s == 1740669002.0  # Feb 27 2025 15:10:02


def test_the_three_lines_of_a_switch_error_are_one() -> None:
    begin = "[1.5] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, "
    more = ["Severity 0 Engine instance 46 Sub-engine instance 00", "Data {0x00140004, 0x00100000}"]
    three = "\n".join(begin + end for end in ["Non-fatal, Link 46 MC TS crumbstore MCTO", *more])
    (one,) = parse_kernel_log(three).sxids
    assert (one.line, one.severity, one.link) == (1, "non-fatal", 46)
    # The first line is lost with the beginning of the log: the second still tells.
    (alone,) = parse_kernel_log("\n".join(begin + end for end in more)).sxids
    assert (alone.line, alone.severity) == (1, "non-fatal")
    (data,) = parse_kernel_log(begin + more[1]).sxids
    assert data.severity == "unknown"


#: A line -> the seconds and the axis that its time has.
FORMS = [
    ("[  123.456789] {}", 123.456789, "boot"),
    ("[  123.456789][ T1234] {}", 123.456789, "boot"),
    ("[  123.456789 <    0.000012>] {}", 123.456789, "boot"),
    ("[Sun Feb 23 16:24:18 2025] {}", 1740327858.0, "wall"),
    ("[Sun Feb 23 16:24:18 2025 <    0.000012>] {}", 1740327858.0, "wall"),
    ("[Feb23 16:24] {}", 4638240.0 + 63072000, "wall"),
    ("[Feb 3 16:24] {}", 2910240.0 + 63072000, "wall"),
    ("<4>1 2025-02-23T16:24:18.25Z node-01 kernel - - - {}", 1740327858.25, "wall"),
    ('<4>1 2025-02-23T16:24:18+01:00 node-01 kernel 0 - [a@1 b="\\]"] {}', 1740324258.0, "wall"),
    ("1 2025-02-23T16:24:18Z - kernel - - - \ufeff{}", 1740327858.0, "wall"),
    ("1 2025-02-23T16:24:18Z node-01 kernel - - - [   12.345678] {}", 1740327858.0, "wall"),
    ("[2025-02-23 16:24:18.5][   12.345678] {}", 1740327858.5, "wall"),
    ("Feb 23 16:24:18 kernel: [   12.345678] {}", 4638258.0 + 63072000, "wall"),
    ("kern  :warn  : [  123.456789] {}", 123.456789, "boot"),
    ("kern  :warn  : [Sun Feb 23 16:24:18 2025] {}", 1740327858.0, "wall"),
    ("kern  :warn  : 2025-02-23T16:24:18,500000+00:00 {}", 1740327858.5, "wall"),
    ("2025-02-23T16:24:18,500000+00:00 {}", 1740327858.5, "wall"),
    ("<4>[    2.608284] {}", 2.608284, "boot"),
    ("4,3973,227996636,-;{}", 227.996636, "boot"),
    ("4,3973,227996636,-,caller=T12;{}", 227.996636, "boot"),
    ("Feb 23 16:24:18 node-01 kernel: {}", 4638258.0 + 63072000, "wall"),
    ("Feb 29 00:00:00 node-01 kernel: [  12.345678] {}", 5097600.0 + 63072000, "wall"),
    ("Feb 23 16:24:18.250000 node-01 kernel: {}", 4638258.25 + 63072000, "wall"),
    ("2025-02-23T16:24:18+0000 node-01 kernel: {}", 1740327858.0, "wall"),
    ("2025-02-23T16:24:18.250000+0100 node-01 kernel: {}", 1740324258.25, "wall"),
    ("2025-02-23T16:24:18.250000-05:30 node-01 kernel: [   12.3] {}", 1740347658.25, "wall"),
    ("2025-02-23T16:24:18Z node-01 kernel: {}", 1740327858.0, "wall"),
    ("2025-02-23 16:24:18 {}", 1740327858.0, "wall"),
    ("Sun 2025-02-23 16:24:18 UTC node-01 kernel: {}", 1740327858.0, "wall"),
    ("Sun 2025-02-23 16:24:18 -03 node-01 kernel: {}", 1740338658.0, "wall"),
    ("[  123.456789] node-01 kernel: {}", 123.456789, "boot"),
    ("1740327858.500000 node-01 kernel: {}", 1740327858.5, "wall"),
    ("[2025-02-23T16:24:18.500000+00:00] {}", 1740327858.5, "wall"),
    ("Feb 23 16:24:18 node-01 kern.warn kernel: {}", 4638258.0 + 63072000, "wall"),
    ("<4>1 - node-01 kernel - - - {}", None, "none"),
    ("[<    0.000012>] {}", None, "none"),
    ("[  +0.000012] {}", None, "none"),
    ("kernel: {}", None, "none"),
    ("{}", None, "none"),
]


@pytest.mark.parametrize(("form", "at_s", "clock"), FORMS)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_forms_of_a_line(form: str, at_s: float | None, clock: str, end: str) -> None:
    log = parse_kernel_log(form.format(X79) + end)
    (one,) = log.xids
    assert (one.code, one.bus_id, one.pid) == (79, "00000000:3b:00.0", 12)
    assert one.text == "GPU has fallen off the bus."
    assert one.at_s == pytest.approx(at_s)
    assert (log.clock, log.lines) == (clock, 1)
    assert log.last_at_s == log.first_at_s == one.at_s


@pytest.mark.parametrize("form", [form for form, at_s, _ in FORMS if at_s is not None])
def test_a_log_without_events_is_read(form: str) -> None:
    log = parse_kernel_log(form.format("mlx5_core 0000:41:00.0: firmware version") + "\n")
    assert told(log) == {}
    assert log.last_at_s is not None


def test_json_lines_of_the_journal() -> None:
    record = {"__REALTIME_TIMESTAMP": "1740327858500000", "SYSLOG_IDENTIFIER": "kernel"}
    lines = [
        json.dumps({**record, "_TRANSPORT": "kernel", "MESSAGE": X79}, separators=(",", ":")),
        json.dumps({**record, "MESSAGE": list(X79.encode())}, separators=(",", ":")),
        json.dumps({**record, "SYSLOG_IDENTIFIER": "python", "MESSAGE": X79}),
        json.dumps({**record, "MESSAGE": None}),
        '{"MESSAGE":[300]}',
        '{"MESSAGE":"' + X79,
    ]
    log = parse_kernel_log("\n".join(lines))
    assert [(one.line, one.at_s) for one in log.xids] == [(1, 1740327858.5), (2, 1740327858.5)]
    assert log.clock == "wall"


@pytest.mark.parametrize(
    ("given", "bus_id"),
    [
        ("PCI:0000:9B:00", "00000000:9b:00.0"),
        ("PCI:0000:9b:00.0", "00000000:9b:00.0"),
        ("PCI:00000001:00:00.1", "00000001:00:00.1"),
        ("0000:03:00", "00000000:03:00.0"),
        ("0003:00", "00000000:03:00.0"),
        ("PCI:0000:3b:00 GPU-I:01 GPU-CI:02", "00000000:3b:00.0"),
    ],
)
def test_forms_of_an_xid(given: str, bus_id: str) -> None:
    log = parse_kernel_log(f"NVRM: Xid ({given}): 31, Ch 00000010, engmask 00000101, intr 10000000")
    assert [(one.code, one.bus_id) for one in log.xids] == [(31, bus_id)]
    assert log.xids[0].text == "Ch 00000010, engmask 00000101, intr 10000000"
    assert log.xids[0].pid == NOT_IN_INPUT
    unknown = parse_kernel_log(f"NVRM: Xid ({given}): 94, pid=-1, Contained: CE (0x9). RST: No")
    assert isinstance(unknown.xids[0].pid, Missing)
    assert unknown.xids[0].text == "Contained: CE (0x9). RST: No"


@pytest.mark.parametrize(
    "line",
    [
        f"Feb 23 16:24:18 node-01 python[123]: saw {X79}",
        f"[  12.345678] node-01 python[123]: {X79}",
        f"12,3973,227996636,-;python[123]: {X79}",
        f"12,3973,227996636,-;{X79}",
        f"<30>[  12.345678] python[123]: {X79}",
        f"user  :warn  : [  12.345678] {X79}",
        "Feb 23 16:24:18 h python[1]: detected NVSwitch fatal error 20034 on fid 0",
        "Feb 23 16:24:18 h python[1]: ib6: lost carrier",
        "[  12.345678] ata6: SATA link down (SStatus 4 SControl 300)",
        "[  12.345678] mlx5_core 0000:41:00.1: 63.008 Gb/s available PCIe bandwidth (8.0 GT/s)",
        "[  12.345678] MCE: In-kernel MCE decoding enabled.",
        "[  12.345678] acpi: _OSC: platform does not support [SHPCHotplug AER DPC]",
        "[  12.345678] python[7]: segfault at 0 ip 0 sp 0 error 4 in libc.so.6[7f+1]",
        "[  12.345678] veth12ab: Lost carrier",
        "Feb 23 16:24:18 h systemd-networkd[1]: cali1d5c6a0536f: Lost carrier",
        "[  12.345678] EDAC MC0: Giving out device to module skx_edac controller",
        "[  12.345678] pcieport 0000:40:01.0: pciehp: Slot(4): Card present",
        "[  12.345678] nvme nvme0: 64/0/0 default/read/poll queues",
        "[  12.345678] EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "[  12.345678] I/O error, dev loop0, sector 0 op 0x0:(READ)",
        "[  12.345678] EXT4-fs (loop0): Remounting filesystem read-only",
        "[  12.345678] EXT4-fs error (device loop0): x: Remounting filesystem read-only",
        "[  12.345678] XFS (loop3): Corruption detected. Shutting down filesystem.",
        "[  12.345678] BTRFS info (device loop1: state EA): forced readonly",
        "[  12.345678] virtio_blk: probe of x failed with error -1",
    ],
)
def test_what_is_no_event(line: str) -> None:
    log = parse_kernel_log(f"[    1.000000] usb 1-2: new device\n{line}\n")
    assert told(log) == {}
    assert log.unread == ()  # a citation is known to be one


@pytest.mark.parametrize(
    "line",
    [
        f"Feb 23 16:24:18 node-01 containerd[123]: {X79}",
        f"Feb 23 16:24:18 node-01 containerd[123]: [  12.345678] {X79}",
        f"2025-02-23T16:24:18.250000+0100 node-01 gpud[7]: {X79}",
        f"<14>1 2025-02-23T16:24:18Z node-01 python 123 - - {X79}",
        json.dumps({"MESSAGE": X79, "SYSLOG_IDENTIFIER": "watcher"}),
        "Feb 23 16:24:18 h nvidia-vgpu-mgr[12]: error: vmiop_log: (0x0): XID 43 detected on ch 2",
    ],
)
def test_what_only_the_driver_writes_counts_as_unread_whoever_passes_it_on(line: str) -> None:
    begin = "[    1.000000] usb 1-2: new device\n"
    log = parse_kernel_log(f"{begin}{line}\n")
    assert (told(log), [one.line for one in log.unread]) == ({}, [2])
    told_first_hand = parse_kernel_log(f"{begin}{line}\n[  12.345678] {X79}\n")
    assert told(told_first_hand) == {"x79": 1}
    assert len(told_first_hand.unread) == ("vmiop" in line)


@pytest.mark.parametrize(
    "tag", ["dmesg[12]", "klogd", "netconsole", "vmunix", "kern", "logger: [  12.345678]"]
)
@pytest.mark.parametrize("time", ["Feb 23 16:24:18 ", "2025-02-23T16:24:18+01:00 "])
def test_a_relay_of_the_kernel_is_the_kernel(tag: str, time: str) -> None:
    colon = "" if "[ " in tag else ":"
    log = parse_kernel_log(f"{time}node-01 {tag}{colon} {X79}\n")
    assert (told(log), log.writers) == ({"x79": 1}, ("kernel",))


REPEATED = "Feb 23 16:24:18 h kernel: [  12.3] message repeated 57 times: [ [  12.4] {}]"


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([REPEATED.format(X79)], 57),
        ([f"Feb 23 16:24:18 h kernel: message repeated 57 times: [ {X79}]"], 57),
        ([f"Feb 23 16:24:17 h kernel: {X79}", REPEATED.format(X79)], 58),
        ([f"Feb 23 16:24:17 h kernel: {X79}",
          "Feb 23 16:24:18 h last message repeated 3 times"], 4),
        ([f"Feb 23 16:24:17 h kernel: {X79}",
          "Feb 23 16:24:18 h --- last message repeated 1 time"], 2),
        ([f"Feb 23 16:24:17 h kernel: {X79}", "Feb 23 16:24:17 h kernel: usb 1-2: new device",
          "Feb 23 16:24:18 h last message repeated 3 times"], 1),
        ([REPEATED.format(X79)] * 2 + ["Feb 23 16:24:18 h last message repeated 2 times"], 116),
    ],
)  # fmt: skip
def test_a_message_that_a_log_folds_counts_as_often_as_it_came(
    lines: list[str], count: int
) -> None:
    assert told(parse_kernel_log("\n".join(lines))) == {"x79": count}


@pytest.mark.parametrize(
    ("line", "missed", "tells"),
    [
        ("Feb 23 16:24:18 h systemd-journald[3]: Missed 12 kernel messages", 12, True),
        ("Feb 23 16:24:18 h kernel: net_ratelimit: 3 callbacks suppressed", 0, True),
        ("Feb 23 16:24:18 h rsyslogd: imjournal: begin to drop messages due to rate-limiting",
         0, True),
        ("Feb 23 16:24:18 h myjob[3]: Missed 12 kernel messages", 0, False),
        ("Feb 23 16:24:18 h kernel: foo: warnings suppressed", 0, False),
    ],
)  # fmt: skip
def test_a_line_that_tells_of_messages_left_out(line: str, missed: int, tells: bool) -> None:
    log = parse_kernel_log(f"Feb 23 16:24:17 h kernel: usb 1-2: new device\n{line}\n")
    told = [one.line for one in log.messages_left_out]
    assert (log.gap.missed, told) == (missed, [2] if tells else [])


@pytest.mark.parametrize(
    ("time", "utc"),
    [("2026-11-29T10:00:00+01:00 h kernel:", True), ("2026-11-29T10:00:00Z h kernel:", True),
     ("2026-11-29 10:00:00 h kernel:", False), ("Nov 29 10:00:00 h kernel:", False),
     ("[Sun Nov 29 10:00:00 2026]", False), ("1795946400.123456 h kernel:", True)],
)  # fmt: skip
def test_whether_times_are_utc(time: str, utc: bool) -> None:
    assert parse_kernel_log(f"{time} {X79}\n").utc is utc


def test_folded_messages_are_bounded() -> None:
    begin = time.perf_counter()
    again = "message repeated 999999999 times: ["
    line = f"Feb 23 16:24:18 h kernel: {again} NVRM: Xid (PCI:0000:3b:00): 31, x]"
    log = parse_kernel_log(f"{line}\n" * 5000)
    assert len(log.xids) < EVENTS_MAX
    assert log.truncated
    assert time.perf_counter() - begin < 5


OTHERS = (
    "Aug 17 00:00:24 node-01 systemd[1]: Finished Rotate log files.\n"
    "Aug 17 00:01:24 node-01 slurmd[77]: launch task\n"
    "Aug 17 00:01:24 node-01 sshd[78]: Accepted publickey\n"
)


def test_a_log_without_one_line_of_the_kernel_is_refused() -> None:
    with pytest.raises(ParseError, match="no line of the kernel, only of slurmd, sshd, systemd"):
        parse_kernel_log(OTHERS)
    log = parse_kernel_log(f"{OTHERS}Aug 17 00:02:24 node-01 kernel: usb 1-2: new device\n")
    assert log.writers == ("kernel",)


def test_who_wrote_a_log_without_the_kernel_is_kept() -> None:
    assert read("syslog_ib6_link_flaps.log").writers == ("systemd", "systemd-networkd")
    assert read("fabricmanager_nvswitch_12028_nonfatal.log").writers == ("nv-fabricmanager",)
    clean = "[Feb 25 2025 13:59:45] [INFO] [tid 1808] multicast group 0 is freed.\n"
    assert parse_kernel_log(clean).writers == ("nv-fabricmanager",)
    assert read("xid79_then_sxid20034_fatal.log").writers == ("kernel",)


@pytest.mark.parametrize(
    "line",
    [
        "[  12.345678] NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
        "[  12.345678] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal",
        json.dumps({"log": f"saw {X79}\n", "stream": "stderr"}),
        json.dumps({"message": f"NVRM: Xid (PCI:0000:3b:00): 79{'x' * 2000}"}),
        f"node-07: {X79}",
        f"12:00:01 {X79}",
        "Xid 79 on GPU 3",
        "the GPU has fallen off the bus",
    ],
)
def test_a_line_that_speaks_of_an_xid_and_is_not_read_is_told(line: str) -> None:
    log = parse_kernel_log(f"[    1.000000] usb 1-2: new device\n{line}\n", "dmesg")
    assert told(log) == {}
    (one,) = log.unread
    assert (one.line, one.probe, one.text) == (2, "dmesg", line[:200])


@pytest.mark.parametrize(
    "form",
    [
        "2025-01-01T00:00:00.123456789Z stdout F {}",
        "2025-01-01T00:00:00.123456789+01:00 stderr F {}",
        '{{"log":"{}\\n","stream":"stdout","time":"2025-01-01T00:00:00.1Z"}}',
    ],
)
def test_lines_that_a_container_runtime_wrapped_are_read_for_all_kinds(form: str) -> None:
    lines = (
        f"[  100.000001] {X79}", "[  101.000002] EDAC MC0: 1 CE memory read error",
        "[  102.000003] mlx5_core 0000:1a:00.0 eth2: Link down",
    )  # fmt: skip
    log = parse_kernel_log("".join(form.format(line) + "\n" for line in lines))
    assert [one.at_s for one in log.xids] == [100.000001]
    assert [one.kind for one in log.events] == ["edac-corrected", "link-flap"]
    assert (log.clock, log.unread) == ("boot", ())


def test_lines_of_dmesg_for_people_have_times_to_the_minute() -> None:
    text = (
        "[Jan 6 10:00] usb 1-2: new device\n"
        f"[  +0.000003] {X79}\n"
        f"[  +7.500000] {X79}\n"
        f"[Jan 6 11:00] {X79}\n"
        f"[ +10.000000] {X79}\n"
    )
    log = parse_kernel_log(text)
    first, *_ = times = [one.at_s or 0.0 for one in log.xids]
    assert [at - first for at in times] == pytest.approx([0, 7.5, 3599.999997, 3609.999997])
    assert (log.last_at_s, log.unread) == (times[-1], ())


def test_two_logs_in_one_text_tell_an_event_once() -> None:
    journal = f"2025-02-23T16:24:28+0000 node-01 kernel: {X79}\n"
    log = parse_kernel_log(f"[  100.000000] {X79}\n[  101.000000] {X79}\n{journal}")
    assert [(one.line, one.at_s) for one in log.xids] == [(1, 100.0), (2, 101.0)]
    more = f"2025-02-23T16:24:28+0000 node-01 kernel: {X79.replace('3b', '4c')}\n"
    assert [one.line for one in parse_kernel_log(f"[  1.0] {X79}\n{journal}{more}").xids] == [2, 3]


BOOT = "[    0.000000] Linux version 6.8.0\n[    0.000000] Command line: x\n"


def starts(text: str) -> list[tuple[str, int]]:
    return [(one.what, one.line) for one in parse_kernel_log(text).starts]


def test_a_new_boot_in_the_log_is_seen() -> None:
    event = f"[ 5000.000000] {X79}\n[ 5010.000000] usb 1-2: gone\n"
    assert starts(f"{BOOT}{event}") == []
    assert starts(f"{BOOT}{event}{BOOT}") == [("boot", 5)]
    quiet = "[    0.000000] Command line: x\n[    1.0] usb 1-2: new device\n"
    assert starts(f"{event}{quiet}") == [("boot", 3)]  # a console shows no version
    journal = f"2025-02-23T16:24:28+0000 node-01 kernel: {X79}\n"
    assert starts(f"{journal}-- Reboot --\n{journal}") == [("boot", 2)]
    assert starts(f"-- Boot {'a' * 32} --\n{journal}-- Boot {'b' * 32} --\n{journal}") == [
        ("boot", 1),
        ("boot", 3),
    ]
    cited = "Feb 23 16:24:18 h sos[1]: Linux version 6.8.0\n"
    assert starts(f"Feb 23 16:24:17 h kernel: {X79}\n{cited}") == []


def test_a_new_boot_id_in_the_journals_json_is_a_boot() -> None:
    def line(boot: str, message: str) -> str:
        record = {"_TRANSPORT": "kernel", "_BOOT_ID": boot * 32, "MESSAGE": message}
        return json.dumps({"__REALTIME_TIMESTAMP": "1740327858500000", **record})

    text = "\n".join([line("a", X79), line("a", "x"), line("b", "y"), line("b", "z")])
    assert starts(text) == [("boot", 3)]


def test_a_load_of_the_driver_is_seen() -> None:
    load = "[ 6000.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07\n"
    assert starts(f"[ 5000.0] {X79}\n{load}") == [("driver", 2)]


def test_times_of_an_earlier_boot_are_before_the_last() -> None:
    first = f"[ 5000.000000] {X79}\n[ 5010.000000] usb 1-2: gone\n"
    log = parse_kernel_log(f"{first}{BOOT}[  300.000000] {X79}\n{BOOT}[   20.000000] {X79}\n")
    assert [one.at_s for one in log.xids] == [-310.0, 0.0, 20.0]


GPU = "00000000:65:00.0"
#: A message -> the kind and subject of its event.
MESSAGES = [
    ("NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.", "off-bus", GPU),
    ("NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST]",
     "off-bus", ""),
    ("NVRM: GPU 0000:65:00.0: RmInitAdapter failed! (0x62:0x0:1860)", "init-failed", GPU),
    ("NVRM: RmInitAdapter failed! (0x26:0xffff:1155)", "init-failed", ""),
    ("NVRM: GPU 0000:65:00.0: rm_init_adapter failed, device minor number 0", "init-failed", GPU),
    ("NVRM: GPU 0000:65:00.0: Failed to copy vbios to system memory.", "init-failed", GPU),
    ("NVRM: failed to copy vbios to system memory.", "init-failed", ""),
    ("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:65:00.0)", "init-failed", GPU),
    ("nvidia: probe of 0000:65:00.0 failed with error -1", "init-failed", GPU),
    ("nvidia 0000:65:00.0: probe with driver nvidia failed with error -1", "init-failed", GPU),
    ("NVRM: API mismatch: the client has the version 550.54.15, but", "api-mismatch", ""),
    ("EDAC MC3: 1 UE memory read error on CPU_SrcID#0_MC#3_Chan#0_DIMM#0 (channel:0)",
     "edac-uncorrected", "CPU_SrcID#0_MC#3_Chan#0_DIMM#0"),
    ("EDAC MC3: 1 UE memory read error on any memory (channel:0)", "edac-uncorrected", "MC3"),
    ("EDAC MC1: 1 CE memory scrubbing error on DIMM_B2 (channel:1 slot:0)",
     "edac-corrected", "DIMM_B2"),
    ("mce: CPU12: Package temperature above threshold, cpu clock throttled (total events = 1)",
     "cpu-throttled", ""),
    ("CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 7)",
     "cpu-throttled", ""),
    ("Memory failure: 0x7740c0: recovery action for dirty page: Recovered",
     "edac-uncorrected", ""),
    ("EDAC MC0: 2 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "edac-corrected", "MC0"),
    ("watchdog: BUG: soft lockup - CPU#12 stuck for 23s! [python:4711]", "lockup", ""),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 12", "lockup", ""),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "lockup", ""),
    ("BUG: kernel NULL pointer dereference, address: 0000000000000008", "oops", ""),
    ("Oops: 0000 [#1] SMP NOPTI", "oops", ""),
    ("kernel BUG at mm/slub.c:305!", "oops", ""),
    ("nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",
     "storage-controller", "nvme0"),
    ("nvme nvme1: I/O 566 QID 3 timeout, aborting", "storage-controller", "nvme1"),
    ("nvme nvme0: Removing after probe failure status: -19", "storage-controller", "nvme0"),
    ("blk_update_request: I/O error, dev nvme0n1, sector 0 op 0x0:(READ)", "io-error", "nvme0n1"),
    ("critical medium error, dev sda, sector 77 op 0x0:(READ)", "io-error", "sda"),
    ("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "read-only", "nvme0n1p2"),
    ("XFS (dm-0): Corruption of in-memory data (0x8) detected at xfs_x. Shutting down filesystem.",
     "read-only", "dm-0"),
    ("XFS (sda1): xfs_do_force_shutdown(0x2) called from line 1272 of file x", "read-only", "sda1"),
    ("BTRFS info (device sda1: state EA): forced readonly", "read-only", "sda1"),
    ("mlx5_core 0000:1a:00.0: poll_health:827:(pid 0): device's health compromised - reached miss",
     "nic-health", "0000:1a:00.0"),
    ("mlx5_core 0000:08:00.0: print_health_info:425:(pid 912): Health issue observed, firmware "
     "internal error, severity(3) ERROR:", "nic-health", "0000:08:00.0"),
    ("pcieport 0000:40:01.0: pciehp: Slot(4): Link Down", "pcie-link-down", "0000:40:01.0"),
    ("pcieport 0000:40:01.0: pciehp: Slot(4): Card not present", "pcie-link-down", "0000:40:01.0"),
    ("pciehp 0000:40:01.0:pcie004: Slot(4-1): Link Down", "pcie-link-down", "0000:40:01.0"),
    ("pcieport 0000:00:1c.0: AER: Corrected error received: 0000:02:00.0",
     "aer-corrected", "0000:02:00.0"),
    ("x 0000:02:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
     "aer-corrected", "0000:02:00.0"),
    ("NVRM: GPU at 0000:65:00.0 has fallen off the bus.", "off-bus", GPU),
    ("NVRM: fallen off the bus and is not responding to commands.", "off-bus", ""),
    ("ib0: Lost carrier", "link-flap", "ib0"),
    ("ice 0000:31:00.0 eth2: NIC Link is Down", "link-flap", "eth2"),
    ("igb 0000:09:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps", "link-flap", "eth0"),
    ("nvidia 0000:3b:00.0: Unable to change power state from D3cold to D0, device inaccessible",
     "pci-lost", "0000:3b:00.0"),
    ("xhci 0000:04:00.0: can't change power state from D3cold to D0 (config space inaccessible)",
     "pci-lost", "0000:04:00.0"),
    ("pcieport 0000:00:01.4: DPC: containment event, status:0x1f01 source:0x0000",
     "pcie-contained", "0000:00:01.4"),
    ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7",
     "gpu-locked", ""),
    ("mlx5_core 0000:41:00.1: temp_warn:170:(pid 0): High temperature on sensors with bit set 0 1",
     "nic-hot", "0000:41:00.1"),
    ("nfs: server nas-01 not responding, still trying", "network-storage", "nas-01"),
    ("Lustre: s-OST0001-osc-ffff: Connection to s-OST0001 (at 10.0.0.1@o2ib) was lost; in progress "
     "operations using this service will wait for recovery to complete",
     "network-storage", "s-OST0001"),
    ("LustreError: 167-0: s-OST0001-osc-ffff: This client was evicted by s-OST0001; in progress "
     "operations using this service will fail.", "network-storage", "s-OST0001"),
    ("bnxt_en 0000:17:00.0 ens1f0np0: NIC Link is Down", "link-flap", "ens1f0np0"),
    ("mlx5_core 0000:9d:00.1 enp157s0f1np1: Link down", "link-flap", "enp157s0f1np1"),
    ("python3[9]: segfault at 8 ip 0 sp 0 error 4 in libtorch_cuda.so[7f+1] likely on CPU 3",
     "segfault-cuda", "python3"),
    ("traps: my job[9] general protection fault ip:0 sp:0 error:0 in libcudart.so.12[7f+1]",
     "segfault-cuda", "my job"),
    ("Out of memory: Killed process 4711 (python3) total-vm:1kB", "oom-kill", "python3"),
    ("Memory cgroup out of memory: Killed process 4711 (pt_data_worker) total-vm:1kB",
     "oom-kill", "pt_data_worker"),
    ("INFO: task kworker/u8:3:77 blocked for more than 122 seconds.", "hung-task", "kworker/u8:3"),
    ("Kernel panic - not syncing: Fatal machine check", "panic", ""),
    ("Kernel panic - not syncing: sysrq triggered crash", "panic-asked", ""),
    ("mce: [Hardware Error]: Machine check events logged", "mce", ""),
    ("mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 3: be00", "mce", ""),
    ("{1}[Hardware Error]: event severity: corrected", "mce", ""),
    ("igb 0000:09:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
     "aer-uncorrected", "0000:09:00.0"),
    ("igb 0000:09:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer",
     "aer-uncorrected", "0000:09:00.0"),
    ("pcieport 0000:40:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:41:00.0",
     "aer-uncorrected", "0000:41:00.0"),
    ("pcieport 0000:40:01.0: AER: Uncorrectable (Fatal) error message received from 0000:41:00.0",
     "aer-uncorrected", "0000:41:00.0"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "kind", "subject"), MESSAGES)
def test_messages_of_the_kernel(message: str, kind: str, subject: str) -> None:
    for begin, at_s in (("[   77.000001] ", 77.000001), ("6,1,77000001,-;", 77.000001), ("", None)):
        log = parse_kernel_log(begin + message)
        many = 2 if "MC0: 2 CE" in message else 1
        assert log.events == (KernelEvent(kind, subject, 1, at_s, message, count=many),)


def test_an_uncorrected_error_is_counted_once() -> None:
    lines = [
        "[1.0] pcieport 0000:40:01.0: AER: Uncorrected (Fatal) error received: 0000:41:00.0",
        "[1.0] mlx5_core 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=x",
        "[2.0] pcieport 0000:40:01.0: AER: Uncorrected (Fatal) error received: 0000:42:00.0",
    ]
    events = parse_kernel_log("\n".join(lines)).events
    assert [(one.subject, one.line) for one in events] == [("0000:41:00.0", 2), ("0000:42:00.0", 3)]


def test_the_gpu_of_the_old_three_line_message() -> None:
    lines = [
        "[1.0] NVRM: The NVIDIA GPU 0000:65:00.0",
        "[1.0] NVRM: (PCI ID: 10de:1e04) installed in this system has",
        "[1.0] NVRM: fallen off the bus and is not responding to commands.",
    ]
    (one,) = parse_kernel_log("\n".join(lines)).events
    assert (one.kind, one.subject, one.line) == ("off-bus", "00000000:65:00.0", 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("hello\nworld\n", "no line has that form"),
        ('{"gpus": []}', "no line has that form"),
        ("Hint: You are currently not seeing messages from other users and the system.\n"
         "-- No entries --\n", "may not be read by this user"),
        ("-- No entries --", "may not be read by this user"),
        ("No journal files were found.", "may not be read by this user"),
        ("dmesg: read kernel buffer failed: Operation not permitted", "may not be read"),
    ],
)  # fmt: skip
def test_what_is_no_log(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        parse_kernel_log(text)


def test_a_hint_above_messages_spoils_nothing() -> None:
    hint = "Hint: You are currently not seeing messages from other users and the system.\n"
    assert len(parse_kernel_log(f"{hint}[1.0] {X79}").xids) == 1


def test_times_go_on_through_new_year() -> None:
    lines = [
        f"Dec 31 23:59:58 node-01 kernel: {X79}",
        f"Jan  1 00:00:03 node-01 kernel: {X79}",
        "Jan  1 00:00:10 node-01 kernel: usb 1-2: new device",
    ]
    log = parse_kernel_log("\n".join(lines))
    first, second = (one.at_s for one in log.xids)
    assert first is not None and second is not None and log.last_at_s is not None
    assert second - first == 5.0
    assert log.last_at_s - second == 7.0


def test_one_axis_for_a_mixture() -> None:
    lines = [
        f"[Sun Feb 23 16:24:18 2025] {X79}",
        f"[  123.456789] {X79}",
        f"{X79}",
        "2025-02-23T16:24:28+0000 node-01 kernel: usb 1-2: new device",
    ]
    log = parse_kernel_log("\n".join(lines))
    assert log.clock == "wall"
    assert [one.at_s for one in log.xids] == [1740327858.0, None]  # the second may be the first
    assert log.last_at_s == 1740327868.0


def test_a_ring_buffer_that_lost_its_beginning() -> None:
    assert not parse_kernel_log("[    0.000000] Linux version 6.8\n[   10.1] x").truncated
    assert parse_kernel_log("[  300.000000] x\n[  301.0] y").truncated
    assert not parse_kernel_log("2025-02-23T16:24:28+0000 h kernel: x").truncated


def test_a_flood_hides_nothing() -> None:
    flood = "".join(
        f"[{at}.0] NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=a, Ch 1\n" for at in range(25_000)
    )
    log = parse_kernel_log(f"{flood}[30000.0] {X79}\n[30001.0] NVRM: Xid (PCI:0000:3b:00): 45, x")
    assert log.truncated
    assert len(log.xids) <= EVENTS_MAX
    assert [one.line for one in log.xids if one.code == 79] == [25_001]
    assert (log.xids[-1].at_s, log.xids[-1].code) == (30001.0, 45)
    assert [one.line for one in log.xids] == sorted(one.line for one in log.xids)


def test_the_probes() -> None:
    text = f"[1.0] {X79}"
    asked = {probe.__name__: probe.probe for probe in (reader.dmesg, reader.journalctl)}  # type: ignore[attr-defined]
    assert asked["dmesg"].command.argv == ("dmesg",)
    assert asked["journalctl"].command.argv[:3] == ("journalctl", "-k", "-b")
    for parse in (reader.dmesg, reader.journalctl, reader.kernel_log):
        name = parse.probe.command.probe  # type: ignore[attr-defined]
        log = parse(text)
        assert {log.probe, *(one.probe for one in log.xids)} == {name}


def quickest_ms(text: str) -> float:
    def once() -> float:
        begin = time.process_time()
        parse_kernel_log(text)
        return (time.process_time() - begin) * 1000

    return min(once() for _ in range(7))


def test_speed() -> None:
    quiet = "".join(f"[{n:>5}.123456] usb 1-{n}: New USB device found\n" for n in range(2000))
    assert quickest_ms(quiet) < 4  # about 1 on an idle machine
    assert quickest_ms(sample("kernel_log/boot_xe9680_h100_mlx5_insufficient_power.log")) < 20


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_is_read_or_refused(name: str) -> None:
    text = sample(f"kernel_log/{name}")
    whole = {kind.removesuffix("-asked") for kind in told(parse_kernel_log(text))}
    # Every byte of the short ones, every third of those of some pages, 140 cuts of the long ones.
    apart = 1 if len(text) < 2000 else 3 if len(text) < 6000 else len(text) // 140
    for cut in range(0, len(text), apart):
        try:
            log = parse_kernel_log(text[:cut])
        except ParseError:
            continue
        # Half a number is no other number. Half a panic does not tell that it was asked for.
        assert {kind.removesuffix("-asked") for kind in told(log)} <= whole
        assert log.lines == len(text[:cut].split("\n")) - text[:cut].endswith("\n")


PIECES = st.sampled_from(
    [form for form, _, _ in FORMS]
    + [X79, "\n", " ", "{", "}", "[", "]", "<4>", "Xid (", "SXid (", "Link ", '{"MESSAGE":[', "1"]
    + [message for message, _, _ in MESSAGES]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=12))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        log = parse_kernel_log(text)
    except ParseError:
        return
    assert all(1 <= one.line <= log.lines for one in records(log))


def test_huge_numbers_are_no_numbers() -> None:
    many = "9" * 5000
    for text in (f"[{many}.0] x", f"6,1,{many},-;x", f"<{many}>x", f"{many}.1 h kernel: x"):
        assert not read_line(text).known
    assert told(parse_kernel_log(f"[1.0] NVRM: Xid (PCI:0000:3b:00): {many}, x")) == {}
    log = parse_kernel_log(f"[1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid={many}, name=a, x")
    assert isinstance(log.xids[0].pid, Missing)
    assert read_line("2025-13-45T99:99:99+00:00 h kernel: x").at_s is None
