"""Words of a library without what opens a door: they are told, recorded and shown."""

from __future__ import annotations

import os
import re

#: Variables whose values are secrets, by what their makers call them.
_NAMES = re.compile(r"KEY|SECRET|TOKEN|PASS|CREDENTIAL|CONNECTION_STRING|SAS")
_LEAST, _MOST = 6, 500
_SHAPES = (
    (re.compile(r"(://)[^\s/@'\"<>]{1,300}(@)"), r"\1***\2"),
    # A presigned URL is a password: whatever follows its question mark.
    (re.compile(r"(\w{1,20}://[^\s?'\"<>]{1,2000}\?)[^\s'\"<>]{1,4000}"), r"\1***"),
    (re.compile(r"(?i)((?:credential|signature|token|sig)=)[^\s&,'\"<>]{1,4000}"), r"\1***"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), "***"),
)


def masked(text: str) -> str:
    """One line of at most 500 letters."""
    for name, value in os.environ.items():
        if len(value) >= _LEAST and _NAMES.search(name) and value[0] != "/":
            text = text.replace(value, "***")
    for pattern, instead in _SHAPES:
        text = pattern.sub(instead, text)
    return " ".join(text.split())[:_MOST]
