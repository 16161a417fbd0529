"""Where a text itself says how a host is called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


class Telling(NamedTuple):
    """The group `v` is a host, or several as `node[1-3]`. Hints as those of a rule."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]


_NAME = r"(?P<v>[\w.-]{1,253})"

HOST_TOLD = tuple(
    Telling(tuple(filter(None, hints.split("|"))), re.compile(pattern))
    for hints, pattern in (
        # a system log, with either kind of time
        (
            "",
            r"(?m)^(?:<\d{1,3}>)?"
            r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,30}) "
            rf"{_NAME} (?:kernel|systemd|sshd|sudo|su|slurm\w{{1,8}}|crond?|CRON|dockerd|containerd"
            r"|kubelet|rsyslogd|dbus-daemon|audit\w{0,8}|nv\w{1,20}|NetworkManager)(?:\[\d{1,10}\])?:",
        ),
        # NCCL_DEBUG=INFO, nccl-tests
        (
            " nccl ",
            rf"(?m)(?:^|[\s\"]){_NAME}:\d{{1,10}}:\d{{1,10}} \[\d{{1,3}}\] [^\n]{{0,40}}NCCL ",
        ),
        ("pid", rf"\bPid {{1,8}}\d{{1,10}} on {{1,8}}{_NAME} device\b"),
        ("test ", rf"(?m)^(?:[\[\]\w,<>]{{1,24}}: ?)?{_NAME}: Test (?:NCCL|CUDA|timeout)\b"),
        (" .. ", rf"(?m)^(?:[\[\]\w,<>]{{1,24}}: ?)? \.\. {_NAME} pid \d{{1,10}}: Test failure"),
        ("couldn't connect", rf"Couldn't connect to {_NAME}:\d{{2,5}}\b"),
        ("hostname", rf"(?m)^hostname[ :]{{1,3}}{_NAME}$"),
        ("hostname", rf"(?i)hostname[\"']?[ \t]{{0,40}}[=:][ \t]{{0,8}}[\"']?{_NAME}"),
        ("hostname", rf"\b[Hh]ostname (?:set )?to <{_NAME}>"),
        ("linux ", rf"(?m)^Linux {_NAME} \d{{1,2}}\.\d{{1,3}}\."),
        # Slurm, torchrun
        (
            "node|host|addr",
            r"\b(?:NodeName|(?:Req|Exc)?NodeList|BatchHost|MASTER_ADDR|SLURMD_NODENAME"
            r"|SLURM_(?:JOB_)?NODELIST)=(?P<v>[\w.,\[\]-]{1,4096})",
        ),
        ("allocnode", rf"\bAllocNode:Sid={_NAME}:"),
        ("error: ", r"\b(?:srun|slurmstepd): error: (?P<v>[\w.,\[\]-]{1,4096}): task"),
        (" cancelled at", rf"\*\*\* (?:JOB|STEP) [\w.+]{{1,30}} ON {_NAME} CANCELLED AT"),
        # a training run of preflight: its own host, all of them, where they meet
        ('"host"', rf"\"host\": ?\"{_NAME}\""),
        ('"hosts"', rf"\"{_NAME}\"(?=(?:, ?\"[\w.-]{{1,253}}\"){{0,512}}\], ?\"master\":)"),
        ('"master"', rf"\"master\": ?\"{_NAME}\""),
        ("master|rdzv", rf"(?i)(?:master[_-]addr|rdzv[_-]endpoint)[ =:]{{1,3}}[\"']?{_NAME}"),
        ("network address", rf"network address of \({_NAME}, \d{{1,5}}\)"),
        # Open MPI: [node-07:04711], and its host files
        (":", r"(?m)^\[(?P<v>[A-Za-z][\w.-]{1,252}):\d{5,8}\][ \[]"),
        (" slots=", rf"(?m)^{_NAME} slots=\d"),
        # ibnetdiscover, iblinkinfo, sysfs
        (
            "hca-|mlx|hfi1_",
            r"(?:\"|\bCA: |\b[Nn]ode[ _]?[Dd]esc(?:ription)?[\"']?[ \t]{0,20}[:=][ .\t]{0,60})"
            r"[\"']?(?P<v>[A-Za-z0-9][\w.-]{0,252}) (?:HCA-\d|mlx\d_|hfi1_)",
        ),
        ("mf0;", r"\bMF0;(?P<v>[A-Za-z0-9][\w.-]{0,252}):"),
        # a pasted prompt; ssh
        ("@", rf"(?m)^\[?[\w.-]{{1,64}}@{_NAME}[: ][~/]"),
        ("connect to host", rf"\bssh: connect to host {_NAME} port\b"),
        ("rhost=", rf"\brhost={_NAME}"),
        # file servers: the kernel's complaints, and mounts
        (
            "server ",
            rf"\b(?:nfs|lockd|CIFS)\b[^\n]{{0,20}}: server {_NAME} (?:not responding|OK|is)",
        ),
        (
            "nfs|lustre|ceph|cifs",
            rf"(?m)^{_NAME}:/[^\s:]{{0,200}}[ \t]{{1,40}}(?:on[ \t]{{1,4}})?/[^\s:]{{0,200}}"
            r"[ \t]{1,40}(?:type[ \t]{1,4})?(?:nfs4?|ceph|lustre|cifs)\b",
        ),
        # NFS: mounting store-03:/export; node-07:/export, where the name can be nothing else
        (":/", rf"(?i)\bnfs\d?:? (?:[a-z]{{1,12}} ){{0,3}}{_NAME}:/\w"),
        (
            ":/",
            r"(?<![\w./:@-])(?P<v>[A-Za-z]\w{0,40}-[\w-]{0,40}\d{1,6}(?:\.[\w-]{1,63}){0,6})"
            r":/[A-Za-z]",
        ),
        ("nfsroot=", rf"\bnfsroot={_NAME}:/"),
        # shares of Windows; //lib64/ is a path
        ("cifs|smb", rf"(?i)\b(?:cifs|smb3?)\b[^\n]{{0,60}}?(?<![:\w/.])//{_NAME}/"),
        ("cifs|smb", rf"(?m)^//{_NAME}/[^\n]{{0,200}}[ \t](?:cifs|smb3)[ \t]"),
        (
            "//",
            r"(?<![:\w/.])//(?!lib)(?P<v>(?=[\w.-]{0,60}\d)[A-Za-z][\w.-]{1,62})/\w",
        ),
        # the kernel's command line: ip=CLIENT:SERVER:GATEWAY:MASK:NAME:DEVICE
        (
            "ip=",
            r"\bip=(?:\[[\da-fA-F:]{0,40}\]|[\w.-]{0,60})"
            r"(?::(?:\[[\da-fA-F:]{0,40}\]|[\w.-]{0,60})){3}:(?P<v>[A-Za-z][\w.-]{0,252})(?=[:\s]|$)",
        ),
        ("vm name", rf"\bVM Name[ \t]{{1,40}}: {_NAME}"),
    )
)

#: What stands before the hosts in a command line of mpirun or srun; each has its slots behind it.
_LISTS = ("-H", "-hosts")
_NODES = "--nodelist="
_SLOTS = re.compile(r":\d{1,6}\Z")


def in_a_launch(argv: Sequence[str]) -> Iterator[str]:
    """The hosts over which a program was started: their own answers come later than this one."""
    if not any(word.endswith(("mpirun", "mpiexec", "srun")) for word in argv):
        return
    lists = [after for word, after in pairwise(argv) if word in _LISTS]
    lists += [word.removeprefix(_NODES) for word in argv if word.startswith(_NODES)]
    for one in lists:
        yield from (_SLOTS.sub("", name) for name in one.split(","))
