"""What the words of perftest mean that ended a test, and what to type."""

from __future__ import annotations

import re

#: Words of perftest (src/perftest_communication.c, perftest_resources.c of linux-rdma/perftest) or
#: of libibverbs -> what to do. The first that is found counts.
_MEANINGS = (
    (r"Couldn't (?:allocate MR|create IB resources|register)|Cannot allocate memory|ENOMEM",
     "memory cannot be registered: `ulimit -l` must be unlimited there: preflight sysctl"),
    (r"Unable to find the Infiniband|Did not detect devices|IB device \S+ not found"
     r"|Couldn't get context",
     "the device cannot be opened there: `ibv_devinfo`; in a container --device=/dev/infiniband"),
    (r"not compatible with versions|Conflicting|[Vv]ersion",
     "perftest of one version on both hosts: `ib_write_bw --version`"),
    (r"GID|gid index|Incompatibility",
     "both ends need an address of one kind, RoCE v2 of IPv4: `show_gids`"),
    (r"transport retry|vendor err|Completion with error|Failed status",
     "no packets get through between these ports: cable, switch, VLAN, PFC; `rdma link`, "
     "`ibstat`, and on RoCE `ping -I INTERFACE` of the other address"),
    (r"Couldn't connect|Unable to (?:init|open|set up|read|write)[^\n]*socket|Couldn't listen",
     "the programs do not reach each other by TCP: is a firewall between the hosts?"),
    (r"use_cuda|cu[A-Z]\w+\(?\)? ?(?:failed|error)|nvidia_peermem|dma.?buf",
     "GPU memory cannot be registered: `preflight explain peermem`"),
)  # fmt: skip
#: What perftest prints of every test, and is no trouble.
_USUAL = re.compile(r"\s*(?:-+|\*.*|\s*[\w .*^/-]+:.*\bO(?:N|FF)\b.*|#bytes.*)?\s*$")
_LONGEST = 300


def meaning(text: str, versions: tuple[str, str]) -> str:
    """Of what a program printed that measured nothing: its own words, and what to type."""
    own = [" ".join(line.split()) for line in text.splitlines() if not _USUAL.match(line)]
    told = "; ".join(own[-3:])[-_LONGEST:] or "it printed nothing"
    advice = next((do for words, do in _MEANINGS if re.search(words, text)), "")
    if versions[0] != versions[1]:
        advice = f"perftest is {versions[0]} here and {versions[1]} there: install one version"
    return f"{told}: {advice}" if advice else told
