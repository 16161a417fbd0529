"""The table of renderers: a report in, pieces of text out; nothing is printed here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from preflight.errors import UsageError
from preflight.model import Report

#: Format -> the module whose `render` writes it, imported on first use.
RENDERERS = {
    "text": "preflight.reports.text",
    "json": "preflight.reports.json",
    "jsonl": "preflight.reports.jsonl",
    "junit": "preflight.reports.junit",
    "markdown": "preflight.reports.markdown",
}

#: The same for formats that only a file can have, by the end of its name.
FILES_ONLY = {"svg": "preflight.reports.svg"}

#: What the end of a file's name says of its format.
SUFFIXES = {
    ".txt": "text",
    ".json": "json",
    ".jsonl": "jsonl",
    ".xml": "junit",
    ".md": "markdown",
    ".svg": "svg",
}


def render(
    report: Report, fmt: str, *, verbose: int = 0, quiet: bool = False, facts: bool = False
) -> Iterator[str]:
    """The report in a format, in pieces to be written one after the other; raises UsageError.

    `verbose` and `quiet` are for text alone: the other formats are always whole. Facts of several
    hosts are written only with `facts`.
    """
    module = RENDERERS.get(fmt) or FILES_ONLY.get(fmt)
    if module is None:
        raise UsageError(f"{fmt!r} is not a format", f"use one of: --format {'|'.join(RENDERERS)}")
    pieces: Iterator[str] = import_module(module).render(
        report, verbose=verbose, quiet=quiet, facts=facts
    )
    return pieces
