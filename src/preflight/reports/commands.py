"""Which parts of a piece of advice are commands to paste, and which are sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Part(NamedTuple):
    """`text` as it is told; `comment`: what stands behind a command, without its mark."""

    text: str
    command: bool = False
    comment: str = ""


#: What the shell sees as one word, blanks in quotes included; what is never closed goes to the end.
SHELL_WORD = re.compile(r"""(?:[^\s'"\\]|\\.?|'[^']*(?:'|\Z)|"[^"]*(?:"|\Z))+""")
#: Programs that advice names; a sentence may begin with such a word too.
_PROGRAMS = frozenset(
    re.findall(
        r"\S+",
        """
        apt-get awk cat chmod cp cpupower cut date dcgmi df diff dmidecode dmesg do
        docker done dnf echo env ethtool export find free getent git grep head hostname
        ibdev2netdev ibportstat ibstat ibstatus ibv_devinfo ibv_devices ip ipmitool
        journalctl kill kubectl ldconfig ls lscpu lsmod lsof lspci migratepages mlnx_qos
        mlxconfig mlxfwmanager mlxlink modinfo modprobe mount nproc npu-smi numactl
        numastat nv-fabricmanager nvcc nvidia-smi nvidia-ctk perl pip pip3 pkill podman
        preflight printf ps python python3 ras-mc-ctl readlink rocm-smi sacct scontrol
        sed setpci sh show_gids sinfo smartctl sort squeue srun ss ssh stat strace sudo
        sysctl systemctl tail taskset tee time timedatectl timeout torchrun ulimit uname
        uniq unset virsh wc which xargs
        """,
    )
)
#: Words and marks of sentences: `nvidia-smi works on the host`, `unset it in the job`.
_PROSE = re.compile(
    r"(?:^|[ ])(?:a|again|an|and|are|as|by|does|each|else|how|in|is|it|its|of|or|says|so|than|that"
    r"|the|these|they|this|to|under|until|were|what|where|with|works|you|your)(?=[ ]|$)"
    r"|[\w'\"\])][,.:?] (?![-|;&>])|[ ]\(|[,?]$"
)
#: Where a piece ends: not before an option or a pipe, as in `lspci -d 10de: | grep`.
_BETWEEN = re.compile(r"(?:; |: (?![-|;&>]))")
_QUOTED = re.compile(r"""(?<![^\s=(])(?:'[^']*'|"[^"]*")""")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=\S*")
_LOOP = re.compile(r"for \w+ in \S+.*")


def parts(text: str) -> tuple[Part, ...]:
    """The text, all of it in its order, in commands and what stands between them; `$ ` marks a
    command whatever it looks like."""
    body, comment = _comment(text.rstrip())
    if text.startswith("$ "):
        return (Part(body.removeprefix("$ "), True, comment),)
    found = list(_pieces(body))
    if comment and not found[-1].command:
        return tuple(_pieces(text))
    if comment:
        found[-1] = found[-1]._replace(comment=comment)
    return tuple(found)


def is_command(text: str) -> bool:
    """Whether a piece of advice is nothing but a command to paste."""
    (first, *others) = parts(text)
    return first.command and not others


def _comment(text: str) -> tuple[str, str]:
    """The text and the comment behind it, as the shell finds it."""
    for word in SHELL_WORD.finditer(text):
        if word.start() and word[0] == "#":
            return text[: word.start()].rstrip(), text[word.end() :].strip()
    return text, ""


def _pieces(text: str) -> Iterator[Part]:
    """Commands, one after the other, are one."""
    masked = _QUOTED.sub(lambda quoted: f"'{'x' * (len(quoted[0]) - 2)}'", text)
    cuts = [0, *(found.end() for found in _BETWEEN.finditer(masked)), len(text)]
    start, before = 0, False
    for at in range(len(cuts) - 1):
        begins, ends = cuts[at], cuts[at + 1]
        command = _is_one(_BETWEEN.sub("", masked[begins:ends]).strip())
        joined = before and command and masked[begins - 2] == ";"
        if begins and not joined and (before or command):
            yield Part(text[start:begins], before)
            start = begins
        before = command
    yield Part(text[start:], before)


def _is_one(piece: str) -> bool:
    words = piece.split()
    while words and (words[0] == "sudo" or _ASSIGNED.fullmatch(words[0])):
        words = words[1:]
    if not words or (words[0] not in _PROGRAMS and not _LOOP.fullmatch(piece)):
        return False
    return bool(_LOOP.fullmatch(piece)) or not _PROSE.search(piece)
