"""Text from a host made safe for a terminal, a file and an XML document."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, line and paragraph separators, bidirectional overrides, surrogates and
# the two non-characters that XML 1.0 refuses (https://www.w3.org/TR/xml/#charsets).
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    """`text` on one line, each unsafe character shown as an escape such as \\x1b."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return " " if code == 9 else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
