"""Who computes on the GPUs: one line for the host, however many processes there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from preflight.facts.gpu import Gpu, Process
from preflight.facts.host import Host
from preflight.judge.results import result, undetermined
from preflight.model import STATUS_OF_MISSING, Check, Evidence, Missing, Result, Status
from preflight.nodesets import fold

_NOTHING = "no compute process"
#: As nvidia-smi writes them: C computes, M+C computes through MPS. What draws as well (C+G) belongs
#: to a desktop.
_COMPUTE = ("C", "M+C")
_SHOWN = 3  # process ids of one program
_IN_CONTAINER = Missing("not-applicable", "in a container the processes of others cannot be seen")
_RECORDED = "whether it should be there is told on the host only: by a live run or a capture of it"


class _Program(Struct):
    """All processes of one name."""

    gpus: list[str] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    memory_bytes: int = 0


def judge_gpu_processes(host: Host, checks: Sequence[Check]) -> list[Result]:
    """A GPU that is in use is no fault, but a job that starts on it runs out of memory or waits."""
    return [_judge(host, check) for check in checks]


def _judge(host: Host, check: Check) -> Result:
    if isinstance(host.gpus, Missing):
        return undetermined(check, host.name, host.gpus)
    allowed = (check.warn_unless or check.fail_unless)["subset_of"]
    programs: dict[str, _Program] = {}
    first: Gpu | None = None
    for gpu, process in _computing(host.gpus):
        if _program(process) not in allowed:
            first = first or gpu
            _add(programs.setdefault(_program(process), _Program()), gpu, process)
    if first is not None:
        return _in_use(host, check, programs, first)
    missing = _not_seen(host)
    if missing is not None:
        return undetermined(check, host.name, missing)
    return result(check, host.name, Status.PASS, "none", _NOTHING)


def _computing(gpus: Sequence[Gpu]) -> Iterator[tuple[Gpu, Process]]:
    for gpu in gpus:
        for process in () if isinstance(gpu.processes, Missing) else gpu.processes:
            if process.kind in _COMPUTE:
                yield gpu, process


def _program(process: Process) -> str:
    """The program's file name: "python" of "/usr/bin/python", of "...py312/bin/python"."""
    name = "" if isinstance(process.name, Missing) else process.name.strip()
    if name.startswith("["):  # a process that names itself: [celeryd: worker ...]
        return name[:40]
    return name.partition(" ")[0].replace("\\", "/").rpartition("/")[2] or "a process"


def _add(program: _Program, gpu: Gpu, process: Process) -> None:
    program.gpus += [] if gpu.name in program.gpus else [gpu.name]
    program.pids += [] if process.pid in program.pids else [process.pid]
    held = process.memory_bytes
    program.memory_bytes += 0 if isinstance(held, Missing) else held


def _in_use(host: Host, check: Check, programs: dict[str, _Program], first: Gpu) -> Result:
    measured = "in use: " + "; ".join(_told(name, program) for name, program in programs.items())
    known = not isinstance(host.identity, Missing) or check.row.get("stated")
    if not known:
        return result(check, host.name, Status.SKIP, measured, _NOTHING, reason=_RECORDED)
    status = Status.FAIL if check.fail_unless else Status.WARN
    evidence = (Evidence(first.probe, line=first.line, field="processes"),)
    return result(check, host.name, status, measured, _NOTHING, evidence=evidence)


def _told(name: str, program: _Program) -> str:
    more = len(program.pids) - _SHOWN
    pids = ", ".join(map(str, program.pids[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    memory = f"{program.memory_bytes >> 20} MiB" if program.memory_bytes else "memory unknown"
    return f"{name} (pid {pids}) holds {memory} on {fold(program.gpus)}"


def _not_seen(host: Host) -> Missing | None:
    """Why processes may be there and unseen; what should be readable and is not counts first."""
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    gone = [gpu.processes for gpu in gpus if isinstance(gpu.processes, Missing)]
    error = next((one for one in gone if STATUS_OF_MISSING[one.kind] is Status.ERROR), None)
    if error is None and isinstance(host.container, str) and host.container != "none":
        return _IN_CONTAINER
    return error or (gone[0] if gone else None)
