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
    text = _decoded(data)
    if not text or text.isspace():
        raise UsageError(f"{source} is empty", READS)
    # A crash leaves long runs of zeros in a log; in a binary they are everywhere.
    head = re.sub("\0{64,}", "", text[: 1 << 20])
    if len(_BINARY.findall(head)) > _BINARY_SHARE * len(head):
        raise UsageError(f"{source} is not text", READS)
    return cleaned(text)


def _decoded(data: bytes) -> str:
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return str(memoryview(data)[len(bom) :], codec, "replace")
    head = data[:4096]
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
