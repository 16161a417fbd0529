"""Every sample of fio is read as it was, judged as it is to be, and shown in fio's own figures."""

from __future__ import annotations

import json

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.judge.load import load
from preflight.recognise import recognise
from preflight.reports.io import io_tables
from tests.conftest import SAMPLES, sample, sample_bytes

#: Sample -> the verdict, then what did not pass.
JUDGED: dict[str, tuple[str, ...]] = {
    "cloud_disk_clat_hist.json": ("PASS",),
    "cloud_disk_multi_job_sample.json": ("PASS",),
    "floppy_randwrite_pathological.json": (
        "FAIL", "FAIL io.latency iotest 17112760.32", "FAIL io.longest iotest 40959849.566",
    ),
    "hdd_7k2_randread_qd16.json": ("FAIL", "FAIL io.latency random-read 2936012.8"),
    "nvme_randrw_libaio_fio3.16.json": ("PASS",),
    "raid5_8x2tb_mdadm_randwrite.json": ("FAIL", "FAIL io.latency iotest 1216348.16"),
    "sata_ssd_intel_s4610_randwrite_qd1.json": (
        "WARN", "WARN io.name random-read random read",
    ),
    "sata_ssd_pm883_randread.json": ("PASS",),
}  # fmt: skip
CHECKS = load(["io"]).checks


def test_no_sample_is_left_out() -> None:
    assert set(JUDGED) == {path.name for path in (SAMPLES / "fio").iterdir()}


@pytest.mark.parametrize("name", JUDGED)
def test_it_is_judged_as_it_is_to_be(name: str) -> None:
    report = examine("input", recognise(sample_bytes(f"fio/{name}"), name), CHECKS)
    told = [
        f"{one.status.value} {one.check} {one.subject} {one.measured}"
        for one in report.results if one.status.value in ("WARN", "FAIL", "ERROR")
    ]  # fmt: skip
    assert (report.verdict.value, *told) == JUDGED[name]


@pytest.mark.parametrize("name", JUDGED)
def test_figures_are_fios(name: str) -> None:
    """Bytes, rates and times of the report beside those of the sample."""
    host = assemble("input", recognise(sample_bytes(f"fio/{name}"), name)).host
    [table] = io_tables(host)
    numbers = table["numbers"]
    theirs = json.loads(sample(f"fio/{name}"))
    old = theirs["fio version"] < "fio-3"
    count = 0
    for job in theirs["jobs"]:
        ways = [way for way in ("read", "write", "trim") if job[way]["io_bytes"]]
        for way in ways:
            told = numbers[f"{job['jobname']} {way}" if len(ways) > 1 else job["jobname"]]
            side, count = job[way], count + 1
            latency, per = (side["clat"], 1.0) if old else (side["clat_ns"], 1e3)
            assert told["iops"] == side["iops"]
            assert told["bandwidth_mbps"] == side.get("bw_bytes", side["bw"] * 1024) / 1e6
            assert told["done_bytes"] == side["io_bytes"] * (1024 if old else 1)
            assert told["mean_us"] == latency["mean"] / per
            latency = latency if "percentile" in latency else side["lat_ns"]
            for key, at in (("p50_us", "50"), ("p99_us", "99"), ("p999_us", "99.9")):
                assert told[key] == latency["percentile"][f"{float(at):.6f}"] / per
    assert len(numbers) == count
