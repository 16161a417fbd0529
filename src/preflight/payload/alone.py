"""Active work never competes: one at a time on a host, and only on GPUs that hold nobody's work."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import time
from typing import Any

#: One for all users of the host. The kernel lets go of it when the last process that has it open
#: ends, however that ends.
LOCK = "/tmp/preflight-active.lock"
#: A GPU that is in use for more than this, in percent, is somebody's.
_IN_USE_PERCENT = 5
_LOOK_AGAIN_S, _TRIES = 0.2, 3


def others(job: str, *, gpus: bool, even_if_busy: bool) -> str:
    """Who works here, in a sentence; "" where nobody does, and then the host is ours until this
    process and those forked from it have ended. `job`: what tells our own processes on it."""
    holder = _locked(job)
    if holder or even_if_busy or not gpus:
        return holder
    told = "; ".join(busy_gpus())
    return told and f"{told}; --even-if-busy runs beside it"


def _locked(job: str) -> str:
    path = os.environ.get("PREFLIGHT_LOCK") or LOCK
    try:
        fd = _opened(path)
    except OSError:
        return ""  # there is no place for it: a root file system that is read only
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = _holder_of(fd)
        else:
            return ""
        if pid:
            break
        time.sleep(_LOOK_AGAIN_S)  # it ended in between, or is not to be seen from here
    os.close(fd)
    ours = job and job in _command_line(pid)
    return "" if ours else f"active work of preflight holds {path}: {_process(pid)}"


def _opened(path: str) -> int:
    """Where the directory is sticky the kernel may refuse O_CREAT on the file of another user."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_CREAT, 0o644)
    except PermissionError:
        return os.open(path, flags)
    with contextlib.suppress(OSError):
        os.fchmod(fd, 0o644)  # whatever the umask says: others take the lock by reading
    return fd


def _holder_of(fd: int) -> int:
    """The process that has the lock, by the kernel's table; 0 where it does not tell."""
    inode = str(os.fstat(fd).st_ino)
    with contextlib.suppress(OSError), open("/proc/locks", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            words = line.split()
            if "FLOCK" in words and "->" not in words and words[-3].endswith(f":{inode}"):
                return int(words[-4])
    return 0


def _process(pid: int) -> str:
    """`process 4711 (alice)`."""
    if not pid:
        return "a process that this one cannot see"
    try:
        owner = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
    except OSError:
        return f"process {pid}"
    try:
        return f"process {pid} ({pwd.getpwuid(owner).pw_name})"
    except KeyError:
        return f"process {pid} (user {owner})"


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def visible_gpus() -> list[Any]:
    """NVML's handles of the GPUs that CUDA_VISIBLE_DEVICES grants, each with its number; none
    where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [
            (number, pynvml.nvmlDeviceGetHandleByIndex(number))
            for number in range(pynvml.nvmlDeviceGetCount())
        ]
    except pynvml.NVMLError:
        return []
    granted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if granted is None:
        return handles
    names = [name.strip() for name in granted.split(",")]
    return [one for one in handles if _is_granted(one, names)]


def _is_granted(numbered: tuple[int, Any], names: list[str]) -> bool:
    import pynvml

    number, handle = numbered
    uuid = ""
    with contextlib.suppress(pynvml.NVMLError):
        uuid = str(pynvml.nvmlDeviceGetUUID(handle))
    return any(name == str(number) or (name and uuid.startswith(name)) for name in names)


def busy_gpus() -> list[str]:
    """A piece of a sentence for each visible GPU that somebody uses."""
    return [told for number, handle in visible_gpus() if (told := _use_of(number, handle))]


def _use_of(number: int, handle: Any) -> str:
    import pynvml

    # Older libraries lack the function under the name that pynvml asks for.
    with contextlib.suppress(pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):
        held = [_held(one) for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
        if held:
            return f"GPU {number} holds {', '.join(held)}"
    with contextlib.suppress(pynvml.NVMLError):
        least = min(_looks(handle))
        if least > _IN_USE_PERCENT:
            return f"GPU {number} is {least} % in use, by a process that is not seen from here"
    return ""


def _held(process: Any) -> str:
    used = process.usedGpuMemory
    memory = f", {used / 1e9:.1f} GB" if isinstance(used, int) else ""
    return f"{_process(process.pid)}{memory}"


def _looks(handle: Any) -> list[int]:
    """Two looks: the first may see the end of what was."""
    import pynvml

    first = int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    if first <= _IN_USE_PERCENT:
        return [first]
    time.sleep(_LOOK_AGAIN_S)
    return [first, int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)]
