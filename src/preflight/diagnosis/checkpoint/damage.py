"""What is wrong with files of a checkpoint: flaws, globals of pickles, values that are none."""

from __future__ import annotations

from msgspec import Struct

from preflight.diagnosis.checkpoint.found import VALUES, Found
from preflight.diagnosis.checkpoint.layouts import Makes, flaw_table, matches, named_like
from preflight.facts.checkpoints import Flaw, ScannedFile, Tensor
from preflight.model import Evidence

#: Tensors of these names hold infinities on purpose: masks of attention.
_MASKS = ("mask", "attn.bias", "attention.bias", "masked_bias")


class Reason(Struct, frozen=True):
    """One thing that is wrong, and what it makes of the checkpoint."""

    makes: Makes
    text: str
    fix: str = ""
    evidence: Evidence | None = None


def reasons(found: Found) -> list[Reason]:
    """Everything that speaks against its files, the worst kinds as they come."""
    told = [reason for name, file in found.files.items() for reason in _of_file(found, name, file)]
    return [*told, *_not_finite(found)]


def _of_file(found: Found, name: str, file: ScannedFile) -> list[Reason]:
    told = [_of_flaw(name, file, flaw) for flaw in file.flaws if _matters(found, name, file, flaw)]
    hostile = [one for one in file.globals if named_like(one, flaw_table().hostile)]
    doubtful = [one for one in file.globals if named_like(one, flaw_table().doubtful)]
    if hostile:
        told.append(Reason(
            "hostile", f"{name}: its pickle would call {', '.join(hostile[:5])}",
            "do not load it; ask whoever made it", seen(name, ", ".join(hostile[:5])),
        ))  # fmt: skip
    elif doubtful:
        told.append(Reason("note", f"{name}: its pickle names {', '.join(doubtful[:5])}; "
                           "look before you load it with weights_only=False"))  # fmt: skip
    if file.kind == "distcp" and file.checksum == "not-looked" and not file.checked_bytes:
        told.append(Reason(
            "unknown", f"{name}: its pieces were not looked at: its .metadata does not lie beside "
            "it, or an extension packed them", "gather the files of all hosts in one folder, then "
            "verify that", seen(name, "no piece was read"),
        ))  # fmt: skip
    if file.kind == "link" and file.told.get("leads") != "inside":
        told.append(_of_link(name, file))
    return told


def _of_flaw(name: str, file: ScannedFile, flaw: Flaw) -> Reason:
    table = flaw_table()
    row = next((one for one in table.rows if one.kind == flaw.kind), None)
    makes: Makes = row.makes if row else "unknown"
    if flaw.kind == "trailing" and file.kind in table.trailing_damages:
        makes = "damaged"
    at = f" (at byte {flaw.offset:,})" if flaw.offset is not None else ""
    return Reason(makes, f"{name}: {flaw.text}{at}", row.fix if row else "",
                  seen(name, flaw.text, flaw.offset))  # fmt: skip


def _matters(found: Found, name: str, file: ScannedFile, flaw: Flaw) -> bool:
    """A marker without a byte, a note that is no JSON, and tokens in a file `train.bin` are nothing
    that a resume reads."""
    if file.kind in VALUES or file.kind in ("dcp-metadata", "zeros", "html", "lfs-pointer"):
        return True
    if name.endswith((".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".distcp")):
        other = flaw.kind == "unknown" or file.kind in ("text", "json")
        if not (other and name.endswith(".bin")):
            return True
    layout = found.layout
    return layout is not None and any(matches(one, name) for one in layout.patterns())


def _of_link(name: str, file: ScannedFile) -> Reason:
    target = file.told.get("links_to", "")
    if file.told.get("leads") == "nowhere":
        return Reason("incomplete", f"{name}: it is a link to {target}, and that is not there",
                      "fetch the file that it leads to", seen(name, f"-> {target}"))  # fmt: skip
    return Reason(
        "unknown", f"{name}: it is a link out of the folder, to {target}, and was not followed",
        "name the folder in which the files themselves lie (of a cache of Hugging Face "
        "models--NAME)", seen(name, f"-> {target}"),
    )  # fmt: skip


def _not_finite(found: Found) -> list[Reason]:
    told = []
    for what, bad in (("NaN", odd(found, "nans")), ("Inf", odd(found, "infs"))):
        if not bad:
            continue
        first = bad[0]
        count = first.nans if what == "NaN" else first.infs
        of = f"{count:,} of {first.looked_at:,} values"
        more = f", and in {len(bad) - 1:,} more tensors" if len(bad) > 1 else ""
        told.append(Reason(
            "damaged", f"{what} in {first.name} ({of}){more}",
            "take a checkpoint from before it: `preflight checkpoint verify` of the whole run "
            "tells since which", seen(first.file, f"{first.name}: {of} are {what}", first.offset),
        ))  # fmt: skip
    return told


def odd(found: Found, kind: str) -> list[Tensor]:
    """Tensors with NaN (`nans`) or infinities (`infs`) in places where none belong: a single value
    may be the best so far, of which there is none yet, and nothing but infinities is a mask."""
    masks = _MASKS if kind == "infs" else ()
    some = (one for one in found.tensors if 0 < getattr(one, kind) < one.count or one.nans > 1)
    return [one for one in some if getattr(one, kind) and not _is_one_of(one.name, masks)]


def _is_one_of(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)


def seen(file: str, text: str, offset: int | None = None) -> Evidence:
    """Where it was seen; bytes have no lines."""
    at = f"byte {offset:,}: " if offset is not None else ""
    return Evidence("checkpoint", f"{at}{text}", source=file)
