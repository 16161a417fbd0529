"""Which words of a command line, and which parts of a source, are files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Literal, NamedTuple

Role = Literal["text", "file", "host", "hosts"]

#: Options whose value is a file or a folder; --from may have NAME= before it.
_OF_FILES = (
    "--from", "--save", "--output", "-o", "--checks", "--against", "--hostfile", "--lock", "--data",
    "--folder",
)  # fmt: skip
#: Options whose value is none, though it may look like one: gpu.ecc.volatile.
_OF_OTHERS = (
    "--only", "--skip", "--set", "--level", "--format", "--color", "--host-timeout", "--duration",
    "--pid", "--ssh", "--python",
)  # fmt: skip
#: What is called a source and is no file.
NO_FILE = ("", "-", "standard input", "a capture", "a later capture", "/dev/stdin", "/dev/null")
_JOINED = re.compile(r"(?P<first>.+), then (?P<second>.+) from line (?P<line>\d+)")
_PATH = re.compile(r"(?!https?://).*/.*|[^=]*\.[A-Za-z]\w{0,9}")
_IN_A_SENTENCE = re.compile(
    r"(?<=not judged: )(?!a later capture ).{1,400}?(?= answers the same for host )"
    r"|(?<![\w./~+-])[\w./~+-]{0,400}[\w~+-]\.(?:txt|log|xml|json|jsonl|gz|zst|xz|bz2|zip|tar|tgz"
    r"|out|err|csv|md|yaml|yml|conf)(?![\w-])"
)


class Part(NamedTuple):
    """A piece of a word, and what it is."""

    role: Role
    text: str


def parts(argv: Sequence[str]) -> Iterator[list[Part]]:
    """Each word of a command line in pieces, which joined are the word."""
    option = ""
    for word in argv:
        name, equals, value = word.partition("=")
        if option:
            yield list(_value(option, word))
            option = ""
        elif equals and name in (*_OF_FILES, "--profile", "--hosts"):
            yield [Part("text", f"{name}="), *_value(name, value)]
        elif word in (*_OF_FILES, *_OF_OTHERS, "--profile", "--hosts"):
            option = word
            yield [Part("text", word)]
        elif word.startswith("-o") and len(word) > 2:
            yield [Part("text", "-o"), Part("file", word[2:])]
        elif word.startswith("-") or not is_path(word) or PurePath(word).name == "preflight":
            yield [Part("text", word)]
        else:
            yield [Part("file", word)]


def _value(option: str, value: str) -> Iterator[Part]:
    name, equals, file = value.partition("=")
    if option == "--hosts":
        yield Part("hosts", value)
    elif option in _OF_OTHERS or (option == "--profile" and not is_path(value)):
        yield Part("text", value)
    elif option == "--from" and equals and name and file and "/" not in name:
        yield from (Part("host", name), Part("text", "="), Part("file", file))
    else:
        yield Part("file", value)


def is_path(text: str) -> bool:
    """Whether a word that may be anything is a file: it has a folder or an ending."""
    return _PATH.fullmatch(text) is not None


def sources(source: str) -> list[Part]:
    """`a.log, then b.log from line 12` in pieces."""
    match = _JOINED.fullmatch(source)
    if match is None:
        return [Part("text" if source in NO_FILE else "file", source)]
    rest = Part("text", f" from line {match['line']}")
    return [*sources(match["first"]), Part("text", ", then "), *sources(match["second"]), rest]


def in_a_plan(argv: Sequence[str]) -> Iterator[str]:
    """The folders that the plan of a training run names, which the payload is started with."""
    if "--plan" not in argv[:-1]:
        return
    with suppress(ValueError):
        plan = json.loads(argv[list(argv).index("--plan") + 1])
        told = (plan.get(name) for name in ("data", "folder")) if isinstance(plan, dict) else ()
        yield from (one for one in told if isinstance(one, str) and one)


def in_a_sentence(text: str) -> list[str]:
    """The files that preflight names where it says why one was not used."""
    return _IN_A_SENTENCE.findall(text)
