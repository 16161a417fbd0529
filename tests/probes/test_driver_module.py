"""The loaded module: as preflight asks, and as people paste it."""

from __future__ import annotations

import time

import pytest

from preflight.errors import ParseError
from preflight.facts.services import DriverModule
from preflight.model import Missing
from preflight.probes.driver_module import driver_module

CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build  "
    "(dvs-builder@U16-A24-23-2)  Thu Feb 22 01:25:25 UTC 2024\n"
)
GCC = "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04) \n"
ROWS = (
    "nvidia_uvm 4927488 4 - Live 0x0000000000000000 (PO)\n"
    "nvidia_peermem 16384 0 - Live 0x0000000000000000 (PO)\n"
    "nvidia_drm 131072 0 - Live 0x0000000000000000 (PO)\n"
    "nvidia 56717312 42 nvidia_uvm,nvidia_peermem,nvidia_drm, Live 0x0000000000000000 (PO)\n"
    "mlx5_core 2461696 1 mlx5_ib, Live 0x0000000000000000\n"
)
LSMOD = (
    "Module                  Size  Used by\n"
    "nvidia_uvm           1523712  0\n"
    "nouveau              2609152  4\n"
    "gdrdrv                 28672  0\n"
    "nvidia              56717312  2 nvidia_uvm,gdrdrv\n"
)


def _kind(value: object) -> str:
    assert isinstance(value, Missing), value
    return value.kind


@pytest.mark.parametrize(
    ("head", "version", "flavour"),
    [
        (CLOSED, "535.129.03", "proprietary"),
        (OPEN, "550.54.14", "open"),
        (OPEN.replace("x86_64", "aarch64"), "550.54.14", "open"),
        (CLOSED.replace("x86_64", "aarch64").replace("535.129.03", "610.57"), "610.57",
         "proprietary"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.43  Sun Feb 10 21:16:42 CST 2019\n",
         "418.43", "proprietary"),
    ],
)  # fmt: skip
def test_the_version_and_the_flavour(head: str, version: str, flavour: str) -> None:
    for text in (head, head + GCC, f"  {head}", f"{head}{GCC}nvidia-modprobe: yes\n{ROWS}end\n"):
        module = driver_module(text)
        assert (module.version, module.flavour) == (version, flavour)


def test_as_preflight_asks() -> None:
    assert driver_module(f"{CLOSED}{GCC}nvidia-modprobe: yes\n{ROWS}end\n") == DriverModule(
        version="535.129.03",
        flavour="proprietary",
        modules=("nvidia", "nvidia_drm", "nvidia_peermem", "nvidia_uvm"),
        absent=("vfio_pci",),
        uvm="loaded",
        peermem=True,
        gdrdrv=False,
        nouveau=False,
        line=1,
        probe="driver-module",
    )


def test_as_lsmod_writes_it() -> None:
    module = driver_module(LSMOD)
    assert (module.uvm, module.nouveau, module.gdrdrv, module.peermem) == (
        "loaded", True, True, False,
    )  # fmt: skip
    assert _kind(module.version) == "not-in-input"


def test_a_module_that_is_not_loaded_yet_and_one_that_nothing_will_load() -> None:
    rows = ROWS.replace("nvidia_uvm 4927488 4", "usbcore 1 1")
    for helper, expected in (("yes", "on-demand"), ("no", "absent")):
        assert driver_module(f"{CLOSED}nvidia-modprobe: {helper}\n{rows}end\n").uvm == expected
    assert _kind(driver_module(rows).uvm) == "not-in-input"


@pytest.mark.parametrize("rows", ["", "ext4 900000 1 - Live 0x0\n"])
def test_without_the_driver(rows: str) -> None:
    module = driver_module(f"nvidia-modprobe: no\n{rows}end\n")
    assert _kind(module.version) == "not-applicable"


def test_what_is_cut_short_or_something_else() -> None:
    for text in ("", "hello\n", f"{CLOSED}nvidia-modprobe: yes\n{ROWS}"):
        with pytest.raises(ParseError):
            driver_module(text)


def test_a_megabyte_takes_less_than_a_second() -> None:
    for text in (
        "a 1 1 " * 170_000,
        ROWS * 3000,
        "NVRM version: " + "1." * 500_000,
        CLOSED * 11_000,
    ):
        began = time.process_time()
        driver_module(f"{text}\n{ROWS}")
        assert time.process_time() - began < 1
