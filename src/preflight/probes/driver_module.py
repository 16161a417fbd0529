"""The driver's kernel modules, from /proc: which version is loaded, of which flavour, and what
stands beside it."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.services import DriverModule
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

# /proc/modules has lsmod's columns and more behind them. nvidia-modprobe is the setuid helper that
# CUDA calls to load nvidia_uvm. `end` shows that all was told.
_ASK = """\
cat /proc/driver/nvidia/version 2>/dev/null
if [ -r /sys/module/nvidia/version ]; then printf 'module version: '; \
cat /sys/module/nvidia/version; fi
if command -v nvidia-modprobe >/dev/null 2>&1; then echo 'nvidia-modprobe: yes'
else echo 'nvidia-modprobe: no'; fi
cat /proc/modules 2>/dev/null
echo end"""

#: NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
#: NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build ...
_VERSION = re.compile(r"(?<![\w.])\d{2,4}(?:\.\d{1,4}){1,3}(?![\w.])")
_SYSFS = re.compile(r"module version: (\S+)")
_ROW = re.compile(r"([a-z]\w*) +\d+ +-?\d+(?: |$)")
_HEAD = re.compile(r"Module +Size +Used by")
#: Modules that concern GPUs; `nv_peer_mem` is the older name of nvidia_peermem.
_OURS = re.compile(r"nvidia\w*|nv_peer_mem|gdrdrv|nouveau|nvidiafb")
_NOT_LOADED = Missing("not-applicable", "the nvidia module is not loaded")


@probe("driver-module", ["sh", "-c", _ASK], timeout_s=10)
def driver_module(text: str) -> DriverModule:
    """Also of a recording: /proc/driver/nvidia/version, lsmod or /proc/modules, each alone."""
    lines = text.split("\n")
    names = {found[1] for line in lines if (found := _ROW.match(line.lstrip()))}
    nvrm = next((at for at, line in enumerate(lines) if "NVRM version: " in line), None)
    live = any(line.startswith("nvidia-modprobe: ") for line in lines)
    if not names and nvrm is None and not live:
        raise ParseError("expected `NVRM version: ...` or the rows of lsmod", 1)
    if live and "end" not in lines:
        raise ParseError("the answer is cut short: no closing `end`", len(lines))
    listed = bool(names)  # a kernel without modules lists none
    version, flavour = _loaded(lines, nvrm, live or (listed and "nvidia" not in names))
    ours = tuple(sorted(name for name in names if _OURS.fullmatch(name)))
    return DriverModule(
        version=version,
        flavour=flavour,
        modules=ours if listed else NOT_IN_INPUT,
        absent=_absent(lines, names, live),
        uvm=_uvm(lines, names, listed),
        peermem=bool(names & {"nvidia_peermem", "nv_peer_mem"}) if listed else NOT_IN_INPUT,
        gdrdrv="gdrdrv" in names if listed else NOT_IN_INPUT,
        nouveau="nouveau" in names if listed else NOT_IN_INPUT,
        line=(nvrm or 0) + 1,
        probe="driver-module",
    )


def _loaded(lines: list[str], nvrm: int | None, absent: bool) -> tuple[Known[str], Known[str]]:
    if nvrm is not None:
        line = lines[nvrm]
        version = _VERSION.search(line)
        flavour = "open" if "Open Kernel Module" in line else "proprietary"
        unread = Missing("unreadable", f"no version in {line.strip()[:100]!r}")
        return (version[0] if version else unread), flavour
    sysfs = next((found[1] for line in lines if (found := _SYSFS.match(line))), None)
    if sysfs:
        return sysfs, NOT_IN_INPUT
    missing = _NOT_LOADED if absent else NOT_IN_INPUT
    return missing, missing


def _absent(lines: list[str], names: set[str], live: bool) -> tuple[str, ...]:
    """Those that decide who has the GPUs, where the list is whole: `lsmod | grep` has no head."""
    whole = bool(names) and (live or any(_HEAD.match(line.lstrip()) for line in lines))
    return tuple(name for name in ("nvidia", "vfio_pci") if whole and name not in names)


def _uvm(lines: list[str], names: set[str], listed: bool) -> Known[str]:
    if "nvidia_uvm" in names:
        return "loaded"
    if listed and "nvidia" not in names:
        return _NOT_LOADED
    if "nvidia-modprobe: yes" in lines:
        return "on-demand"
    return "absent" if listed and "nvidia-modprobe: no" in lines else NOT_IN_INPUT
