"""What came before and after: what ends a fault, what comes back, whose boot it was."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.facts.gpu import Gpu, Remap
from preflight.judge.load import DOMAINS, load
from preflight.model import Action, HostReport, Raw, Result, Status
from tests.judge.test_kernel_log import bad, judged, of, tpc, xid

CHECKS = load(DOMAINS).checks
GPU_3B = "00000000:3b:00.0"
LOAD = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07"
BOOT = "Linux version 6.8.0"
ASKED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
DONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


def day(number: int, message: str, host: str = "node-07") -> str:
    return f"2026-11-{number:02}T10:00:00+00:00 {host} kernel: {message}\n"


def fault(code: int, bus: str = "3b", rest: str = "pid=1, name=a, x") -> str:
    return f"NVRM: Xid (PCI:0000:{bus}:00): {code}, {rest}"


def told(*texts: str) -> HostReport:
    names = ["kernel-log", *(f"kernel-log#{number}" for number in range(2, 9))]
    raws = [Raw("h", name, stdout=text) for name, text in zip(names, texts, strict=False)]
    return examine("h", raws, CHECKS)


def one_of(report: HostReport, check: str) -> Result:
    return of(report.results, check)


@pytest.mark.parametrize(
    ("code", "after", "status"),
    [
        (79, BOOT, "WARN"),
        (79, LOAD, "FAIL"),  # no driver brings a GPU back to the bus
        (61, LOAD, "FAIL"),  # it asks for a boot
        (48, BOOT, "WARN"),
        (48, LOAD, "WARN"),  # a load is a reset too
        (95, fault(154, rest=DONE), "WARN"),
        (95, fault(154, rest=ASKED), "FAIL"),
        (95, fault(154, bus="4c", rest=DONE), "FAIL"),  # another GPU's
        (79, fault(154, rest=DONE), "FAIL"),
        (165, BOOT, "FAIL"),  # worn out for good
    ],
)
def test_what_ends_a_fault(code: int, after: str, status: str) -> None:
    one = of(judged(day(28, fault(code)) + day(28, after)), f"gpu.xid.{code}")
    assert one.status.value == status


def test_a_lost_gpu_that_nvidia_smi_shows_after_a_load_is_back() -> None:
    text = day(28, fault(79)) + day(28, LOAD)
    for answers, status in ((True, Status.WARN), (False, Status.FAIL)):
        gpu = Gpu(3, "gpu3", GPU_3B, answers=answers)
        assert of(judged(text, gpus=(gpu,)), "gpu.xid.79").status is status
    early = day(28, LOAD) + day(28, fault(79))  # nvidia-smi may be older than the log
    gpu = Gpu(3, "gpu3", GPU_3B, answers=True)
    assert of(judged(early, gpus=(gpu,)), "gpu.xid.79").status is Status.FAIL


def test_a_fault_that_comes_back_after_each_boot_is_not_over() -> None:
    text = "".join(day(at, fault(79)) + day(at, BOOT) for at in (20, 22, 24))
    one = of(judged(text), "gpu.xid.79")
    assert (one.status, one.action) == (Status.FAIL, Action.INSPECT)
    assert "it came back 2 times after a boot, which did not mend it" in one.reason
    assert not any("nothing to do" in step for step in one.fix)
    once = of(judged(day(20, fault(79)) + day(20, fault(79)) + day(20, BOOT)), "gpu.xid.79")
    assert once.status is Status.WARN  # twice before one boot: it never came back
    others = day(20, fault(79)) + day(20, BOOT) + day(21, fault(79, "4c")) + day(21, BOOT)
    assert {one.status for one in judged(others) if one.check == "gpu.xid.79"} == {Status.WARN}
    after = "2027-03-01T10:00:00+00:00 node-07 kernel: usb 1-2: gone\n"
    assert of(judged(text + after), "gpu.xid.79").status is Status.WARN  # not for months


def test_a_remap_that_failed_outlives_a_boot() -> None:
    text = day(28, fault(64)) + day(28, BOOT)
    one = of(judged(text), "gpu.xid.64")
    assert (one.status, one.action) == (Status.WARN, Action.INSPECT)
    assert "ROW_REMAPPER" in one.fix[0]
    for failure, said in ((False, "tells of no failure"), (True, "told by the failure")):
        gpu = Gpu(3, "gpu3", GPU_3B, remap=Remap(failure=failure))
        one = of(judged(text, gpus=(gpu,)), "gpu.xid.64")
        assert one.status is Status.PASS
        assert said in one.expected
        unmended = of(judged(day(28, fault(64)), gpus=(gpu,)), "gpu.xid.64")
        assert unmended.status is Status.FAIL  # the reset that it asks for is not made


def test_places_are_those_of_what_was_counted() -> None:
    def at(day_: int, gpc: int, number: int) -> str:
        return tpc(day_ * 86400.0, gpc, number, f"job{day_}")

    spread = "".join(at(number, number % 8, number % 9) for number in range(1, 18))
    last = "".join(tpc(18 * 86400.0 + hour * 3600, 1, 2, f"late{hour}") for hour in (0, 2, 4))
    one = of(judged(spread + last), "gpu.xid.13")
    assert one.status is Status.FAIL
    assert "the last 3 of 20 bursts within 4 h, each time in GPC 1, TPC 2, by 3" in one.reason
    assert "before that in 17 bursts, in 17 different TPCs" in one.reason
    assert of(judged(spread), "gpu.xid.13").status is Status.WARN
    weeks = of(judged("".join(at(number, 1, 2) for number in range(1, 20, 2))), "gpu.xid.13")
    assert weeks.status is Status.FAIL
    assert "in 10 bursts, each time in GPC 1, TPC 2 and nowhere else, by 10" in weeks.reason
    quiet = f"[{22 * 86400}.0] usb 1-2: gone\n"  # two days after the last
    later = judged("".join(at(number, 1, 2) for number in range(1, 20, 2)) + quiet)
    assert of(later, "gpu.xid.13").status is Status.FAIL


def test_what_was_first_does_not_follow() -> None:
    first = told(day(20, fault(48)) + day(28, fault(79)) + day(28, fault(95)))
    assert one_of(first, "gpu.xid.48").cause == ""
    assert one_of(first, "gpu.xid.95").cause == "gpu.xid.79"
    apart = told(day(28, fault(79)), day(28, fault(95)))  # two logs: which was first?
    assert one_of(apart, "gpu.xid.95").cause == ""


@pytest.mark.parametrize("names", [("node-07", "node-08"), ("10.0.0.1", "10.0.0.2")])
def test_a_log_of_two_hosts_is_not_judged(names: tuple[str, str]) -> None:
    here, there = names
    mixed = day(27, fault(79), here) + day(28, BOOT, there) + day(29, "usb 1-2: gone", here)
    for texts in ([mixed], [day(27, fault(79), here), day(28, BOOT, there)]):
        one = one_of(told(*texts), "gpu.xid.79")
        assert one.status is Status.ERROR
        assert f"grep -w {here} FILE" in one.reason


@pytest.mark.parametrize("other", ["node-07.cluster.example", "localhost", "NODE-07"])
def test_a_host_with_two_names_is_one(other: str) -> None:
    text = day(27, fault(79)) + day(28, BOOT, other) + day(28, "usb 1-2: gone")
    assert one_of(told(text), "gpu.xid.79").status is Status.WARN


def test_a_host_that_is_named_while_it_boots_is_one() -> None:
    text = day(27, BOOT, "ubuntu") + day(27, fault(79))
    assert one_of(told(text), "gpu.xid.79").status is Status.FAIL
    old = day(26, BOOT, "ubuntu") + day(27, fault(79))  # a day later it is another host
    assert one_of(told(old), "gpu.xid.79").status is Status.ERROR


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("years", [True, False])
def test_rotated_files_are_one_history(order: tuple[int, int], years: bool) -> None:
    files = [day(20, "usb 1-2: x") + day(20, fault(79)), day(23, BOOT) + day(23, "usb 1-2: x")]
    if not years:
        files = [text.replace("2026-11-", "Nov ").replace("T10:00:00+00:00", " 10:00:00")
                 for text in files]  # fmt: skip
    assert one_of(told(*(files[at] for at in order)), "gpu.xid.79").status is Status.WARN
    assert one_of(told(files[0]), "gpu.xid.79").status is Status.FAIL


def test_a_rotated_file_of_last_year_is_older() -> None:
    old = f"Dec 30 10:00:00 node-07 kernel: {fault(79)}\n"
    new = f"Jan  2 10:00:00 node-07 kernel: {BOOT}\nJan  3 10:00:00 node-07 kernel: usb 1-2: x\n"
    assert one_of(told(new, old), "gpu.xid.79").status is Status.WARN


def test_an_error_of_pcie_is_counted_once_for_its_two_lines() -> None:
    notice = "[9.0] pcieport 0000:3a:00.0: AER: Multiple Corrected error received: 0000:3a:00.0\n"
    detail = "[9.0] pcieport 0000:3a:00.0: PCIe Bus Error: severity=Corrected, type=Physical\n"
    for text, status in ((notice + detail) * 900, "PASS"), ((notice + detail) * 1100, "WARN"):
        one = of(judged(text), "pcie.aer_corrected")
        assert (one.status.value, one.measured) == (status, len(text) // len(notice + detail))
    alone = of(judged(notice * 1100), "pcie.aer_corrected")
    assert (alone.status, alone.measured) == (Status.WARN, 1100)


def test_a_line_that_tells_of_many_errors_counts_them_all() -> None:
    def line(count: str) -> str:
        return f"[9.0] EDAC MC0: {count}CE memory read error on DIMM_A1 (channel:0 slot:0)\n"

    assert of(judged(line("3200 ") * 3), "kernel.edac_corrected").measured == 9600
    assert of(judged(line("10 ")), "kernel.edac_corrected").status is Status.PASS
    assert of(judged(line("11 ")), "kernel.edac_corrected").status is Status.WARN
    assert of(judged(line("")), "kernel.edac_corrected").measured == 1


def test_a_flood_is_told_as_at_least_so_many() -> None:
    flood = "".join(xid(f"{at}.0", 31) for at in range(19_500))
    one = of(judged(flood), "gpu.xid.31")
    assert "at least 19000 times" in one.reason
    assert one.unit == "events or more"


CARD = "NVRM: installed in this system is not supported by the"
NOT_CALLED = "NVRM: The NVIDIA probe routine was not called for 1 device(s)."
REFUSED = "Loading of unsigned module is rejected"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([CARD, "NVRM: None of the NVIDIA devices were initialized."],
         {"gpu.unsupported": "FAIL", "gpu.none_started": "FAIL"}),
        ([CARD, NOT_CALLED, LOAD], {}),  # an old second card, or one that a virtual machine has
        ([LOAD, REFUSED], {}),  # another module
        ([LOAD, BOOT, REFUSED], {"gpu.module_refused": "WARN"}),
        (["nvidia: version magic '5.15.0' should be '5.19.0'"], {"gpu.module_refused": "FAIL"}),
        (["nouveau 0000:3b:00.0: Direct firmware load for nvidia/ga102/gsp.bin failed"], {}),
        (["DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x1"], {}),  # of what?
        ([fault(31), "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x1"],
         {"gpu.xid.31": "WARN", "gpu.iommu_fault": "WARN"}),
        (["md/raid0:md0: Disk failure on nvme1n1, failing array."],
         {"storage.array_degraded": "FAIL"}),
    ],
)  # fmt: skip
def test_a_driver_without_a_gpu(lines: list[str], found: dict[str, str]) -> None:
    text = "".join(day(20 + at, line) for at, line in enumerate(lines))
    assert {check: status for (check, _), status in bad(judged(text)).items()} == found


def test_a_driver_that_answers_has_a_gpu() -> None:
    gpu = Gpu(0, "gpu0", GPU_3B, answers=True)
    assert bad(judged(day(20, CARD) + day(20, NOT_CALLED), gpus=(gpu,))) == {}


def test_a_gpu_without_a_number_is_called_by_its_address() -> None:
    gpu = Gpu(0, "0000:3b:00.0", GPU_3B)
    assert of(judged(day(20, fault(79)), gpus=(gpu,)), "gpu.xid.79").subject == GPU_3B
