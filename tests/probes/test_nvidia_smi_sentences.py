"""What nvidia-smi says in sentences: a lost GPU, a driver that does not answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from preflight.errors import ParseError
from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi import text as nvidia_smi_text
from preflight.probes.nvidia_smi import xml as nvidia_smi_xml
from tests.conftest import sample
from tests.probes.test_nvidia_smi_samples import on

Reader = Callable[[str], NvidiaSmi]
READERS = [nvidia_smi_xml.nvidia_smi_xml, nvidia_smi_text.nvidia_smi_text]

TWO_XML = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
EIGHT_TEXT = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
LOST = (
    "Unable to determine the device handle for GPU 0000:9A:00.0: GPU is lost.  "
    "Reboot the system to recover this GPU"
)


def values(record: Struct) -> list[Any]:
    """Every value below a record."""
    found: list[Any] = []
    for name in record.__struct_fields__:
        value = getattr(record, name)
        inner = isinstance(value, Struct) and not isinstance(value, Missing)
        found += values(value) if inner else [value]
    return found


def assert_silent(gpu: Gpu, sentence: str, line: int) -> None:
    assert gpu.answers is False
    assert gpu.line == line
    assert values(gpu)[0] == gpu.index
    rest = [value for value in values(gpu)[1:] if value is not False]
    assert [value for value in rest if not isinstance(value, Missing)] == [
        gpu.name, gpu.bus_id, gpu.line, gpu.probe,
    ]  # fmt: skip
    assert {value for value in rest if isinstance(value, Missing)} == {
        Missing("unreadable", sentence)
    }


@pytest.mark.parametrize(
    ("before", "line"),
    [("<?xml", 1), ("\t<gpu id", 8), ("\t</gpu>\n\n</nvidia_smi_log>", None), ("", None)],
    ids=["before", "inside", "in a GPU", "after"],
)
def test_lost_beside_the_xml(before: str, line: int | None) -> None:
    at = TWO_XML.index(before) if before else len(TWO_XML)
    text = f"{TWO_XML[:at]}{LOST}\n{TWO_XML[at:]}"
    found = nvidia_smi_xml.nvidia_smi_xml(text)
    assert [gpu.bus_id[9:] for gpu in found.gpus] == list(on("81 9a c1"))
    assert [(gpu.index, gpu.name) for gpu in found.gpus] == [(i, f"gpu{i}") for i in range(3)]
    assert_silent(found.gpus[1], LOST, line or text[:at].count("\n") + 1)
    assert [gpu.answers for gpu in found.gpus] == [True, False, True]
    assert text.split("\n")[found.gpus[2].line - 1].strip() == '<gpu id="00000000:C1:00.0">'
    assert found.gpus[2].temperature.gpu_c == 15


@pytest.mark.parametrize("mark", ["====", "GPU 00000000:3B", "GPU 00000000:9B", "    Fabric", ""])
def test_lost_beside_the_text(mark: str) -> None:
    at = EIGHT_TEXT.index(mark) if mark else len(EIGHT_TEXT)
    text = f"{EIGHT_TEXT[:at]}{LOST}\n{EIGHT_TEXT[at:]}"
    found = nvidia_smi_text.nvidia_smi_text(text)
    assert [gpu.bus_id[9:] for gpu in found.gpus] == list(on("19 3b 4c 5d 9a 9b bb cb db"))
    assert_silent(found.gpus[4], LOST, text.split("\n").index(LOST) + 1)
    whole = nvidia_smi_text.nvidia_smi_text(EIGHT_TEXT)
    assert [gpu.fabric for i, gpu in enumerate(found.gpus) if i != 4] == [
        gpu.fabric for gpu in whole.gpus
    ]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("sentence", "address"),
    [
        (LOST, "00000000:9a:00.0"),
        ("Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error",
         "00000000:01:00.0"),
        ("Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error",
         "00000000:5f:00.0"),
        ("Unable to determine the device handle for GPU0000:25:00.0: Unknown Error",
         "00000000:25:00.0"),
        ("Unable to determine the device handle for gpu 00000008:01:00.0: Not Found",
         "00000008:01:00.0"),
        ("Unable to determine the device handle for GPU2: Unknown Error", ""),
    ],
)  # fmt: skip
def test_lost_in_place_of_a_report(read: Reader, sentence: str, address: str) -> None:
    found = read(f"  {sentence}\r\n{sentence}\n")
    assert found.driver.state == "answers"
    assert found.attached == NOT_IN_INPUT
    [gpu] = found.gpus
    assert gpu.bus_id == address
    assert_silent(gpu, sentence, 1)


@pytest.mark.parametrize("read", READERS)
def test_a_refusal_says_nothing_of_the_gpu(read: Reader) -> None:
    said = "Unable to determine the device handle for GPU 0000:9A:00.0: Insufficient Permissions"
    [gpu] = read(said).gpus
    assert gpu.answers == gpu.product == gpu.pcie.width == Missing("denied", said)


def test_only_an_index_is_told() -> None:
    said = "Unable to determine the device handle for GPU1: Unknown Error"
    found = nvidia_smi_xml.nvidia_smi_xml(f"{said}\n{TWO_XML}")
    assert [gpu.bus_id for gpu in found.gpus] == ["00000000:81:00.0", "", "00000000:c1:00.0"]


def test_lost_and_listed_is_one_gpu() -> None:
    text = f"GPU 00000000:9A:00.0\n    Product Name : NVIDIA H100\n{LOST}\n"
    [gpu] = nvidia_smi_text.nvidia_smi_text(text).gpus
    assert gpu.answers is False
    assert gpu.product == "NVIDIA H100"
    [bare] = nvidia_smi_text.nvidia_smi_text(f"GPU 00000000:9A:00.0\n{LOST}\n").gpus
    assert_silent(bare, LOST, 2)


WEDGED_XML = re.sub(r"<tx_util>.*?<", "<tx_util>[Unknown Error]<", TWO_XML, count=1).replace(
    "<performance_state>P8<", "<performance_state>GPU requires reset<", 1
)
WEDGED_TEXT = EIGHT_TEXT.replace(
    "Performance State                     : P0", "Performance State : GPU requires reset", 1
).replace("Tx Throughput                     : 3875 KB/s", "Tx Throughput : [Unknown Error]", 1)


@pytest.mark.parametrize(
    ("read", "text"), [(READERS[0], WEDGED_XML), (READERS[1], WEDGED_TEXT)], ids=["xml", "text"]
)
def test_a_field_says_that_the_gpu_needs_a_reset(read: Reader, text: str) -> None:
    first, second, *_ = read(text).gpus
    assert (first.answers, first.reset_required) == (first.performance_state, True)
    assert second.answers is True
    assert first.performance_state == Missing("unreadable", "GPU requires reset")
    assert first.pcie.width == 16
    # Also of fields that no fact is made of.
    assert first.unreadable == (
        "Tx Throughput: [Unknown Error]" if read is READERS[1] else "Tx Util: [Unknown Error]",
        "Performance State: GPU requires reset",
    )
    assert second.unreadable == ()


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (READERS[0], '<nvidia_smi_log><gpu id="0000:9A:00.0">GPU is lost</gpu></nvidia_smi_log>'),
        (READERS[1], "GPU 00000000:9A:00.0\n    GPU is lost\n"),
    ],
    ids=["xml", "text"],
)
def test_lost_in_place_of_the_fields(read: Reader, text: str) -> None:
    [gpu] = read(text).gpus
    assert (gpu.answers, gpu.unreadable) == (False, ("GPU: GPU is lost",))


FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("sentence", "state"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "version-mismatch"),
        ("Failed to initialize NVML: RM has detected an NVML/RM version mismatch.",
         "version-mismatch"),
        (FAILED, "not-running"),
        ("Failed to initialize NVML: Driver Not Loaded", "not-running"),
        ("Failed to initialize NVML: Unknown Error", "nvml-error"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", "nvml-error"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "not-running"),
        ("No devices were found", "no-devices"),
    ],
)  # fmt: skip
def test_the_driver_does_not_answer(read: Reader, sentence: str, state: str) -> None:
    found = read(f"$ nvidia-smi -q\n{sentence}\nNVML library version: 550.90\n")
    assert (found.driver.state, found.driver.text, found.driver.line) == (state, sentence, 2)
    assert found.driver.probe == read.probe.command.probe  # type: ignore[attr-defined]
    assert found.driver.version == found.attached == NOT_IN_INPUT
    assert found.gpus == ()


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "sentence",
    [
        "Failed to initialize NVML: Insufficient Permissions",
        "NVIDIA-SMI has failed because you do not have suffient permissions. Please try running as",
        "NVIDIA-SMI has failed because you do not have sufficient permissions.",
    ],
)
def test_a_refusal_says_nothing_of_the_driver(read: Reader, sentence: str) -> None:
    driver = read(f"{sentence}\n").driver
    assert isinstance(driver.state, Missing)
    assert driver.state.kind == "denied"
    assert driver.state.text.startswith(sentence)
    assert "as root" in driver.state.text
    assert (driver.text, driver.line) == (sentence, 1)


CORRUPT = "WARNING: infoROM is corrupted at gpu 0000:C1:00.0"


@pytest.mark.parametrize("before", ["<?xml", "\t<gpu id", "</nvidia_smi_log>", ""])
def test_a_corrupted_inforom_is_told_beside_the_xml(before: str) -> None:
    at = TWO_XML.index(before) if before else len(TWO_XML)
    text = f"{TWO_XML[:at]}{CORRUPT}\n{TWO_XML[at:]}"
    gpus = nvidia_smi_xml.nvidia_smi_xml(text).gpus
    assert [gpu.inforom_corrupted for gpu in gpus] == [False, True]
    assert [gpu.answers for gpu in gpus] == [True, True]
    line = nvidia_smi_xml.locate(text, gpus[1].line, "inforom_corrupted")
    assert text.split("\n")[line - 1].endswith(CORRUPT)


@pytest.mark.parametrize("mark", ["====", "GPU 00000000:3B", "    Fabric", ""])
def test_a_corrupted_inforom_is_told_beside_the_text(mark: str) -> None:
    said = CORRUPT.replace("C1", "4C")
    at = EIGHT_TEXT.index(mark) if mark else len(EIGHT_TEXT)
    text = f"{EIGHT_TEXT[:at]}{said}\n{EIGHT_TEXT[at:]}"
    gpus = nvidia_smi_text.nvidia_smi_text(text).gpus
    assert [gpu.inforom_corrupted for gpu in gpus] == [False, False, True, *[False] * 5]
    line = nvidia_smi_text.locate(text, gpus[2].line, "inforom_corrupted")
    assert text.split("\n")[line - 1] == said


@pytest.mark.parametrize("read", READERS)
def test_a_warning_may_be_all_there_is_of_a_gpu(read: Reader) -> None:
    [gpu] = read(f"{CORRUPT}\n").gpus
    assert (gpu.bus_id, gpu.inforom_corrupted, gpu.line) == ("00000000:c1:00.0", True, 1)
    assert gpu.answers == gpu.product == gpu.unreadable == NOT_IN_INPUT


def test_a_warning_of_a_gpu_that_is_not_listed_is_not_dropped() -> None:
    text = TWO_XML + CORRUPT.replace("C1", "9A")
    gpus = nvidia_smi_xml.nvidia_smi_xml(text).gpus
    assert [gpu.bus_id[9:] for gpu in gpus] == list(on("81 9a c1"))
    assert [gpu.inforom_corrupted for gpu in gpus] == [False, True, False]


def test_that_no_inforom_is_corrupted_is_not_known_of_a_cut_report() -> None:
    """The warning stands behind the last GPU."""
    cut = TWO_XML[: TWO_XML.rindex("</gpu>")]
    [gpu] = nvidia_smi_xml.nvidia_smi_xml(cut).gpus
    assert gpu.inforom_corrupted == NOT_IN_INPUT
    excerpt = EIGHT_TEXT[EIGHT_TEXT.index("GPU 00000000:3B") :]
    assert nvidia_smi_text.nvidia_smi_text(excerpt).gpus[0].inforom_corrupted == NOT_IN_INPUT


def test_a_report_outweighs_a_sentence() -> None:
    text = TWO_XML.replace("llama-server", "No devices were found")
    assert nvidia_smi_xml.nvidia_smi_xml(f"No devices were found\n{text}").driver.state == "answers"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", ""),
        ("\n \n", ""),
        ("bash: nvidia-smi: command not found\n", "bash: nvidia-smi: command not found"),
        ("\x1b[31mhello " + "x" * 100, "\\x1b[31mhello " + "x" * 49),
        ("he said that no devices were found", "he said that no devices were found"),
    ],
)
def test_any_other_text(read: Reader, text: str, got: str) -> None:
    options = "-q -x" if read is READERS[0] else "-q"
    with pytest.raises(ParseError) as raised:
        read(text)
    assert str(raised.value) == f"expected nvidia-smi {options} output, got '{got}'"


@pytest.mark.parametrize(("read", "text"), [(READERS[0], EIGHT_TEXT), (READERS[1], TWO_XML)])
def test_one_form_is_not_the_other(read: Reader, text: str) -> None:
    with pytest.raises(ParseError, match=r"^expected nvidia-smi -q"):
        read(text)


def test_questions_as_asked() -> None:
    xml, text = (read.probe.command for read in READERS)  # type: ignore[attr-defined]
    assert (xml.probe, xml.argv, xml.timeout_s) == ("nvidia-smi", ("nvidia-smi", "-q", "-x"), 30)
    assert (text.probe, text.argv, text.timeout_s) == ("nvidia-smi-q", ("nvidia-smi", "-q"), 30)
