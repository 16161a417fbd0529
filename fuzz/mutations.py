"""How an input is damaged: what terminals, editors, pipes and other versions of a tool do to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, str], str]

#: What tools write in place of a value, and what no reader expects there.
VALUES = (
    "N/A", "[N/A]", "ERR!", "Unknown Error", "-", "", "0", "-1", "9" * 30, "1e309", "nan", "inf",
    "0x" + "f" * 40, "٣٤", "１２", "²", "½", "1,5", "1 234", "Enabled", "None", "\ufeff", "\u2028",
    "GPU 00000000:FF:00.0", "Not Active", "on*", "P0", "3 / 0", "99999999999999999999 MiB", "-40 C",
)  # fmt: skip
PIECES = (
    "\0", "\r", "\r\n", "\t", "\x1b[31m", "\x1b]0;x\x07", "\b", "\x0c", "\x85", "\u2028", "\ud800",
    "<!ENTITY a \"b\">", "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>", "&a;", "&lt;",
    "</gpu>", "<gpu id=\"x\">", "<![CDATA[", "-->", "<!--", "{", "}", "[", "]", '"', "\\",
    "\\u0000", "'", ":", " : ", "|", "#", "=", "%", "---\n", "&x ", "*x ", "!!python/object:x ",
    "? ", "- - - ", "Xid (PCI:", "SXid (", "[    0.000000] ", "\n\n\n", "GPU 0000:00", "end\n",
    "N/A",
)  # fmt: skip


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True) or [""]


def _at(rng: Random, text: str) -> int:
    return rng.randrange(len(text) + 1)


def drop_lines(rng: Random, text: str) -> str:
    lines = _lines(text)
    start = rng.randrange(len(lines))
    del lines[start : start + rng.choice((1, 1, 2, 5, 40))]
    return "".join(lines)


def repeat_lines(rng: Random, text: str) -> str:
    lines = _lines(text)
    start = rng.randrange(len(lines))
    piece = lines[start : start + rng.choice((1, 1, 3, 20))]
    return "".join(lines[:start] + piece * rng.choice((2, 2, 3, 8)) + lines[start + len(piece) :])


def swap_lines(rng: Random, text: str) -> str:
    lines = _lines(text)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def cut_end(rng: Random, text: str) -> str:
    return text[: _at(rng, text)]


def cut_begin(rng: Random, text: str) -> str:
    return text[_at(rng, text) :]


def cut_line(rng: Random, text: str) -> str:
    lines = _lines(text)
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: _at(rng, lines[at])] + rng.choice(("", "\n"))
    return "".join(lines)


_FIELD = re.compile(r"[^\s:=|<>,\"{}\[\]]+")


def _field(rng: Random, text: str) -> tuple[int, int]:
    """Begin and end of a field somewhere in the text."""
    found = _FIELD.search(text, _at(rng, text)) or _FIELD.search(text)
    return found.span() if found else (0, 0)


def other_value(rng: Random, text: str) -> str:
    begin, end = _field(rng, text)
    return text[:begin] + rng.choice(VALUES) + text[end:]


def others_field(rng: Random, text: str) -> str:
    begin, end = _field(rng, text)
    first, last = _field(rng, text)
    return text[:begin] + text[first:last] + text[end:]


def whole_value(rng: Random, text: str) -> str:
    """All behind a line's colon or between its tags."""
    lines = _lines(text)
    at = rng.randrange(len(lines))
    new = rng.choice(VALUES).replace("\\", "")
    lines[at] = re.sub(r"([:>=|,] ?)[^:>=|,<\n]+", lambda match: match[1] + new, lines[at], count=1)
    return "".join(lines)


def digit(rng: Random, text: str) -> str:
    found = re.compile(r"\d+").search(text, _at(rng, text))
    if not found:
        return text
    new = rng.choice(("", "0", "-1", "00", "4294967296", "9" * 25, "1.5", "１", "x", "1e400"))
    return text[: found.start()] + new + text[found.end() :]


