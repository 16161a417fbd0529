"""A log too large to be held gives the same facts, results and evidence as the whole of it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from preflight import datafiles
from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.model import Raw
from preflight.probes.kernel_log import kept as kernel_log_kept
from preflight.probes.kernel_log import text as kernel_log_text
from preflight.probes.kernel_log.log import kernel_log
from preflight.recognise import recognise
from preflight.transports import scan, sieve

BENIGN = ("CRON[1]: (root) CMD (true)", "sshd[22]: Accepted publickey", "kernel: usb 1-1: new")
TOLD = (
    "kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=a, Ch 1",
    "kernel: NVRM: Xid (PCI:0000:3b:00): 63, pid=1, Row Remapper: New row marked",
    "kernel: NVRM: Xid (PCI:0000:9b:00): 48, pid=7, name=b, x",
    "kernel: NVRM: Xid 12 in a new form",
    "kernel: NVRM: The NVIDIA GPU 0000:3b:00.0",
    "kernel: NVRM: fallen off the bus and is not responding to commands.",
    "kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.54.03",
    "kernel: Linux version 6.8.0",
    "kernel: mlx5_core 0000:1a:00.0 eth2: Link down",
    "kernel: EDAC MC0: 1 CE memory read error",
    "systemd-networkd[9]: ib0: Lost carrier",
    "slurmd[3]: a BUG: unable to do without Link down, Xid (PCI:0000:3b:00): 79",
    "kernel: message repeated 3 times: [ NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=a, Ch 1]",
    "last message repeated 2 times",
    "systemd-journald[1]: Missed 12 kernel messages",
    "containerd[9]: NVRM: Xid (PCI:0000:9b:00): 94, pid=7, name=b, x",
)
BOOTS = ("-- Reboot --", "[    0.000000] Linux version 6.8", "[    0.000000] Command line: a")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything smaller, so that a small file is a large one."""
    for module, name, value in (
        (sieve, "LARGE_BYTES", 1000), (sieve, "_LARGE_GZIP", 10), (sieve, "_END_BYTES", 5000),
        (sieve, "_SAMPLES", 3), (sieve, "_SAMPLE_BYTES", 600), (sieve, "EDGE", 20),
        (kernel_log_text, "EDGE", 20), (sieve, "BLOCK", 3000),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    yield


def syslog(choices: list[int]) -> bytes:
    """A mixed syslog: most choices are benign."""
    lines = []
    for number, choice in enumerate(choices):
        text = TOLD[choice] if choice < len(TOLD) else BENIGN[choice % len(BENIGN)]
        minute = number // 6
        at = f"{minute // 60 % 24:02}:{minute % 60:02}:{number % 6 * 10:02}"
        lines.append(f"Nov {1 + minute // 1440:2} {at} gpu-07 {text}\n")
    return "".join(lines).encode()


def dmesg(choices: list[int]) -> bytes:
    """The same as a ring buffer's text of several boots."""
    lines, at_s = [], 0.0
    for number, choice in enumerate(choices):
        if choice >= 59:
            lines.append(f"{BOOTS[choice % 3]}\n")
            at_s = 0.0
        else:
            text = TOLD[choice] if choice < len(TOLD) else BENIGN[2]
            at_s += 1.5
            message = text.partition(": ")[2]
            lines.append(f"[{at_s:12.6f}] {message} {number % 3}\n")
    return "".join(lines).encode()


def no_grep(*_: object) -> scan.Scanned:
    raise scan.UnableError


def of(data: bytes, folder: Path, *, packed: bool = False) -> Raw | None:
    path = folder / "large.log"
    path.write_bytes(gzip.compress(data) if packed else data)
    return sieve.sieved(path, "large.log")


def same(raw: Raw | None, data: bytes) -> None:
    (whole,) = recognise(data, "large.log")
    assert raw is not None
    assert kernel_log(str(raw.stdout)) == kernel_log(str(whole.stdout))
    assert raw.line_offset == whole.line_offset


CHOICES = st.lists(st.integers(0, 60), min_size=140, max_size=500)
QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@QUICK
@given(CHOICES, st.sampled_from([syslog, dmesg]), st.sampled_from(["", "\n\n", "Nov 30 1"]))
def test_grep_finds_what_the_parser_finds(
    tmp_path: Path, choices: list[int], form: object, end: str
) -> None:
    data = (syslog if form is syslog else dmesg)([98, *choices, *[98] * 150]) + end.encode()
    same(of(data, tmp_path), data)


@QUICK
@given(CHOICES, st.sampled_from([syslog, dmesg]), st.booleans())
def test_so_do_the_other_ways(
    tmp_path: Path, choices: list[int], form: object, packed: bool
) -> None:
    data = (syslog if form is syslog else dmesg)([98, *choices, *[98] * 150])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "by_grep", no_grep)
        same(of(data, tmp_path, packed=packed), data)


