"""Where mutations begin: real outputs, cut so that one is read in about two milliseconds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fuzz.targets import Target
from preflight import capture
from preflight.errors import PreflightError
from preflight.model import Raw
from preflight.recognise import recognise
from tests.written import WRITTEN as IN_TESTS

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "tests" / "samples"
#: A seed is cut to so many characters, which a parser reads in about two milliseconds: a million
#: inputs are to take minutes. By size and not by the clock: the same seed gives the same inputs.
MAX_CHARS = 8_000
#: YAML costs more.
MAX_CHARS_OF = {"strict_yaml": 2_000, "error texts": 4_000}
#: Seeds of one target: as many as differ, and not so many that each is mutated only a few times.
MOST = 24

#: Answers of questions that no sample holds, as the questions print them.
WRITTEN: dict[str, tuple[str, ...]] = {
    "identity": (
        "hostname node-07\nkernel 5.15.0-91-generic\nboot_id 0f3c1c2e-0000-4000-8000-000000000001\n"
        "date 2026-01-02T03:04:05Z\nuptime 880.10 160000.00\nuid 1000\ncontainer_file /.dockerenv\n"
        "device_node /dev/nvidia0\ndevice_node /dev/nvidia1\n"
        "allocation NVIDIA_VISIBLE_DEVICES 0,3\n",
    ),
    "pci": (
        "0000:1b:00.0 0x030200 0x10de 0x2330 nvidia\n0000:43:00.0 0x030200 0x10de 0x2330 \n"
        "0000:05:00.0 0x068000 0x10de 0x22a3 \nend\n",
    ),
    "meminfo": (
        "MemTotal:       2113515776 kB\nMemFree:        1903515776 kB\n"
        "MemAvailable:   2003515776 kB\n"
        "SwapTotal:               0 kB\nHugePages_Total:       0\n",
    ),
    "os-release": ('PRETTY_NAME="Ubuntu 22.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="22.04"\n',),
    "flight recorder": (
        '{"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": '
        '"[0, 1]"}}, "pg_status": {"0": {"last_enqueued_collective": 9, '
        '"last_started_collective": 9, "last_completed_collective": 8}}, "entries": [{"record_id": '
        '9, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 9, "p2p_seq_id":'
        ' 0, "op_id": 9, "profiling_name": "nccl:all_reduce", "time_created_ns": 1758610505, '
        '"input_sizes": [[8, 4]], "input_dtypes": ["Float"], "state": "scheduled", "frames": '
        '[{"name": "step", "filename": "train.py", "line": 7}]}]}',
    ),
    "site probe": ("used: 87.5 %\nfree\n", "-1.5e9\n", ""),
    "strict_yaml": (
        "- id: a.b\n  title: T\n  fact: gpus[*].pcie.width\n  where: {.vgpu: false}\n"
        "  fail_unless: {min: {bound: pcie_copy_gbps, fraction: 0.85}}\n  fix: ['a', \"b\"]\n",
        "a: &x [1, 2]\nb: *x\n",
        "probes: [{id: site.x, argv: [df, /scratch], timeout_s: 10}]\n",
    ),
}

_MESSAGES = (
    "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:1b:00): 94, pid=4242, name=python3, Contained: CE User Channel. RST: No",
    "nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
    "mlx5_core 0000:9d:00.1: Port module event: module 1, Cable unplugged",
    "pcieport 0000:1a:01.0: AER: Corrected error message received from 0000:1b:00.0",
)


def _log_forms() -> Iterator[str]:
    """The same messages in each form that a line of a kernel log has."""
    stamp, micros = "2026-01-02T03:04:05.678901+00:00", "1767323045678901"
    forms = (
        "[12345.678901] {}", "<4>[12345.678901] {}", "[Fri Jan  2 03:04:05 2026] {}",
        "kern  :err   : [12345.678901] {}", "2026-01-02T03:04:05,678901+00:00 {}",
        stamp + " node-07 kernel: {}", "Jan  2 03:04:05 node-07 kernel: {}",
        "Jan  2 03:04:05 node-07 kernel: [12345.678901] {}", "3,1234,12345678901,-;{}", "{}",
        "<3>1 " + stamp + " node-07 kernel - - - {}",
    )  # fmt: skip
    for form in forms:
        yield "".join(form.format(message) + "\n" for message in _MESSAGES)
    entry = {"__REALTIME_TIMESTAMP": micros, "_TRANSPORT": "kernel", "PRIORITY": "3"}
    yield "".join(json.dumps({**entry, "MESSAGE": message}) + "\n" for message in _MESSAGES)


@cache
def texts() -> tuple[tuple[str, str, tuple[Raw, ...]], ...]:
    """Every sample that is text: its name, its text, and what it is recognised as."""
    found = []
    for path in sorted(each for each in SAMPLES.rglob("*") if each.is_file()):
        data = path.read_bytes()
        if b"\0" in data or data.startswith(b"\x1f\x8b"):
            continue
        try:
            raws = tuple(recognise(data, path.name))
        except PreflightError:
            raws = ()
        found.append((str(path.relative_to(SAMPLES)), data.decode(errors="replace"), raws))
    return tuple(found)


@cache
def seeds(target: Target) -> list[str]:
    """What belongs to the target: recognised as its tool's, written above, or taken by it."""
    wanted = [*WRITTEN.get(target.name, ()), *IN_TESTS.get(target.name, ())]
    if target.name in ("kernel-log", "dmesg", "journalctl", "recognise"):
        wanted += _log_forms()
    if target.name == "capture":
        wanted += _captures()
    if target.name == "strict_yaml":
        wanted += [path.read_text(encoding="utf-8") for path in ROOT.glob("checks/**/*.yaml")]
    if target.name == "site probe":
        wanted += [text for _, text, _ in texts()[::10]]
    if not WRITTEN.get(target.name):
        wanted += _of_samples(target)
    cut = dict.fromkeys(_shortened(text, target) for text in wanted)
    return _spread(list(cut)) or foreign(target)


