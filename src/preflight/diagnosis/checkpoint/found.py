"""Which checkpoints lie below a path: files and folders under the layouts that know them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from posixpath import basename, dirname

from msgspec import Struct
from msgspec.structs import replace

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


class _Index:
    """The files of a scan that no checkpoint has taken yet, found by folder, and all tensors."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.left = {one.path: one for one in scan.files if not is_left(one.path)}
        self._paths = sorted(self.left)
        self._all = {one.path: one for one in scan.files}
        self._tensors: dict[str, list[Tensor]] = defaultdict(list)
        for one in scan.tensors:
            self._tensors[one.file].append(one)

    def inside(self, folder: str) -> dict[str, ScannedFile]:
        """Those below the folder, by their names relative to it."""
        if not folder:
            return dict(self.left)
        # In the order of names "/" is followed by "0".
        span = slice(bisect_left(self._paths, f"{folder}/"), bisect_left(self._paths, f"{folder}0"))
        cut = len(folder) + 1
        return {one[cut:]: self.left[one] for one in self._paths[span] if one in self.left}

    def itself(self, file: ScannedFile) -> ScannedFile:
        """What a link leads to, where that lies below the same path, as in a cache of a hub."""
        target = file.told.get("target", "") if file.kind == "link" else ""
        return self._all.get(target, file)

    def take(self, folder: str, names: Iterable[str]) -> None:
        """These belong to a checkpoint now."""
        for name in names:
            self.left.pop(_joined(folder, name), None)

    def tensors(self, folder: str, files: dict[str, ScannedFile]) -> tuple[Tensor, ...]:
        """Those of the files, by the names that these have here."""
        found: list[Tensor] = []
        for name, file in files.items():
            path = _joined(folder, name)
            there = self._tensors.get(file.path, [])
            found += there if path == file.path else [replace(one, file=path) for one in there]
        return tuple(found)


def below(scan: Scan) -> Below:
    """Folders first, from the outermost inwards, then the files that none of them took."""
    index = _Index(scan)
    found: list[Found] = []
    held: set[str] = set()  # folders in which a checkpoint has files
    for folder in ["", *(one for one in scan.folders if not is_left(one))]:
        one = None if folder in held else _folder(index, folder)
        if one is not None:
            found.append(one)
            index.take(folder, one.files)
            held |= {above for name in one.files for above in _above(_joined(folder, name))}
    for one in _each(index):
        found.append(one)
        index.take(one.folder, one.files)
    found.sort(key=_newness, reverse=True)
    return Below(tuple(found), tuple(index.left.values()))


def _above(path: str) -> Iterator[str]:
    """The folders that a file lies in."""
    while path := dirname(path):
        yield path


def is_left(path: str) -> bool:
    """Whether a save that did not end left it, or the folder that it lies in."""
    return any(fnmatchcase(part, glob) for part in path.split("/") for glob in layouts().leftovers)


def _newness(one: Found) -> tuple[float, float]:
    return -1.0 if one.step is None else float(one.step), one.modified_s


def _folder(index: _Index, folder: str) -> Found | None:
    """The checkpoint that this folder is, if it is one."""
    inside = index.inside(folder)
    name = basename(folder or index.scan.root)
    rows = (one for one in layouts().rows if not one.each)
    layout = next((one for one in rows if _knows(one, name, inside)), None)
    if layout is None:
        return None
    files = {path: index.itself(one) for path, one in inside.items() if _belongs(layout, path)}
    step = _step_of(layout.step, name)
    return Found(index.scan, folder, folder, layout, step, files, index.tensors(folder, files))


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


def _each(index: _Index) -> Iterator[Found]:
    """Checkpoints that lie side by side in a folder, each of one file or of several."""
    groups: dict[tuple[str, str], dict[str, ScannedFile]] = defaultdict(dict)
    known: dict[tuple[str, str], tuple[Layout, int | None]] = {}
    for path, file in index.left.items():
        folder, name = dirname(path), basename(path)
        layout, one, step = _one_of(name)
        if layout is None or not _may_hold_tensors(file, name):
            continue
        key = (folder, f"{layout.id}:{one}")
        groups[key][name] = file
        known[key] = layout, step
    for key, files in groups.items():
        layout, step = known[key]
        if step is None:
            step = _told_step(files.values())
        folder, scan = key[0], index.scan
        names = sorted(files)
        path = _joined(folder, names[0] if len(names) == 1 else f"{key[1].partition(':')[2]}*")
        if len(scan.files) == 1 and path == scan.files[0].path and not scan.folders:
            path = "" if scan.source.rstrip("/").endswith(path) else path
        yield Found(scan, path, folder, layout, step, files, index.tensors(folder, files))


#: Keys under which programs keep the step in what they save, the surest first.
_STEPS = ("global_step", "iter_num", "iteration", "num_updates", "iter", "step")


def _told_step(files: Iterable[ScannedFile]) -> int | None:
    """The step that stands in a file beside the weights, as `int 2000`."""
    tops = [file.top for file in files]
    told = [top[key] for key in _STEPS for top in tops if top.get(key, "").startswith("int ")]
    number = told[0].removeprefix("int ") if told else ""
    return int(number) if number.isdecimal() and len(number) < 19 else None


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
