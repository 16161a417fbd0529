"""`env`, `printenv`, `export -p`: the variables that training feels, and never a secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.env_names import FAMILIES, is_felt, shown
from preflight.errors import ParseError
from preflight.facts.stack import EnvVar
from preflight.probes.spec import probe

_PROBE = "env"

_LINE = re.compile(
    r"[ \t]*(?:(?:export|declare -x|set -gx|setenv)[ \t]+)?([A-Za-z_]\w{0,120})=(.*)", re.ASCII
)
_UPPER = re.compile(r"[ \t]*(?:export[ \t]+)?[A-Z_][A-Z0-9_]{1,120}=", re.ASCII)
#: `env` of a shell, whole.
_OF_A_SHELL = re.compile(r"^(?:declare -x |export )?(?:SHLVL=['\"]?\d|_=)", re.MULTILINE)
_FUNCTION = re.compile(
    r"^[\w%().-]{1,120}=\(\) *\{(?:[^\n]*\n(?!\})){0,500}[^\n]*\n\}", re.MULTILINE
)
_COMMANDS = (
    "if|then|fi|for|do|done|while|case|esac|source|set|cd|echo|exec|ulimit|unset|module|conda|pip3?"
    "|srun|sbatch|mpirun|mpiexec|torchrun|python3?|deepspeed|accelerate|sudo|apt|docker|bash|sh"
)
#: A remark, a command; behind a value those, another setting, and what the shell fills in.
_OF_A_SCRIPT = re.compile(
    rf"^(?:#|\. |(?:{_COMMANDS})(?:[ \t]|$)|(?:export[ \t]+)?(?:{'|'.join(FAMILIES)})_\w{{1,120}}="
    rf"[^\n]*?(?:[$`]|;(?:[ \t]|$)|[ \t]#|&&|[ \t][A-Z_]{{2,120}}=|[ \t](?:{_COMMANDS})[ \t]))",
    re.MULTILINE | re.ASCII,
)
_LONGEST = 4096


def variables(
    lines: Sequence[str], *, of: str, probe: str, first_line: int = 1
) -> tuple[EnvVar, ...]:
    """The variables among the lines that training feels, the last of each name; `first_line` is
    the number of the first of them."""
    found: dict[str, EnvVar] = {}
    for number, line in enumerate(lines, first_line):
        match = _LINE.fullmatch(line)
        if match and is_felt(match[1]):
            value = shown(match[1], _unquoted(match[2].strip())[:_LONGEST])
            was = found.get(match[1])
            before = was.value if was and was.value != value else ""
            found[match[1]] = EnvVar(match[1], value, of, number, probe, before)
    return tuple(found.values())


def without_others(text: str) -> str:
    """Lines of `env` without what is not to be kept; those that are left out are empty."""
    return "\n".join(_kept(line, "") for line in text.split("\n"))


def without_values(text: str) -> str:
    """The same for a report that shows variables among other things: `CUDA_X=1`."""
    return "\n".join(_kept(line, line) if _UPPER.match(line) else line for line in text.split("\n"))


def script_line(text: str, before: int = 0) -> int:
    """The first line of a script or of notes in a text that sets variables, `before` which so many
    lines stand; 0 where it may be what `env` prints. Values there may have any lines, but then it
    tells of the shell as well."""
    if _OF_A_SHELL.search(text):
        return 0
    plain = _FUNCTION.sub(lambda match: "\n" * match[0].count("\n"), text)
    found = _OF_A_SCRIPT.search(plain)
    return before + plain.count("\n", 0, found.start()) + 1 if found else 0


def _kept(line: str, other: str) -> str:
    match = _LINE.fullmatch(line)
    if match is None:
        return other
    name, value = match[1], match[2]
    return f"{line[: match.start(2)]}{shown(name, value)}" if is_felt(name) else ""


def _unquoted(value: str) -> str:
    """Without the quotes of `export -p`."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


@probe(_PROBE, ["env"], timeout_s=10)
def env(text: str) -> tuple[EnvVar, ...]:
    """`NAME=value` lines; those that training does not feel are left out."""
    lines = text.split("\n")
    if not any(_LINE.fullmatch(line) for line in lines):
        raise ParseError("expected lines such as `NCCL_DEBUG=INFO`", 1)
    return variables(lines, of="shell", probe=_PROBE)
