"""A machine with NVIDIA GPUs on PCI: this one, in a mount namespace with other files in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench.inputs import BUSES
from tests.conftest import require

# A root without the files at its top has no /.dockerenv, so the machine is no container.
_ENTER = """\
pci=$1; nodes=$2; container=$3; shift 3
mount --bind "$pci" /sys/bus/pci/devices
mount -t tmpfs tmpfs /dev
mknod -m 666 /dev/null c 1 3; mknod -m 600 /dev/kmsg c 1 11
n=0; while [ $n -lt $nodes ]; do mknod "/dev/nvidia$n" c 195 $n; n=$((n + 1)); done
mount -t tmpfs tmpfs /mnt
for d in /*; do
  if [ "$d" = /mnt ]; then continue; fi
  if [ -L "$d" ]; then cp -P "$d" /mnt
  elif [ -d "$d" ]; then mkdir "/mnt$d"; mount --rbind "$d" "/mnt$d"; fi
done
if [ "$container" = yes ]; then : >/mnt/.dockerenv; fi
exec chroot /mnt "$@"
"""


def machine_with_gpus(
    base: Path, count: int, *, driver: str = "nvidia", nodes: int = 0, container: bool = False
) -> list[str]:
    """The command under which a machine has up to 8 GPUs on PCI and `nodes` of them in /dev."""
    devices = base / "pci"
    for bus in BUSES[:count]:
        device = devices / f"0000:{bus.lower()}:00.0"
        device.mkdir(parents=True)
        for name, text in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x2504")):
            (device / name).write_text(f"{text}\n")
        if driver:
            # It must lead somewhere, as it does in sysfs.
            (base / driver).mkdir(exist_ok=True)
            (device / "driver").symlink_to(base / driver)
    kind = "yes" if container else "no"
    under = ["unshare", "-m", "sh", "-ec", _ENTER, "sh", str(devices), str(nodes), kind]
    root = os.geteuid() == 0
    works = root and subprocess.run([*under, "true"], capture_output=True).returncode == 0
    require("root and mount namespaces", works)
    return under
