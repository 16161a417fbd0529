"""Records the runs: some 20 minutes on two cores, as `make packages` leaves a machine.

    python -m bench.labelled.record [told] [traces] [looks] [--only FAULT]

Each kind becomes an archive in bench/labelled/runs; what is named is made anew in it, the rest
stays.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.labelled.plans import Tried, tried

RUNS = Path(__file__).parent / "runs"
#: Steps of a rank that are profiled: the stall of a run is among them.
_FROM, _PROFILED = 30, 6
#: Of a run that is profiled one block is enough: what an archive holds is mostly operators.
_TRACED = {"layers": 1, "steps": 100}
#: What no reader of a trace asks for, and takes half of it.
_UNREAD = ("External id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id")
_LOOKED = {"steps": 1500}
#: What a step waits for, for most of its time.
_DEVICE_S = 0.04
_WARM_S, _LOOK_S = 1.5, 5.0
_MOST_S = 120.0
Files = dict[str, bytes]


def recorded(kind: str) -> Files:
    """The files of an archive, by name."""
    path = RUNS / f"{kind}.tar.xz"
    if not path.exists():
        return {}
    with tarfile.open(path) as archive:
        found = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        return {name: file.read() for name, file in found.items() if file}


def keep(kind: str, files: Files) -> None:
    """Sorted, without times and owners: the same runs make the same archive."""
    RUNS.mkdir(exist_ok=True)
    with tarfile.open(RUNS / f"{kind}.tar.xz", "w:xz", preset=9) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))


def _trained(one: Tried, folder: Path, how: str, **changes: Any) -> subprocess.Popen[bytes]:
    """This program again, as the harness of one run; its lines are in folder/told."""
    order = json.dumps({"plan": one.plan(**changes), "folder": str(folder), "how": how})
    return subprocess.Popen([sys.executable, "-m", "bench.labelled.record", "--run", order],
                            start_new_session=True, cwd=RUNS.parents[2])  # fmt: skip


def _told(one: Tried) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        _trained(one, Path(folder), "told").wait(_MOST_S)
        return {f"{one.name}.jsonl": Path(folder, "told").read_bytes()}


def _traces(one: Tried) -> Files:
    if not one.fault.traces:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        _trained(one, Path(folder), "traces", **_TRACED).wait(_MOST_S)
        return {f"{one.name}/{path.name}": _smaller(path) for path in Path(folder).glob("*.json")}


def _smaller(path: Path) -> bytes:
    trace = json.loads(path.read_bytes())
    trace["traceEvents"] = [one for one in trace["traceEvents"] if one.get("cat") != "fwdbwd"]
    for event in trace["traceEvents"]:
        for name in _UNREAD:
            event.get("args", {}).pop(name, None)
    return json.dumps(trace, separators=(",", ":")).encode()


def _looks(one: Tried) -> Files:
    """What a look at the harness' process and all below it tells, while it trains."""
    if not one.fault.look:
        return {}
    from preflight.ship import look_command

    changes = {"steps": 60} if one.fault.name == "stop" else _LOOKED
    with tempfile.TemporaryDirectory() as folder:
        run = _trained(one, Path(folder), "told", **changes)
        try:
            _await_steps(Path(folder, "told"))
            asked = look_command({"pids": [run.pid], "seconds": _LOOK_S}, (sys.executable,))
            done = subprocess.run(asked.argv, input=(asked.stdin or "").encode(),
                                  capture_output=True, timeout=60, check=False)  # fmt: skip
        finally:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    return {f"{one.name}.jsonl": _elsewhere(done.stdout)}


def _elsewhere(text: bytes) -> bytes:
    """Paths of frames as on some other machine."""
    for here, there in ((RUNS.parents[2], b"/home/ada/preflight"), (sys.prefix, b"/home/ada/venv"),
                        (sys.base_prefix, b"/usr")):  # fmt: skip
        text = text.replace(str(here).encode(), there)
    return text


def _await_steps(told: Path) -> None:
    """Until it trains, and a moment more."""
    until = time.monotonic() + _MOST_S
    while time.monotonic() < until and (not told.exists() or b'"step"' not in told.read_bytes()):
        time.sleep(0.2)
    time.sleep(_WARM_S)


def _run(plan: dict[str, Any], folder: Path, how: str) -> None:
    """In the process of the run: ranks are forked from it, so that what is put in their way here
    is there too."""
    from preflight.payload.training import inject, loop
    from preflight.payload.training.harness import harness
    from preflight.payload.training.plan import Plan

    if how == "traces":
        loop.train = partial(_profiled, loop.train, folder)
    else:
        inject.into = partial(_with_device, inject.into)
    with (folder / "told").open("w", encoding="utf-8") as file:
        harness(Plan(**plan), lambda line: print(json.dumps(line), file=file, flush=True))


def _with_device(into: Callable[..., None], run: Any, faults: dict[str, str]) -> None:
    """Four ranks that compute on two cores are held up by each other. So each waits for a device of
    its own for most of a step, as where there are GPUs."""
    before = run.before

    def both(step: int) -> None:
        before(step)
        time.sleep(_DEVICE_S)

    run.before = both
    into(run, faults)


def _profiled(train: Callable[..., Any], folder: Path, run: Any, state: Any, last: int) -> Any:
    from torch.profiler import ProfilerActivity, profile, schedule

    path = str(folder / f"rank{run.place.rank}.json")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=_FROM - 1, warmup=1, active=_PROFILED, repeat=1),
        on_trace_ready=lambda seen: seen.export_chrome_trace(path),
    ) as profiler:
        for step in train(run, state, min(last, _FROM + _PROFILED + 4)):
            yield step
            profiler.step()


_KINDS = {"told": _told, "traces": _traces, "looks": _looks}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.labelled.record")
    parser.add_argument("kinds", nargs="*", help=", ".join(_KINDS))
    parser.add_argument("--only", default="", help="a fault; none is without any")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        order = json.loads(asked.run)
        _run(order["plan"], Path(order["folder"]), order["how"])
        return 0
    for kind in asked.kinds or _KINDS:
        files = recorded(kind)
        for one in tried(asked.only):
            print(kind, one.name, flush=True)
            files |= _KINDS[kind](one)
        keep(kind, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
