"""The user's private keys: which are tried, and each read once for all hosts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, InMemoryPrivateKey

#: Looked for in this order where the configuration names none (OpenSSH 9, ssh_config(5)).
_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")


class Keys:
    """Private keys by file, shared by the threads in which hosts are reached."""

    def __init__(self) -> None:
        self._found: dict[str, paramiko.PKey | str] = {}
        self._lock = threading.Lock()

    def of(self, path: str) -> paramiko.PKey | str:
        """The key in a file; else why it cannot be used, empty where there is no file."""
        with self._lock:
            if path not in self._found:
                self._found[path] = _private_key(Path(path))
            return self._found[path]

    def strategy(self, **told: Any) -> AuthStrategy:
        """What fabric asks for the keys to be tried on one host."""
        return _Identities(self, **told)


class _Identities(AuthStrategy):  # type: ignore[misc]
    """The user's keys, as the configuration names them; then those of the agent."""

    def __init__(self, keys: Keys, **settings: Any) -> None:
        super().__init__(ssh_config=settings["ssh_config"])
        self._keys, self._user, self._settings = keys, settings["username"], settings["ssh_config"]

    def get_sources(self) -> Iterator[AuthSource]:
        """One after another: whatever is not needed is not read."""
        files = self._settings.get("identityfile") or [
            str(Path.home() / ".ssh" / name) for name in _IDENTITIES
        ]
        for file in files:
            key = self._keys.of(str(Path(file).expanduser()))
            if isinstance(key, paramiko.PKey):
                yield Key(self._user, key, _shown(file))
            elif key:
                yield Unusable(self._user, key)
        if self._settings.get("identitiesonly", "no").lower() != "yes":
            for key in paramiko.Agent().get_keys():
                yield Key(self._user, key, f"the agent's {key.get_name()}")


class Unusable(AuthSource):  # type: ignore[misc]
    """A key that is named and cannot be used: told, where no other one opens."""

    def __init__(self, user: str, why: str) -> None:
        super().__init__(username=user)
        self.why = why

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Never does."""
        raise paramiko.AuthenticationException(self.why)


class Key(InMemoryPrivateKey):  # type: ignore[misc]
    """A private key; `label` is its file, or that it is the agent's."""

    def __init__(self, user: str, key: paramiko.PKey, label: str) -> None:
        super().__init__(username=user, pkey=key)
        self.label = label

    def authenticate(self, transport: paramiko.Transport) -> list[str]:
        """A key that is only the first of two factors does not let us in."""
        more: list[str] = super().authenticate(transport)
        if more:
            raise paramiko.AuthenticationException(f"then {' or '.join(more)} is wanted too")
        return more


def _shown(path: Path | str) -> str:
    """Below the home directory as `~`: whose that is a report need not tell."""
    home = Path.home()
    path = Path(path).expanduser()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _private_key(path: Path) -> paramiko.PKey | str:
    if not path.is_file():
        return ""
    try:
        return paramiko.PKey.from_path(path)
    except paramiko.PasswordRequiredException:
        return f"{_shown(path)} is encrypted: ssh-add {_shown(path)}"
    except Exception as error:  # noqa: BLE001 - by library and kind of key anything
        if "assw" in str(error) or "encrypted" in str(error):
            return f"{_shown(path)} is encrypted: ssh-add {_shown(path)}"
        return f"{_shown(path)} cannot be used: {error}"
