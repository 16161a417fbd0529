"""What may be shown of a report or a capture: never secrets and, on demand, no names either.

A stand-in is stable within one `Redactor`: one address is `ipv4-1` everywhere. Lines stay lines, so
that evidence still points to where it was found. All repetitions in patterns are bounded: no text,
however long, is looked at twice.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.model import Raw, Report
from preflight.nodesets import expand, fold

Match = re.Match[str]
MASK = "***"

# --- secrets -----------------------------------------------------------------------------------

_WORD = (
    r"(?P<word>pass(?:words?|wd|phrase)|[_-]pwd|secret|credentials?|token|(?:api|access|private"
    r"|auth|account)[_-]?key)(?:[_-]?(?:access[_-]?key|key|value|hash|base64))?"
)
_VALUE = r"""(?:(?P<open>\\?["'])(?P<quoted>[^\r\n]{0,512}?)(?P=open)|\\?["']?(?P<bare>[^\s"'<>,;&\\)\]}]{1,512}))"""
_ASSIGNED = re.compile(rf"""(?i){_WORD}\\?["']?[ \t]{{0,8}}(?:=>|=|:)[ \t]{{0,8}}{_VALUE}""")
_OPTION = re.compile(
    rf"""(?i)(?<![\w-])--?[\w-]{{0,40}}{_WORD}(?:\\?["'],?)?[ \t]{{1,8}}(?!-){_VALUE}"""
)
_OPTION_NAME = re.compile(rf"(?i)--?[\w-]{{0,40}}{_WORD}")
# A token is also what language models read: pad_token: 0, "eos_token": "</s>", --max-token 4096.
_TRAINING = re.compile(
    r"(?i)(?:pad|[beu]os|bos|unk|sep|cls|mask|special|im(?:age|g)|audio|video|new|max|min|num|per"
    r"|stop|start|end|next|tool|draft|additional)[_-]?$"
)
_NO_SECRET = re.compile(r"(?i)none|null|true|false|yes|no|\*+|not|required|unset|\$.*")
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
    r"(?:(?:[^-]|-(?!----)){0,20000}-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|(?:\s{1,4}[\w+/=]{16,100})*)"
)
#: (hint, pattern): the pattern's groups stay, what lies between them is masked. A text without
#: the hint, in small letters, is not searched.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("://", re.compile(r"(://)[^\s/@:\"'<>]{0,128}:[^\s/\"'<>]{0,256}(@)")),
    ("authorization", re.compile(r"""(?i)(authorization\\?["']?\s?[:=]\s?\\?["']?)[^\r\n"'\\]{1,4096}()""")),
    ("cookie", re.compile(r"""(?im)((?:^|[\s"'])(?:set-)?cookie:[ \t]?)[^\r\n"']{1,4096}()""")),
    ("bearer", re.compile(r"(?i)\b(bearer[ \t]{1,4})[\w.~+/=-]{8,4096}()")),
    ("sshpass", re.compile(r"\b(sshpass[ \t]+-p[ \t]{0,4})\S{1,256}()")),
    ("login", re.compile(r"(?i)\b(login[ \t]+\S{1,128}[ \t]+password[ \t]+)\S{1,256}()")),
    ("x-amz-", re.compile(r"(?i)(x-amz-(?:signature|credential|security-token)=)[^&\s\"']{1,4096}()")),
    ("</", re.compile(rf"(?i)(<[\w:-]{{0,40}}{_WORD}[^<>]{{0,99}}>)[^<\r\n]{{1,4096}}(</)")),
)  # fmt: skip
_KNOWN_TOKENS = re.compile(
    r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{20,255}|github_pat_\w{20,255}|hf_\w{20,99}"
    r"|glpat-[\w-]{16,99}|sk-[\w-]{20,255}|xox[abeprs]-[\w-]{10,255}|AIza[\w-]{30,99}"
    r"|nvapi-[\w-]{20,255}|eyJ[\w-]{8,4096}\.[\w-]{8,4096}\.[\w-]{0,4096})"
)
_HINTS = ("pass", "pwd", "secret", "credential", "token", "key")


