"""XML that a tool wrote, read without entities and without fetching anything."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from preflight.errors import ParseError
from preflight.printable import printable


def parsed(text: str) -> tuple[Element, dict[Element, int]]:
    """The root, and the line of every element. No entity may be declared, nothing is fetched.
    Raises ParseError where the text is no whole document."""
    builder = TreeBuilder()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    lines: dict[Element, int] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        lines[builder.start(tag, attributes)] = parser.CurrentLineNumber

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity(parser)
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ParseError(
            f"not well-formed XML: {expat.ErrorString(error.code)}", error.lineno
        ) from None
    return builder.close(), lines


def _refuse_entity(parser: expat.XMLParserType) -> Callable[..., None]:
    def refuse(name: str, *_: object) -> None:
        shown = printable(name[:60])
        raise ParseError(
            f"the XML declares an entity, '{shown}': refused", parser.CurrentLineNumber
        )

    return refuse
