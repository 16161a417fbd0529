"""Hosts whose NCCL differs from that of the others take no part: ranks of two versions do not form
one communicator, they end with an error or wait for each other."""

from __future__ import annotations

from collections import Counter

from .bench import Bench


def alike(bench: Bench) -> None:
    """The hosts of the version that most have stay. Where no version has most, none does."""
    versions = {at: str(about["nccl"]) for at, about in bench.many.about.items()
                if at in bench.hosts and about.get("nccl")}  # fmt: skip
    if len(set(versions.values())) < 2:
        return
    counted = Counter(versions.values()).most_common()
    usual = counted[0][0] if counted[0][1] > counted[1][1] else ""
    with_usual = [bench.name(at) for at, version in versions.items() if version == usual]
    for at, version in versions.items():
        if version != usual:
            others = _other(usual, with_usual) if usual else "no version is that of most hosts"
            bench.tell({"kind": "unlike", "of": bench.name(at),
                        "text": f"it has NCCL {version}, and {others}"})  # fmt: skip
            bench.many.leave(at)


def _other(version: str, hosts: list[str]) -> str:
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return f"{', '.join(hosts[:3])}{more} NCCL {version}"
