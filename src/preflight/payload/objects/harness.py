"""A bench of an object store, from the first object to the removal of the last."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from ..storage.cached import dropped
from .burst import GRACE_S, Burst
from .content import Content
from .faults import words
from .limit import within
from .own import Own, own_folder, sweep_left
from .phases import PART_BYTES, Phase, parts, phases, weights
from .plan import Plan
from .remove import Removed, names_below
from .store import CannotError, Store, opened

FORM = "objects/1"
Tell = Callable[[dict[str, Any]], None]
#: The first answer, and the removal of what earlier runs left.
_REACHES_S = 20.0


def harness(plan: Plan, tell: Tell) -> None:
    """All of it."""
    began = time.monotonic()
    try:
        store = opened(plan.url)
        hold_place(store, plan.size_bytes)
    except CannotError as error:
        tell({"preflight": FORM, "kind": "cannot", "why": error.why, "text": str(error)})
        return
    with own_folder(store, plan.url, partial(_removed, tell)) as own:
        tell({"preflight": FORM, "kind": "begin", "plan": asdict(plan), "folder": own.path,
              "library": store.library, "protocol": store.protocol})  # fmt: skip
        own.names.append(f"{own.path}/first")
        own.reached = _reached(store, own.path, tell)
        if own.reached:
            _measured(plan, store, own, tell)
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


def hold_place(store: Store, size_bytes: int) -> None:
    """Files are put only where any other bench may write them. Raises CannotError."""
    if not store.is_files:
        return
    from ..storage.place import RefusedError, held

    try:
        held(store.root or "/", size_bytes)
    except RefusedError as error:
        raise CannotError("refused", str(error).replace("another --dir", "another --url")) from None


def _removed(tell: Tell, found: Removed) -> None:
    tell({"kind": "removed", "left": found.left, "text": found.said})


def _reached(store: Store, path: str, tell: Tell) -> bool:
    """Whether one object could be put, got, listed and removed: else no more is put."""
    for step, act in _first(store, path).items():
        try:
            within(_REACHES_S, act)
        except Exception as error:  # noqa: BLE001 - a library may raise anything
            told = words(error)
            if told.startswith(("no answer", "no connection")):
                told = store.exchanges.why_none() or told
            tell({"kind": "reached", "ok": False, "text": f"{step}: {told}"})
            return False
    left = 0
    with contextlib.suppress(Exception):  # of earlier runs: it is no reason to measure nothing
        left = within(_REACHES_S, lambda: sweep_left(store))
    tell({"kind": "reached", "ok": True, "left": left, "text": ""})
    return True


def _first(store: Store, path: str) -> dict[str, Callable[[], Any]]:
    """What is tried, by its name, in this order."""
    name, content = f"{path}/first", Content(64)

    def put() -> None:
        if not store.is_flat:
            store.fs.mkdir(path, create_parents=False)
        store.fs.pipe_file(name, content.of(name, 64))

    def got() -> None:
        if store.fs.cat_file(name, start=0, end=64) != content.of(name, 64):
            raise OSError("it came back with other bytes")

    def listed() -> None:
        if name not in names_below(store, path):
            raise OSError("what was put is not in the list")

    return {"put": put, "get": got, "list": listed, "remove": lambda: store.fs.rm(name)}


def _measured(plan: Plan, store: Store, own: Own, tell: Tell) -> None:
    before = store.exchanges.statuses.copy()
    every = phases(plan.size_bytes)
    content = Content(max(PART_BYTES, *(one.size_bytes for one in every)))
    until_s = time.monotonic() + plan.seconds
    put: list[str] = []
    answers = True
    for at, phase in enumerate(every):
        left_s = (until_s - time.monotonic()) / weights(every[at:]) * phase.weight
        names = [
            f"{own.path}/{phase.kind}-{phase.at_once}-{one:06d}" for one in range(phase.objects)
        ]
        own.names += names
        done, answers = _phase(phase, names, max(left_s, 1.0), (store, content), tell)
        put += done
        if not answers:
            break
    _listed(store, own.path, put, tell)
    if answers and not store.is_local:
        own.names.append(f"{own.path}/in-parts")
        left_s = max(1.0, until_s - time.monotonic()) + GRACE_S
        own.uploads = True
        own.uploads = not _in_parts(
            store, f"{own.path}/in-parts", parts(plan.size_bytes), content, left_s, tell
        )
    tell({"kind": "content", "read": content.read, "wrong": len(content.wrong),
          "lost": content.lost})  # fmt: skip
    tell(store.exchanges.line(before))


def _phase(
    phase: Phase, names: list[str], seconds: float, of: tuple[Store, Content], tell: Tell
) -> tuple[list[str], bool]:
    """What was put, and whether everything was answered. Reading has what is left of the time, and
    half of it at least."""
    (store, content), size = of, phase.size_bytes
    put = Burst(names, partial(_put, store), lambda name: content.of(name, size), lambda *_: None)
    put.run(phase.at_once, seconds / 2)
    put.failed, put.lost = put.failed + put.lost, 0
    tell(_line("put", phase, put))
    if put.hung:
        return put.done, False
    cached = store.is_local and not _past_cache(store, put.done)
    # By its range, as a loader reads a shard: without it s3fs asks for the size first.
    got = Burst(put.done, lambda name, _: store.fs.cat_file(name, start=0, end=size),
                lambda _: None, lambda name, found: content.look(name, size, found))  # fmt: skip
    got.run(phase.at_once, max(seconds - put.elapsed_s, seconds / 2))
    content.lost += got.lost
    tell(_line("get", phase, got) | {"cached": cached})
    return put.done, not got.hung


def _put(store: Store, name: str, content: bytes) -> None:
    """A file counts once it is on its device."""
    store.fs.pipe_file(name, content)
    if store.is_files:
        fd = os.open(name, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _past_cache(store: Store, names: list[str]) -> bool:
    """Whether what is got comes from a device, and not from this host's memory."""
    return store.is_files and dropped(names)


