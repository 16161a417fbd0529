"""The payload as one .pyz, and the command that takes it to a target and runs it there.

It travels on the standard input of Python, within the one script that holds all questions, so that
every transport carries it and no copy has to be made first.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from preflight.errors import PreflightError
from preflight.model import Command
from preflight.units import format_bytes

_PAYLOAD = Path(__file__).resolve().parent / "payload"
_MAIN = b"from payload.main import main\n\nmain()\n"
#: What of the payload's folders each kind of work needs.
_TRAINING = ("group", "training")
_STRESS = (*_TRAINING, "stress")
_BENCH = ("group", "collectives", "locate", "wire")
_STORAGE = ("storage",)
_OBJECTS = ("storage", "objects")
_PROGRAMS = ("programs",)
_LOOK = ("look",)
_CHECKPOINTS = ("checkpoint",)
_FOLDERS = ("$TMPDIR", "/tmp", "/dev/shm", "$HOME/.cache")
#: Seconds that a watch takes at most beyond its duration: a driver that starts (30), a GPU that
#: falls silent at the end (10), the first question to the driver, Python. See payload/watch.py.
BEYOND_S = 60
#: The question that trains, and most seconds of it: three launches, the first with kernels to load.
TRAINS, TRAIN_S = "micro-train", 600
#: The same of one axis of a sweep: three launches of each setting, of seconds each.
SWEEP_S = 1800
#: The question that puts every device under load, and seconds that it takes at most beyond those of
#: its tests: drivers that start, kernels to load, one device after the other that says no more.
STRESSES, STRESS_BEYOND_S = "stress", 900
#: The question that times collectives, and most seconds of it: every size of every collective, and
#: on several hosts the search for a slow one; and of each variable whose values are compared.
BENCHES, BENCH_S, VARIABLE_S = "nccl-bench", 3600, 900
#: The question that writes and reads files, and seconds that it takes at most beyond those of its
#: jobs: each may lay files out or wait for a sync.
STORES, STORE_BEYOND_S = "io-bench", 300
#: The same of objects: each phase may wait for what is under way, and the removal takes a minute.
PUTS, PUT_BEYOND_S = "objects", 300
#: The question that decodes a file of the user's, and seconds that it takes at most beyond those of
#: its decoders: the file is read, and one that hangs is given up.
SHARDS, SHARD_BEYOND_S = "shard", 120
#: The question that reads checkpoints, and most seconds of it: 100 TB at a GB/s.
CHECKPOINTS, CHECKPOINTS_S = "checkpoint", 100_000
#: The questions that run a binary of nccl-tests, and most seconds of each: every size, and before
#: it the start of some thousand ranks.
TESTS, TESTS_S = "nccl-tests", 600
#: The question before it where several hosts train together: NVML starts a driver that sleeps.
SITE, SITE_S = "micro-train-site", 60
#: The question that looks at running processes, and seconds that it takes at most beyond those of
#: the look: a driver that starts or hangs, py-spy, NCCL's service.
LOOKS, LOOK_BEYOND_S = "look", 30
#: Samples of a GPU at most; a day is watched every 24 s.
_MOST_SAMPLES = 3600

#: Runs on a Python of any age, to say so where it is too old. The file has no name, or none any
#: more: whoever ends this process, and however, leaves nothing behind.
_LAUNCH = """\
import sys
if sys.version_info < (3, 9):
    sys.stderr.write("Python 3.9 or later is needed, this is %s; name another: --python\\n"
                     % sys.version.split()[0])
    sys.exit(4)
import base64, hashlib, os, runpy, tempfile
DATA = base64.b64decode("{data}")
refused = []
for folder in {folders}:
    try:
        with tempfile.TemporaryFile(dir=os.path.expandvars(folder)) as file:
            file.write(DATA)
            file.seek(0)
            if hashlib.sha256(file.read()).hexdigest() == "{digest}":
                sys.argv[0] = "/proc/self/fd/%d" % file.fileno()
                runpy.run_path(sys.argv[0], run_name="__main__")
                break
        refused.append("%s: what was read back differs" % folder)
    except OSError as error:
        refused.append("%s: %s" % (folder, error.strerror))
