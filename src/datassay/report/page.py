"""From a report to a page: one HTML file without scripts, readable by day and night, on paper and on a phone.

Everything from the data is escaped by the template; drawings are the only markup that is passed on, and those are ours.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from datassay import _checks
from datassay._errors import InputError
from datassay.report.content import Figure, Grid, Number, Section, Text
from datassay.report.methods import METHODS, Method
from datassay.results import Parameter

if TYPE_CHECKING:
    from jinja2 import Template


def _shown(thing: object) -> object:
    """What the template writes: text of the data cannot turn the text after it."""
    from markupsafe import Markup

    return _checks.visible(thing) if isinstance(thing, str) and not isinstance(thing, Markup) else thing


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )  # fmt: skip
    return page.from_string(files("datassay.report").joinpath("page.html").read_text(encoding="utf-8"))


def _used(text: Text) -> set[str]:
    return {piece.method for piece in text if isinstance(piece, Number)}


def _methods(sections: tuple[Section, ...]) -> list[Method]:
    """The methods that any number of the page comes from, in the order of their descriptions."""
    used: set[str] = set()
    for section in sections:
        used |= _used(section.finding) | _used(section.advice) | {card.number.method for card in section.cards}
        for block in section.blocks:
            used |= {block.method} if isinstance(block, Figure | Grid) else _used(block.text)
    return [method for key, method in METHODS.items() if key in used]


SVG = {"svg", "g", "path", "defs", "use", "text", "tspan", "clipPath", "rect", "circle", "line", "polygon", "title"}


def drawing(svg: str, number: int = 0) -> str:
    """A drawing, if it is nothing but one: a report that was read from a file may hold anything.

    What it names (clip paths, marks) is named after its number, so that no two drawings of a page name the same.
    """
    from xml.etree import ElementTree

    # Comments, instructions and prefixes end elsewhere, or mean something else, for a browser than for a parser of XML.
    if re.search(r"<[!?]|</?[^\s<>/]*:", svg):
        raise InputError("a figure of this report holds more than a drawing")
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        raise InputError("a figure of this report is no drawing") from None
    for element in root.iter():
        names = {name.rpartition("}")[2].casefold(): str(value) for name, value in element.attrib.items()}
        outside = not names.get("href", "#").startswith("#") or re.search(r"url\((?!#)", " ".join(names.values()))
        if element.tag.rpartition("}")[2] not in SVG or outside or any(name.startswith("on") for name in names):
            raise InputError("a figure of this report holds more than a drawing")
    own = rf"\g<0>figure-{number}-"
    return re.sub(r"<[^<>]*>", lambda tag: re.sub(r'\sid="|\shref="#|\sxlink:href="#|url\(#', own, tag[0]), svg)


def render(
    name: str, sections: tuple[Section, ...], parameters: Mapping[str, Parameter], notes: tuple[str, ...], version: str
) -> str:
    """The page of a report."""
    shown = [section for section in sections if not section.left_out]
    return _template().render(
        name=name,
        parameters=parameters,
        notes=notes,
        version=version,
        shown=shown,
        left_out=[section for section in sections if section.left_out],
        first=shown[:5],
        methods=_methods(sections),
        kind=lambda block: type(block).__name__,
        drawing=drawing,
        is_number=lambda piece: isinstance(piece, Number),
    )
