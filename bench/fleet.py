"""Judging the captures of a whole cluster: seconds, memory, size of the report.

    python -m bench.fleet [--hosts 1000]

Each host has eight GPUs, about 300 kB of nvidia-smi's XML and 2,000 lines of kernel log; one host
in a hundred has lost a GPU. Three are unlike the others: an older driver, seven GPUs, another
VBIOS on one GPU.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from bench import inputs
from bench.programs import REPORTED, environment, installed
from bench.table import Row, show
from preflight.capture import Writer
from preflight.model import Raw

HOSTS = 1000
#: For HOSTS hosts on two cores.
SECONDS = 25.0
PEAK_BYTES = 300_000_000
REPORT_BYTES = 100_000_000
#: How often memory is looked at: the peak of a process that lives seconds, not milliseconds.
LOOK_EVERY_S = 0.05

#: Probe and command of each answer.
NVIDIA_SMI = ("nvidia-smi", ("nvidia-smi", "-q", "-x"))
DMESG = ("dmesg", ("dmesg", "--decode", "--time-format", "iso"))
LOST = (
    "kern  :err   : 2025-01-17T16:00:00,000000+00:00 NVRM: Xid (PCI:0000:47:00): 79, "
    "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
)


#: Numbers of the odd hosts -> what is replaced in their XML, once.
ODD = {
    203: (r"<driver_version>[^<]+", "<driver_version>535.54.03"),
    404: (r"<attached_gpus>8(.*)<gpu id=.*</gpu>", r"<attached_gpus>7\1"),
    605: (r"(<gpu id=\"00000000:4E:.*?<vbios_version>)[^<]+", r"\g<1>94.02.42.40.01"),
}
#: What must be told of them over the fleet, and nothing else.
ODD_TOLD = {
    ("fleet.driver.same", "node-0203"),
    ("fleet.gpu.listed.same", "node-0404"),
    ("fleet.gpu.vbios.same", "node-0605 gpu3"),
}


class Run(NamedTuple):
    """What one run of preflight took; `peak_bytes` is resident memory, children included."""

    elapsed_s: float
    peak_bytes: int
    rc: int
    stderr: str


def write_captures(folder: Path, hosts: int) -> None:
    """One capture file per host."""
    xml, log = inputs.large_xml(), inputs.kernel_log()
    for number in range(1, hosts + 1):
        name = f"node-{number:04}"
        lost = LOST if number % 100 == 7 else ""
        answers = {NVIDIA_SMI: odd(xml, number), DMESG: log + lost}
        with Writer(folder / f"{name}.capture.gz") as writer:
            writer.write(
                Raw(name, probe, argv, stdout=inputs.on_host(text, number))
                for (probe, argv), text in answers.items()
            )


def odd(xml: str, number: int) -> str:
    """The XML of one of the odd hosts; that of the others as it is."""
    if number not in ODD:
        return xml
    edited, times = re.subn(*ODD[number], xml, count=1, flags=re.DOTALL)
    if not times:
        sys.exit(f"error: the sample has nothing to plant in host {number}")
    return edited


def watched(argv: list[str], folder: Path) -> Run:
    """Run to the end, looking at the memory of the whole process tree meanwhile."""
    errors = folder / "stderr"
    begun, peak = time.perf_counter(), 0
    with errors.open("w") as stderr:
        process = psutil.Popen(argv, env=environment(), stdout=subprocess.DEVNULL, stderr=stderr)
        while process.poll() is None:
            peak = max(peak, tree_bytes(process))
            time.sleep(LOOK_EVERY_S)
    elapsed_s = time.perf_counter() - begun
    return Run(elapsed_s, peak, process.returncode, errors.read_text())


def tree_bytes(process: psutil.Process) -> int:
    """Resident memory of a process and its children; pages that they share count for each."""
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:
        pass  # ended between two looks
    return total


def check(run: Run, report: Path, hosts: int) -> None:
    """A measurement counts only if every host was judged and each lost GPU was seen."""
    if run.rc not in REPORTED:
        sys.exit(f"error: preflight exited with {run.rc}:\n{run.stderr.rstrip()}")
    told = msgspec.json.decode(report.read_bytes())
    unlike = {(one["check"], one["subject"]) for one in told["fleet"] if "action" in one}
    planted = {one for one in ODD_TOLD if int(one[1][5:9]) <= hosts}
    if unlike != planted:
        sys.exit(f"error: unlike the others are {sorted(planted)}, told {sorted(unlike)}")
    found = {one["host"]: one for one in told["hosts"]}
    unjudged = [name for name, one in found.items() if len(one["results"]) <= 10]
    if len(found) != hosts or unjudged:
        sys.exit(f"error: {len(found)} of {hosts} hosts reported, not judged: {unjudged[:5]}")
    missed = [name for name, one in found.items() if name[-2:] == "07" and one["verdict"] != "FAIL"]
    if missed:
        sys.exit(f"error: these lost a GPU and do not fail: {missed[:5]}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge the captures of a whole cluster.")
    parser.add_argument("--hosts", type=int, default=HOSTS)
    hosts: int = parser.parse_args().hosts
    program = str(installed())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        captures, report = folder / "captures", folder / "out.json"
        captures.mkdir()
        write_captures(captures, hosts)
        argv = [program, "gpu-health", "--from", str(captures)]
        run = watched([*argv, "--format", "json", "--save", str(report)], folder)
        check(run, report, hosts)
        size = report.stat().st_size
    rows = [
        Row("seconds", f"{run.elapsed_s:.1f}", f"{SECONDS:.0f}", run.elapsed_s <= SECONDS),
        megabytes("peak memory", run.peak_bytes, PEAK_BYTES),
        megabytes("size of the JSON", size, REPORT_BYTES),
    ]
    return show(f"Captures of {hosts} hosts judged by gpu-health", rows)


def megabytes(what: str, found: int, target: int) -> Row:
    return Row(what, f"{found / 1e6:.0f} MB", f"{target / 1e6:.0f} MB", found <= target)


if __name__ == "__main__":
    sys.exit(main())