def flip(rng: Random, text: str) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((1, 1, 3, 10))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data.decode(errors="replace")


def insert(rng: Random, text: str) -> str:
    at = _at(rng, text)
    return text[:at] + rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 30)) + text[at:]


def insert_random(rng: Random, text: str) -> str:
    at = _at(rng, text)
    return text[:at] + rng.randbytes(rng.choice((1, 4, 40))).decode("latin-1") + text[at:]


def long_token(rng: Random, text: str) -> str:
    at, size = _at(rng, text), rng.choice((300, 3_000, 3_000, 20_000))
    unit = rng.choice(
        ("a", "0", " ", "\t", ":", "(", "a.", "-", "<", "é", "[1] ", ", ", "x=1 ", "\\")
    )
    return text[:at] + unit * (size // len(unit)) + text[at:]


def windows_lines(rng: Random, text: str) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "\r\r\n", "\n\n", "\v", " ")))


def blanks(rng: Random, text: str) -> str:
    old, new = rng.choice(
        ((" ", "\t"), ("\t", " "), ("  ", " "), (" ", "  "), (" ", "\xa0"), (" ", ""))
    )
    return text.replace(old, new)


def indent(rng: Random, text: str) -> str:
    lead = rng.choice(("  ", "\t", "> ", "0: ", "node-07: ", "| ", "\ufeff"))
    return "".join(lead + line for line in _lines(text))


def tags(rng: Random, text: str) -> str:
    """A tag goes, is doubled, is left open or gets another's name."""
    found = list(re.finditer(r"</?\w+[^>\n]*>", text))
    if not found:
        return other_value(rng, text)
    one, other = rng.choice(found), rng.choice(found)
    new = rng.choice(("", one[0] * 2, one[0][:-1], other[0], f"<{one[0]}", one[0].upper()))
    return text[: one.start()] + new + text[one.end() :]


def nest(rng: Random, text: str) -> str:
    """Depth, for readers that recurse."""
    at, deep = _at(rng, text), rng.choice((50, 1_500, 5_000))
    opened, closed = rng.choice(
        (("[", "]"), ('{"a":', "}"), ("<a>", "</a>"), ("- ", ""), ("(", ")"))
    )
    return text[:at] + opened * deep + closed * rng.choice((0, deep)) + text[at:]


def twice(rng: Random, text: str) -> str:
    return text[: _at(rng, text)] + text


def upper(rng: Random, text: str) -> str:
    return text.upper() if rng.random() < 0.5 else text.lower()


def shuffle(rng: Random, text: str) -> str:
    lines = _lines(text)
    rng.shuffle(lines)
    return "".join(lines)


#: The common ones several times; what makes large inputs or destroys all seldom.
MUTATIONS: tuple[Mutation, ...] = (
    *(drop_lines, repeat_lines, swap_lines, cut_line, other_value, others_field, whole_value) * 4,
    *(digit, flip, insert, tags) * 3,
    *(cut_end, cut_begin, insert_random, blanks, indent, twice),
    *(windows_lines, upper, shuffle, long_token),
)
#: One input in so many is made large, where time that grows with the square is seen.
LARGE_EVERY = 4_000
LARGE_CHARS = 400_000
RARE_EVERY = 150


def mutated(rng: Random, seed: str) -> str:
    """One to four damages on a seed; now and then deep or large ones."""
    text = seed
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        text = rng.choice(MUTATIONS)(rng, text)
    if rng.randrange(RARE_EVERY) == 0:
        text = nest(rng, text)
    if rng.randrange(LARGE_EVERY) == 0:
        text = large(rng, text)
    return text


def large(rng: Random, text: str) -> str:
    """The text, some of its lines or a part of one line, over and over."""
    lines = _lines(text)
    at = rng.randrange(len(lines))
    unit = rng.choice((text, lines[at], lines[at].strip(), lines[at][: rng.randrange(1, 9)])) or " "
    many = unit * max(LARGE_CHARS // len(unit), 1)
    return rng.choice(("", text)) + many + rng.choice(("", text))