def _line(op: str, phase: Phase, burst: Burst) -> dict[str, Any]:
    return {"kind": "way", "op": op, "size_bytes": phase.size_bytes, "at_once": phase.at_once,
            "asked": len(burst.names), "failed": burst.failed, "lost": burst.lost,
            "hung": burst.hung, "said": list(burst.said), "elapsed_s": round(burst.elapsed_s, 6),
            "taken_us": list(burst.taken_us)}  # fmt: skip


def _listed(store: Store, path: str, put: list[str], tell: Tell) -> None:
    """Whether everything that was put is listed right after."""
    began = time.monotonic()
    try:
        found = set(within(_REACHES_S, lambda: names_below(store, path)))
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        tell({"kind": "listed", "put": len(put), "missing": -1, "text": words(error)})
        return
    tell({"kind": "listed", "put": len(put), "missing": len(set(put) - found), "text": "",
          "elapsed_s": round(time.monotonic() - began, 6)})  # fmt: skip


def _in_parts(
    store: Store, name: str, count: int, content: Content, seconds: float, tell: Tell
) -> bool:
    """An object as a checkpoint is written: in parts, of which none counts before the last. Whether
    it is whole."""
    line: dict[str, Any] = {"kind": "parts", "parts": count, "part_bytes": PART_BYTES}
    try:
        line |= within(seconds, lambda: _put_and_got(store, name, count, content))
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        line |= {"ok": False, "text": words(error)}
    tell(line)
    return line["ok"] is True


def _put_and_got(store: Store, name: str, count: int, content: Content) -> dict[str, Any]:
    bodies = [content.of(f"{name}-{at}", PART_BYTES) for at in range(count)]
    began = time.monotonic()
    with store.fs.open(name, "wb", block_size=PART_BYTES) as file:
        for one in bodies:
            file.write(one)
    put_s = time.monotonic() - began
    began = time.monotonic()
    found = store.fs.cat_file(name)
    got_s = time.monotonic() - began
    content.read += 1
    same = found == b"".join(bodies)
    if not same:
        content.wrong.append(name)
    return {"ok": True, "text": "", "put_s": round(put_s, 6), "get_s": round(got_s, 6)}
