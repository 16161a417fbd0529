"""Recorded answers in place of a host's: what --from names, sorted by host."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader, BytesIO
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from preflight.capture import Reader
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.pasted import MAX_BYTES
from preflight.signatures import READS
from preflight.software_signatures import TYPED
from preflight.transports.askings import LeftOut, Piece, askings, latest, notes
from preflight.transports.joined import Bad, merged
from preflight.transports.one_file import answers_of, answers_of_stream

if TYPE_CHECKING:
    from preflight.transports.sosreport import Member

#: The host of raw tool outputs that were given no name.
INPUT = "input"
_TOLD = 50
_FOLDERS_TOLD = 5
_FILES_TOLD = 5
#: gzip, xz, bzip2: an archive may be within.
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")


#: Folders whose files are read, with the folders in them, whose files are not.
Folders = dict[Path, list[Path]]


class _Source(Struct, frozen=True):
    """One file that can be read. `name`: what the user called the host, else empty."""

    name: str
    label: str
    answers: Reader | list[Raw]


class Inputs:
    """What `[NAME=]FILE` options name, opened. FILE is `-` for the standard input, or a folder: its
    files by name, hidden ones and sub-folders left out.

    Of several captures of one host the one that was asked last is judged as a whole, and `notes`
    tells of the others. Where two outputs of tools answer the same question for a host the later
    counts, and `bad` tells of the earlier; sections of `nvidia-smi -q -d` add up. Raises UsageError
    where no file can be used at all, and from `hosts` where one NAME would be several hosts.
    """

    def __init__(self, specs: Sequence[str], stdin: BinaryIO | None) -> None:
        self._refused: Bad = []
        self._damaged: Bad = []
        self._folders: Folders = {}
        self._named = {Path(_split(spec)[1]).resolve() for spec in specs if spec}
        self._left_out: list[LeftOut] = []
        self._alone: dict[str, str | None] = {}  # the one host of a file; None of several
        self._sources = _sources(specs, stdin, self._refused, self._folders)

    def bad(self) -> Bad:
        """(file, why) of what was refused, and of what `hosts` found damaged."""
        return [*self._refused, *self._damaged]

    def notes(self) -> list[str]:
        """What was left out though it could be read: folders, and what `hosts` met of captures that
        are not the last ones of their host."""
        return [*self._folders_told(), *self._taken(), *notes(self._left_out, self._alone)]

    def _taken(self) -> Iterator[str]:
        """What plain texts were taken for: a list of packages may be one of wishes."""
        found: dict[str, list[str]] = {}
        for source in self._sources:
            for raw in source.answers if isinstance(source.answers, list) else ():
                if typed := TYPED.get(raw.probe):
                    found.setdefault(typed, []).append(source.label)
        for typed, labels in found.items():
            more = f" and {len(labels) - _FILES_TOLD} more" if len(labels) > _FILES_TOLD else ""
            yield f"taken for the output of `{typed}`: {', '.join(labels[:_FILES_TOLD])}{more}"

    def _folders_told(self) -> Iterator[str]:
        for folder, within in self._folders.items():
            left = [path for path in within if path.resolve() not in self._named]
            names = [path.name for path in left[:_FOLDERS_TOLD]]
            more = f" and {len(left) - len(names)} more" if len(left) > len(names) else ""
            if left:
                told = f"only its files are read, not the folders {', '.join(names)}{more}"
                yield f"{folder}: {told}: --from {shlex.quote(str(left[0]))}"

    def hosts(self) -> Iterator[tuple[str, list[Raw]]]:
        """Each host once, one at a time in memory.

        Captures are read twice, first to count where each host occurs. One that occurs once is
        yielded at once; of others the earlier answers wait, packed to about a tenth of their size.
        """
        awaited = self._counted()
        waiting: dict[str, list[Piece]] = {}
        self._damaged, self._left_out = [], []
        for piece in _pieces(self._sources, self._damaged):
            awaited[piece.host] -= 1
            if awaited[piece.host] > 0:
                waiting.setdefault(piece.host, []).append(piece.packed())
            else:
                yield self._one([*waiting.pop(piece.host, []), piece])
        for pieces in waiting.values():  # a file changed between the two looks
            yield self._one(pieces)

    def _counted(self) -> Counter[str]:
        """How often each host occurs."""
        counts: Counter[str] = Counter()
        for piece in _pieces(self._sources, []):
            counts[piece.host] += 1
            if self._alone.setdefault(piece.label, piece.host) != piece.host:
                self._alone[piece.label] = None
        return counts

    def _one(self, pieces: list[Piece]) -> tuple[str, list[Raw]]:
        kept, left = latest(pieces)
        self._left_out += left
        return pieces[0].host, merged([piece.unpacked() for piece in kept], self._damaged)


def open_inputs(specs: Sequence[str], stdin: BinaryIO | None) -> Inputs:
    """For many hosts: raw outputs are read now, captures when `hosts` comes to them."""
    return Inputs(specs, stdin)


def _pieces(sources: list[_Source], bad: Bad) -> Iterator[Piece]:
    """The answers in the order given, a host's as far as they stand together in one file."""
    hosts_of: dict[str, str] = {}
    for source in sources:
        made = source.answers.created_at if isinstance(source.answers, Reader) else None
        for stored, raws in groupby(_answers(source, bad), key=attrgetter("host")):
            host = source.name or stored or INPUT
            if source.name and stored and hosts_of.setdefault(host, stored) != stored:
                what = f"{source.label} cannot be called {host}: it would be two hosts, "
                hint = f"leave the name out: --from {source.label}"
                raise UsageError(f"{what}{hosts_of[host]} and {stored}", hint)
            told = [raw if raw.host == host else replace(raw, host=host) for raw in raws]
            yield from askings(host, source.label, told, made)


