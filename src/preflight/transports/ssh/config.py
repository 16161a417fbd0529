"""The user's SSH configuration as text that paramiko can read: it knows no Include."""

from __future__ import annotations

import re
from pathlib import Path

from preflight.errors import UsageError

_INCLUDE = re.compile(r"\s*Include\s+(.+)", re.IGNORECASE)
_BLOCK = re.compile(r"\s*(?:Host|Match)[\s=]", re.IGNORECASE)
_PATTERN = re.compile(r"[*?!]")
_COMMAND = re.compile(
    r"\s*(?:#|(?:Proxy|Remote|Local|KnownHosts)Command|Match\s.*exec)", re.IGNORECASE
)
_COMMENT = re.compile(r"""^((?:[^#"']|"[^"]*"|'[^']*'|(?<=\S)#)*?)\s+#.*$""")
#: OpenSSH's own limit (readconf.c: READCONF_MAX_DEPTH).
_DEPTH = 16

SYSTEM = Path("/etc/ssh/ssh_config")


def user_file() -> Path:
    """~/.ssh/config."""
    return Path.home() / ".ssh" / "config"


def text_of(path: Path, depth: int = 0, within: str = "") -> str:
    """The file with everything that it includes in place; empty where there is none.

    What a block includes holds for the hosts of that block only: `within` is what they must match,
    as Match has it. After what was included the block goes on in which the line stood.
    """
    if depth > _DEPTH:
        raise UsageError(f"{path}: Include within Include, {_DEPTH} deep", "--ssh system")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", f"chmod u+r {path}") from None
    block = f"Match{within}" if within else "Host *"
    lines = [block] if within else []
    for line in map(_without_comment, text.splitlines()):
        if _BLOCK.match(line):
            line = block = _nested(line, within)
        include = _INCLUDE.match(line.replace("=", " ", 1)) if "nclude" in line.lower() else None
        if include is None:
            lines.append(line)
            continue
        for name in include[1].split():
            inside = _criteria(block)
            lines += [text_of(one, depth + 1, inside) for one in _files(name.strip('"'), path)]
        lines.append(block)
    return "\n".join(lines) + "\n"


def _without_comment(line: str) -> str:
    """OpenSSH ends a line at a # outside of quotes, unless it holds a command."""
    if "#" not in line or _COMMAND.match(line):
        return line
    return _COMMENT.sub(r"\1", line)


def _criteria(block: str) -> str:
    """What a host must match for the block to hold; nothing for `Host *`."""
    keyword, _, rest = block.strip().replace("=", " ", 1).partition(" ")
    if keyword.lower() == "match":
        return "" if rest.strip().lower() == "all" else f" {rest.strip()}"
    patterns = rest.replace('"', "").split()
    return "" if patterns == ["*"] else f" originalhost {','.join(patterns)}"


def _nested(line: str, within: str) -> str:
    """A line that begins a block, in a file that only some hosts include."""
    return f"Match{within}{_criteria(line)}" if within else line


def _files(name: str, by: Path) -> list[Path]:
    """What an Include names; relative to the folder of the user's or the system's own files."""
    path = Path(name).expanduser()
    folder = SYSTEM.parent if by.is_relative_to(SYSTEM.parent) else Path.home() / ".ssh"
    whole = path if path.is_absolute() else folder / path
    return sorted(Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))))


class Blocks:
    """The configuration in its blocks, so that a file with one for each of a thousand hosts is not
    gone through a thousand times."""

    def __init__(self, text: str) -> None:
        self._blocks: list[str] = [""]
        self._always: list[int] = [0]
        self._of_host: dict[str, list[int]] = {}
        for line in text.splitlines(keepends=True):
            if _BLOCK.match(line):
                self._begin(line)
            else:
                self._blocks[-1] += line

    def text_for(self, host: str) -> str:
        """The blocks that may be about this host, in their order."""
        numbers = sorted({*self._always, *self._of_host.get(host, ())})
        return "".join(self._blocks[number] for number in numbers)

    def _begin(self, line: str) -> None:
        number = len(self._blocks)
        self._blocks.append(line)
        keyword, *patterns = line.replace("=", " ", 1).replace('"', "").split()
        if keyword.lower() != "host" or any(_PATTERN.search(one) for one in patterns):
            self._always.append(number)
            return
        for pattern in patterns:
            self._of_host.setdefault(pattern, []).append(number)
