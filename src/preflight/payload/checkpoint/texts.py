"""What is no tensor: JSON, trackers, and the texts that stand where a checkpoint should."""

from __future__ import annotations

import json
from typing import Any

from .report import Told
from .window import Window

_LARGEST = 64 << 20
_LONGEST_TEXT = 4096
#: Of a document in JSON: what is told of one key, and how many.
_LONGEST_VALUE, _MOST_KEYS = 4000, 300
#: The map of an index, from tensor to file.
_LONGEST_MAP = 32 << 20

_LFS = b"version https://git-lfs"
_PAGES = (b"<!doctype html", b"<html", b"<?xml")


def is_text(head: bytes) -> bool:
    """Whether it can be read as text: no zero byte, and UTF-8 up to a character that is cut."""
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3
    return True


def scan(window: Window, told: Told, head: bytes) -> None:
    """Fill in what is told of a text."""
    begin = head.lstrip().lower()
    if head.startswith(_LFS):
        told.kind = "lfs-pointer"
        told.flaw("lfs-pointer", "it is a pointer of git-lfs: the file itself was not fetched")
    elif begin.startswith(_PAGES):
        told.kind = "html"
        told.flaw("html", "it is a page of a web server, such as an error, and no file of values")
    elif begin[:1] in (b"{", b"[") or told.path.endswith(".json"):
        _json(window, told)
    else:
        told.kind = "text"
        text = window.read(0, min(window.size, _LONGEST_TEXT)).decode("utf-8", "replace").strip()
        told.told["text"] = text[:_LONGEST_VALUE]


def _json(window: Window, told: Told) -> None:
    told.kind = "json"
    if window.size > _LARGEST:
        told.flaw("unreadable", f"{window.size:,} bytes of JSON are more than what is read")
        return
    try:
        document = json.loads(window.read(0, window.size))
    except (ValueError, RecursionError) as error:
        if told.path.endswith(".json"):
            told.flaw("header", f"it is no JSON: {str(error)[:200]}")
        else:
            told.kind = "text"
        return
    if not isinstance(document, dict):
        return
    if told.path.endswith("tokenizer.json"):
        told.told["entries"] = str(_entries(document))
    for key, value in list(document.items())[:_MOST_KEYS]:
        text = value if isinstance(value, str) else _short(key, value)
        if text is not None:
            told.told[key[:200]] = text


def _entries(tokenizer: dict[str, Any]) -> int:
    """Of a tokenizer: the highest number that it gives a token, and one; 0 where it has none."""
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    numbers = [
        one.get("id") for one in tokenizer.get("added_tokens") or () if isinstance(one, dict)
    ]
    if isinstance(vocabulary, dict):
        numbers += vocabulary.values()
    elif isinstance(vocabulary, list):
        numbers.append(len(vocabulary) - 1)
    return max((one for one in numbers if type(one) is int), default=-1) + 1


def _short(key: str, value: Any) -> str | None:
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= (_LONGEST_MAP if key == "weight_map" else _LONGEST_VALUE) else None
