"""EDAC's counts and dmidecode's modules."""

from __future__ import annotations

import pytest

from preflight.errors import ParseError
from preflight.facts.host_memory import Dimms, Edac
from preflight.model import Missing
from preflight.probes.dmidecode import dmidecode
from preflight.probes.edac import edac

COUNTS = """\
mc0/mc_name:Intel_10nm Socket#0 IMC#0
mc0/seconds_since_reset:1728000
mc0/ce_count:240
mc0/ue_count:1
mc0/ce_noinfo_count:0
mc0/dimm0/dimm_ce_count:240
mc0/dimm0/dimm_label:CPU_SrcID#0_MC#0_Chan#0_DIMM#0
mc0/dimm0/dimm_mem_type:Registered-DDR4
mc0/dimm0/dimm_ue_count:0
mc0/dimm0/size:65536
mc0/dimm3/dimm_ce_count:0
mc0/dimm3/dimm_label:
mc0/dimm3/dimm_ue_count:0
mc0/dimm3/size:65536
end
"""


def counted(text: str) -> Edac:
    found = edac(text)
    assert isinstance(found, Edac)
    return found


def test_counts_by_module() -> None:
    found = counted(COUNTS)
    assert not isinstance(found.dimms, Missing)
    first, second = found.dimms
    assert first.name == "CPU_SrcID#0_MC#0_Chan#0_DIMM#0"
    assert (first.corrected, first.corrected_per_day, first.uncorrected) == (240, 12.0, 0)
    assert (first.size_bytes, first.line) == (64 << 30, 6)
    assert second.name == "mc0 dimm3"
    (controller,) = found.controllers
    assert (controller.counted_s, controller.uncorrected_unplaced) == (1728000, 1)


def test_the_output_of_grep_and_of_the_older_layout() -> None:
    where = "/sys/devices/system/edac/mc/"
    text = (
        f"{where}mc0/ce_count:2\n{where}mc0/ue_count:1\n"
        f"{where}mc0/csrow0/ch0_ce_count:2\n{where}mc0/csrow0/ch0_dimm_label:DIMM_A1\n"
        f"{where}mc0/csrow0/ue_count:1\n"
    )
    found = counted(text)
    assert not isinstance(found.dimms, Missing)
    assert [(one.name, one.corrected) for one in found.dimms] == [("DIMM_A1", 2), ("mc0 csrow0", 0)]
    assert found.dimms[1].uncorrected == 1
    assert found.controllers[0].uncorrected_unplaced == 0


def test_counts_of_the_first_hour_are_not_blown_up_to_a_day() -> None:
    found = counted(COUNTS.replace("1728000", "3600"))
    assert not isinstance(found.dimms, Missing)
    assert found.dimms[0].corrected_per_day == 240.0


def test_no_driver_is_no_pass_and_says_how() -> None:
    for text in ("end\n", "no\nend\n"):
        found = edac(text)
        assert isinstance(found, Missing)
        assert found.kind == "not-applicable"
        assert "modprobe" in found.text
    with pytest.raises(ParseError):
        edac("cat: no such file\n")


SLOT = """\
Handle 0x00{0:02X}, DMI type 17, 92 bytes
Memory Device
\tArray Handle: 0x0020
\tSize: {1}
\tLocator: DIMM_P0_A{0}
\tBank Locator: BANK 0
\tType: DDR5
\tSpeed: 5600 MT/s
\tManufacturer: {2}
\tConfigured Memory Speed: 4800 MT/s

"""


def test_modules() -> None:
    head = "# dmidecode 3.3\nSMBIOS 3.5.0 present.\n\nHandle 0x0011, DMI type 16, 23 bytes\n\n"
    text = (
        head + SLOT.format(0, "64 GB", "Micron") + SLOT.format(1, "No Module Installed", "NO DIMM")
    )
    found = dmidecode(text)
    assert isinstance(found, Dimms)
    assert (found.count, found.slots) == (1, 2)
    assert not isinstance(found.fitted, Missing)
    (one,) = found.fitted
    assert (one.size_gib, one.speed_mts, one.rated_mts, one.kind) == (64.0, 4800, 5600, "DDR5")
    assert one.name == "DIMM_P0_A0 (BANK 0)"


def test_older_and_shorter_forms() -> None:
    text = (
        "Memory Device\n\tSize: 16384 MB\n\tLocator: A1\n\tSpeed: 2666 MHz\n"
        "\tConfigured Clock Speed: Unknown\n"
    )
    found = dmidecode(text)
    assert isinstance(found, Dimms)
    assert not isinstance(found.fitted, Missing)
    assert (found.fitted[0].size_gib, found.fitted[0].rated_mts) == (16.0, 2666)
    assert isinstance(found.fitted[0].speed_mts, Missing)


def test_a_virtual_machine_has_no_modules() -> None:
    found = dmidecode(SLOT.format(0, "16 GB", "QEMU") + SLOT.format(1, "8 GB", "QEMU"))
    assert isinstance(found, Missing)
    with pytest.raises(ParseError):
        dmidecode("# dmidecode 3.3\n")


def test_what_a_controller_or_row_counted_counts_without_a_module() -> None:
    found = edac("mc0/ce_count:0\nmc1/ce_count:250132\nmc1/ue_count:0\n")
    assert not isinstance(found, Missing)
    assert [one.corrected_unplaced_per_day for one in found.controllers] == [0.0, 250132.0]
    found = edac("mc0/ce_count:90\nmc0/csrow0/ce_count:50\nmc0/csrow0/ch0_ce_count:20\n")
    assert not isinstance(found, Missing)
    assert not isinstance(found.dimms, Missing)
    assert [(one.name, one.corrected) for one in found.dimms] == [
        ("mc0 csrow0 ch0", 20), ("mc0 csrow0", 30),
    ]  # fmt: skip
    assert found.controllers[0].corrected_unplaced_per_day == 40
