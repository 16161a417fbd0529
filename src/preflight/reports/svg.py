"""A report as one drawing: machines with their links, maps of pairs, where a step goes."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from preflight.model import Report
from preflight.printable import printable
from preflight.reports.machine.sections import Machine, drawn
from preflight.reports.machine.svg_grid import grid
from preflight.reports.machine.svg_heat import heat_map, heats
from preflight.reports.machine.svg_tree import tree
from preflight.reports.pictures.bars import stacked
from preflight.reports.pictures.parts_map import parts_map
from preflight.reports.pictures.series import stacked_panels
from preflight.reports.pictures.told import Picture, pictures
from preflight.reports.pictures.words import paragraph
from preflight.reports.silent import machines
from preflight.reports.svg_shapes import FONT, INK, WIDTH, Shape, text, wrapped
from preflight.reports.wording import plural

#: Different machines that one drawing shows.
_MOST = 8
#: And tables that have a picture.
_MOST_PICTURES = 24
_MARGIN = 24
_NOTHING = "nothing to draw: preflight topo asks how a machine is joined"


def render(report: Report, *, verbose: int, quiet: bool, facts: bool) -> Iterator[str]:
    """The whole drawing; of a report without maps one that says so."""
    found = drawn(report)
    shapes: list[Shape] = []
    bottom = float(_MARGIN)
    for machine in found[:_MOST]:
        shapes += _machine(machine, bottom, many=len(machines(report.hosts)) > 1)
        bottom = max(shape.bottom for shape in shapes) + 2 * _MARGIN
    for title, heat in heats(report):
        shapes += heat_map(title, heat, _MARGIN, bottom)
        bottom = max(shape.bottom for shape in shapes) + 2 * _MARGIN
    for title, picture in pictures(report)[:_MOST_PICTURES]:
        shapes += _picture(title, picture, bottom)
        bottom = max(shape.bottom for shape in shapes) + 2 * _MARGIN
    if not shapes:
        shapes.append(text(_MARGIN, bottom + 12, _NOTHING))
    if found[_MOST:]:
        hosts = sum(len(one.hosts) for one in found[_MOST:])
        left = f"and {len(found) - _MOST} more kinds of machine on {hosts} hosts"
        shapes.append(text(_MARGIN, bottom + 12, left))
    height = max(shape.bottom for shape in shapes) + _MARGIN
    right = max([WIDTH, *(shape.right for shape in shapes)]) + _MARGIN
    yield from _document(shapes, right, height, _title(report))


def _title(report: Report) -> str:
    if pictures(report) and not drawn(report):
        return f"preflight {report.command}: where the step goes"
    hosts = plural(len(machines(report.hosts)), "host")
    if heats(report) and not drawn(report):
        return f"preflight {report.command}: how fast each pair of {hosts} is"
    return f"preflight {report.command}: how {hosts} {'is' if hosts == '1 host' else 'are'} joined"


def _picture(title: str, picture: Picture, top: float) -> Iterator[Shape]:
    heading = list(paragraph(_MARGIN, top, title or "-", WIDTH, size=14, fill=INK, bold=True))
    yield from heading
    bottom = heading[-1].bottom + 12
    if picture.bars:
        shapes = list(stacked(picture.bars, _MARGIN, bottom))
        yield from shapes
        bottom = max(shape.bottom for shape in shapes) + 20
        yield from parts_map(picture.bars, _MARGIN, bottom)
    if picture.panels:
        yield from stacked_panels(picture.panels, _MARGIN, bottom)


def _document(shapes: list[Shape], width: float, height: float, title: str) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="{FONT}" font-size="12" role="img">\n'
    )
    yield f"<title>{escape(printable(title))}</title>\n"
    yield f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>\n'
    for shape in shapes:
        yield f"{shape.markup}\n"
    yield "</svg>\n"


def _machine(machine: Machine, top: float, *, many: bool) -> Iterator[Shape]:
    """One kind of machine below `top`: its name, the tree, the links, what is not known."""
    name = machine.name if many or machine.name != "input" else "the machine"
    heading = text(_MARGIN, top + 16, name, size=18, weight="bold")
    yield heading
    bottom = heading.bottom + 10
    for part in (_tree, _grid, _unknown):
        shapes = list(part(machine, bottom))
        yield from shapes
        bottom = max([bottom, *(shape.bottom + 14 for shape in shapes)])


def _tree(machine: Machine, top: float) -> Iterator[Shape]:
    return tree(machine.map, _MARGIN, top)


def _grid(machine: Machine, top: float) -> Iterator[Shape]:
    return grid(machine.map, _MARGIN, top)


def _unknown(machine: Machine, top: float) -> Iterator[Shape]:
    return wrapped(machine.map.unknown, _MARGIN, top)
