"""Recorded answers in place of a host's: what --from names, sorted by host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader, BytesIO
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from preflight.capture import Reader, pack, unpack
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.pasted import MAX_BYTES
from preflight.signatures import READS
from preflight.transports.one_file import answers_of, answers_of_stream

if TYPE_CHECKING:
    from preflight.transports.sosreport import Member

#: The host of raw tool outputs that were given no name.
INPUT = "input"
#: Its -d sections, given as several files, are one answer.
_SECTIONED = "nvidia-smi-q"
#: So are states, errors and capabilities of links, the states of services, and what is known of the
#: driver's module (`lsmod`, /proc/driver/nvidia/version).
_ADD_UP = ("nvlink", "services", "driver-module")
#: Logs add up, each read by itself: a ring buffer, a journal and the fabric manager's log. The
#: second of a host is called kernel-log#2.
_LOG = "kernel-log"
#: Forms of one answer, the better first: only one of them is judged.
_SAME = ("nvidia-smi", "nvidia-smi-q", "nvidia-smi-table")
_FULL_REPORT = re.compile(r"^ {4}Product Name +: ", re.MULTILINE)
_TOLD = 50
#: gzip, xz, bzip2: an archive may be within.
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
Bad = list[tuple[str, str]]  # (file, why)


class _Source(Struct, frozen=True):
    """One file that can be read. `name`: what the user called the host, else empty."""

    name: str
    label: str
    answers: Reader | list[Raw]


class Inputs:
    """What `[NAME=]FILE` options name, opened. FILE is `-` for the standard input, or a folder: its
    files by name, hidden ones and sub-folders left out.

    Where two files answer the same question for a host the later counts, and `bad` tells of the
    earlier; sections of `nvidia-smi -q -d` add up. Raises UsageError where no file can be used at
    all, and from `hosts` where one NAME would be several hosts.
    """

    def __init__(self, specs: Sequence[str], stdin: BinaryIO | None) -> None:
        self._refused: Bad = []
        self._damaged: Bad = []
        self._sources = _sources(specs, stdin, self._refused)

    def bad(self) -> Bad:
        """(file, why) of what was refused, and of what `hosts` found damaged."""
        return [*self._refused, *self._damaged]

    def hosts(self) -> Iterator[tuple[str, list[Raw]]]:
        """Each host once, one at a time in memory.

        Captures are read twice, first to count where each host occurs. One that occurs once is
        yielded at once; of others the earlier answers wait, packed to about a tenth of their size.
        """
        awaited = Counter(host for host, _ in _pieces(self._sources, []))
        waiting: dict[str, list[bytes]] = {}
        self._damaged = []
        for host, raws in _pieces(self._sources, self._damaged):
            awaited[host] -= 1
            if awaited[host] > 0:
                waiting.setdefault(host, []).append(pack(raws))
            else:
                pieces = [*map(unpack, waiting.pop(host, [])), raws]
                yield host, _merged(pieces, self._damaged)
        for host, packed in waiting.items():  # a file changed between the two looks
            yield host, _merged([*map(unpack, packed)], self._damaged)


def open_inputs(specs: Sequence[str], stdin: BinaryIO | None) -> Inputs:
    """For many hosts: raw outputs are read now, captures when `hosts` comes to them."""
    return Inputs(specs, stdin)


def _pieces(sources: list[_Source], bad: Bad) -> Iterator[tuple[str, list[Raw]]]:
    """The answers in the order given, a host's as far as they stand together in one file."""
    hosts_of: dict[str, str] = {}
    for source in sources:
        for stored, raws in groupby(_answers(source, bad), key=attrgetter("host")):
            host = source.name or stored or INPUT
            if source.name and stored and hosts_of.setdefault(host, stored) != stored:
                what = f"{source.label} cannot be called {host}: it would be two hosts, "
                hint = f"leave the name out: --from {source.label}"
                raise UsageError(f"{what}{hosts_of[host]} and {stored}", hint)
            yield host, [raw if raw.host == host else replace(raw, host=host) for raw in raws]


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


def _sources(specs: Sequence[str], stdin: BinaryIO | None, bad: Bad) -> list[_Source]:
    sources: list[_Source] = []
    hints: set[str] = set()
    for name, label, path in _files(specs, bad):
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
    return UsageError("\n  ".join([*head, *lines]), hints.pop() if len(hints) == 1 else READS)


