"""Recordings that end early, or hold what a crash left: what is there counts, no more passes."""

from __future__ import annotations

import gzip
import os
import random

import pytest

from preflight.collect import examine
from preflight.errors import UsageError
from preflight.judge.load import DOMAINS, load
from preflight.model import HostReport, Raw, Status
from preflight.recognise import recognise

X79 = (
    b"Nov 29 10:00:01 h kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus\n"
)
QUIET = b"".join(
    b"Nov 29 10:%02d:%02d h kernel: usb %d: new device %d\n" % (n // 60 % 60, n % 60, n, n * 7919)
    for n in range(3000)
)
LOG = QUIET[:5000].rpartition(b"\n")[0] + b"\n" + X79 + QUIET
CHECKS = [one for one in load(DOMAINS).checks if one.id.startswith("gpu.xid.")]


def report(data: bytes) -> HostReport:
    (raw,) = recognise(data, "x.log.gz")
    return examine("n", [raw], CHECKS)


def statuses(found: HostReport) -> dict[str, Status]:
    return {one.check: one.status for one in found.results}


def test_a_log_that_ends_early_fails_for_what_it_shows_and_passes_for_nothing() -> None:
    packed = gzip.compress(LOG)
    found = report(packed[: len(packed) * 2 // 3])
    assert statuses(found).pop("gpu.xid.79") is Status.FAIL
    assert {status for check, status in statuses(found).items() if check != "gpu.xid.79"} == {
        Status.ERROR
    }
    (why,) = {one.reason for one in found.results if one.status is Status.ERROR}
    assert "x.log.gz ends early: it is cut short or damaged" in why
    assert found.reach.endswith("its end is missing")


def test_a_log_that_is_damaged_in_the_middle_is_read_up_to_there() -> None:
    packed = bytearray(gzip.compress(LOG))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    assert statuses(report(bytes(packed)))["gpu.xid.79"] is Status.FAIL


def test_an_answer_that_was_too_long_is_read_as_far_as_it_goes() -> None:
    raw = Raw("n", "dmesg", ("dmesg",), stdout=LOG.decode(), truncated=True)
    found = examine("n", [raw], CHECKS)
    assert statuses(found)["gpu.xid.79"] is Status.FAIL
    assert statuses(found)["gpu.xid.48"] is Status.ERROR
    whole = Raw("n", "journalctl", ("journalctl",), stdout=LOG.decode())
    assert statuses(examine("n", [raw, whole], CHECKS))["gpu.xid.48"] is Status.PASS


@pytest.mark.parametrize("zeros", [63, 64, 4096, 4097, 65536, 100_001])
@pytest.mark.parametrize("place", [0, len(X79), len(X79) + 7])
def test_zeros_that_a_crash_left(zeros: int, place: int) -> None:
    log = X79 + QUIET[:4900].rpartition(b"\n")[0] + b"\n"
    found = report(log[:place] + b"\0" * zeros + log[place:])
    assert statuses(found)["gpu.xid.79"] is Status.FAIL


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-16"])
def test_text_in_two_bytes_is_still_known(codec: str) -> None:
    assert statuses(report(X79.decode().encode(codec)))["gpu.xid.79"] is Status.FAIL


def test_a_megabyte_of_another_file_in_a_log() -> None:
    junk = random.Random(7).randbytes(1 << 20)
    found = report(QUIET + junk + b"\n" + X79 + QUIET)
    assert statuses(found)["gpu.xid.79"] is Status.FAIL


def test_a_binary_is_no_text() -> None:
    with pytest.raises(UsageError, match="is not text"):
        recognise(os.urandom(1 << 16), "x")
