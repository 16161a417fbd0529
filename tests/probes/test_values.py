"""Words and numbers of nvidia-smi: what is a value, and why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from preflight.model import Known, Missing
from preflight.probes import values

NOT_APPLICABLE, DENIED, UNREADABLE = "not-applicable", "denied", "unreadable"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("N/A", NOT_APPLICABLE, "nvidia-smi says N/A"),
        ("[N/A]", NOT_APPLICABLE, "nvidia-smi says N/A"),
        ("Not Supported", NOT_APPLICABLE, "nvidia-smi says Not Supported"),
        ("[Not Supported]", NOT_APPLICABLE, "nvidia-smi says Not Supported"),
        ("Function Not Found", NOT_APPLICABLE, "nvidia-smi says Function Not Found"),
        (
            "Requested functionality has been deprecated",
            NOT_APPLICABLE,
            "nvidia-smi says Requested functionality has been deprecated",
        ),
        (
            "Not available in WDDM driver model",
            NOT_APPLICABLE,
            "nvidia-smi says Not available in WDDM driver model",
        ),
        ("Insufficient Permissions", DENIED, "Insufficient Permissions"),
        ("[Insufficient Permissions]", DENIED, "Insufficient Permissions"),
        ("Unknown Error", UNREADABLE, "Unknown Error"),
        ("[Unknown Error]", UNREADABLE, "Unknown Error"),
        ("ERR!", UNREADABLE, "ERR!"),
        ("Unknown", UNREADABLE, "Unknown"),
        ("Timeout", UNREADABLE, "Timeout"),
        (" [GPU is lost] ", UNREADABLE, "GPU is lost"),
        ("GPU requires reset", UNREADABLE, "GPU requires reset"),
        (
            "GPU is lost.  Reboot the system to recover this GPU",
            UNREADABLE,
            "GPU is lost.  Reboot the system to recover this GPU",
        ),
    ],
)
@pytest.mark.parametrize(
    "convert", [values.words, values.count, values.lanes, values.flag, values.pci_id, values.watts]
)
def test_words_in_place_of_a_value(
    convert: Callable[[str], Known[object]], text: str, kind: str, said: str
) -> None:
    found = convert(text)
    assert isinstance(found, Missing)
    assert (found.kind, found.text) == (kind, said)


@pytest.mark.parametrize(
    ("convert", "text", "value"),
    [
        (values.words, " NVIDIA H100 80GB HBM3 ", "NVIDIA H100 80GB HBM3"),
        (values.words, "None", "None"),
        (values.words, "535.161.08", "535.161.08"),
        (values.count, "0", 0),
        (values.count, "192 bank(s)", 192),
        (values.celsius, "56 C", 56),
        (values.celsius, "-2 C", -2),
        (values.percent, "30 %", 30),
        (values.percent, "100.00%", 100),
        (values.megahertz, "1980 MHz", 1980),
        (values.megahertz, "1.98 GHz", 1980),
        (values.watts, "67.74 W", 67.74),
        (values.watts, "700 W", 700.0),
        (values.watts, "1.2 kW", 1200.0),
        (values.bytes_of, "81559 MiB", 81559 * 2**20),
        (values.bytes_of, "1.5 GiB", 3 * 2**29),
        (values.bytes_of, "16 MB", 2**24),
        (values.lanes, "16x", 16),
        (values.lanes, "x8", 8),
        (values.generation, "4", 4),
        (values.generation, "Gen5", 5),
        (values.flag, "Yes", True),
        (values.flag, "No", False),
        (values.flag, "Active", True),
        (values.flag, "Not Active", False),
        (values.degraded, "Full", False),
        (values.degraded, "Degraded", True),
        (values.pci_id, "233010DE", "0x233010de"),
        (values.pci_id, "0x233010DE", "0x233010de"),
    ],
)
def test_values(convert: Callable[[str], Known[object]], text: str, value: object) -> None:
    found = convert(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("convert", "text", "said"),
    [
        (values.count, "abc", "'abc' is no count"),
        (values.count, "-1", "'-1' is no count"),
        (values.count, "1.5", "'1.5' is no count"),
        (values.count, "5 C", "'5 C' is no count"),
        (values.count, "", "'' is no count"),
        (values.count, "9" * 5000, f"'{'9' * 60}' is no count"),
        (values.count, "18446744073709551615", "18446744073709551615 stands for no value"),
        (values.celsius, "30 F", "'30 F' is no temperature in C"),
        (values.celsius, "30", "'30' is no temperature in C"),
        (values.percent, "30 W", "'30 W' is no percentage"),
        (values.bytes_of, "12 apples", "'12 apples' is no amount of memory"),
        (values.bytes_of, "17592186044415 MiB", "17592186044415 stands for no value"),
        (values.lanes, "wide", "'wide' is no link width"),
        (values.generation, "Gen", "'Gen' is no PCIe generation"),
        (values.flag, "perhaps", "'perhaps' is no yes or no"),
        (values.degraded, "Yes", "'Yes' is no bandwidth state"),
        (values.pci_id, "2330", "'2330' is no PCI id"),
    ],
)
def test_what_cannot_be_read(convert: Callable[[str], Known[object]], text: str, said: str) -> None:
    assert convert(text) == Missing("unreadable", said)


def test_an_empty_text_is_none_of_a_kind() -> None:
    """Boards without a chassis serial print an empty one; numbers are never printed empty."""
    found = values.words("  ")
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


@pytest.mark.parametrize(
    ("text", "error", "lost"),
    [
        ("Unknown Error", True, False),
        ("[ERR!]", True, False),
        ("GPU requires reset", True, False),
        ("[GPU is lost]", True, True),
        ("Unknown", False, False),
        ("N/A", False, False),
        ("Insufficient Permissions", False, False),
        ("0", False, False),
    ],
)
def test_errors_and_lost_gpus(text: str, error: bool, lost: bool) -> None:
    assert (values.is_error(text), values.is_lost(text)) == (error, lost)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:1B:00.0", "00000000:1b:00.0"),
        ("0000:00:04.0", "00000000:00:04.0"),
        ("0008:01:00.0", "00000008:01:00.0"),
        ("1b:00.0", "00000000:1b:00.0"),
        ("0:5:0", "00000000:05:00.0"),
        (" XXXX:1B:00.0", "xxxx:1b:00.0"),
    ],
)
def test_bus_ids(text: str, address: str) -> None:
    assert values.bus_id(text) == address