def secrets(text: str) -> str:
    """`text` with passwords, tokens, keys and headers that carry them masked; the rest stays."""
    lower = text.lower()
    if "private key-----" in lower:
        text = _KEY_BLOCK.sub(lambda match: "\n".join([MASK] * (match[0].count("\n") + 1)), text)
    for hint, pattern in _SHAPES:
        if hint in lower:
            text = pattern.sub(_between, text)
    if any(hint in lower for hint in _HINTS):
        text = _OPTION.sub(_mask_value, _ASSIGNED.sub(_mask_value, text))
    return _KNOWN_TOKENS.sub(MASK, text)


def _between(match: Match) -> str:
    return f"{match[1]}{MASK}{match[match.re.groups]}"


def _mask_value(match: Match) -> str:
    group = "bare" if match["bare"] is not None else "quoted"
    before = match.string[max(0, match.start("word") - 24) : match.start("word")]
    value = match[group]
    if not value or _NO_SECRET.fullmatch(value) or _is_training(match["word"], before, value):
        return match[0]
    start, end = (at - match.start() for at in match.span(group))
    return f"{match[0][:start]}{MASK}{match[0][end:]}"


def _is_training(word: str, before: str, value: str) -> bool:
    number = re.fullmatch(r"[\d.e+-]{1,12}", value)
    return word.lower() == "token" and bool(number or _TRAINING.search(before))


# --- names -------------------------------------------------------------------------------------

_HH = "[0-9A-Fa-f]{2}"
_NO_VALUE = re.compile(
    r"(?i)\[?n/?a\]?|none|null|unknown|not|true|false|yes|no|default|to|0+|f+|[0:]+|[fF:]+|(.)\1+"
)
_STAND_IN = re.compile(r"(?:host|ipv4|ipv6|mac|guid|uuid|serial|user|email)-\d+|\*+")
# Names that are words of logs and tools: replacing them would change what a text says.
_COMMON = frozenset(
    "localhost localdomain hostname host input local node gpu cpu nvidia cuda nccl kernel linux"
    " systemd ubuntu debian centos rocky rhel master worker server client login compute head test"
    " default root nobody admin user daemon none null unknown all any data home shared public".split()
)
_SUBJECT = re.compile(r"(?:gpu|mlx\d_|nvme|eth|ib|rank|cpu|numa|node)\d{1,2}")
#: Organisation codes of makers of InfiniBand adapters and switches (standards-oui.ieee.org), which
#: tell a GUID from a register of 64 bits.
_OUI = (
    "0002c9|e41d2d|f45214|7cfe90|248a07|506b4b|ec0d9a|98039b|b8599f|0c42a1|1070fd|08c0eb|043f72"
    "|b8cef6|b83fd2|9c0591|946dae|a088c2|e8ebd3|fc6a1c|900a84|5c2573|58a2e1|001175"
)
_WORDS_OF_VERSIONS = re.compile(
    r"(?i)(?:ver(?:sion)?s?|rev(?:ision)?|release|firmware|fw|bios|inforom|driver|build|cudnn|cublas"
    r"|nccl|cuda|tensorrt|ofed|nvidia[\w-]{0,40}|lib\w{1,40})[\w-]{0,20}[\"']?[\s:=(,v@^~<>!]{0,40}$|==[ ]?$"
)  # fmt: skip


def _is_version(match: Match) -> bool:
    before = match.string[max(0, match.start() - 80) : match.start()].rsplit("\n", 1)[-1]
    octets = match["v"].split(".")
    return (
        any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets)
        # Loopback, "any" and net masks tell about a configuration and nobody's network.
        or octets[0] in ("0", "127", "255")
        or bool(_WORDS_OF_VERSIONS.search(before))
        # MLNX_OFED 5.8-1.1.2.1, but not 10.0.0.1-10.0.0.9.
        or bool(re.search(r"(?<![\d.])\d{1,4}(?:\.\d{1,4}){0,2}-$", before))
    )


def _is_no_ipv6(match: Match) -> bool:
    text = match["v"]
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return True
    # c10::Error is a class of PyTorch; ::1 and :: are on every host.
    plain = address.is_loopback or address.is_unspecified
    return plain or text.startswith("c10::") or not re.search(r"\d", text)


def _is_no_serial(match: Match) -> bool:
    # `Serial: 8250/16550 driver` is the kernel's; `SerialNumber: 0000:00:14.0` an address.
    return match.string[match.end("v") : match.end("v") + 1] in ("/", ":")


def _is_unit(match: Match) -> bool:
    return match["v"].endswith((".service", ".socket", ".scope", ".slice", ".target", ".timer"))


def _never(_: Match) -> bool:
    return False


