"""XML of an unknown sender as a tree: no entity may be declared, nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from preflight.errors import ParseError
from preflight.printable import printable

#: No tool that is read nests deeper.
_DEEPEST = 200


def parse(text: str) -> tuple[Element, dict[Element, int]]:
    """The root, and the line of every element. Raises ParseError."""
    builder = TreeBuilder()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    lines: dict[Element, int] = {}
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ParseError("the XML nests too deep", parser.CurrentLineNumber)
        lines[builder.start(tag, attributes)] = parser.CurrentLineNumber

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity(parser)
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        told = f"not well-formed XML: {expat.ErrorString(error.code)}"
        raise ParseError(told, error.lineno) from None
    return builder.close(), lines


def _refuse_entity(parser: expat.XMLParserType) -> Callable[..., None]:
    def refuse(name: str, *_: object) -> None:
        shown = printable(name[:60])
        raise ParseError(f"the XML declares an entity, '{shown}': refused",
                         parser.CurrentLineNumber)  # fmt: skip

    return refuse