else:
    sys.stderr.write("no folder takes the payload: %s\\n" % "; ".join(refused))
    sys.exit(4)
"""


@cache
def pyz(*parts: str) -> bytes:
    """The payload and nvidia-ml-py's single file; the same bytes for the same sources. Of its
    folders those that the question needs: who only looks carries nothing that trains.

    Raises PreflightError where nvidia-ml-py is not installed.
    """
    files = {"__main__.py": _MAIN, "pynvml.py": _pynvml().read_bytes()}
    files |= {
        f"payload/{path.relative_to(_PAYLOAD).as_posix()}": path.read_bytes()
        for folder in (_PAYLOAD, *(_PAYLOAD / part for part in parts))
        for path in folder.glob("*.py")
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = 0o100600 << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()


def _pynvml() -> Path:
    spec = find_spec("pynvml")
    if spec is None or spec.origin is None or not spec.origin.endswith("pynvml.py"):
        raise PreflightError(
            "watching GPUs needs the module pynvml of nvidia-ml-py, and it is not here",
            "pip uninstall -y pynvml; pip install --force-reinstall nvidia-ml-py",
        )
    return Path(spec.origin)


def watch_command(seconds: float, python: tuple[str, ...] = ("python3",)) -> Command:
    """The question that watches all GPUs for so many seconds. `python` starts Python there."""
    # Five looks at least, one a second at most, and so few that they fit into memory.
    interval_s = max(min(1.0, seconds / 5), seconds / _MOST_SAMPLES)
    words = ("watch", "--seconds", f"{seconds:g}", "--interval", f"{interval_s:g}")
    return Command(
        "watch",
        _argv(python, *words),
        timeout_s=int(seconds) + BEYOND_S,
        stdin=_launch(pyz()),
        waits_for="driver",
        note=f"{seconds:g} s; {_shipped(pyz())}",
    )


def train_command(
    plan: Mapping[str, Any], python: tuple[str, ...] = ("python3",), note: str = ""
) -> Command:
    """The question that trains by this plan (payload/training/plan.py). `note`: what it takes."""
    return Command(
        TRAINS,
        _argv(python, "train", "--plan", _json(plan)),
        timeout_s=SWEEP_S * len(plan["sweep"]) if plan.get("sweep") else TRAIN_S,
        stdin=_launch(pyz(*_TRAINING)),
        note="; ".join(filter(None, (note, _shipped(pyz(*_TRAINING))))),
    )


def stress_command(
    plan: Mapping[str, Any], seconds: float, python: tuple[str, ...] = ("python3",), note: str = ""
) -> Command:
    """The question that puts devices under load by this plan (payload/stress/plan.py), for about so
    many seconds. `note`: what it takes."""
    return Command(
        STRESSES,
        _argv(python, "stress", "--plan", _json(plan)),
        timeout_s=int(seconds) + STRESS_BEYOND_S,
        stdin=_launch(pyz(*_STRESS)),
        note="; ".join(filter(None, (note, _shipped(pyz(*_STRESS))))),
    )


def bench_command(
    plan: Mapping[str, Any], python: tuple[str, ...] = ("python3",), note: str = ""
) -> Command:
    """The question that times collectives by this plan (payload/collectives/plan.py)."""
    return Command(
        BENCHES,
        _argv(python, "bench", "--plan", _json(plan)),
        timeout_s=BENCH_S + VARIABLE_S * len(plan.get("sweep", ())) + int(plan.get("lasting_s", 0)),
        stdin=_launch(pyz(*_BENCH)),
        note="; ".join(filter(None, (note, _shipped(pyz(*_BENCH))))),
    )


def store_command(
    plan: Mapping[str, Any], seconds: float, python: tuple[str, ...] = ("python3",), note: str = ""
) -> Command:
    """The question that writes and reads files by this plan (payload/storage/plan.py), for about so
    many seconds."""
    return Command(
        STORES,
        _argv(python, "io", "--plan", _json(plan)),
        timeout_s=int(seconds) + STORE_BEYOND_S,
        stdin=_launch(pyz(*_STORAGE)),
        note="; ".join(filter(None, (note, _shipped(pyz(*_STORAGE))))),
    )


def objects_command(
    plan: Mapping[str, Any], seconds: float, python: tuple[str, ...] = ("python3",), note: str = ""
) -> Command:
    """The question that puts and gets objects by this plan (payload/objects/plan.py), for about so
    many seconds."""
    return Command(
        PUTS,
        _argv(python, "objects", "--plan", _json(plan)),
        timeout_s=int(seconds) + PUT_BEYOND_S,
        stdin=_launch(pyz(*_OBJECTS)),
        note="; ".join(filter(None, (note, _shipped(pyz(*_OBJECTS))))),
    )


def shard_command(plan: Mapping[str, Any], python: tuple[str, ...] = ("python3",)) -> Command:
    """The question that decodes a file by this plan (payload/storage/shard.py)."""
    took_s = int(plan["seconds"])
    note = f"reads at most 64 MiB of {plan['path']}; about {took_s} s"
    return Command(
        SHARDS,
        _argv(python, "shard", "--plan", _json(plan)),
        timeout_s=took_s + SHARD_BEYOND_S,
        stdin=_launch(pyz(*_STORAGE)),
        note=f"{note}; {_shipped(pyz(*_STORAGE))}",
    )


def checkpoint_command(plan: Mapping[str, Any], python: tuple[str, ...] = ("python3",)) -> Command:
    """The question what lies in checkpoints (payload/checkpoint/plan.py)."""
    note = f"reads every file below {', '.join(plan['paths'])}, writes none"
    return Command(
        CHECKPOINTS,
        _argv(python, "checkpoint", "--plan", _json(plan)),
        timeout_s=CHECKPOINTS_S,
        max_bytes=200 << 20,
        stdin=_launch(pyz(*_CHECKPOINTS)),
        note=f"{note}; {_shipped(pyz(*_CHECKPOINTS))}",
    )


def program_command(
    probe: str, argv: tuple[str, ...], python: tuple[str, ...] = ("python3",), job: str = "",
    *, even_if_busy: bool = False,
) -> Command:  # fmt: skip
    """The question that runs a program of the host's own, as active work (payload/programs)."""
    words = ("program", *(("--job", job) if job else ()),
             *(("--even-if-busy",) if even_if_busy else ()))  # fmt: skip
    return Command(
        probe, _argv(python, *words, *argv), timeout_s=TESTS_S, stdin=_launch(pyz(*_PROGRAMS)),
        waits_for=TESTS, note=_shipped(pyz(*_PROGRAMS)),
    )  # fmt: skip