#: (kind of stand-in, pattern whose group `v` is replaced, what stays as it is after all)
_Rule = tuple[str, re.Pattern[str], Callable[[Match], bool]]
_ADDRESSES: tuple[_Rule, ...] = (
    ("uuid", re.compile(r"(?i)\b(?P<v>(?:(?:MIG-)?GPU-|MIG-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"), _never),
    ("uuid", re.compile(r"\b(?P<v>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){0,3})\b"), _never),
    ("serial", re.compile(rf"Device Serial Number (?P<v>{_HH}(?:-{_HH}){{7}})\b"), _never),
    ("mac", re.compile(rf"(?<![\w:])(?P<v>{_HH}(?:(?::{_HH}){{19}}|(?::{_HH}){{7}}|(?::{_HH}){{5}}))(?!\w|:{_HH}\b)"), _never),
    ("mac", re.compile(rf"(?<![\w-])(?=[\d-]*[A-Fa-f])(?P<v>{_HH}(?:-{_HH}){{5}})(?![\w-])"), _never),
    ("guid", re.compile(r"(?i)guid[\"']?[ \t]{0,40}[:=(][ \t]{0,20}[\"']?(?P<v>(?:0x)?[0-9a-f]{8,16})\b"), _never),
    ("guid", re.compile(r"(?i)(?<![\w:])(?P<v>[0-9a-f]{4}(?::[0-9a-f]{4}){3})(?![\w:])"), _never),
    ("guid", re.compile(rf"(?i)(?:\b[HSR]-|\b0x)(?P<v>(?:{_OUI})[0-9a-f]{{10}}|[0-9a-f]{{6}}0300[0-9a-f]{{6}})\b"), _never),
)  # fmt: skip
_REST: tuple[_Rule, ...] = (
    ("email", re.compile(r"(?<![\w.+-])(?P<v>[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}\.[A-Za-z]{2,24})\b"), _is_unit),
    ("ipv6", re.compile(r"(?<![\w:.])(?P<v>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:]|\.\d)"), _is_no_ipv6),
    ("ipv4", re.compile(r"(?<![A-Za-z0-9.])(?P<v>\d{1,3}(?:\.\d{1,3}){3})(?![A-Za-z0-9]|\.\d|-\d+\.\d+\.)"), _is_version),
    ("host", re.compile(r"\b(?P<v>ip-\d{1,3}(?:-\d{1,3}){3})\b"), _never),
    ("serial", re.compile(r"(?i)<(?:\w{1,40}_)?serial(?:_?(?:number|no|num))?>(?P<v>[^<\s]{3,64})<"), _never),
    ("serial", re.compile(r"(?i)\bserial(?:[ _-]?(?:number|num|no))?\.?[\"']?[ \t]{0,60}(?:\bis\b|[:=#])[ \t]{0,40}[\"']?(?P<v>[a-z0-9][\w-]{1,62}[a-z0-9])"), _is_no_serial),
    ("serial", re.compile(r"(?i)\bserial (?P<v>(?=[A-Z]{0,31}\d)[A-Z0-9]{8,32})\b"), _never),
    ("serial", re.compile(r"(?i)\b(?:asset[ _]tag|s/?n)[\"']?[ \t]{0,60}[:=][ \t]{0,40}[\"']?(?P<v>(?=[a-z-]{0,40}\d)[a-z0-9-]{6,64})\b"), _never),
    ("serial", re.compile(r"\b(?P<v>MT\d{4}[A-Z]{1,2}\d{5})\b"), _never),
    ("user", re.compile(r"/(?:home|[Uu]sers)/(?P<v>[A-Za-z_][\w.-]{0,62}\w)"), _never),
    ("user", re.compile(r"(?i)\b(?:(?:sudo_)?user(?:name|_?id)?|logname|owner)[\"']?[ \t]{0,8}[=:][ \t]{0,8}[\"']?(?P<v>[a-z_][\w.-]{0,62}\w)"), _never),
    ("user", re.compile(r"\b(?:e?uid|gid)=\d{1,10}\((?P<v>[^)\s]{1,64})\)"), _never),
    ("user", re.compile(r"\b(?:for|by|of) (?:invalid )?user (?P<v>[A-Za-z_][\w.-]{0,62}\w)"), _never),
    ("user", re.compile(r"\b(?:Accepted|Failed) \w{1,32} for (?P<v>[\w.-]{1,64}) from\b"), _never),
    ("user", re.compile(r"\bsudo(?:\[\d{1,10}\])?:[ \t]{1,8}(?P<v>[\w.-]{1,64}) : "), _never),
    ("user", re.compile(r"(?<![\w.+-])(?P<v>[\w.+-]{1,64})@(?=host-\d)"), _never),
)  # fmt: skip
#: Where a text itself says how a host is called.
_HOST_TOLD = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?m)^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,30}) (?P<v>\S{1,253}) "
        r"(?:kernel|systemd|sshd|sudo|slurmd|crond?|CRON|dockerd|containerd|kubelet|nv\w{1,20})(?:\[\d{1,10}\])?:",
        r"(?m)(?:^|\s)(?P<v>[\w.-]{1,253}):\d{1,10}:\d{1,10} \[\d{1,3}\] [^\n]{0,40}NCCL ",
        r"(?m)^hostname[ :]{1,3}(?P<v>[\w.-]{1,253})$",
        r"(?i)\bhostname[\"']?[ \t]{0,40}[=:][ \t]{0,8}[\"']?(?P<v>[\w.-]{1,253})",
        r"\b[Hh]ostname (?:set )?to <(?P<v>[\w.-]{1,253})>",
        r"(?m)^Linux (?P<v>[\w.-]{1,253}) \d{1,2}\.\d{1,3}\.",
        r"\b(?:NodeName|NodeList|BatchHost|MASTER_ADDR|SLURMD_NODENAME|SLURM_(?:JOB_)?NODELIST)=(?P<v>[\w.,\[\]-]{1,4096})",
        r"\bPid {1,8}\d{1,10} on {1,8}(?P<v>[\w.-]{1,253}) device\b",
        r"\"(?P<v>[\w.-]{1,253}) (?:HCA-\d|mlx\d_|hfi1_)",
        r"(?m)^\[?[\w.-]{1,64}@(?P<v>[\w.-]{1,253})[: ][~/]",
        r"\bssh: connect to host (?P<v>[\w.:-]{1,253}) port\b",
    )
)  # fmt: skip


