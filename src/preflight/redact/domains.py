"""Fully qualified names of machines in any text, told by how they end.

Modules, files, versions and the paths of Python have dots too. So an ending that is none but a
domain's counts at once, one that is also a word counts only where the rest looks like a machine,
and what belongs to the makers of hardware and software, such as docs.nvidia.com, names nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Match = re.Match[str]

# Alternatives of patterns: as tables they would be a page.
_SURE = "com|org|edu|gov|mil|arpa"
# Words too: threading.local, self.net, torch.io.
_PRIVATE = "internal|local|lan|corp|intra|localdomain"
_WORDS = "net|io|ai|cloud|home|int"
# Countries whose code is neither a word nor the ending of files (.py .so .sh .md .pl .rs .in .it).
_COUNTRIES = (
    "de|fr|uk|ch|jp|cn|eu|nl|se|fi|dk|kr|tw|sg|au|ca|es|ru|br|il|ie|cz|nz|za|mx|hk|hu|gr|ro|tr"
)
# The others, only where a host's name is all but certain.
_OTHERS = "at|be|it|no|pl|pt|us|in|is|my|id|sk|si|lt|lv|ee"
#: Endings of domains that end nothing else.
ENDING = re.compile(f"{_SURE}|{_PRIVATE}|{_WORDS}|{_COUNTRIES}")
# Under these every country keeps its institutions: iitd.ac.in, acme.co.id.
_SECOND = re.compile("ac|co|com|edu|gov|org|net|res")

#: What ends the name of a file.
SUFFIX = re.compile(
    "log|txt|jsonl?|ya?ml|xml|t?gz|tar|zst|xz|bz2|zip|out|err|csv|md|rst|html|js|pyc?|sh|so|ko|conf"
    "|cfg|ini|toml|service|socket|target|slice|scope|timer|mount|device|path|capture|bin|img|rpm"
    "|deb|run|whl|pth?|safetensors|ckpt|db|sock|pid|lock|tmp|bak|old|h|c|cpp|cu|o|a"
)
# Of those, the ones that are not also labels of domains.
_INNER = re.compile("js|html|tar|txt|json|xml|so|py|gz|conf|log")
# What the names of D-Bus, Java and containerd begin with.
_REVERSED = re.compile("com|org|net|io|edu|gov")
# Sites that are the same for everybody: manuals, registries, name spaces of resources.
_PUBLIC = re.compile(
    r"(?:nvidia|mellanox|amd|intel|broadcom|cornelisnetworks|dell|hpe|supermicro|github|gitlab"
    r"|githubusercontent|anaconda|openai|ubuntu|canonical|redhat|suse|oracle|docker|google"
    r"|googleapis|microsoft|amazon|schedmd|pcisig|wireguard|stackoverflow)\.com"
    r"|(?:kernel|pytorch|tensorflow|python|pypi|pythonhosted|readthedocs|anaconda|debian|centos"
    r"|fedoraproject|rockylinux|almalinux|opensuse|golang|gnu|apache|freedesktop|open-mpi"
    r"|openfabrics|lustre|ietf|ieee|w3|dmtf|json-schema|linuxfoundation|nvmexpress)\.org"
    r"|(?:nvcr|github|readthedocs|conda|docker|quay|gcr|ghcr|k8s|kubernetes|systemd)\.io"
    r"|wandb\.ai|launchpad\.net|sourceforge\.net"
)
_STAFF = re.compile("corp|internal|int|eng|labs?|prod|dev|hpc|infra")
# What the dotted paths of programs begin with.
_PROGRAM = re.compile(
    "self|cls|this|args|config|cfg|opts?|options|model|module|sys|os|std|user|rc|jail|torch"
    "|torchvision|numpy|tensorflow|jax|google|threading|asyncio|concurrent|multiprocessing|javax?"
    "|sun|werkzeug|contextvars|preflight|deepspeed|megatron|transformers|accelerate|ray|dask"
)
_NOTES = re.compile("readme|todo|notes?|install|news|changes|changelog|contributing|copying")

_NUMBERED = re.compile(r"[a-z_-]\d|\d[a-z-]|[a-z]-[a-z]")

# 40 labels: an address of IPv6 under ip6.arpa has 34.
_FULL = re.compile(
    rf"(?i)(?<![\w-])(?<!\w\.)(?P<v>(?:[\w-]{{1,63}}\.){{1,40}}(?:{ENDING.pattern}|{_OTHERS}))"
    r"(?![\w-])(?P<more>(?:\.\w{1,24}){0,3})(?!\.?\w)"
)


def full_names(text: str) -> Iterator[str]:
    """The names of machines in `text`, as they stand there; none of an e-mail address."""
    if "." not in text:
        return
    for match in _FULL.finditer(text):
        if _is_host(match):
            yield match["v"]


def _is_host(match: Match) -> bool:
    labels = match["v"].lower().split(".")
    before = match.string[max(0, match.start() - 2) : match.start()]
    if before[-1:] == "@" and re.match(r"[\w.+-]", before):
        return False
    if not all(map(SUFFIX.fullmatch, match["more"].lower().split(".")[1:])):
        return False  # com.example.tool, model.net.weight
    if _REVERSED.fullmatch(labels[0]) or any(map(_INNER.fullmatch, labels[1:-1])):
        return False  # io.containerd.v1.local, bundle.js.br
    if _is_public(labels):
        return False
    if labels[-1] == "arpa":
        return True
    if all(label.isdigit() for label in labels[:-1]):
        return False
    at_hand = match.string[match.end("v") : match.end("v") + 2]
    addressed = before == "//" or re.match(r":\d", at_hand) is not None
    file = before[-1:] == "/" and not addressed
    called = at_hand.startswith("(") and not re.fullmatch(_SURE, labels[-1])
    return not called and _looks_like_host(labels, addressed, file)


def _looks_like_host(labels: list[str], addressed: bool, file: bool) -> bool:
    """`addressed`: in a URL or with a port; `file`: the last part of a path."""
    two, numbered = len(labels) == 2, _NUMBERED.search(labels[0]) is not None
    if re.fullmatch(_SURE, labels[-1]):
        return addressed or not (two and (file or _NOTES.fullmatch(labels[0])))
    if addressed:
        return True
    if _PROGRAM.fullmatch(labels[0]) or any(re.match("_|.*__", label) for label in labels):
        return False
    if re.fullmatch(_PRIVATE, labels[-1]):
        return not (two and file)
    if re.fullmatch(_WORDS, labels[-1]):
        return (numbered or not two) and not file
    if two:
        return False
    if re.fullmatch(_COUNTRIES, labels[-1]) or _SECOND.fullmatch(labels[-2]):
        return True
    return not file and (numbered or len(labels) > 3)


def _is_public(labels: list[str]) -> bool:
    """Whether the name is a site of _PUBLIC, or a plain name under it; not somebody's machine."""
    if not _PUBLIC.fullmatch(".".join(labels[-2:])):
        return False
    below = labels[:-2]
    return len(below) < 3 and all(
        label.replace("_", "").isalpha() and not _STAFF.fullmatch(label) for label in below
    )
