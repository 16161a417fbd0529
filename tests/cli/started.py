"""The command as a copy of a process that has read its modules: as `preflight` it is run hundreds
of times here, and reading them is the larger part of it.

Each run is a process of its own, with its own arguments, streams, environment and folder; nothing
but the modules is there from before. What a variable asks of Python or of the loader is asked
before that: such a run is no copy, which `alike` tells.
"""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

#: Variables that are looked at before a module of preflight runs.
_EARLY = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "TYPER_", "TERMINAL_WIDTH", "FORCE_COLOR", "MALLOC")
#: One run may take so long; then its alarm ends it.
_LIMIT_S = 120
#: A request is one message: the environment is most of it.
_REQUEST_BYTES = 1 << 20


class Started:
    """This end: the process is there until the tests end, and so is the socket."""

    def __init__(self) -> None:
        self._early = early(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST_BYTES)
        self._socket.settimeout(_LIMIT_S + 10)
        # Pipes, as what a run gets: whether a stream can be sought is asked once, at its start.
        pipes = [os.pipe() for _ in range(3)]
        self._stdin, self._said = pipes[0][1], pipes[2][0]
        # Nobody's child: tests look at the children of their own process.
        subprocess.run(
            [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()],
            stdin=pipes[0][0], stdout=pipes[1][1], stderr=pipes[2][1], check=True,
        )  # fmt: skip
        theirs.close()
        for fd in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(fd)
        atexit.register(self._end)

    def alike(self, env: Mapping[str, str]) -> bool:
        """Whether a run in this environment would begin as the process did."""
        return early(env) == self._early

    def run(
        self, argv: Sequence[str], streams: Sequence[int], env: Mapping[str, str], cwd: Path
    ) -> int:
        """The exit status of the command with these arguments and streams, once it has ended."""
        asked = json.dumps({"argv": list(argv), "env": dict(env), "cwd": str(cwd)})
        socket.send_fds(self._socket, [asked.encode("utf-8", "surrogateescape")], streams)
        try:
            status = self._socket.recv(16)
        except TimeoutError:
            self._socket.close()  # what comes late is no answer to the next request
            raise
        if not status:
            raise RuntimeError(f"the process to copy has ended: {self._end()}")
        return int(status)

    def _end(self) -> str:
        """What it said, if anything."""
        self._socket.close()
        with os.fdopen(self._said, encoding="utf-8", errors="replace") as said:
            return said.read()


def early(env: Mapping[str, str]) -> dict[str, str]:
    """What of an environment is looked at that early."""
    return {name: value for name, value in env.items() if name.startswith(_EARLY)}


@cache
def started() -> Started:
    """The process of this worker."""
    return Started()


def serve(requests: socket.socket) -> Mapping[str, Any] | None:
    """Answer each request with its exit status. In a copy: the request, taken as its own."""
    while True:
        asked, streams, *_ = socket.recv_fds(requests, _REQUEST_BYTES, 3)
        if not asked:
            return None
        pid = os.fork()
        if pid == 0:
            requests.close()
            return _become(json.loads(asked), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(pid, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(asked: dict[str, Any], streams: Sequence[int]) -> Mapping[str, Any]:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.alarm(_LIMIT_S)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    return asked


def _read_modules() -> None:
    import preflight

    for found in pkgutil.walk_packages(preflight.__path__, "preflight."):
        # What is sent to hosts is run there; the entry would run.
        if not found.name.startswith(("preflight.payload", "preflight.__main__")):
            import_module(found.name)


def main() -> None:
    """The other end."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    if os.fork():
        os._exit(0)
    _read_modules()
    asked = serve(requests)
    if asked is None:
        return
    from preflight.__main__ import main as command

    sys.argv = asked["argv"]
    try:
        command()
    except SystemExit as ended:
        _end(int(ended.code or 0))


def _end(status: int) -> None:
    """All that Python does at its end, save for taking its modules apart: that is to copy them."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
