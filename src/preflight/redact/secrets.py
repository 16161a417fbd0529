"""Passwords, tokens and keys in any text, masked whether or not names are.

All repetitions in the patterns are bounded: no text, however long, is looked at twice. They are
compiled when a text first hints at them, which most never do: start-up is paid by every command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

Match = re.Match[str]
compiled = cache(re.compile)
MASK = "***"

_WORD = (
    r"(?P<word>pass(?:words?|wd|phrase)|[_-]pwd|secret|credentials?|token"
    r"|(?:api|access|private|auth|account)[_-]?key|snmp[ _-]community(?:[ _-]string)?)"
    r"(?:[_-]?(?:access[_-]?key|key|value|hash|base64))?"
)
_VALUE = (
    r"""(?:(?P<open>\\?["'])(?P<quoted>[^\r\n]{0,512}?)(?P=open)"""
    r"""|\\?["']?(?P<bare>[^\s"'<>,;&\\)\]}]{1,512}))"""
)
_ASSIGNED = rf"""(?i){_WORD}\\?["']?[ \t]{{0,8}}(?:=>|=|:)[ \t]{{0,8}}{_VALUE}"""
_OPTION = rf"""(?i)(?<![\w-])--?[\w-]{{0,40}}{_WORD}(?:\\?["'],?)?[ \t]{{1,8}}(?!-){_VALUE}"""
_OPTION_NAME = rf"(?i)--?[\w-]{{0,40}}{_WORD}"
#: A text without any of these, in small letters, holds none of the words above.
_HINTS = ("pass", "pwd", "secret", "credential", "token", "key", "community")

# A token is also what language models read: pad_token: 0, "eos_token": "</s>", --max-token 4096.
_TRAINING = (
    r"(?i)(?:pad|[be]os|unk|sep|cls|mask|special|im(?:age|g)|audio|video|new|max|min|num|per|stop"
    r"|start|end|next|tool|draft|additional)[_-]?$"
)
_NO_SECRET = r"(?i)none|null|true|false|yes|no|\*+|not|required|unset|\$.*"
#: The first words of strerror(3) on files.
_FAULTS = ("Permission", "No", "Is", "Not", "Operation", "Input/output", "Too", "File", "Read-only",
           "Stale", "cannot", "Text", "Exec")  # fmt: skip

_KEY_BLOCK = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
    r"(?:(?:[^-]|-(?!----)){0,20000}-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"
    # cut off: as far as the lines look like one
    r"|(?:\s{1,4}[\w+/=]{16,100}(?![^\s]))*)"
)
#: A hint and a pattern: what lies between its two groups is masked. A text without the hint, in
#: small letters, is not searched.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("://", r"(://)[^\s/@:\"'<>]{0,128}:[^\s/\"'<>]{0,256}(@)"),
    (
        "://",
        r"(https?://)[^\s/@:\"'<>]{1,256}(@)",
    ),  # a token alone
    (
        "authorization",
        r"""(?i)(authorization\\?["']?\s?[:=]\s?\\?["']?)[^\r\n"'\\]{1,4096}()""",
    ),
    ("cookie", r"""(?im)((?:^|[\s"'])(?:set-)?cookie:[ \t]?)[^\r\n"']{1,4096}()"""),
    ("bearer", r"(?i)\b(bearer[ \t]{1,4})[\w.~+/=-]{8,4096}()"),
    ("sshpass", r"\b(sshpass[ \t]+-p[ \t]{0,4})\S{1,256}()"),
    ("login", r"(?i)\b(login[ \t]+\S{1,128}[ \t]+password[ \t]+)\S{1,256}()"),
    (
        "x-amz-",
        r"(?i)(x-amz-(?:signature|credential|security-token)=)[^&\s\"']{1,4096}()",
    ),
    ("</", rf"(?i)(<[\w:-]{{0,40}}{_WORD}[^<>]{{0,99}}>)[^<\r\n]{{1,4096}}(</)"),
)
#: Tokens that are known by how they begin, as their makers document it.
_KNOWN = (
    r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{20,255}|github_pat_\w{20,255}|hf_\w{20,99}"
    r"|glpat-[\w-]{16,99}|sk-[\w-]{20,255}|xox[abeprs]-[\w-]{10,255}|AIza[\w-]{30,99}"
    r"|nvapi-[\w-]{20,255}|eyJ[\w-]{8,4096}\.[\w-]{8,4096}\.[\w-]{0,4096})"
)
#: How those begin, in small letters.
_BEGINNINGS = (
    "akia", "asia", "gh", "hf_", "glpat-", "sk-", "xox", "aiza", "nvapi-", "eyj"
)  # fmt: skip


def secrets(text: str) -> str:
    """`text` with what opens a door masked; all else, and the number of lines, stays."""
    lower = text.lower()
    if "private key-----" in lower:
        text = compiled(_KEY_BLOCK).sub(
            lambda match: "\n".join([MASK] * (match[0].count("\n") + 1)), text
        )
    for hint, pattern in _SHAPES:
        if hint in lower:
            text = compiled(pattern).sub(_between, text)
    if any(hint in lower for hint in _HINTS):
        text = compiled(_ASSIGNED).sub(_mask_value, text)
        text = compiled(_OPTION).sub(_mask_value, text)
    if any(beginning in lower for beginning in _BEGINNINGS):
        text = compiled(_KNOWN).sub(MASK, text)
    return text


def in_arguments(argv: Sequence[str]) -> list[str]:
    """The same for a command line already cut into words: `--password`, `x`."""
    told: list[str] = []
    for at, word in enumerate(argv):
        option = compiled(_OPTION_NAME).fullmatch(argv[at - 1]) if at else None
        hidden = option and not _is_training(option["word"], _before(option), word)
        told.append(MASK if hidden and not word.startswith("-") else secrets(word))
    return told


def _between(match: Match) -> str:
    return f"{match[1]}{MASK}{match[match.re.groups]}"


def _mask_value(match: Match) -> str:
    group = "bare" if match["bare"] is not None else "quoted"
    value = match[group]
    if not value or compiled(_NO_SECRET).fullmatch(value):
        return match[0]
    if _is_training(match["word"], _before(match), value) or _is_fault_of_path(match, value):
        return match[0]
    start, end = (at - match.start() for at in match.span(group))
    return f"{match[0][:start]}{MASK}{match[0][end:]}"


def _is_fault_of_path(match: Match, value: str) -> bool:
    """'/etc/passwd': Permission denied - what the system says of a file is no secret."""
    end_of_path = match.string[: match.start("word")].endswith("/")
    return end_of_path and value in _FAULTS


def _before(match: Match) -> str:
    start = match.start("word")
    return match.string[max(0, start - 24) : start]


def _is_training(word: str, before: str, value: str) -> bool:
    number = re.fullmatch(r"[\d.e+-]{1,12}", value)
    return word.lower() == "token" and bool(number or compiled(_TRAINING).search(before))
