"""Removal of what a run put, and of nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from . import folders
from .faults import words
from .limit import within
from .store import Store

#: So many at once (S3 takes 1,000).
_AT_ONCE, _TRIES = 500, 3


class Removed(NamedTuple):
    """How many objects and unfinished uploads stay; -1 where nobody knows. `said`: why."""

    left: int
    said: str = ""


def removed(
    store: Store, path: str, seconds: float, known: Sequence[str] = (), *, uploads: bool = True
) -> Removed:
    """Everything below `path`, which is one run's own folder, with what is known to be there. Waits
    so long at most. `uploads`: one may have been begun that did not end."""
    try:
        return within(seconds, lambda: _removed(store, path, known, uploads=uploads))  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        return Removed(-1, words(error))


def _removed(
    store: Store, path: str, known: Sequence[str] = (), *, uploads: bool = True
) -> Removed:
    if store.is_files:
        return Removed(*folders.remove(path))
    try:
        listed = names_below(store, path)
    except Exception as error:  # noqa: BLE001 - what is known by name can be removed all the same
        return _by_name(store, known, words(error))
    hidden = sorted(set(known).difference(listed))
    said = ""
    for _ in range(_TRIES):
        if listed:
            said = _remove(store, listed)
        listed = names_below(store, path)
        if not listed:
            break
    said = (hidden and _remove(store, hidden)) or said
    if not store.is_flat:
        with contextlib.suppress(Exception):
            store.fs.rm(path, recursive=True)
    left = len(names_below(store, path))
    stay, why = _aborted(store, path)
    if why and uploads and not left:
        return Removed(-1, why)
    return Removed(left + stay, said or why)


def _by_name(store: Store, known: Sequence[str], why: str) -> Removed:
    """Where the list tells nothing nobody knows what stays."""
    if not known:
        return Removed(-1, why)
    said = _remove(store, known)
    told = said or f"{len(known)} were removed by their names, and none can be looked for"
    return Removed(-1, f"the list: {why}; {told}")


def _remove(store: Store, names: Sequence[str]) -> str:
    """All of them, and what the store said against it."""
    said = ""
    for at in range(0, len(names), _AT_ONCE):
        try:
            store.fs.rm(names[at : at + _AT_ONCE])
        except FileNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001 - what is left is counted
            said = words(error)
    return said


def names_below(store: Store, path: str) -> list[str]:
    """As the store lists them now."""
    call = getattr(store.fs, "call_s3", None)
    if call is not None:  # of an empty folder s3fs would ask whether it is an object
        return list(_listed(store, call, path))
    store.fs.invalidate_cache()
    try:
        return [one for one in store.fs.find(path) if one.startswith(f"{path}/")]
    except FileNotFoundError:
        return []


def _listed(store: Store, call: Callable[..., Any], path: str) -> Iterator[str]:
    bucket, key, _ = store.fs.split_path(f"{path}/")
    more: dict[str, str] = {}
    while True:
        told = call("list_objects_v2", Bucket=bucket, Prefix=key, **more)
        yield from (f"{bucket}/{one['Key']}" for one in told.get("Contents") or ())
        if not told.get("NextContinuationToken"):
            return
        more = {"ContinuationToken": told["NextContinuationToken"]}


def _aborted(store: Store, path: str) -> tuple[int, str]:
    """Uploads in parts that nobody finished, which a bucket keeps and bills: how many stay."""
    call = getattr(store.fs, "call_s3", None)
    if call is None:
        return 0, ""
    bucket, key, _ = store.fs.split_path(f"{path}/x")
    try:
        uploads = _uploads(call, bucket, key[:-1])
        for one in uploads:
            call("abort_multipart_upload", Bucket=bucket, Key=one["Key"], UploadId=one["UploadId"])
        return len(_uploads(call, bucket, key[:-1])) if uploads else 0, ""
    except FileNotFoundError:
        return 0, ""
    except Exception as error:  # noqa: BLE001 - it may be no right of this user
        return 0, f"unfinished uploads were not looked for: {words(error)}"


def _uploads(call: Callable[..., Any], bucket: str, prefix: str) -> list[dict[str, Any]]:
    told = call("list_multipart_uploads", Bucket=bucket, Prefix=prefix)
    return [one for one in told.get("Uploads") or () if one["Key"].startswith(prefix)]


def swept(store: Store, begins: str, is_left: Callable[[str], bool]) -> int:
    """Remove folders directly below the root whose name begins so and tells that their run is no
    more; how many there were."""
    store.fs.invalidate_cache()
    left = [one for one in _folders(store, begins) if is_left(one)]
    if store.is_files:
        left = [one for one in left if folders.is_mine(f"{store.root}/{one}")]
    for one in left:
        _removed(store, f"{store.root}/{one}")
    return len(left)


def _folders(store: Store, begins: str) -> set[str]:
    call = getattr(store.fs, "call_s3", None)
    if call is None:
        listed = [
            one for one in store.fs.ls(store.root, detail=True) if one.get("type") == "directory"
        ]  # no links
        return {str(one["name"]).rstrip("/").rpartition("/")[2] for one in listed}
    # A bucket may hold more than can be listed: those that begin so alone, and what only uploads
    # are in, which is not listed.
    bucket, key, _ = store.fs.split_path(f"{store.root}/{begins}")
    told = call("list_objects_v2", Bucket=bucket, Prefix=key, Delimiter="/")
    keys = [one["Prefix"] for one in told.get("CommonPrefixes") or ()]
    with contextlib.suppress(Exception):  # it may be no right of this user
        keys += [one["Key"] for one in _uploads(call, bucket, key)]
    above = len(key) - len(begins)
    return {one[above:].partition("/")[0] for one in keys}
