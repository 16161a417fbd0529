"""Which GPU a report of nvidia-smi means, and what several looks at one host tell together."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from preflight.collect import examine
from preflight.facts.gpu import NvidiaSmi
from preflight.judge.load import DOMAINS, load
from preflight.judge.overrides import apply, mark, parse
from preflight.model import HostReport, Missing, Result, Status
from preflight.probes.nvidia_smi.table import nvidia_smi_table
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from preflight.recognise import recognise
from preflight.reports.wording import typed
from tests.conftest import sample

CHECKS = mark(load(DOMAINS).checks, ["gpu.present"], asked=True)
X8 = re.sub(
    "(Power Brake Slowdown +|HW Slowdown +|SW Power Cap +): Active", r"\1: Not Active",
    sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"),
)  # fmt: skip
#: The table of the same host: its GPUs have the same addresses.
_IDLE = sample("nvidia_smi_table/h100_sxm_x8_550.90_idle.txt")
TABLE = _IDLE.replace("550.90.07", "535.161.08") + "\n"
#: The parts of the full report: its head and its eight GPUs.
HEAD, *GPUS = re.split(r"(?m)^(?=GPU 0)", X8)
ROWS = TABLE.split("\n")
INFOROM = "WARNING: infoROM is corrupted at gpu 0000:5D:00.0\n"
LOST = "Unable to determine the device handle for GPU3: 0000:5D:00.0: Unknown Error\n"


def judged(text: str) -> HostReport:
    return examine("input", recognise(text.encode(), "ticket.txt"), CHECKS)


def of(report: HostReport, check: str) -> list[Result]:
    return [one for one in report.results if one.check == check]


def bad(report: HostReport) -> dict[str, str]:
    """Check -> status and subjects of what did not pass, without what follows from another."""
    found: dict[str, str] = {}
    for one in report.results:
        if one.status not in (Status.PASS, Status.SKIP) and not one.cause:
            found.setdefault(one.check, one.status.value)
            found[one.check] += f" {one.subject}"
    return found


def row_of(index: int, old: str, new: str) -> str:
    """The table with another text in the first row of a GPU."""
    line = next(line for line in ROWS if line.startswith(f"|   {index}  NVIDIA"))
    changed = re.sub(old, new, line)
    assert changed != line
    return TABLE.replace(line, changed)


ECC_OF_3 = row_of(3, r"0 \|$", "2 |")


# Numbers


def test_one_of_eight_gpus_has_no_number_but_an_address() -> None:
    ill = re.sub(r"(DRAM Uncorrectable +: )0", r"\g<1>5", GPUS[4], count=1)
    report = judged(HEAD + ill)
    assert bad(report)["gpu.ecc.dram_uncorrected"] == "FAIL 0000:9b:00.0"
    (found,) = of(report, "gpu.ecc.dram_uncorrected")
    steps = [typed(step, [found.subject], [found.device]) for step in found.fix]
    assert "sudo nvidia-smi --gpu-reset -i 0000:9b:00.0" in steps[0]
    (count,) = of(report, "gpu.count")
    assert (count.status, "-i" in count.reason) == (Status.ERROR, True)


def test_without_the_head_a_gpu_has_no_number_either() -> None:
    (gpu,) = nvidia_smi_text(GPUS[4]).gpus
    assert (gpu.name, isinstance(gpu.index, Missing)) == ("0000:9b:00.0", True)


def test_where_all_are_listed_the_numbers_hold() -> None:
    assert [gpu.index for gpu in nvidia_smi_text(X8).gpus] == list(range(8))


def test_xml_of_one_gpu_has_no_number() -> None:
    text = (
        "<nvidia_smi_log><driver_version>550.1</driver_version><attached_gpus>2</attached_gpus>"
        '<gpu id="00000000:9B:00.0"><product_name>NVIDIA H100</product_name></gpu>'
    )
    assert nvidia_smi_xml(text + "</nvidia_smi_log>").gpus[0].name == "0000:9b:00.0"
    text = text.replace("<attached_gpus>2", "<attached_gpus>1")
    assert nvidia_smi_xml(text + "</nvidia_smi_log>").gpus[0].name == "gpu0"


def test_several_gpus_by_number_and_by_address_are_typed_together() -> None:
    step = typed("nvidia-smi -i INDEX", ["gpu3", "0000:9b:00.0"], ["", ""])
    assert step == "nvidia-smi -i 3,0000:9b:00.0"
    assert typed("nvidia-smi -i INDEX", ["mlx5_0"], [""]) == "nvidia-smi -i INDEX"


@pytest.mark.parametrize("report", [LOST, HEAD + "".join(GPUS[:3]) + LOST, TABLE + LOST])
def test_a_sentence_gives_the_number(report: str) -> None:
    found = judged(report)
    assert bad(found)["gpu.answers"] == "FAIL gpu3"


def test_those_before_a_number_are_known_by_it() -> None:
    found = nvidia_smi_text(HEAD + "".join(GPUS[:3]) + LOST)
    assert [gpu.index for gpu in found.gpus] == [0, 1, 2, 3]
    found = nvidia_smi_text(HEAD + "".join(GPUS[1:3]) + LOST)
    assert [gpu.name for gpu in found.gpus] == ["0000:3b:00.0", "0000:4c:00.0", "gpu3"]


def test_a_sentence_without_a_number_gets_none_that_is_guessed() -> None:
    lost = LOST.replace("GPU3: ", "GPU ")
    assert bad(judged(lost))["gpu.answers"] == "FAIL 0000:5d:00.0"
    begin = TABLE.index("|   3  NVIDIA")
    end = TABLE.index("|   4  NVIDIA")
    assert bad(judged(TABLE[:begin] + TABLE[end:] + lost))["gpu.answers"] == "FAIL gpu3"


def test_a_number_that_the_sentence_and_the_rows_have_is_one_gpu() -> None:
    found = nvidia_smi_table(
        TABLE + "Unable to determine the device handle for GPU3: Unknown Error\n"
    )
    assert [gpu.index for gpu in found.gpus] == list(range(8))
    assert [gpu.name for gpu in found.gpus if gpu.answers is False] == ["gpu3"]


def test_rows_before_a_sentence_are_kept_and_are_not_taken_for_all() -> None:
    begin = TABLE.index("|   3  NVIDIA")
    report = judged(TABLE[:begin] + LOST)
    assert bad(report)["gpu.answers"] == "FAIL gpu3"
    assert len([one for one in of(report, "gpu.ecc.dram_uncorrected") if not one.cause]) == 3
    assert of(report, "gpu.count")[0].status is Status.SKIP


def test_a_table_that_begins_above_0_is_a_choice() -> None:
    begin, end = TABLE.index("|   0  NVIDIA"), TABLE.index("|   3  NVIDIA")
    chosen = TABLE[:begin] + TABLE[end:]
    (count,) = of(judged(chosen), "gpu.count")
    assert (count.status, "-i" in count.reason) == (Status.SKIP, True)
    assert [gpu.index for gpu in nvidia_smi_table(chosen).gpus] == [3, 4, 5, 6, 7]
    begin, end = TABLE.index("|   3  NVIDIA"), TABLE.index("|   4  NVIDIA")
    (count,) = of(judged(TABLE[:begin] + TABLE[end:]), "gpu.count")
    assert count.status is Status.ERROR


# Sentences beside a table


@pytest.mark.parametrize(
    "text",
    [
        INFOROM + ECC_OF_3,
        ECC_OF_3 + INFOROM,
        "$ nvidia-smi\n" + ECC_OF_3 + "$ nvidia-smi -i 3\n" + INFOROM,
        ECC_OF_3.replace("|   5  NVIDIA", INFOROM + "|   5  NVIDIA"),
        "".join(f"> {line}\n" for line in (ECC_OF_3 + INFOROM).splitlines()),
    ],
)
def test_a_warning_beside_a_table_does_not_displace_it(text: str) -> None:
    assert bad(judged(text)) == {
        "gpu.inforom": "FAIL gpu3", "gpu.ecc.dram_uncorrected": "FAIL gpu3",
    }  # fmt: skip


def test_what_the_driver_says_for_itself_is_better_than_an_older_table() -> None:
    failed = "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n"
    assert "gpu.driver.matches" in bad(judged(TABLE + failed))


# Two looks


@pytest.mark.parametrize("text", [TABLE + X8, X8 + "\n" + TABLE])
def test_two_looks_that_agree_pass(text: str) -> None:
    report = judged(text)
    assert bad(report) == {}
    assert of(report, "gpu.looks.agree")[0].status is Status.PASS


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (ECC_OF_3, "gpu3: uncorrected memory errors 2"),
        (row_of(3, r"0 \|$", "ERR! |"), "gpu3: ECC Mode/Current: ERR!"),
        (row_of(3, r" 0 \|$", "GPU requires reset |"), "gpu3: it requires a reset"),
        (TABLE[: TABLE.index("|   7  N")] + TABLE[TABLE.index("\n\n") :], "gpu7 is listed in one"),
        (row_of(3, "5D:00.0", "5E:00.0"), "gpu3 is listed in one look only"),
    ],
)
def test_a_table_that_shows_more_is_told(table: str, told: str) -> None:
    for text in (X8 + "\n" + table, table + X8):
        (found,) = of(judged(text), "gpu.looks.agree")
        assert (found.status, told in str(found.measured)) == (Status.WARN, True), found
        assert found.evidence[0].text


def test_a_driver_that_failed_beside_a_report_is_told() -> None:
    failed = "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n"
    for text in (X8 + "\n" + failed, failed + "$ nvidia-smi -q\n" + X8):
        (found,) = of(judged(text), "gpu.looks.agree")
        assert (found.status, found.evidence[0].text) == (Status.WARN, failed.split("\n")[1])


def test_rows_beyond_an_excerpt_are_looked_at_too() -> None:
    one = HEAD + GPUS[0]
    assert of(judged(one + TABLE), "gpu.looks.agree")[0].status is Status.PASS
    (found,) = of(judged(one + ECC_OF_3), "gpu.looks.agree")
    assert found.status is Status.WARN


@pytest.mark.parametrize(
    ("old", "new"),
    [("Driver Version: 535.161.08", "Driver Version: 550.90.07"), (":00.0 Off", ":01.0 Off")],
)
def test_a_table_of_another_host_is_not_passed_over(old: str, new: str) -> None:
    (found,) = of(judged(X8 + "\n" + TABLE.replace(old, new)), "gpu.looks.agree")
    assert (found.status, "not judged" in found.reason) == (Status.ERROR, True)


# Cut, empty, to be reset, virtual


def test_a_report_whose_begin_is_cut_off_is_cut() -> None:
    cut = GPUS[3][GPUS[3].index("    GPU Reset Status") :] + "".join(GPUS[4:])
    found = nvidia_smi_text(cut)
    assert (found.cut, found.gpus[0].name) == (True, "0000:5d:00.0")
    assert bad(judged(cut)) == {"gpu.count": "ERROR input"}
    assert not nvidia_smi_text(GPUS[3][GPUS[3].index("    GPU Reset Status") :]).cut


@pytest.mark.parametrize(
    "text",
    [
        HEAD.replace(": 8", ": 0"),
        "<nvidia_smi_log><driver_version>550.1</driver_version><attached_gpus>0</attached_gpus>\n"
        "</nvidia_smi_log>\n",
    ],
)
def test_no_gpu_is_one_line(text: str) -> None:
    assert bad(judged(text)) == {"gpu.present": "ERROR input"}
    unasked = examine("input", recognise(text.encode(), "q.txt"), load(DOMAINS).checks)
    assert unasked.verdict is Status.ERROR


def test_a_gpu_that_requires_a_reset_is_not_lost() -> None:
    texts = (
        row_of(3, r" 0 \|$", "GPU requires reset |"),
        "".join(
            [HEAD, *GPUS[:3], re.sub(r"(Gpu +: )0 %", r"\1GPU requires reset", GPUS[3]), *GPUS[4:]]
        ),
        "".join(
            [HEAD, *GPUS[:3], re.sub(r"(?m) : .*", " : GPU requires reset", GPUS[3]), *GPUS[4:]]
        ),
        HEAD + "".join(GPUS[:3] + GPUS[4:]) + LOST.replace("Unknown Error", "GPU requires reset"),
    )
    for text in texts:
        report = judged(text)
        assert bad(report) == {"gpu.reset_required": "FAIL gpu3"}
        (found,) = [one for one in of(report, "gpu.reset_required") if one.status is Status.FAIL]
        assert "requires reset" in found.evidence[0].text


V100 = """\
GPU 00000000:1B:00.0
    Product Name : Tesla V100-SXM2-32GB
    ECC Errors
        Volatile
            Double Bit
                Device Memory : {memory}
                Register File : 1
                L1 Cache : 0
                L2 Cache : 0
                Total : 1
