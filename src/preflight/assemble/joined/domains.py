"""Which GPUs NVLink joins, and by how many links, from the pairs of the matrix or, without it, from
the links that each GPU of a board with NVSwitches has up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from preflight.facts.gpu import Gpu
from preflight.facts.topology import PATHS, Link, NvlinkDomain
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.nodesets import fold

#: More links than any GPU has (NVLink 4 and 5: 18): in the matrix only switches make it more.
_MOST_LINKS = 18
#: Boards of these models have NVSwitches for eight GPUs; those of four do without.
_NO_SWITCHES = 4
_NEEDS_MATRIX = Missing("not-in-input", "which GPUs NVLink joins stands in `nvidia-smi topo -m`")
_NO_PEER = Missing("not-applicable", "no other GPU is told of")


class Pairs(Struct, frozen=True):
    """The links between GPUs: by both of their names, and by one."""

    between: Mapping[tuple[str, str], Link]
    by_gpu: Mapping[str, list[Link]]

    def of(self, gpu: str) -> list[Link]:
        """Those of one GPU."""
        return self.by_gpu.get(gpu, [])


class Board(Struct, frozen=True):
    """What the model of the GPUs says of NVLink: links of a GPU, whether its board has switches."""

    nvlinks: Known[int] = NOT_IN_INPUT
    switched: Known[bool] = NOT_IN_INPUT


def pairs(links: Iterable[Link], gpus: Iterable[str]) -> Pairs:
    """The links that are between two GPUs."""
    names = set(gpus)
    between: dict[tuple[str, str], Link] = {}
    by_gpu: dict[str, list[Link]] = {}
    for link in links:
        if link.a in names and link.b in names:
            between[link.a, link.b] = between[link.b, link.a] = link
            by_gpu.setdefault(link.a, []).append(link)
            by_gpu.setdefault(link.b, []).append(link)
    return Pairs(between, by_gpu)


def domains_of(of: Pairs, gpus: Sequence[str], board: Board) -> tuple[NvlinkDomain, ...]:
    """The groups of GPUs that NVLink joins."""
    left, found = list(gpus), []
    while left:
        group = _reached(of, left[0])
        left = [name for name in left if name not in group]
        if len(group) > 1:
            found.append(_domain(of, [name for name in gpus if name in group], board))
    return tuple(found)


def _reached(of: Pairs, start: str) -> set[str]:
    """All GPUs that can be reached over NVLink alone."""
    seen, ahead = {start}, [start]
    while ahead:
        for link in of.of(ahead.pop()):
            for name in (link.a, link.b):
                if link.path == "NV" and name not in seen:
                    seen.add(name)
                    ahead.append(name)
    return seen


def _domain(of: Pairs, members: Sequence[str], board: Board) -> NvlinkDomain:
    inside = [of.between[pair] for pair in combinations(members, 2) if pair in of.between]
    joined = [link.nvlinks for link in inside if link.path == "NV"]
    complete = len(joined) == len(members) * (len(members) - 1) // 2
    first = inside[0]
    return NvlinkDomain(
        name=fold(members),
        gpus=tuple(members),
        nvlinks=min(joined),
        even=complete and len(set(joined)) == 1,
        complete=complete,
        switched=_switched(of, members, complete, board),
        line=first.line,
        probe=first.probe,
    )


def _switched(of: Pairs, members: Sequence[str], complete: bool, board: Board) -> Known[bool]:
    """By the sum of links: through switches each counts for every peer, so that they seem more than
    a GPU has. Of two GPUs they are the same number either way."""
    if len(members) == 2:
        return board.switched
    most = board.nvlinks if isinstance(board.nvlinks, int) else _MOST_LINKS
    if max(sum(link.nvlinks for link in of.of(gpu)) for gpu in members) > most:
        return True
    known = not complete or isinstance(board.nvlinks, int)
    return False if known else NOT_IN_INPUT


def domain_by_status(
    names: Sequence[str], told: Mapping[str, Gpu]
) -> Known[tuple[NvlinkDomain, ...]]:
    """Without a matrix: all GPUs of a board with NVSwitches, where all links of all are up; none
    where no model has NVLink."""
    gpus = [told[name] for name in names if name in told]
    if len(names) < 2:
        return _NO_PEER
    if len(gpus) < len(names):
        return _NEEDS_MATRIX
    if all(_has_no_nvlink(gpu) for gpu in gpus):
        return ()
    up = {_all_up(gpu) for gpu in gpus}
    if len(up) != 1 or not all(up):
        return _NEEDS_MATRIX
    if len(names) <= _NO_SWITCHES and any(not _in_rack(gpu) for gpu in gpus):
        # Boards of four have no switches: their links are divided among three peers.
        text = f"{max(up)} NVLinks of each GPU are up; to which GPUs tells `nvidia-smi topo -m`"
        return Missing("not-in-input", text)
    return (NvlinkDomain(fold(names), tuple(names), up.pop(), True, True, True, gpus[0].line,
                         gpus[0].probe),)  # fmt: skip


def links_within(
    domains: Iterable[NvlinkDomain], links: Mapping[tuple[str, str], Link]
) -> dict[tuple[str, str], Link]:
    """The links of GPUs that are in one domain by their status, by the names that PCI gave them."""
    found = {}
    for one in domains:
        for a, b in combinations(one.gpus, 2):
            at = (b, a) if (b, a) in links else (a, b)
            found[at] = Link(*at, "NV", one.nvlinks, one.line, one.probe)
    return found


def _has_no_nvlink(gpu: Gpu) -> bool:
    design = gpu.design
    return not isinstance(design, Missing) and isinstance(design.nvlinks, Missing)


def _in_rack(gpu: Gpu) -> bool:
    """Superchips reach all of their host over the switches of the rack."""
    return not isinstance(gpu.design, Missing) and gpu.design.form == "superchip"


def _all_up(gpu: Gpu) -> int:
    """Its links, all up and into switches; 0 where that is not so or not known."""
    design, links = gpu.design, gpu.nvlink
    if isinstance(design, Missing) or isinstance(links, Missing) or not design.nvswitch:
        return 0
    return links.up if isinstance(links.up, int) and links.up == design.nvlinks else 0


def links_of(of: Pairs, gpu: str, domain: NvlinkDomain | None) -> Known[int]:
    """How many links of a GPU are up: into switches those to any one peer, else their sum."""
    mine = of.of(gpu)
    unknown = next((link.path for link in mine if isinstance(link.path, Missing)), None)
    if unknown is not None:
        return unknown
    if not mine:
        return _NO_PEER
    counts = [link.nvlinks for link in mine]
    return max(counts) if domain and domain.switched is True else sum(counts)


def peers_of(of: Pairs, gpu: str, *, nvlink_only: bool = False) -> Known[str]:
    """The paths to the other GPUs, best first: "4 x NV1, 3 x SYS"; "none" where there is none."""
    counted: Counter[tuple[int, int]] = Counter()
    for link in of.of(gpu):
        if isinstance(link.path, Missing):
            return link.path
        if link.path == "NV" or not nvlink_only:
            counted[PATHS.index(link.path), -link.nvlinks] += 1
    told = (
        f"{count} x {PATHS[rank]}{-links or ''}" for (rank, links), count in sorted(counted.items())
    )
    return ", ".join(told) or "none"


def on_board(domain: NvlinkDomain) -> bool:
    """Whether a board joins its GPUs: no bridge spans more than four cards."""
    return domain.switched is True or len(domain.gpus) > 4


def comparable(
    domain: NvlinkDomain | None, domains: Sequence[NvlinkDomain], gpus: int
) -> Missing | None:
    """Why a GPU's links are not compared with those of the others; None where they are."""
    if not domains:
        return Missing("not-applicable", "no NVLink between the GPUs of this host")
    if domain is None and not any(map(on_board, domains)):
        return Missing("not-applicable", "no bridge to another card, which is no fault")
    if not any(one.complete for one in domains) and gpus < 8:
        return Missing("not-applicable", "a part of a mesh: its GPUs are not joined alike")
    uneven = [one for one in domains if one.switched is not True and not one.even]
    if uneven and gpus < 8:
        return Missing("not-applicable", "a mesh of few GPUs, which may be uneven by design")
    return None
