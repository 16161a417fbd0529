"""An object store as fsspec knows it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NamedTuple

from ..pythons import with_module
from .exchanges import Exchanges
from .faults import words
from .limit import within
from .masked import masked

#: Stores without folders: what is put there needs none, and to make one could make a bucket.
_FLAT = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory")
_LOCAL = ("file", "local", "memory")
_S3 = ("s3", "s3a")
#: So many requests are under way at once: botocore has 10 connections unless it is told otherwise.
_CONNECTIONS = 16
#: Within so long a store is opened: some ask for credentials then.
_OPENS_S = 20.0


class CannotError(Exception):
    """Why nothing was begun; `why` in a word."""

    def __init__(self, why: str, text: str) -> None:
        super().__init__(text)
        self.why = why


class Store(NamedTuple):
    """`root` without protocol, as `fs` takes it; `exchanges` of everything it does."""

    fs: Any
    protocol: str
    root: str
    library: str
    exchanges: Exchanges

    @property
    def is_local(self) -> bool:
        return self.protocol in _LOCAL

    @property
    def is_files(self) -> bool:
        """Of a file system of this host."""
        return self.protocol in ("file", "local")

    @property
    def is_flat(self) -> bool:
        return self.protocol in _FLAT


def known_protocol(url: str) -> str:
    """Whether what it takes is installed. Raises CannotError."""
    protocol = url.partition("://")[0]
    try:
        fsspec: Any = import_module("fsspec")
    except ImportError:
        raise CannotError("no-fsspec", _lacks("fsspec", "fsspec s3fs")) from None
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        package = _package(protocol)
        raise CannotError("no-library", _lacks(package, package, error)) from None
    except ValueError:
        known = "s3://BUCKET/PREFIX, gs://, abfs://, file:///DIR"
        raise CannotError("protocol", f"fsspec knows no {protocol}://; such are {known}") from None
    return protocol


def opened(url: str) -> Store:
    """The store; nothing is asked of it yet. Raises CannotError."""
    protocol = known_protocol(url)
    exchanges = Exchanges()
    exchanges.watch()
    core: Any = import_module("fsspec.core")
    try:
        fs, root = within(_OPENS_S, lambda: core.url_to_fs(
            url, skip_instance_cache=True, **_connections(protocol)
        ))  # fmt: skip
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        raise CannotError("refused", words(error)) from None
    return Store(fs, protocol, root.rstrip("/"), _library(fs), exchanges)


def _connections(protocol: str) -> dict[str, Any]:
    """As many as ask at once, beside what the configuration of fsspec states."""
    if protocol not in _S3:
        return {}
    stated = dict(import_module("fsspec.config").conf.get(protocol, {}).get("config_kwargs") or {})
    stated["max_pool_connections"] = max(_CONNECTIONS, stated.get("max_pool_connections", 0))
    return {"config_kwargs": stated}


def _library(fs: Any) -> str:
    from importlib.metadata import PackageNotFoundError, version

    name = type(fs).__module__.partition(".")[0]
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name


def _package(protocol: str) -> str:
    return {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs",
            "abfss": "adlfs", "az": "adlfs", "oss": "ossfs"}.get(protocol, "")  # fmt: skip


def _lacks(module: str, install: str, error: object = "") -> str:
    if not module:
        return f"{sys.executable}: {masked(str(error))}"
    found = with_module(module)
    hint = f"--python {found[0]}" if found else f"{sys.executable} -m pip install {install}"
    return f"{sys.executable} has no {module}: {hint}"
