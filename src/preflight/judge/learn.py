"""What to type where nothing could be learned: what the check says for that (`learn`), else by the
reason.

What a check would advise (`fix`) belongs to a fault that nobody has seen. One step for each reason:
many checks lack the same thing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from preflight.judge.steps import of_what_was_found
from preflight.model import Check

#: How a reason reads -> what supplies what is missing; groups of the pattern stand in {}. The first
#: that is found counts.
_BY_REASON = (
    (r"repeats were tried|differ by [\d.]+ ?% by chance|neither fast nor clearly slow|not steady",
     "ps -eo pcpu,stat,pid,user,args --sort=-pcpu | head   # on those hosts: whose work is it?"),
    (r"--sudo|as root|(?:and|to) (?:by )?root|another user's|may not be (?:read|listed)"
     r"|[Pp]ermission denied|[Nn]ot permitted|hidepid|[Ii]nsufficient [Pp]ermissions",
     "the same with --sudo, or as root"),
    (r"; (export [A-Z_]+=[A-Za-z]+)", "{0}   # as the reason says, then the same again"),
    (r"active work of preflight holds", "wait until it has ended, then the same again"),
    (r"holds process|% in use, by a process", "wait until it has ended, or --even-if-busy"),
    (r"no torch; (--python [\w./-]+)$", "the same with {0}"),
    (r"no torch|torch that is not whole|cannot import|built without (?:nccl|gloo)",
     "the same with --python 'PATH/OF/python3' of the environment that trains"),
    (r"not installed; it comes with ([\w.+-]+)",
     "sudo apt-get install {0}   # there; or dnf, zypper; then the same again"),
    (r"(?:`|: )(preflight [a-z-]+(?: --?[a-z][\w-]*(?:[ =][\w.,/:=-]+)?)*)"
     r"(?:`|$| with the same hosts)", "{0}"),
    (r"not all hosts reach each other|does not reach",
     "sudo nft list ruleset; ip route   # on the hosts that are named: a job uses all ports above "
     "1024 between them; or --interface NAME"),
    (r"not measured from then on|the search did not come to its end|was lost|is gone|gave no sign",
     "the same again without the host that is named, until it is mended"),
    (r"--shard names one file", "ls -l FILE   # there: --shard names one file of the data"),
    (r"another --url$", "the same with another --url file:///DIR"),
    (r"another --dir$|--dir DIR names", "the same with another --dir"),
    (r"fio refuses the job file", "fio --parse-only FILE   # the job file there"),
    (r"no such program|--python", "the same with --python 'PATH/OF/python3'"),
    (r"^(?:not asked|.*\bdid not end within|.*limit of [\d.]+ ?s)|hung for",
     "the same with --host-timeout 5m; again? the tool by hand there: does it hang?"),
    (r"interrupted|was ended|is ended|before it was done", "the same again, to its end"),
    (r"cut short|cut off|was cut|text ends before|lacks (?:its|the) end|recording",
     "record all of it, to its end, and the same again"),
    (r"no NVIDIA GPU",
     "lspci -d 10de:; nvidia-smi -L   # none? of a container: docker run --gpus all"),
    (r"no folder takes the payload",
     "df -h /tmp /dev/shm $HOME   # there; export TMPDIR=DIR names another that can be written"),
    (r"^(\S*[a-z]\S*(?: -\S+)*) exited with", "{0}   # by hand there: what does it say?"),
)  # fmt: skip
#: Of other reasons, by the kind of what is missing.
_BY_KIND = {
    "denied": "the same with --sudo, or as root",
    "no-tool": "install it there, then the same again",
    "timeout": "the same with --host-timeout 5m",
    "unreachable": "ping -c 3 HOST; is it up? look at its console or BMC",
}
_PRINTED = "the same with --save there.capture.gz; zcat there.capture.gz   # what the tools print"


def learned_by(check: Check, reason: str, kind: str = "") -> tuple[str, ...]:
    """The check's own steps for this reason, else the one that supplies what is missing."""
    return of_what_was_found(check.learn, reason) or to_learn(reason, kind)


@lru_cache(maxsize=1024)
def to_learn(reason: str, kind: str = "") -> tuple[str, ...]:
    """The step that supplies what is missing. `kind`: that of the Missing, where there is one."""
    for pattern, step in _BY_REASON:
        found = re.search(pattern, reason)
        if found:
            return (step.format(*(one or "" for one in found.groups())),)
    return (_BY_KIND.get(kind, _PRINTED),)
