"""What goes wrong on the way to a host by SSH, each as a fault and a sentence."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import paramiko
from paramiko.auth_strategy import AuthFailure

from preflight.transports.ssh.known_hosts import KnownKey
from preflight.transports.ways import Unreached

#: By errno; all others are told with the system's own words.
_ERRNO = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no-route",
    errno.ENETUNREACH: "no-route",
    errno.EADDRNOTAVAIL: "no-route",
    errno.ETIMEDOUT: "no-answer",
    errno.EHOSTDOWN: "no-answer",
}

#: After so long without the other side's keys paramiko ends the connection itself, and tells of it
#: as if the other side had (Packetizer.read_all).
_HANDSHAKE_S = 15.0

#: Characters of what a server says that are told.
_SHOWN = 240


class UnknownKey(paramiko.SSHException):  # type: ignore[misc]
    """The host's key stands in no known_hosts file."""


class RevokedKey(paramiko.SSHException):  # type: ignore[misc]
    """known_hosts says that nobody may show this key any more."""


class KeyPolicy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """What to do with a host that has no line in known_hosts: refuse, or write one."""

    def __init__(
        self, name: str, lines: Sequence[KnownKey], file: Path, accept: bool,
        lock: AbstractContextManager[object],
    ) -> None:  # fmt: skip
        self._name, self._lines, self._file = name, lines, file
        self._accept, self._lock = accept, lock

    def missing_host_key(
        self, _client: paramiko.SSHClient, _hostname: str, key: paramiko.PKey
    ) -> None:
        """Raises UnknownKey; with leave to accept, writes the key down."""
        by_authority = next((one for one in self._lines if one.marker == "cert-authority"), None)
        shown = f"{key.get_name()} {key.fingerprint}"
        revoked = next((one for one in self._lines if _is_revoked(one, key)), None)
        if revoked:
            raise RevokedKey(f"it shows {shown}, which {revoked.source} revokes")
        if by_authority:
            raise UnknownKey(f"{by_authority.source} trusts it by a certificate: --ssh system")
        if not self._accept:
            raise UnknownKey(f"it shows {shown}, and {self._file} has no line for {self._name}")
        with self._lock:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{self._name} {key.get_name()} {key.get_base64()}\n")


def _is_revoked(line: KnownKey, key: paramiko.PKey) -> bool:
    return line.marker == "revoked" and line.blob == key.asbytes()


def at_dialing(error: OSError, host: str) -> Unreached:
    """The fault of a host that could not even be spoken to."""
    if isinstance(error, socket.gaierror):
        return Unreached("name-unknown", f"{host}: {error.strerror or error}")
    if isinstance(error, TimeoutError):
        return Unreached("no-answer", f"{host} did not take the connection in time")
    if isinstance(error, ConnectionResetError):
        return Unreached("no-banner", f"{host} broke the connection off without a word")
    words = error.strerror or str(error)
    return Unreached(_ERRNO.get(error.errno or 0, "no-route"), f"{host}: {words}")


def at_login(error: Exception, user: str, host: str, taken_s: float = 0) -> Unreached:
    """The fault of a host that does not let us in, or is not who it should be, after so long."""
    if isinstance(error, RevokedKey):
        return Unreached("host-key-changed", str(error))
    if isinstance(error, UnknownKey):
        return Unreached("host-key-unknown", str(error))
    if isinstance(error, AuthFailure):
        return Unreached("denied", _denied(error, user))
    if isinstance(error, paramiko.AuthenticationException):
        return Unreached("denied", f"for user {user}: {_clipped(str(error))}")
    if isinstance(error, paramiko.ChannelException):
        return Unreached("proxy", f"the jump host could not reach {host}: {error.text}")
    words = _clipped(str(error) or type(error).__name__)
    if "banner" in words:
        return Unreached("not-ssh", f"{host}: {words}")
    if isinstance(error, EOFError | ConnectionError) or "EOF" in words or "No existing" in words:
        if taken_s >= _HANDSHAKE_S:
            return Unreached("silent", f"{host} fell silent before anybody was let in")
        words = "it closed the connection before anybody was let in"
    disagreed = isinstance(error, paramiko.ssh_exception.IncompatiblePeer)
    return Unreached("key-exchange" if disagreed else "failed", f"{host}: {words}")


def _clipped(words: str) -> str:
    """What a server says, as much of it as a person reads."""
    words = " ".join(words.split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."


def changed(error: paramiko.BadHostKeyException, taken_out_by: str) -> Unreached:
    """A host that is not who it was; with the command that takes its old keys out."""
    got, known = error.key, error.expected_key
    return Unreached(
        "host-key-changed",
        f"it shows {got.get_name()} {got.fingerprint}, known_hosts has {known.get_name()} "
        f"{known.fingerprint}; its old key goes with: {taken_out_by}",
    )


def _denied(error: AuthFailure, user: str) -> str:
    """`for user ops, with ~/.ssh/id_rsa: Authentication failed`: each key and what came of it."""
    tried = []
    for source, result in error.result:
        label = getattr(source, "label", "")
        words = _clipped(str(result)).rstrip(".") or type(result).__name__
        tried.append(f"with {label}: {words}" if label else words)
    if not tried:
        return f"for user {user} there is no key to show: no file in ~/.ssh, none in the agent"
    return f"for user {user}, {'; '.join(dict.fromkeys(tried))}"
