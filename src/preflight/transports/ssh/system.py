"""The system's ssh command: for sites with Kerberos, smart cards, certificates, or multiplexing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from typing import BinaryIO

from msgspec import Struct

from preflight.errors import UsageError
from preflight.faults import fault
from preflight.hostlists import Target
from preflight.model import Missing
from preflight.transports.conversation import ERR, OUT

#: What ssh says on its standard error (OpenSSH 7 to 9) and what that is; the first that fits.
_SAYS = (
    (r"stdio forwarding failed|UNKNOWN port", "proxy"),
    (r"channel \d+: open failed", "no-session"),
    (r"Could not resolve hostname", "name-unknown"),
    (r"timed out during banner exchange|banner exchange: Connection", "no-banner"),
    (r"Connection refused", "refused"),
    (r"No route to host|Network is unreachable", "no-route"),
    (r"timed out", "no-answer"),
    (
        r"HOST IDENTIFICATION HAS CHANGED|REVOKED HOST KEY|is revoked|revoked host key",
        "host-key-changed",
    ),
    (r"Host key verification failed|host key is known", "host-key-unknown"),
    (r"Permission denied|Too many authentication failures", "denied"),
    (r"Unable to negotiate|no matching", "key-exchange"),
    (r"client_loop: send disconnect|Broken pipe|lost connection", "died"),
)

#: Characters of what ssh says that are told.
_SHOWN = 240


class SystemSsh(Struct, frozen=True):
    """The way to hosts by a process of ssh for each."""

    targets: dict[str, Target]
    accept_new: bool = False

    def open(self, host: str, script: bytes, phase: Callable[[str], None]) -> SshProcess:
        """Start ssh; it may still have to connect when this returns."""
        phase("login")
        target = self.targets[host]
        options = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=INFO"]
        options += _plain_session()
        if self.accept_new:
            options += ["-o", "StrictHostKeyChecking=accept-new"]
        options += ["-l", target.user] if target.user else []
        options += ["-p", str(target.port)] if target.port else []
        # The script lies in memory: a pipe would have to be fed while ssh connects.
        with _in_memory(script) as stdin:
            process = subprocess.Popen(
                ["ssh", *options, "--", target.host, "/bin/sh -s"],
                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us to tell
            )  # fmt: skip
        return SshProcess(process)


class SshProcess:
    """One ssh."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout and process.stderr
        self._process = process
        self._streams = {process.stdout.fileno(): OUT, process.stderr.fileno(): ERR}
        for fileno in self._streams:
            os.set_blocking(fileno, False)

    def filenos(self) -> Sequence[int]:
        """Its two pipes."""
        return tuple(self._streams)

    def read(self, fileno: int) -> Sequence[tuple[int, bytes]]:
        """What is there of one of them."""
        try:
            return [(self._streams[fileno], os.read(fileno, 1 << 16))]
        except BlockingIOError:
            return []

    def ended(self, begun: bool, said: str) -> Missing:
        """What ssh said, as a fault."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        if begun:
            return fault("died", "the connection broke off")
        if self._process.returncode != 255:
            return fault("no-shell", f"it ended without running it, and said: {said or 'nothing'}")
        if not said:  # it tells of all else that goes wrong
            return fault("no-session", "ssh ended without a word, as where no session is opened")
        name = next((name for words, name in _SAYS if re.search(words, said)), "failed")
        return fault(name, f"ssh says: {_shown(said)}")

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self._process.terminate()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()


def _shown(said: str) -> str:
    """The end, which tells why: not a login banner, nor the frame of @ around a changed key."""
    words = " ".join(re.sub(r"@{3,}", "", said).replace(" @ ", " ").split())
    return words if len(words) <= _SHOWN else f"... {words[-_SHOWN:].lstrip()}"


def make(targets: Sequence[Target], *, accept_new: bool = False) -> SystemSsh:
    """The way to these hosts. Raises UsageError where there is no ssh."""
    if shutil.which("ssh") is None:
        raise UsageError("--ssh system: there is no ssh in PATH", "leave --ssh out")
    return SystemSsh({target.name: target for target in targets}, accept_new)


@cache
def _plain_session() -> list[str]:
    """What undoes a configuration of another kind of session, as far as this ssh knows it."""
    told = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", told)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    options = ["RemoteCommand=none"] if version >= (7, 6) else []
    options += ["SessionType=default", "StdinNull=no"] if version >= (8, 7) else []
    return [word for option in options for word in ("-o", option)]


def _in_memory(script: bytes) -> BinaryIO:
    file: BinaryIO = os.fdopen(os.memfd_create("preflight"), "w+b")
    file.write(script)
    file.seek(0)
    return file
