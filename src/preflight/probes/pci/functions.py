"""GPUs, accelerators and NVSwitches on PCI, from sysfs: what is there, driver or not."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.host import PciFunction
from preflight.probes.spec import probe

# Classes (PCI Code and ID Assignment Specification, base class 03h display, 12h processing
# accelerators, 0680h other bridge: NVSwitch). The driver is the last part of the link's target.
_ASK = """\
[ -d /sys/bus/pci/devices ] || { echo 'no /sys/bus/pci/devices' >&2; exit 2; }
cd /sys/bus/pci/devices || exit 2
for d in *; do
  [ -r "$d/class" ] || continue
  read -r c <"$d/class"; read -r v <"$d/vendor"; read -r i <"$d/device"
  case $c in 0x03*|0x12*|0x0680*) ;; *) continue ;; esac
  r=; if [ -e "$d/driver" ]; then r=$(readlink "$d/driver"); fi
  echo "$d $c $v $i ${r##*/}"
done
echo end"""

_LINE = re.compile(
    r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (0x[0-9a-f]{6}) (0x[0-9a-f]{4}) "
    r"(0x[0-9a-f]{4}) ?(\S*)"
)


@probe("pci", ["sh", "-c", _ASK], timeout_s=10)
def pci(text: str) -> tuple[PciFunction, ...]:
    """One line per function; the list is whole only when it closes with `end`."""
    lines = text.strip().splitlines()
    if not lines or lines[-1] != "end":
        raise ParseError("the list of PCI functions is cut short: no closing `end`", len(lines))
    return tuple(_function(line, number) for number, line in enumerate(lines[:-1], 1))


def _function(line: str, number: int) -> PciFunction:
    match = _LINE.fullmatch(line.strip())
    if not match:
        raise ParseError(f"expected 'ADDRESS CLASS VENDOR DEVICE DRIVER', got {line!r}", number)
    address, class_id, vendor_id, device_id, driver = match.groups()
    return PciFunction(address, class_id, vendor_id, device_id, driver, number, "pci")
