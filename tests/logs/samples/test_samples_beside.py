"""Tables of GPUs and disks beside a run: what they show, and what nobody may conclude from them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.step_time.from_samples import reading
from preflight.errors import ParseError
from preflight.facts.samples import DiskSamples, GpuSamples
from preflight.logs.samples import gpus, iostat
from tests.conftest import sample_bytes

HEADER = "Device            r/s     rkB/s   r_await     w/s     wkB/s w_await aqu-sz  %util\n"
OLD = "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgqu-sz   await  %util\n"
DCGM = "#Entity   SMACT  TENSO  DRAMA\nID\n"


def quiet(_: str) -> None:
    """No news."""


def disks(tmp_path: Path, *rows: str, header: str = HEADER) -> DiskSamples:
    path = tmp_path / "iostat.txt"
    first = f"Linux 6.1 (n7)\n\navg-cpu:  %user %idle\n  1.0 99.0\n\n{header}sda {rows[0]}\n\n"
    path.write_text(first + "".join(f"{header}sda {row}\n\n" for row in rows))
    assert iostat.sniff(path.read_bytes(), path.name)
    return iostat.read(path, quiet)


def told(**facts: object) -> list[tuple[str, str]]:
    made = reading({name.replace("_", "-"): [fact] for name, fact in facts.items()}, Asked())
    assert made is not None
    return [(one.finding, one.status.value) for one in findings([made])]


def test_a_disk_that_requests_wait_for_is_named(tmp_path: Path) -> None:
    samples = disks(tmp_path, *["900 90000 45.0 10 100 3.0 12.5 99.7"] * 6)
    (device,) = samples.devices
    assert (device.name, device.reports, device.held_up) == ("sda", 6, 6)
    assert device.read_await_ms == 45.0 and device.read_mbps == pytest.approx(92.16)
    assert told(iostat=samples)[0] == ("disk", "FAIL")


def test_a_disk_that_serves_many_at_once_is_no_suspect(tmp_path: Path) -> None:
    """All the time one request is in flight: 100 % of nothing, on NVMe."""
    samples = disks(tmp_path, *["90000 9000000 0.3 10 100 0.1 30.0 100.0"] * 6)
    assert {name for name, _ in told(iostat=samples)} == {"step.unknown", "healthy"}


def test_a_slow_write_now_and_then_is_none(tmp_path: Path) -> None:
    rows = ["1 10 0.5 1 10 0.5 0.1 1.0"] * 19 + ["1 10 0.5 90 9000 80.0 9.0 99.0"]
    assert "disk" not in [name for name, _ in told(iostat=disks(tmp_path, *rows))]


def test_the_columns_of_old_versions_are_read(tmp_path: Path) -> None:
    rows = ["0.0 1.0 900.0 3.0 90000.0 12.0 11.0 40.5 99.9"] * 4
    (device,) = disks(tmp_path, *rows, header=OLD).devices
    assert (device.queue, device.read_await_ms, device.held_up) == (11.0, 40.5, 4)


def test_the_mean_since_the_machine_began_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "once.txt"
    path.write_text(f"{HEADER}sda 900 90000 45.0 10 100 3.0 12.5 99.7\n")
    samples = iostat.read(path, quiet)
    assert samples.since_boot
    assert told(iostat=samples) == [("step.unknown", "ERROR")]


def test_json_of_iostat_is_read(tmp_path: Path) -> None:
    row = '{"disk_device": "vda", "r/s": 9, "rMB/s": 1, "r_await": 50, "aqu-sz": 9, "util": 99}'
    path = tmp_path / "io.json"
    one = f'{{"disk": [{row}]}}'
    path.write_text(f'{{"sysstat": {{"hosts": [{{"statistics": [{one}, {one}, {one}, {one}]}}]}}}}')
    assert iostat.sniff(path.read_bytes(), path.name)
    (device,) = iostat.read(path, quiet).devices
    assert (device.name, device.held_up, device.reports) == ("vda", 3, 3)
    path.write_text(path.read_text()[:-9])
    with pytest.raises(ParseError, match="no whole JSON"):
        iostat.read(path, quiet)


DMON = ("one_gpu_7000mhz_ramp_up", "k40m_x2_one_idle_one_busy", "one_gpu_video_transcode_15s",
        "gtx1650ti_wsl_sm_mem_dashes")  # fmt: skip


@pytest.mark.parametrize("name", DMON)
def test_utilisation_alone_proves_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "dmon.gz"
    data = sample_bytes(f"dmon/{name}.txt")
    assert gpus.sniff(data, "dmon")
    path.write_bytes(gzip.compress(data))
    assert told(gpu_samples=gpus.read(path, quiet)) == [("step.unknown", "ERROR")]


def dcgm(tmp_path: Path, row: str) -> GpuSamples:
    path = tmp_path / "dcgm.txt"
    path.write_text(DCGM + f"GPU 0     {row}\n" * 12)
    return gpus.read(path, quiet)


def test_memory_that_is_busy_while_tensor_cores_are_not_is_told(tmp_path: Path) -> None:
    assert told(gpu_samples=dcgm(tmp_path, "0.950  0.040  0.720"))[0] == (
        "memory-bandwidth", "WARN",
    )  # fmt: skip


def test_a_busy_memory_beside_busy_tensor_cores_is_not(tmp_path: Path) -> None:
    names = [name for name, _ in told(gpu_samples=dcgm(tmp_path, "0.950  0.540  0.720"))]
    assert "memory-bandwidth" not in names


def test_heat_is_told_and_a_power_cap_is_not(tmp_path: Path) -> None:
    header = "# gpu   pwr  pviol tviol    sm   mem\n# Idx     W      %  bool     %     %\n"
    path = tmp_path / "violations.txt"
    path.write_text(header + "    0   690     99     1    99    60\n" * 12)
    assert ("throttled", "FAIL") in told(gpu_samples=gpus.read(path, quiet))
    path.write_text(header + "    0   690     99     0    99    60\n" * 12)
    assert "throttled" not in [name for name, _ in told(gpu_samples=gpus.read(path, quiet))]
