"""Memory errors of the host that the kernel's EDAC drivers counted, from sysfs."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.host_memory import DimmErrors, Edac, MemoryController
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "edac"
# The files of Documentation/admin-guide/ras.rst of the kernel: dimm* or rank* and, in the older
# layout, csrow* with channels.
_ASK = """\
cd /sys/devices/system/edac/mc || { echo no; echo end; exit 0; }
for f in mc*/mc_name mc*/seconds_since_reset mc*/[cu]e_count mc*/[cu]e_noinfo_count \\
  mc*/dimm*/dimm_* mc*/dimm*/size mc*/rank*/dimm_* mc*/rank*/size mc*/csrow*/*_count \\
  mc*/csrow*/ch*_dimm_label; do
  [ -r "$f" ] || continue
  v=; read -r v <"$f"; echo "$f:$v"
done
echo end"""

_LINE = re.compile(
    r"\s*(?:/sys/devices/system/edac/mc/)?(mc\d{1,4})/(?:((?:dimm|rank|csrow)\d{1,4})/)?"
    r"([a-z0-9_]{1,32})[: ](.*)"
)
_DAY_S = 86400


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def edac(text: str) -> Known[Edac]:
    """`mc0/dimm3/dimm_ce_count:12` lines, as `grep . /sys/devices/system/edac/mc/...` prints."""
    told: dict[str, dict[str, dict[str, tuple[str, int]]]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(line.rstrip())
        if match:
            controller, module, field, value = match.groups()
            modules = told.setdefault(controller, {"": {}})
            modules.setdefault(module or "", {})[field] = value.strip(), number
    if told:
        return _edac(told)
    if text.strip().endswith("end"):
        return Missing("not-applicable", _NOT_LOADED)
    raise ParseError("expected lines such as mc0/ce_count:0 and a closing `end`", 1)


_NOT_LOADED = (
    "no EDAC driver counts memory errors here: a virtual machine has none; on a server "
    "`sudo modprobe amd64_edac`, i10nm_edac, skx_edac or igen6_edac, and ECC on in the BIOS"
)

_Fields = dict[str, tuple[str, int]]


def _edac(told: dict[str, dict[str, _Fields]]) -> Edac:
    controllers, dimms = [], []
    for name, modules in told.items():
        own = modules[""]
        days = _days(own)
        rows: list[DimmErrors] = []
        mine: list[DimmErrors] = []
        for module, fields in modules.items():
            if module.startswith("csrow"):
                rows += _of_row(name, module, fields, days)
            elif module:
                mine += [_dimm(f"{name} {module}", fields, days, "dimm_")]
        controllers.append(_controller(name, own, rows, mine, days))
        dimms += [*rows, *mine]
    first = min(line for modules in told.values() for part in modules.values()
                for _, line in part.values())  # fmt: skip
    none = Missing("not-in-input", "the counters of single modules are not in the input")
    return Edac(tuple(controllers), tuple(_named_apart(dimms)) or none, first, _PROBE)


def _controller(
    name: str, own: _Fields, rows: list[DimmErrors], dimms: list[DimmErrors], days: float
) -> MemoryController:
    """Rows and modules are two views of the same errors."""
    corrected, uncorrected = _count(own, "ce_count"), _count(own, "ue_count")
    loose = _rest(corrected, *([one.corrected for one in each] for each in (rows, dimms)))
    _, line = own.get("ue_count") or own.get("ce_count") or next(iter(own.values()), ("", 0))
    return MemoryController(
        name=name,
        driver=own["mc_name"][0] if "mc_name" in own else NOT_IN_INPUT,
        counted_s=_count(own, "seconds_since_reset"),
        corrected=corrected,
        corrected_unplaced_per_day=loose if isinstance(loose, Missing) else loose / days,
        uncorrected=uncorrected,
        uncorrected_unplaced=_rest(
            uncorrected, *([one.uncorrected for one in each] for each in (rows, dimms))
        ),
        line=line,
        probe=_PROBE,
    )


def _rest(total: Known[int], *placed: list[Known[int]]) -> Known[int]:
    """What no module is named for."""
    if isinstance(total, Missing):
        return total
    most = max(sum(count for count in view if isinstance(count, int)) for view in placed)
    return max(total - most, 0)


def _dimm(name: str, fields: _Fields, days: float, begin: str) -> DimmErrors:
    corrected = _count(fields, f"{begin}ce_count")
    label = fields.get("dimm_label", ("", 0))[0] or fields.get(f"{begin}dimm_label", ("", 0))[0]
    size = _count(fields, "size")
    _, line = fields.get(f"{begin}ce_count") or next(iter(fields.values()))
    return DimmErrors(
        name=label or name,
        corrected=corrected,
        corrected_per_day=corrected if isinstance(corrected, Missing) else corrected / days,
        uncorrected=_count(fields, f"{begin}ue_count"),
        size_bytes=size if isinstance(size, Missing) else size << 20,
        kind=fields["dimm_mem_type"][0] if "dimm_mem_type" in fields else NOT_IN_INPUT,
        line=line,
        probe=_PROBE,
    )


def _of_row(name: str, row: str, fields: _Fields, days: float) -> list[DimmErrors]:
    """The channels of a csrow. Uncorrected errors are the row's: its channels work together; so are
    corrected ones that it counted and no channel did."""
    channels = sorted({key.partition("_")[0] for key in fields if re.match(r"ch\d+_", key)})
    found = [_dimm(f"{name} {row} {one}", fields, days, f"{one}_") for one in channels]
    own = fields.get("ue_count") or fields.get("ce_count")
    if own is None:
        return found
    loose = _rest(_count(fields, "ce_count"), [one.corrected for one in found])
    told = fields.get("ce_count", ("0", 0))[0] if isinstance(loose, Missing) else str(loose)
    rest = {"ce_count": (told, own[1])}
    if "ue_count" in fields:
        rest["ue_count"] = fields["ue_count"]
    return [*found, _dimm(f"{name} {row}", rest, days, "")]


def _days(own: _Fields) -> float:
    """Over how many days was counted; at least one, so that a few on the first day are few."""
    counted_s = _count(own, "seconds_since_reset")
    return 1.0 if isinstance(counted_s, Missing) else max(counted_s / _DAY_S, 1.0)


def _count(fields: _Fields, name: str) -> Known[int]:
    if name not in fields:
        return NOT_IN_INPUT
    text = fields[name][0]
    if not re.fullmatch(r"[0-9]{1,18}", text):
        return Missing("unreadable", f"{name}: {text[:40]!r} is no count")
    return int(text)


def _named_apart(dimms: list[DimmErrors]) -> list[DimmErrors]:
    from msgspec.structs import replace

    seen: dict[str, int] = {}
    named = []
    for one in dimms:
        seen[one.name] = seen.get(one.name, 0) + 1
        again = seen[one.name] > 1
        named.append(replace(one, name=f"{one.name} #{seen[one.name]}") if again else one)
    return named
