"""Disks, their partitions and what is put together from them, from /sys/block."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.errors import ParseError
from preflight.facts.storage import BlockDevice
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "block-devices"

# Documentation/ABI/stable/sysfs-block of the kernel. The real path of a device tells what it hangs
# on: a controller on PCI, a link of SATA (ata1), a port of SAS; of NVMe with several ways to it
# (multipath) the subsystem lists its controllers. A loop device without a file is none, nor is a
# disk without a size. Told at once: over SSH each line that is written by itself is a packet.
_ASK = """\
[ -d /sys/block ] || { echo 'no /sys/block' >&2; exit 2; }
exec 2>/dev/null
told=
tell() { told="$told$1
"; }
field() { v=; read -r v <"$2"; [ -z "$v" ] || tell "  $1 $v"; }
for d in /sys/block/*; do
  v=0; read -r v <"$d/size"
  [ "$v" != 0 ] || continue
  cd -P "$d" || continue
  n=${d##*/}
  tell "device $n"
  tell "  path $PWD"
  for f in dev size queue/rotational queue/scheduler queue/nr_requests queue/read_ahead_kb \\
      device/model device/queue_depth device/transport md/level md/raid_disks dm/name \\
      loop/backing_file; do
    field "$f" "$d/$f"
  done
  for s in slaves/*; do [ -e "$s" ] && tell "  below ${s##*/}"; done
  for p in "$d/$n"*; do
    [ -e "$p/partition" ] || continue
    v=; read -r v <"$p/dev"; s=; read -r s <"$p/size"
    tell "  partition ${p##*/} $v $s"
  done
  if cd -P "$d/device"; then
    tell "  hangs $PWD"
    for c in "$PWD" "$PWD"/nvme*; do
      [ -e "$c/address" ] || continue
      field address "$c/address"; field transport "$c/transport"
    done
    case $PWD in */ata[0-9]*)
      a=${PWD##*/ata}; a=${a%%/*}
      field sata "/sys/class/ata_link/link$a/sata_spd" ;;
    esac
    for e in "$PWD"/../../sas_device/*; do
      a=${e##*/end_device-}
      [ -e "$e" ] && field sas "/sys/class/sas_phy/phy-${a%%:*}:${a##*:}/negotiated_linkrate"
    done
  fi
done
printf '%s' "${told}end"
"""

_SECTOR = 512  # whatever the device's own is: sysfs-block, `size`
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_CHOSEN = re.compile(r"\[([\w-]{1,40})\]", re.ASCII)
_RATE = re.compile(r"(\d{1,3}(?:\.\d{1,2})?) Gb(?:ps|it)", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
#: How names begin -> what they are.
_KINDS = {"nvme": "nvme", "md": "md", "dm-": "dm", "loop": "loop", "zram": "memory",
          "ram": "memory", "pmem": "memory", "vd": "virtual", "xvd": "virtual",
          "sd": "disk", "hd": "disk", "mmcblk": "disk"}  # fmt: skip
#: Part of the way to a disk -> how it is reached. The last one counts: USB hangs on PCI.
_WAYS = {"/virtio": "virtio", "/ata": "sata", "/end_device-": "sas", "/usb": "usb",
         "/fc_host": "fc", "/session": "iscsi", "/vmbus": "virtio", "/mmc": "mmc"}  # fmt: skip
_NO_SCHEDULER = Missing("not-applicable", "it hands its requests on to others")

Fields = dict[str, list[str]]


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def block_devices(text: str) -> tuple[BlockDevice, ...]:
    """`device NAME` begins a device, indented lines tell its files; partitions follow it."""
    lines = text.rstrip().split("\n")
    if lines[-1].strip() != "end":
        raise ParseError("the list of devices is cut short: no closing `end`", len(lines))
    blocks: list[tuple[int, str, Fields]] = []
    for number, line in enumerate(lines[:-1], 1):
        key, _, value = line.strip().partition(" ")
        if key == "device":
            blocks.append((number, value, {}))
        elif blocks and line.startswith("  "):
            blocks[-1][2].setdefault(key, []).append(value.strip())
        else:
            raise ParseError(f"expected `device NAME` or a field of one, got {line[:60]!r}", number)
    return tuple(one for block in blocks for one in _with_partitions(*block))


def _with_partitions(line: int, name: str, told: Fields) -> Iterator[BlockDevice]:
    yield _device(line, name, told)
    for part in told.get("partition", []):
        words = part.split(" ")
        if len(words) == 3:
            size = _number(words[2])
            yield BlockDevice(
                name=words[0],
                kind="partition",
                device=words[1],
                size_bytes=size if isinstance(size, Missing) else size * _SECTOR,
                below=(name,),
                line=line,
                probe=_PROBE,
            )


def _device(line: int, name: str, told: Fields) -> BlockDevice:
    kind = next((kind for begin, kind in _KINDS.items() if name.startswith(begin)), "other")
    sectors, ahead = _number(_one(told, "size")), _number(_one(told, "queue/read_ahead_kb"))
    stacked = kind in ("md", "dm", "loop")
    return BlockDevice(
        name=name,
        kind=kind,
        device=_one(told, "dev"),
        size_bytes=sectors if isinstance(sectors, Missing) else sectors * _SECTOR,
        model=_one(told, "device/model") or _one(told, "dm/name") or NOT_IN_INPUT,
        rotational=_flag(_one(told, "queue/rotational")),
        scheduler=_NO_SCHEDULER if stacked else _scheduler(_one(told, "queue/scheduler")),
        requests=_number(_one(told, "queue/nr_requests")),
        read_ahead_bytes=ahead if isinstance(ahead, Missing) else ahead * 1024,
        queue_depth=_number(_one(told, "device/queue_depth")),
        transport=_transport(told),
        bus_ids=_bus_ids(kind, told),
        link_gbits=_rate(_one(told, "sata") or _one(told, "sas")),
        raid_level=_one(told, "md/level") or NOT_IN_INPUT,
        raid_disks=_number(_one(told, "md/raid_disks")),
        below=tuple(told.get("below", ())),
        file=_one(told, "loop/backing_file"),
        line=line,
        probe=_PROBE,
    )


def _one(told: Fields, key: str) -> str:
    return next(iter(told.get(key, ())), "")


def _number(text: str) -> Known[int]:
    return int(text) if _WHOLE.fullmatch(text) else NOT_IN_INPUT


def _flag(text: str) -> Known[bool]:
    return text == "1" if text in ("0", "1") else NOT_IN_INPUT


def _scheduler(text: str) -> Known[str]:
    """`[none] mq-deadline kyber bfq`: the one in brackets; `none` alone where there is no other."""
    match = _CHOSEN.search(text)
    return match[1] if match else text if text == "none" else NOT_IN_INPUT


def _rate(text: str) -> Known[float]:
    """`6.0 Gbps` of SATA, `12.0 Gbit` of SAS; `<unknown>` where no disk is."""
    match = _RATE.match(text)
    return float(match[1]) if match else NOT_IN_INPUT


def _transport(told: Fields) -> Known[str]:
    named = _one(told, "transport") or _one(told, "device/transport")
    if named:
        return named
    way = _one(told, "hangs")
    return next((how for part, how in reversed(_WAYS.items()) if part in way), NOT_IN_INPUT)


def _bus_ids(kind: str, told: Fields) -> tuple[str, ...]:
    """Of NVMe the addresses of its controllers; of others the last address on the way to it."""
    if kind == "nvme":
        return tuple(one for one in dict.fromkeys(told.get("address", ())) if _PCI.fullmatch(one))
    return tuple(_PCI.findall(_one(told, "hangs"))[-1:])
