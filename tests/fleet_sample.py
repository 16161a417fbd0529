"""Sixteen hosts as one capture, as the README shows them: `python -m tests.fleet_sample`.

Made up from a real nvidia-smi of A100 and the answers of tests/setup_text.py. Planted: an older
driver on node[03,07], a GPU off the bus on node11, NUMA balancing on node12, and two hosts without
an answer, by different faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.inputs import BUSES, on_host, small_xml
from preflight.capture import Writer
from preflight.faults import CONNECTION, fault
from preflight.model import Raw
from tests.conftest import SAMPLES
from tests.setup_text import SETUP
from tests.written import MODULES

FILE = SAMPLES / "fleet" / "sixteen_hosts.capture.gz"
ASKED_AT = "2026-11-20T03:00:00Z"
_SILENT = {
    "node05": fault("refused", "node05: Connection refused"),
    "node09": fault("no-answer", "node09 did not take the connection in time"),
}
_LOST = (
    "kern  :err   : 2026-11-20T02:41:07,412000+00:00 NVRM: Xid (PCI:0000:4e:00): 79, "
    "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
)
_LOG = (
    "kern  :notice: 2026-11-12T08:00:00,000000+00:00 Linux version 5.15.0-94-generic\n"
    "kern  :info  : 2026-11-20T01:00:00,000000+00:00 usb 1-2: new device\n"
)
_PCI = "".join(f"0000:{bus.lower()}:00.0 0x030200 0x10de 0x20b2 nvidia\n" for bus in BUSES)


def hosts() -> Iterator[list[Raw]]:
    """The answers of each host."""
    for number in range(1, 17):
        name = f"node{number:02}"
        if name in _SILENT:
            yield [Raw(name, CONNECTION, rc=None, missing=_SILENT[name])]
        else:
            yield [
                Raw(name, probe, (probe,), stdout=text, started_at=ASKED_AT)
                for probe, text in _answers(number, name).items()
            ]


def _answers(number: int, name: str) -> dict[str, str]:
    driver = "535.54.03" if number in (3, 7) else "535.161.08"
    sysctls, xml = SETUP["sysctls"], tuned(small_xml())
    if number == 12:
        sysctls = sysctls.replace("kernel/numa_balancing:0", "kernel/numa_balancing:1")
    if number == 11:
        at = xml.index("<gpu id=", xml.index("00000000:4E:00.0") - 40)
        xml = xml[:at] + xml[xml.index("<gpu id=", at + 8) :]
        xml = xml.replace("<attached_gpus>8", "<attached_gpus>7")
    return {
        "identity": f"hostname {name}\nkernel 5.15.0-94-generic\nboot_id {number:08}-0000-4000-"
        f"8000-000000000001\ndate {ASKED_AT}\nuptime 864000.0 1\nuid 0\n",
        "pci": f"{_PCI}end\n",
        "meminfo": "MemTotal: 2113000000 kB\nMemAvailable: 2050000000 kB\nSwapTotal: 0 kB\n",
        "os-release": 'PRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
        "lscpu": "Model name: AMD EPYC 7763 64-Core Processor\nSocket(s): 2\nCPU(s): 256\n"
        "NUMA node(s): 8\n",
        "driver-module": MODULES.replace("535.161.08", driver),
        **SETUP,
        "sysctls": sysctls,
        "dmesg": _LOG + (_LOST if number == 11 else ""),
        "nvidia-smi": on_host(xml.replace("535.54.03", driver), number),
    }


def tuned(xml: str) -> str:
    """Undivided, and with the driver loaded all the time, as GPUs that train are."""
    xml = re.sub(r"<mig_devices>.*?</mig_devices>", "<mig_devices>None</mig_devices>", xml,
                 flags=re.DOTALL)  # fmt: skip
    xml = re.sub(r"(<(?:current|pending)_mig>)Enabled", r"\1Disabled", xml)
    return re.sub(r"(<persistence_mode>)Disabled", r"\1Enabled", xml)


def write() -> None:
    """Put the file in place."""
    with Writer(FILE, created_at=ASKED_AT) as writer:
        for raws in hosts():
            writer.write(raws)


if __name__ == "__main__":
    write()
