"""What a host stores on: the mounts, each once, and what lies on which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from preflight.facts.storage import CachePlace, Mount, Mounts, Nfs, Proof, Share, Storage
from preflight.model import NOT_IN_INPUT, Known, Missing, Raw
from preflight.probes.storage.proofs import proofs_in, refused

T = TypeVar("T")

#: HF_HOME holds the data sets only where no variable of their own names another place.
_HOLDS_DATASETS, _DATASETS = "HF_HOME", "HF_DATASETS_CACHE"
#: Who writes into a directory, and may try it.
_WRITES = "io-bench"
NO_PROOF = Missing(
    "not-asked", "nothing was written to try it: `preflight io-bench`, or run --level standard"
)
_NOT_TRIED = Missing("exited", "the bench of storage did not come so far as to try the directory")
_NO_CACHE = Missing("not-applicable", "no variable names a directory for caches")


def storage_of(parts: Mapping[str, Any]) -> Storage:
    """By the parts that probes supply: mounts, block_devices, raids, disk_health, quotas; and by
    `proofs`."""
    told: Known[Mounts] = parts["mounts"]
    devices = parts["block_devices"]
    return Storage(
        **_of_mounts(told),
        caches=told if isinstance(told, Missing) else _caches(told),
        devices=_some(devices, "block device with a size"),
        nvmes=_those(devices, "NVMe disk", lambda one: one.kind == "nvme"),
        raids=_some(parts["raids"], "array of Linux' own RAID (md)"),
        health=_some(parts["disk_health"], "disk here tells of its health"),
        proofs=parts["proofs"],
        quotas=_some(parts["quotas"], "quota of the user's is set, or no tool tells of it"),
    )


def proofs_of(by_probe: Mapping[str, Raw], *, asked: bool) -> Known[tuple[Proof, ...]]:
    """What was tried in the directory that a bench wrote to; a bench may be busy, or refused."""
    raw = by_probe.get(_WRITES)
    if raw is None:
        return NO_PROOF if asked else NOT_IN_INPUT
    text = raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
    if found := proofs_in(text, _WRITES):
        return found
    why = refused(text)
    return Missing("not-asked", f"nothing was written: {why}") if why else _NOT_TRIED


def _of_mounts(told: Known[Mounts]) -> dict[str, Any]:
    names = ("mounts", "on_disks", "network", "nfs", "nfs_written", "written", "locking", "shares")
    if isinstance(told, Missing):
        return dict.fromkeys(names, told)
    found = _once(told.mounts)
    network = tuple(one for one in found if one.reach == "network")
    mounted = "file system {} is mounted"
    return {
        "mounts": found,
        "on_disks": _those(found, mounted.format("of a disk that is written to"),
                        lambda one: one.reach == "local" and not one.read_only),
        "network": _some(network, mounted.format("of the network")),
        "nfs": _those(network, mounted.format("of NFS"), _is_nfs),
        "nfs_written": _those(network, mounted.format("of NFS that is written to"),
                              lambda one: _is_nfs(one) and not one.read_only),
        "written": _those(found, mounted.format("that is written to"),
                          lambda one: one.reach in ("local", "network") and not one.read_only),
        "locking": _those(network, mounted.format("of the network that tells of locks"),
                          lambda one: isinstance(one.locks, str) and not one.read_only),
        "shares": tuple(_share(one) for one in network if not one.automounted),
    }  # fmt: skip


def _is_nfs(mount: Mount) -> bool:
    return not isinstance(mount.nfs, Missing)


def _those(
    found: Known[Sequence[T]], what: str, wanted: Callable[[T], bool]
) -> Known[tuple[T, ...]]:
    if isinstance(found, Missing):
        return found
    return tuple(filter(wanted, found)) or Missing("not-applicable", f"no {what}")


def _some(found: Known[tuple[T, ...]], what: str) -> Known[tuple[T, ...]]:
    return _those(found, what, lambda _: True)


def _once(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """One of those that are the same file system, as containers mount them in many places: the one
    with the shortest name. Without its number it is known by its source."""
    found: dict[tuple[str, ...], Mount] = {}
    for one in mounts:
        source = (one.source, one.kind) if one.reach in ("network", "local") else (one.name,)
        key = (one.device,) if one.device else source
        known = found.get(key)
        if known is None or len(one.name) < len(known.name):
            found[key] = one
    return tuple(found.values())


def _share(mount: Mount) -> Share:
    nfs = mount.nfs
    if isinstance(nfs, Missing):
        settings: Known[str] = Missing("not-applicable", "it is not NFS")
    else:
        settings = " ".join(_settings(nfs))
    return Share(mount.name, mount.source, mount.kind, settings, mount.line, mount.probe)


def _settings(nfs: Nfs) -> Iterator[str]:
    told = {"vers": nfs.version, "rsize": nfs.read_bytes, "wsize": nfs.write_bytes}
    yield from (f"{name}={value}" for name, value in told.items() if not isinstance(value, Missing))
    yield f"nconnect={nfs.connections}"
    if not isinstance(nfs.hard, Missing):
        yield "hard" if nfs.hard else "soft"


def _caches(told: Mounts) -> Known[tuple[CachePlace, ...]]:
    if isinstance(told.caches, Missing):
        return told.caches
    named = {one.name for one in told.caches}
    kept = [
        _placed(one, told.mounts)
        for one in told.caches
        if not (one.name == _HOLDS_DATASETS and _DATASETS in named)
    ]
    return tuple(kept) or _NO_CACHE


def _placed(cache: CachePlace, mounts: Sequence[Mount]) -> CachePlace:
    """On the mount whose name is the longest beginning of its path. The path is taken as it is
    written: to follow links would be to ask the server."""
    mount = mount_of(cache.path, mounts)
    if mount is None:
        return replace(cache, reach=Missing("not-in-input", "what it lies on is not told"))
    return replace(cache, mount=mount.name, kind=mount.kind, reach=mount.reach)


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that a path lies on, by names alone; None where none holds it."""
    path = f"{path.rstrip('/')}/"
    above = [one for one in mounts if path.startswith(f"{one.name.rstrip('/')}/")]
    return max(above, key=lambda one: len(one.name), default=None)