class Redactor:
    """Stand-ins for what names a machine or a person; one for all that is shown together."""

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self._starts: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._users = [name for name in users if len(name) > 1 and name.lower() not in _COMMON]
        self.know(hosts)

    def know(self, hosts: Iterable[str]) -> None:
        """Take these names for hosts' from now on, in their short and their full form."""
        for name in hosts:
            self.host(name)

    def host(self, name: str) -> str:
        """The stand-in of a host's name; common names stay."""
        lower = name.lower()
        if not name or lower in _COMMON or _STAND_IN.fullmatch(name):
            return name
        if lower not in self._hosts:
            short = lower.partition(".")[0]
            is_address = re.fullmatch(r"[\d.]+|[\da-f:.]+:[\da-f:.]*", lower) is not None
            # A short name belongs to the first full name that has it.
            self._hosts[lower] = (
                self._hosts[short] if lower != short and short in self._hosts and not self._full(short)
                else self.stand_in("host", lower)
            )  # fmt: skip
            if not is_address and short not in _COMMON:
                self._hosts.setdefault(short, self._hosts[lower])
            self._pattern = None
        return self._hosts[lower]

    def _full(self, short: str) -> bool:
        return any(name.startswith(f"{short}.") for name in self._hosts)

    def stand_in(self, kind: str, original: str) -> str:
        """`ipv4-1`: the same for the same original, whatever its letters' case."""
        if _STAND_IN.fullmatch(original):
            return original
        key = kind, original.lower()
        if key not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[key] = f"{kind}-{self._counts[kind]}"
        return self._given[key]

    def secrets(self, text: str) -> str:
        """`text` without secrets."""
        return secrets(text)

    def full(self, text: str) -> str:
        """`text` without secrets, and with stand-ins for all that names a machine or a person."""
        text = secrets(text)
        self._learn(text)
        for rule in _ADDRESSES:
            text = self._apply(rule, text)
        text = self._replace_hosts(text)
        for rule in _REST:
            text = self._apply(rule, text)
        for (kind, original), stand_in in self._given.items():
            if kind == "serial" and len(original) >= 8 and original in text:
                text = text.replace(original, stand_in)
        for name in self._users:
            pattern = rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])"
            text = re.sub(pattern, self.stand_in("user", name), text)
        return text
