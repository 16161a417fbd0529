"""The text of a file or a paste as the tool wrote it: decoded, without a terminal's additions."""

from __future__ import annotations

import re

from preflight.errors import UsageError
from preflight.signatures import NOT_TEXT, READS

#: Larger input is refused: it is held in memory about three times.
MAX_BYTES = 1 << 30

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
# Terminal sequences, ECMA-48: CSI (colours, cursor), OSC and DCS (titles, links), and the rest.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[]P^_X][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]"
)
_TYPED_OVER = re.compile("^[^\n\b]*\b[^\n]*", re.MULTILINE)
#: Controls, what str.splitlines takes for the end of a line but an editor does not, and the blanks
#: of web pages and mail programs, which no pattern and no reader takes for a blank.
_CONTROLS = re.compile("[\x01-\x08\x0b-\x1f\x7f\x85\xa0\u2007\u2028\u2029\u202f]")
_BINARY = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_BINARY_SHARE = 0.05
#: So much of the beginning, or of the end, must be text where the rest is not.
_EITHER_END = 2048
#: /proc/PID/environ as it is: settings with a zero behind each.
_ENVIRON = re.compile(rb"(?:[A-Za-z_]\w{0,120}=[^\0]{0,20000}\0){2}")
_ZEROS, _ZERO_BYTES, _LINE = re.compile("\0{64,}"), re.compile(b"\0{3,}"), re.compile("[^\n]+")


def text_of(data: bytes, source: str) -> str:
    """The lines as the tool wrote them, one for each line of the source; raises UsageError."""
    if len(data) > MAX_BYTES:
        hint = f"grep -aE 'NVRM|Xid|nvidia|mlx5|AER' {source} > smaller.log"
        what = (
            f"{source} is over {MAX_BYTES >> 30} GiB; of so much only a file that is a kernel log"
        )
        raise UsageError(f"{what} and nothing else can be read", hint)
    kind = next((name for begin, name in NOT_TEXT.items() if data.startswith(begin)), "")
    if kind or data[257:262] == b"ustar":
        raise UsageError(f"{source} is {kind or 'a tar archive; unpack it'}", READS)
    if _ENVIRON.match(data):
        data = data.replace(b"\n", b" ").replace(b"\0", b"\n")
    text = _decoded(data)
    if not text or text.isspace():
        raise UsageError(f"{source} is empty", READS)
    if _is_binary(text[: 1 << 20]):
        if _is_binary(text[:_EITHER_END]) and _is_binary(text[-_EITHER_END:]):
            raise UsageError(f"{source} is not text", READS)
        text = _LINE.sub(_if_text, text)
    return cleaned(text)


def _is_binary(text: str) -> bool:
    """A crash leaves long runs of zeros in a log; in a binary they are everywhere."""
    text = _ZEROS.sub("", text)
    return len(_BINARY.findall(text)) > _BINARY_SHARE * len(text)


def _if_text(line: re.Match[str]) -> str:
    """A crash leaves blocks of another file in a log as well: their lines are left empty."""
    return "" if _is_binary(line[0]) else line[0]


def _decoded(data: bytes) -> str:
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return str(memoryview(data)[len(bom) :], codec, "replace")
    # What a crash left would pass for UTF-16: text in two bytes has no three zeros in a row.
    zeros = _ZERO_BYTES.match(data)
    start = zeros.end() if zeros else 0
    head = _ZERO_BYTES.sub(b"", data[start : start + 65536])[:4096]
    for codec, high in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if high.count(0) > 0.4 * len(head):  # of ASCII text one half, and every second byte
            return data.decode(codec, "replace")
    return data.decode("utf-8", "replace")


def cleaned(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
        text = re.sub("\r+\n", "\n", text)
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\b" in text:
        text = _TYPED_OVER.sub(_typed, text)
    return _CONTROLS.sub(" ", text.replace("\0", ""))


def _typed(line: re.Match[str]) -> str:
    """A line as it stands after its backspaces."""
    kept: list[str] = []
    for char in line[0]:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)