def test_the_report_shows_the_same_lines(tmp_path: Path) -> None:
    data = syslog([98] * 300 + list(range(12)) + [98] * 400 + [0, 2] + [98] * 300)
    raw, (whole,) = of(data, tmp_path), recognise(data, "large.log")
    assert raw is not None
    assert len(str(raw.stdout)) < len(data) / 10
    checks = load(DOMAINS).checks
    told = [examine("h", [replace(one, host="h")], checks) for one in (raw, whole)]
    assert told[0].results == told[1].results
    xid = next(one for one in told[0].results if one.check == "gpu.xid.48")
    # The other is before the driver was loaded: it came back.
    assert [one.line for one in xid.evidence] == [303, 714]
    assert "Xid (PCI:0000:9b:00): 48" in xid.evidence[0].text


def test_a_flood_is_bounded_as_the_parser_bounds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_log_kept, "EVENTS_MAX", 40)
    monkeypatch.setattr(kernel_log_kept, "REPEATS_MAX", 30)
    monkeypatch.setattr("preflight.probes.kernel_log.log.EVENTS_MAX", 40)
    monkeypatch.setattr("preflight.probes.kernel_log.log.REPEATS_MAX", 30)
    data = syslog([98] + [0] * 900 + [2, 8] + [0, 1] * 100 + [9])
    path = tmp_path / "large.log"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "Kept", lambda: kernel_log_kept.Kept(repeats_max=30))
        raw = sieve.sieved(path, "large.log")
    assert raw is not None
    assert kernel_log(str(raw.stdout)) == kernel_log(data.decode())
    assert kernel_log(str(raw.stdout)).truncated


BENCH = "Nov 30 20:00:00 n1 bash[4711]: # nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)"
OTHERS = (BENCH, "<nvidia_smi_log>", "==============NVSMI LOG==============", "[  +0.000003] usb",
          '{"__REALTIME_TIMESTAMP":"1","_BOOT_ID":"' + "a" * 32 + '","MESSAGE":"x"}')  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_that_is_more_than_a_log_is_left_to_the_other_way(
    tmp_path: Path, other: str
) -> None:
    data = syslog([98] * 300)
    assert of(data, tmp_path) is not None
    assert of(data + f"{other}\n".encode() + data, tmp_path) is None
    assert of(b"Product Name : NVIDIA\nGPU 00000000:01:00.0\n" + data, tmp_path) is None
    assert of(syslog([39] * 300), tmp_path) is None  # no line of the kernel


def test_the_pattern_file_is_what_the_parser_looks_for() -> None:
    path = datafiles.root() / "checks" / "data" / "kernel_log.patterns"
    assert path.read_text(encoding="utf-8") == sieve.patterns_for_grep(), (
        "write it anew: python -c 'from preflight.transports.sieve import *; "
        "print(patterns_for_grep(), end=str())' > checks/data/kernel_log.patterns"
    )
    assert all(len(one) > 2 for one in sieve.PATTERNS)


@pytest.mark.parametrize("grep", [True, False])
def test_the_zeros_that_a_crash_leaves_hide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grep: bool
) -> None:
    if not grep:
        monkeypatch.setattr(sieve, "by_grep", no_grep)
    data = syslog([98] * 200) + b"\0" * 3_000_000 + syslog([0, *[98] * 200])
    raw = of(data, tmp_path)
    assert raw is not None
    same(raw, data)
    assert [one.line for one in kernel_log(str(raw.stdout)).xids] == [201]
