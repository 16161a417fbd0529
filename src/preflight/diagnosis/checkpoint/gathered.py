"""What several hosts see at one path, as one scan: on shared storage all see the same, on disks of
their own each has a part."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from preflight.facts.checkpoints import Flaw, Scan, ScannedFile, Tensor


def gathered(scans: Sequence[Scan]) -> tuple[Scan, ...]:
    """One for each path that was given, with the files of all hosts; `host` is empty where all
    hosts see all of them."""
    by_source: dict[str, list[Scan]] = {}
    for one in scans:
        by_source.setdefault(one.source, []).append(one)
    return tuple(_one(each) for each in by_source.values())


def _one(scans: Sequence[Scan]) -> Scan:
    there = [one for one in scans if not one.absent]
    if len(there) < 2:
        return replace(there[0], host="") if there and len(scans) == 1 else (there or scans)[0]
    files: dict[str, ScannedFile] = {}
    tensors: dict[tuple[str, str], Tensor] = {}
    seen: dict[str, set[str]] = {}
    for scan in there:
        for file in scan.files:
            files[file.path] = _worse(files.get(file.path), file)
            seen.setdefault(file.path, set()).add(scan.host)
        for one in scan.tensors:
            tensors[one.file, one.name] = _worse_tensor(tensors.get((one.file, one.name)), one)
    known = set(files)
    whole = all(one.whole for one in there)
    troubles = dict.fromkeys(f"{one.host}: {one.trouble}" for one in there if one.trouble)
    alike = all(len(hosts) == len(scans) for hosts in seen.values())
    return replace(
        there[0], host="" if alike else ", ".join(one.host for one in there),
        files=tuple(_without_found(one, known) for _, one in sorted(files.items())),
        tensors=tuple(_with_found(one, known) for one in tensors.values()),
        folders=tuple(sorted({one for scan in there for one in scan.folders})),
        total_bytes=sum(one.size for one in files.values()), whole=whole,
        trouble="; ".join(troubles),
    )  # fmt: skip


def _worse(one: ScannedFile | None, other: ScannedFile) -> ScannedFile:
    """Of two looks at one path the one with flaws: a host that reads it wrong is at fault itself,
    and a resume reads it there too. Of lone pieces that which the metadata was beside."""
    if one is None or len(other.flaws) > len(one.flaws):
        return other
    if one.checksum == "not-looked" and other.checksum != "not-looked" and not one.flaws:
        return other
    return one


def _worse_tensor(one: Tensor | None, other: Tensor) -> Tensor:
    if one is None or (other.damage and not one.damage):
        return other
    return other if other.looked_at > one.looked_at and not one.damage else one


def _without_found(file: ScannedFile, known: set[str]) -> ScannedFile:
    """Its metadata names files that are on other hosts."""
    kept = tuple(one for one in file.flaws if not _is_found(one, known))
    return replace(file, flaws=kept) if len(kept) < len(file.flaws) else file


def _is_found(flaw: Flaw, known: set[str]) -> bool:
    return flaw.kind == "missing-file" and flaw.text.partition(" is named")[0] in known


def _with_found(tensor: Tensor, known: set[str]) -> Tensor:
    path, _, rest = tensor.damage.rpartition(" is missing")
    return replace(tensor, damage="") if path in known and not rest else tensor