"""


def test_before_ampere_the_total_is_not_the_memorys() -> None:
    (gpu,) = nvidia_smi_text(V100.format(memory=0)).gpus
    assert (gpu.ecc.volatile_dram_uncorrected, gpu.ecc.volatile_sram_uncorrected) == (0, 1)
    only = "\n".join(line for line in V100.split("\n") if "Memory :" not in line)
    (gpu,) = nvidia_smi_text(re.sub(".*(?:Register|Cache).*\n", "", only)).gpus
    assert gpu.ecc.volatile_dram_uncorrected == 1


@pytest.mark.parametrize(
    ("name", "virtual"),
    [
        ("GRID A100-10C", True), ("GRID T4-16Q", True), ("NVIDIA A100-1-5CME", True),
        ("NVIDIA H100 80GB HBM3", False), ("NVIDIA A100-SXM4-40GB", False), ("Tesla T4", False),
    ],
)  # fmt: skip
def test_a_virtual_gpu_is_known_by_its_name(name: str, virtual: bool) -> None:
    found = nvidia_smi_table(TABLE.replace("NVIDIA H100 80GB HBM3", f"{name:21}"))
    assert {gpu.virtualization == "VGPU" for gpu in found.gpus} == {virtual}


def test_the_memory_that_a_guest_sees_reserved_is_not_held() -> None:
    text = TABLE.replace("NVIDIA H100 80GB HBM3", "GRID A100-10C        ")
    report = judged(text.replace("       1MiB /", "    1082MiB /"))
    assert {one.status for one in of(report, "gpu.memory.unexplained")} == {Status.SKIP}


# Words and ways in


def test_numbers_have_their_unit() -> None:
    report = judged(TABLE.replace("1MiB /  81559MiB", "1MiB /  40000MiB", 1))
    (found,) = of(report, "gpu.memory.same")
    assert found.measured == "gpu0 40,000 MiB; the median 81,559 MiB"
    report = judged(TABLE.replace("/  700W", "/  500W", 1))
    (found,) = of(report, "gpu.power.limit.same")
    assert found.measured == "gpu0 500 W; the others 700 W"


def test_nobody_may_hold_a_gpu() -> None:
    checks = apply(CHECKS, [parse("gpu.processes=[]")])
    busy = sample("nvidia_smi_table/h100_sxm_x8_550.90_idle.txt")
    report = examine("input", recognise(busy.encode(), "t"), checks)
    assert of(report, "gpu.processes")[0].status is not Status.FAIL


def test_it_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "preflight", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.split()[-1]) == (0, "0.1.0")


def test_time_held_back_is_measured_against_the_neighbours() -> None:
    section = (
        "    Clocks Event Reasons Counters\n        HW Thermal Slowdown : 0 us\n"
        "        HW Power Braking : {} us\n    FB Memory Usage\n"
    )

    def counted(*microseconds: int) -> set[str]:
        gpus = [
            gpu.replace("    FB Memory Usage\n", section.format(each))
            for gpu, each in zip(GPUS, microseconds, strict=True)
        ]
        found = of(judged(HEAD + "".join(gpus)), "gpu.throttle.power_brake_time")
        return {
            f"{one.status.value} {one.subject}" for one in found if one.status is not Status.PASS
        }

    day = 86_400_000_000
    assert counted(0, 0, day, 0, 0, 0, 0, 0) == {"WARN gpu2"}
    assert counted(*[day] * 7, day + day // 2) == set()
    assert counted(0, 0, 60_000_000, 0, 0, 0, 0, 0) == set()


def test_every_report_here_is_read() -> None:
    assert isinstance(nvidia_smi_table(ECC_OF_3), NvidiaSmi)
    assert len(GPUS) == 8
