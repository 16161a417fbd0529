"""Which checkpoints lie below a path: files and folders under the layouts that know them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from posixpath import basename, dirname

from msgspec import Struct

from preflight.diagnosis.checkpoint.layouts import Layout, compiled, layouts, matches
from preflight.facts.checkpoints import Scan, ScannedFile, Tensor

#: Kinds of files that hold tensors.
VALUES = frozenset({"torch-zip", "torch-legacy", "safetensors", "distcp", "torchscript"})
#: The same by name, whatever is in them.
_VALUE_NAMES = (".pt", ".pth", ".ckpt", ".safetensors", ".distcp", ".bin")


class Found(Struct, frozen=True):
    """One checkpoint. `path`: of its folder or file, relative to what was given, "" for that
    itself; names of files in `files` are relative to its folder."""

    scan: Scan
    path: str
    folder: str
    layout: Layout | None
    step: int | None
    files: dict[str, ScannedFile]
    tensors: tuple[Tensor, ...]

    @property
    def shown(self) -> str:
        """Its path as the user may type it."""
        base = self.scan.source.rstrip("/") or "/"
        return f"{base}/{self.path}" if self.path else base

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(one.size for one in self.files.values())

    @property
    def modified_s(self) -> float:
        """When the last of its files was written."""
        return max((one.modified_s for one in self.files.values()), default=0.0)


class Below(Struct, frozen=True):
    """Everything below one path: checkpoints, the newest first, and files of none."""

    found: tuple[Found, ...]
    others: tuple[ScannedFile, ...]


def below(scan: Scan) -> Below:
    """Folders first, from the outermost inwards, then the files that none of them took."""
    taken: dict[str, Found] = {}
    left = {one.path: one for one in scan.files if not is_left(one.path)}
    for folder in ["", *(one for one in scan.folders if not is_left(one))]:
        if any(_holds(one, folder) for one in taken.values()):
            continue
        found = _folder(scan, folder, left)
        if found is not None:
            taken[folder] = found
            for name in found.files:
                left.pop(_joined(folder, name), None)
    each = [*taken.values(), *_each(scan, left)]
    for one in each:
        for name in one.files:
            left.pop(_joined(one.folder, name), None)
    each.sort(key=_newness, reverse=True)
    return Below(tuple(each), tuple(left.values()))


def is_left(path: str) -> bool:
    """Whether a save that did not end left it, or the folder that it lies in."""
    return any(fnmatchcase(part, glob) for part in path.split("/") for glob in layouts().leftovers)


def _newness(one: Found) -> tuple[str, float, float]:
    return "", -1.0 if one.step is None else float(one.step), one.modified_s


def _holds(found: Found, folder: str) -> bool:
    """Whether the folder belongs to the checkpoint: it has files there."""
    inside = f"{folder}/"
    return any(_joined(found.folder, name).startswith(inside) for name in found.files)


def _folder(scan: Scan, folder: str, left: dict[str, ScannedFile]) -> Found | None:
    """The checkpoint that this folder is, if it is one."""
    prefix = f"{folder}/" if folder else ""
    inside = {path[len(prefix) :]: one for path, one in left.items() if path.startswith(prefix)}
    name = basename(folder or scan.root)
    layout = next(
        (one for one in layouts().rows if not one.each and _knows(one, name, inside)), None
    )
    if layout is None:
        return None
    files = {path: one for path, one in inside.items() if _belongs(layout, path)}
    step = _step_of(layout.step, name)
    return Found(scan, folder, folder, layout, step, files, _tensors(scan, prefix, files))


def _knows(layout: Layout, name: str, inside: dict[str, ScannedFile]) -> bool:
    if layout.only_named and not re.fullmatch(layout.step, name):
        return False
    shallow = [path for path in inside if path.count("/") < 6]
    return any(compiled(one).fullmatch(path) for one in layout.known_by for path in shallow)


def _belongs(layout: Layout, path: str) -> bool:
    """Files of the folder itself, and those below it that the layout speaks of."""
    if "/" not in path:
        return True
    first = path.partition("/")[0]
    if any(matches(one, first) for one in layout.own):
        return True
    return any(matches(one, path) for one in layout.patterns())


def _step_of(expression: str, name: str) -> int | None:
    found = re.fullmatch(expression, name) if expression else None
    step = found["step"] if found else None
    return int(step) if step and step.isdecimal() and len(step) < 19 else None


def _tensors(scan: Scan, prefix: str, files: dict[str, ScannedFile]) -> tuple[Tensor, ...]:
    paths = {prefix + name for name in files}
    return tuple(one for one in scan.tensors if one.file in paths)


def _each(scan: Scan, left: dict[str, ScannedFile]) -> Iterator[Found]:
    """Checkpoints that lie side by side in a folder, each of one file or of several."""
    groups: dict[tuple[str, str], dict[str, ScannedFile]] = defaultdict(dict)
    known: dict[tuple[str, str], tuple[Layout, int | None]] = {}
    for path, file in left.items():
        folder, name = dirname(path), basename(path)
        layout, one, step = _one_of(name)
        if layout is None or not _may_hold_tensors(file, name):
            continue
        key = (folder, f"{layout.id}:{one}")
        groups[key][name] = file
        known[key] = layout, step
    for key, files in groups.items():
        layout, step = known[key]
        folder = key[0]
        prefix = f"{folder}/" if folder else ""
        names = sorted(files)
        path = _joined(folder, names[0] if len(names) == 1 else f"{key[1].partition(':')[2]}*")
        if len(scan.files) == 1 and path == scan.files[0].path and not scan.folders:
            path = "" if scan.source.rstrip("/").endswith(path) else path
        yield Found(scan, path, folder, layout, step, files, _tensors(scan, prefix, files))


def _one_of(name: str) -> tuple[Layout | None, str, int | None]:
    for row in layouts().rows:
        found = re.fullmatch(row.each, name) if row.each else None
        if found:
            one = name if row.id == "torch-file" else found["one"]
            step = found.groupdict().get("step")
            return row, one, int(step) if step and step.isdecimal() and len(step) < 19 else None
    return None, "", None


def _may_hold_tensors(file: ScannedFile, name: str) -> bool:
    """Not links, and not what else goes by such a name, such as arguments that were pickled."""
    if file.kind in VALUES:
        return file.tensors > 0 or bool(file.flaws) or file.kind == "torch-zip"
    told = [flaw.kind for flaw in file.flaws]
    if name.endswith(".bin") and (told == ["unknown"] or file.kind in ("text", "json")):
        return False  # data of another kind goes by this name too
    return file.kind != "link" and name.endswith(_VALUE_NAMES) and bool(told)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
