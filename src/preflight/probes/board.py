"""The board and its BIOS, from the copy of SMBIOS that the kernel keeps in sysfs."""

from __future__ import annotations

from typing import Any

from preflight.errors import ParseError
from preflight.facts.setup import Board
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "board"
# These files anybody may read; those of serial numbers and UUIDs only root, and nobody needs them
# here (drivers/firmware/dmi-id.c of the kernel). A machine without SMBIOS has no such directory.
_ASK = """\
d=/sys/class/dmi/id
if [ -d "$d" ]; then
  for f in sys_vendor product_name board_name bios_vendor bios_version bios_date bios_release; do
    v=; { read -r v <"$d/$f"; } 2>/dev/null; echo "$f $v"
  done
else echo none; fi
echo end"""

_FIELDS = Board.__struct_fields__[:7]


def locate(text: str, start: int, field: str) -> int:
    """The line that shows a field."""
    lines = text.split("\n")
    return next((at for at, line in enumerate(lines, 1) if line.startswith(f"{field} ")), start)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def board(text: str) -> Known[Board]:
    """`field value` lines; a field without a value is one that the vendor left empty."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the answer is cut short: no closing `end`", len(lines))
    if "none" in lines:
        return Missing("not-applicable", "the firmware keeps no table of the board (SMBIOS) here")
    told: dict[str, Any] = {}
    for line in lines[:-1]:
        key, _, value = line.partition(" ")
        if key in _FIELDS:
            told[key] = " ".join(value.split()) or _empty(key)
    if not told:
        raise ParseError("expected lines such as `bios_version 1.2`", 1)
    return Board(**told, probe=_PROBE)


def _empty(key: str) -> Missing:
    return Missing("not-applicable", f"the firmware tells no {key}")
