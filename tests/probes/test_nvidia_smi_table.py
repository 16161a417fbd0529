"""The table of bare nvidia-smi: values read off the samples, layouts, cuts, damage."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.facts.gpu import NvidiaSmi, Process
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi.table import locate, nvidia_smi_table
from tests.conftest import SAMPLES, sample

NAMES = sorted(path.name for path in (SAMPLES / "nvidia_smi_table").iterdir())
IDLE = sample("nvidia_smi_table/h100_sxm_x8_550.90_idle.txt")
V100 = sample("nvidia_smi_table/v100_pcie_x4_410.48.txt")
MIB = 1 << 20

MIG = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:10:1C.0 Off |                   On |
| N/A   40C    P0             43W /  400W |     249MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:10:1D.0 Off |                  Off |
| N/A   41C    P0             44W /  400W |       1MiB /  40960MiB |     12%   Prohibited |
|                                         |                        |             Enabled* |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    2   0   0  |             142MiB / 20096MiB    | 56      0 |  4   0    2    0    0 |
|                  |               0MiB / 12211MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
|  0    3   0   1  |             107MiB / 20096MiB    | 42      0 |  3   0    2    0    0 |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0    2    0            14029      C   python train.py                         126MiB |
|    0    3    0            14030    M+C   /usr/bin/my tool                           N/A |
+-----------------------------------------------------------------------------------------+
"""
WINDOWS = """\
| NVIDIA-SMI 617.14                 KMD Version: 617.14        CUDA UMD Version: 13.4     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                  Driver-Model | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA RTX A2000 12GB        WDDM  |   00000000:01:00.0  On |                  Off |
| 30%   45C    P8              6W /   70W |     621MiB /  12282MiB |      3%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            1188    C+G   C:\\Program Files\\Common\\x.exe          N/A      |
|    0   N/A  N/A            2124    C+G   Insufficient Permissions              N/A      |
+-----------------------------------------------------------------------------------------+
"""
ILL = """\
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    2 |
| N/A   33C    P0    60W / 400W |      0MiB / 81251MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+
|   1  ERR!                ERR! | 00000000:0F:00.0 ERR!|                 ERR! |
|ERR!  ERR! ERR!    ERR! / ERR! | GPU is lost          | ERR!            ERR! |
|                               |                      |                 ERR! |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""


def read(name: str) -> NvidiaSmi:
    return nvidia_smi_table(sample(f"nvidia_smi_table/{name}"))


def test_the_samples_are_there() -> None:
    assert len(NAMES) == 8


def test_the_wide_table() -> None:
    found = read("h100_sxm_x8_580.159.txt")
    assert (found.driver.version, found.driver.cuda, found.attached) == ("580.159.04", "13.0", 8)
    gpu = found.gpus[0]
    assert (gpu.index, gpu.name, gpu.bus_id) == (0, "gpu0", "00000000:8d:00.0")
    assert (gpu.product, gpu.persistence) == ("NVIDIA H100 80GB HBM3", "Enabled")
    assert (gpu.temperature.gpu_c, gpu.performance_state) == (54, "P0")
    assert (gpu.power.draw_w, gpu.power.limit_w, gpu.power.limit_percent) == (147, 700, 21)
    assert (gpu.memory.used_bytes, gpu.memory.total_mib) == (1521 * MIB, 81559)
    assert (gpu.utilization_percent, gpu.compute_mode, gpu.mig.mode) == (0, "Default", "Disabled")
    assert (gpu.ecc.mode, gpu.ecc.volatile_dram_uncorrected) == ("Enabled", 0)
    assert gpu.fan_percent == Missing("not-applicable", "nvidia-smi says N/A")
    assert gpu.processes == (Process(979223, "C", "...pt-challenge-py312/bin/python", 1512 * MIB),)
    # What the table has no column for is not in the input; nothing is made up.
    assert gpu.uuid == gpu.pcie.width == gpu.ecc.volatile_sram_uncorrected == NOT_IN_INPUT


def test_the_oldest_table() -> None:
    found = read("k80_x4_375.66_old_layout.txt")
    assert (found.driver.version, found.driver.cuda, found.attached) == ("375.66", NOT_IN_INPUT, 4)
    assert [gpu.bus_id for gpu in found.gpus] == [f"00000000:00:0{n}.0" for n in range(4, 8)]
    assert found.gpus[0].processes == (Process(1959, "G", "/usr/lib/xorg/Xorg", 15 * MIB),)
    assert found.gpus[0].graphical is True
    assert found.gpus[3].processes == ()
    assert found.gpus[3].mig.mode == NOT_IN_INPUT


def test_a_star_is_a_change_that_waits() -> None:
    ecc = read("h100_sxm_x8_555.42_ecc_asterisk.txt").gpus[0].ecc
    assert (ecc.volatile_dram_uncorrected, ecc.mode, ecc.mode_pending) == (0, "Enabled", "Disabled")
    mig = nvidia_smi_table(MIG).gpus[1].mig
    assert (mig.mode, mig.mode_pending) == ("Enabled", "Disabled")


def test_an_empty_frame_is_not_the_absence_of_processes() -> None:
    hidden = read("h100_sxm_x8_535.183.txt").gpus[0].processes
    assert isinstance(hidden, Missing)
    assert "was not shown" in hidden.text
    assert read("h100_sxm_x8_550.90_idle.txt").gpus[0].processes == ()


def test_a_fan_that_cannot_be_read() -> None:
    found = read("rtx_525.125_fan_err.txt")
    assert found.gpus[0].fan_percent == Missing("unreadable", "ERR!")
    assert found.gpus[0].unreadable == ("Fan Speed: ERR!",)
    assert found.gpus[0].compute_mode == "Exclusive_Process"
    # The table ends with its last rule, and nothing says that no GPU follows.
    assert isinstance(found.attached, Missing)


def test_mig_devices_and_their_processes() -> None:
    found = nvidia_smi_table(MIG)
    assert (found.driver.version, found.driver.cuda) == ("610.43.02", "13.3")
    first, second = found.gpus
    assert first.ecc.mode == "Enabled"
    assert first.ecc.volatile_dram_uncorrected == NOT_IN_INPUT
    assert isinstance(first.mig.instances, tuple)
    assert [(one.gpu_instance, one.multiprocessors) for one in first.mig.instances] == [
        (2, 56), (3, 42),
    ]  # fmt: skip
    assert first.mig.instances[0].memory_bytes == 20096 * MIB
    assert isinstance(first.processes, tuple)
    assert [(one.pid, one.kind, one.name) for one in first.processes] == [
        (14029, "C", "python train.py"), (14030, "M+C", "/usr/bin/my tool"),
    ]  # fmt: skip
    assert isinstance(first.processes[1].memory_bytes, Missing)
    assert (second.ecc.mode, second.compute_mode, second.processes) == (
        "Disabled",
        "Prohibited",
        (),
    )


def test_a_table_of_windows() -> None:
    (gpu,) = nvidia_smi_table(WINDOWS).gpus
    assert (gpu.product, gpu.bus_id) == ("NVIDIA RTX A2000 12GB", "00000000:01:00.0")
    # The driver model stands in place of the persistence mode.
    assert (gpu.persistence, gpu.display_active) == (NOT_IN_INPUT, "Enabled")
    assert isinstance(gpu.processes, tuple)
    assert [(one.kind, one.name) for one in gpu.processes] == [
        ("C+G", r"C:\Program Files\Common\x.exe"),
        ("C+G", Missing("denied", "Insufficient Permissions")),
    ]


def test_a_table_whose_blanks_were_lost() -> None:
    text = re.sub(" +", " ", V100)
    whole, squeezed = nvidia_smi_table(V100).gpus, nvidia_smi_table(text).gpus
    assert [gpu.memory for gpu in whole] == [gpu.memory for gpu in squeezed]
    assert [gpu.processes for gpu in whole] == [gpu.processes for gpu in squeezed]


def test_a_lost_gpu_in_the_table() -> None:
    sound, lost = nvidia_smi_table(ILL).gpus
    assert (sound.answers, sound.ecc.volatile_dram_uncorrected) == (True, 2)
    assert lost.answers is False
    assert isinstance(lost.memory.used_bytes, Missing)
    assert lost.memory.used_bytes.kind == "unreadable"
    assert isinstance(lost.unreadable, tuple)
    assert "Persistence Mode: ERR!" in lost.unreadable
    assert locate(ILL, lost.line, "answers") == 8


def test_a_gpu_that_fell_off_the_bus_has_no_sentence() -> None:
    text = ILL.replace("GPU is lost          |", "     0MiB / 46068MiB |")
    text = text.replace("  1  ERR!                ERR! |", "  1  ERR!                On   |")
    assert [gpu.answers for gpu in nvidia_smi_table(text).gpus] == [True, False]
    # One field that cannot be read is no lost GPU.
    one = IDLE.replace(
        "NVIDIA H100 80GB HBM3          On  |   00000000:4C", "ERR!   On  |   00000000:4C"
    )
    assert {gpu.answers for gpu in nvidia_smi_table(one).gpus} == {True}


@pytest.mark.parametrize("name", NAMES)
def test_each_field_is_found_in_its_line(name: str) -> None:
    text = sample(f"nvidia_smi_table/{name}")
    lines = text.split("\n")
    for gpu in nvidia_smi_table(text).gpus:
        for field, value in (
            ("product", gpu.product), ("temperature.gpu_c", f"{gpu.temperature.gpu_c}C"),
            ("memory.total_mib", f"{gpu.memory.total_mib}MiB"),
            ("compute_mode", "Default|E. Process"),
        ):  # fmt: skip
            assert re.search(str(value), lines[locate(text, gpu.line, field) - 1]), field


@pytest.mark.parametrize("name", NAMES)
def test_cut_anywhere_it_never_tells_of_all(name: str) -> None:
    text = sample(f"nvidia_smi_table/{name}")
    whole = nvidia_smi_table(text)
    for place in random.Random(name).choices(range(len(text)), k=150):
        try:
            cut = nvidia_smi_table(text[:place])
        except ParseError:
            continue
        assert all(gpu.bus_id in {one.bus_id for one in whole.gpus} for gpu in cut.gpus)
        if len(cut.gpus) < len(whole.gpus):
            assert cut.cut or isinstance(cut.attached, Missing)


def test_one_gpu_that_was_asked_for_is_not_taken_for_all() -> None:
    lines = V100.splitlines(keepends=True)
    text = "".join(lines[:6] + lines[15:])
    found = nvidia_smi_table(text)
    assert [(gpu.index, gpu.name) for gpu in found.gpus] == [(3, "gpu3")]
    assert isinstance(found.attached, Missing)


def test_a_row_that_cannot_be_read_is_no_whole_table() -> None:
    assert nvidia_smi_table(IDLE.replace("|   7  NVIDIA", "|   ?  NVIDIA")).cut
    odd = IDLE.replace(
        "|  No running processes found  ", "|    3   N/A  N/A      a12345      C   x "
    )
    processes = nvidia_smi_table(odd).gpus[3].processes
    assert isinstance(processes, Missing)
    assert processes.kind == "unreadable"


@pytest.mark.parametrize(
    "text",
    ["", "| NVIDIA", "+---+\n| 0 |\n", "| NVIDIA-SMI 550.90.07  Driver Version: 5 |\n+--+\n"],
)
def test_what_is_no_table(text: str) -> None:
    with pytest.raises(ParseError):
        nvidia_smi_table(text)


def test_a_sentence_in_place_of_the_table() -> None:
    found = nvidia_smi_table(
        "NVIDIA-SMI has failed because it couldn't communicate with the driver"
    )
    assert found.driver.state == "not-running"


@given(st.text(alphabet="|+=- \n09aAN/MiB%:.*", max_size=400))
def test_hostile_text(text: str) -> None:
    try:
        nvidia_smi_table(f"| NVIDIA-SMI 550.90.07 \n|====|\n{text}")
    except ParseError as error:
        assert str(error)


@pytest.mark.parametrize(
    "unit", ["| " * 50 + "\n", "|" + " " * 99 + "\n", "| 0 a | b | c |\n+-+\n", "|=\n"]
)
def test_a_megabyte_is_read_at_once(unit: str) -> None:
    text = f"| NVIDIA-SMI 550.90.07 \n|====|\n{unit * (2**20 // len(unit))}"
    start = time.process_time()
    with pytest.raises(ParseError):
        nvidia_smi_table(text)
    assert time.process_time() - start < 2