def site_command(plan: Mapping[str, Any], python: tuple[str, ...] = ("python3",)) -> Command:
    """The question what a host has for a job over several."""
    argv = _argv(python, "site", "--plan", _json(plan))
    data = pyz(*_PROGRAMS) if plan.get("tests") else pyz()
    return Command(SITE, argv, timeout_s=SITE_S, stdin=_launch(data), note=_shipped(data))


def look_command(plan: Mapping[str, Any], python: tuple[str, ...] = ("python3",)) -> Command:
    """The question that looks at running processes by this plan (payload/look/look.py)."""
    return Command(
        LOOKS,
        _argv(python, "look", "--plan", _json(plan)),
        timeout_s=int(plan["seconds"]) + LOOK_BEYOND_S,
        stdin=_launch(pyz(*_LOOK)),
        note=f"about {plan['seconds']:g} s; only looks; {_shipped(pyz(*_LOOK))}",
    )


def _json(plan: Mapping[str, Any]) -> str:
    return json.dumps(plan, separators=(",", ":"))


def _argv(python: tuple[str, ...], *words: str) -> tuple[str, ...]:
    # -I: neither the working directory nor the user's own modules get in the way.
    return (*python, "-I", "-", *words)


def _launch(data: bytes) -> str:
    return _LAUNCH.format(
        data=base64.b64encode(data).decode(),
        digest=hashlib.sha256(data).hexdigest(),
        folders=repr(_FOLDERS),
    )


def _shipped(data: bytes) -> str:
    places = ", ".join(_FOLDERS)
    return f"{format_bytes(len(data))} are put into the first of {places} that takes them, nameless"