def foreign(target: Target) -> list[str]:
    """Texts of other tools, of which every parser must say that they are not its own."""
    return [_shortened(text, target) for _, text, _ in texts()[:: max(len(texts()) // 5, 1)]]


def _of_samples(target: Target) -> Iterator[str]:
    for _, text, raws in texts():
        own = [str(raw.stdout) for raw in raws if raw.probe == target.name]
        if own:
            yield from own
        elif target.name in ("recognise", "error texts") or _takes(target, text):
            yield text


def _takes(target: Target, text: str) -> bool:
    try:
        target.read(text)
    except PreflightError:
        return False
    return True


def _captures() -> Iterator[str]:
    header = capture.Header(capture.SCHEMA, "0.1.0", "2026-01-02T03:04:05Z", ("capture",), True)
    raws = [
        Raw("node-07", "identity", ("sh",), stdout=WRITTEN["identity"][0]),
        Raw("node-07", "dmesg", ("dmesg",), rc=1, stdout=b"\xff\xfe", stderr="denied"),
    ]
    head = json.dumps({name: getattr(header, name) for name in header.__struct_fields__})
    lines = "".join(capture.encode(raw).decode() for raw in raws)
    yield f'{head}\n{lines}{{"answers": 2}}\n'
    yield f"{head}\n{lines}"


#: Where a device begins in a report of many; what lies beyond the second adds time and no forms.
_DEVICE = re.compile(r"^(?:GPU [\dA-Fa-f:.]{7,}|[ \t]*<gpu id=|CA '|GPU \d+: )", re.MULTILINE)
#: Lines of a log that say something.
_TELLS = re.compile(r"NVRM|Xid|mlx5|AER|Hardware Error|nvme|Linux version|segfault|blocked|Link")


def _shortened(text: str, target: Target) -> str:
    most = MAX_CHARS_OF.get(target.name, MAX_CHARS)
    begins = [match.start() for match in _DEVICE.finditer(text)]
    if len(begins) > 2:
        closes = "</nvidia_smi_log>\n" if "</nvidia_smi_log>" in text else ""
        text = text[: begins[2]] + closes
    while len(text) > most:
        lines = text.splitlines(keepends=True)
        if len(lines) < 20:
            return text[:most]
        step = max(len(lines) // 8, 1)
        telling = [number for number, line in enumerate(lines) if _TELLS.search(line)]
        middle = telling[len(telling) // 2] if telling else len(lines) // 2
        # A part from the end or the beginning, whichever is farther from what tells something.
        text = "".join(lines[:-step] if middle < len(lines) * 0.75 else lines[step:])
    return text


def _spread(found: list[str]) -> list[str]:
    """At most MOST, from all over the list."""
    return found if len(found) <= MOST else [found[i * len(found) // MOST] for i in range(MOST)]