def _answers(source: _Source, bad: Bad) -> Iterator[Raw]:
    why, count = None, 0
    try:
        for count, raw in enumerate(source.answers, 1):  # noqa: B007
            yield raw
        why = source.answers.damage if isinstance(source.answers, Reader) else None
    except UsageError as error:  # the file is gone since it was opened
        why = _without_name(error, source.label)
    if why or not count:
        bad.append((source.label, why or "holds no answers"))


def _sources(
    specs: Sequence[str], stdin: BinaryIO | None, bad: Bad, folders: Folders
) -> list[_Source]:
    sources: list[_Source] = []
    hints: set[str] = set()
    for name, label, path in _files(specs, bad, folders):
        if path and (inside := _sosreport(path, bad)):
            sources += [_Source(name, one.label, one.raws) for one in inside]
            continue
        try:
            stream = stdin
            if not path and stdin and _may_be_archive(stdin):
                data = stdin.read(MAX_BYTES + 1)
                if inside := _piped(data, label, bad):
                    sources += [_Source(name, one.label, one.raws) for one in inside]
                    continue
                stream = BytesIO(data)
            answers = answers_of(path, label) if path else answers_of_stream(stream, label)
            sources.append(_Source(name, label, answers))
        except UsageError as error:
            bad.append((label, _without_name(error, label)))
            hints.update(filter(None, [error.hint]))
    if not sources:
        raise _nothing(bad, hints)
    return sources


def _sosreport(path: Path, bad: Bad) -> list[Member]:
    """Its members where it is one."""
    if not (path.name.endswith(_ARCHIVES) or _is((path / "sos_commands").is_dir)):
        return []
    from preflight.transports.sosreport import members  # tarfile is slow to load

    return members(path, bad)


def _may_be_archive(stream: BinaryIO) -> bool:
    """By how it begins; nothing of it is lost."""
    if isinstance(stream, BufferedReader):
        head = stream.peek(512)
    else:
        head = stream.read(512)
        stream.seek(0)
    return head.startswith(_PACKED) or head[257:262] == b"ustar"


def _piped(data: bytes, label: str, bad: Bad) -> list[Member]:
    """The members of an archive that came through the standard input; none where it is another."""
    from preflight.transports.sosreport import members_of

    return members_of(data, label, bad)


def _without_name(error: UsageError, label: str) -> str:
    return error.what.removeprefix(label).lstrip(": ")


def _nothing(bad: Bad, hints: set[str]) -> UsageError:
    lines = [f"{file}: {why}" for file, why in bad[:_TOLD]]
    if len(bad) > _TOLD:
        lines.append(f"and {len(bad) - _TOLD} files more")
    head = [] if len(lines) == 1 else ["none of the files could be used:"]
    hint = READS if READS in hints else min(hints, default=READS)
    return UsageError("\n  ".join([*head, *lines]), hint)


def _files(
    specs: Sequence[str], bad: Bad, folders: Folders
) -> Iterator[tuple[str, str, Path | None]]:
    """Name, label and path (None: standard input) of each file, each once for a name."""
    seen: set[tuple[str, Path | None]] = set()
    for spec in specs:
        name, file = _split(spec)
        path = None if file == "-" else Path(file)
        for one in _within(path, bad, folders):
            key = (name, one and one.resolve())
            if key not in seen:
                seen.add(key)
                yield name, str(one or "standard input"), one


def _within(path: Path | None, bad: Bad, folders: Folders) -> list[Path | None]:
    """The files that it stands for; a sosreport is one."""
    opened = path and _is(path.is_dir) and not _is((path / "sos_commands").is_dir)
    return _in_folder(path, bad, folders) if path and opened else [path]


def _split(spec: str) -> tuple[str, str]:
    """NAME and FILE; a file whose own name holds `=` is meant before a name is."""
    if not spec:
        raise UsageError("--from '': expected a file", "is a variable of your script empty?")
    name, equals, file = spec.partition("=")
    if not equals or "/" in name or _is(Path(spec).exists):
        return "", spec
    if not (name and file):
        raise UsageError(f"--from {spec}: expected [NAME=]FILE", "--from node-07=dmesg.txt")
    return name, file


def _in_folder(folder: Path, bad: Bad, folders: Folders) -> list[Path | None]:
    try:
        visible = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        bad.append((str(folder), f"cannot be read: {error.strerror}"))
        return []
    files: list[Path | None] = [path for path in visible if _is(path.is_file)]
    if not files:
        why = "holds no files" + (", only folders; name one of them" if visible else "")
        bad.append((str(folder), why))
    elif within := [path for path in visible if _is(path.is_dir)]:
        folders[folder] = within
    return files


def _is(test: Callable[[], bool]) -> bool:
    """pathlib's question, with no for an answer where the folder may not be looked into."""
    try:
        return test()
    except OSError:
        return False