def _files(specs: Sequence[str], bad: Bad) -> Iterator[tuple[str, str, Path | None]]:
    """Name, label and path (None: standard input) of each file, each once for a name."""
    seen: set[tuple[str, Path | None]] = set()
    for spec in specs:
        name, file = _split(spec)
        path = None if file == "-" else Path(file)
        for one in _within(path, bad):
            key = (name, one and one.resolve())
            if key not in seen:
                seen.add(key)
                yield name, str(one or "standard input"), one


def _within(path: Path | None, bad: Bad) -> list[Path | None]:
    """The files that it stands for; a sosreport is one."""
    opened = path and _is(path.is_dir) and not _is((path / "sos_commands").is_dir)
    return _in_folder(path, bad) if path and opened else [path]


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


def _in_folder(folder: Path, bad: Bad) -> list[Path | None]:
    try:
        visible = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        bad.append((str(folder), f"cannot be read: {error.strerror}"))
        return []
    files: list[Path | None] = [path for path in visible if _is(path.is_file)]
    if not files:
        why = "holds no files" + (", only folders; name one of them" if visible else "")
        bad.append((str(folder), why))
    return files


def _is(test: Callable[[], bool]) -> bool:
    """pathlib's question, with no for an answer where the folder may not be looked into."""
    try:
        return test()
    except OSError:
        return False


def _merged(pieces: list[list[Raw]], bad: Bad) -> list[Raw]:
    """The answers of one host from several files, in the files' order; `bad` is told of answers
    that a later file displaces, lest a fault in one of them goes unseen."""
    answers: dict[str, list[Raw]] = {}
    for piece in pieces:
        fresh: dict[str, list[Raw]] = {}
        for raw in piece:
            fresh.setdefault(raw.probe, []).append(raw)
        for probe, raws in fresh.items():
            earlier = answers.get(probe)
            if probe.partition("#")[0] == _LOG and earlier:
                another = f"{_LOG}#{sum(name.startswith(_LOG) for name in answers) + 1}"
                answers[another] = [replace(raw, probe=another) for raw in raws]
                continue
            adds = earlier is not None and _adds(probe, raws[0])
            if earlier and not adds and _text(earlier[-1]) != _text(raws[0]):
                bad.append(_displaced(earlier[-1], raws[0]))
            answers[probe] = [_joined(earlier[-1], raws[0])] if earlier and adds else raws
    better, *others = [probe for probe in _SAME if probe in answers] or [""]
    for other in others:
        if not _beside(answers[better][-1], answers[other][-1]):
            bad.append(_displaced(answers[other][-1], answers[better][-1]))
            del answers[other]
    return [raw for raws in answers.values() for raw in raws]


def _beside(better: Raw, table: Raw) -> bool:
    """Whether the table stands in the same paste as a full report: it tells nothing more, and is
    read only where the report cannot be."""
    return table.probe == _SAME[-1] and better.source == table.source


def _adds(probe: str, raw: Raw) -> bool:
    """Whether an answer goes on where an earlier one ended, in place of displacing it."""
    return probe in _ADD_UP or (probe == _SECTIONED and not _FULL_REPORT.search(_text(raw)))


def _displaced(earlier: Raw, later: Raw) -> tuple[str, str]:
    by = f"{later.source or 'a later capture'} answers the same for host {later.host}"
    why = f"not judged: {by}; give each host its name, --from NAME=FILE"
    return earlier.source or f"a capture of {earlier.host}", why


def _joined(first: Raw, second: Raw) -> Raw:
    """Two texts as one; the source says from which line on they are the second's, and blank lines
    make up for those that its file has before it."""
    text = _text(first)
    text += "" if text.endswith("\n") else "\n"
    begins = first.line_offset + text.count("\n") + 1
    source = (
        f"{first.source or 'a capture'}, then {second.source or 'a capture'} from line {begins}"
    )
    stdout = text + "\n" * second.line_offset + _text(second)
    truncated = first.truncated or second.truncated
    return replace(first, stdout=stdout, source=source, truncated=truncated)


def _text(raw: Raw) -> str:
    return raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
