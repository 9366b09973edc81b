"""What a report is made of: sections of sentences, numbers, figures and tables, all plain data.

A number knows the method it comes from, so that the page can link every one of them. Nothing here knows HTML; the page
escapes all that it is given.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from datassay.results import Fact

Facts = dict[str, Fact]
Kind = Literal["text", "number"]


@dataclass(frozen=True)
class Number:
    """A number in a sentence, as it is written, and the method it comes from."""

    text: str
    method: str


Text = tuple[str | Number, ...]


def sentence(text: str, method: str) -> Text:
    """A text whose numbers stand between ⟦ and ⟧ as its pieces; all of these numbers come from one method.

    >>> sentence("Of ⟦12⟧ records", "knn-shapley")
    ('Of ', Number(text='12', method='knn-shapley'), ' records')
    """
    pieces = re.split("⟦([^⟧]*)⟧", text)
    return tuple(Number(piece, method) if at % 2 else piece for at, piece in enumerate(pieces) if piece)


def plain(text: Text) -> str:
    """A sentence without its links."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in text)


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: Text


@dataclass(frozen=True)
class Figure:
    """A drawing; its title states what it shows."""

    title: str
    svg: str
    caption: str
    method: str


def paragraph(text: str, method: str) -> Paragraph:
    """A paragraph of :func:`sentence`."""
    return Paragraph(sentence(text, method))


@dataclass(frozen=True)
class Grid:
    """A table: what it lists, its columns and rows as they are written."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kinds: tuple[Kind, ...]
    method: str
    note: str = ""


@dataclass(frozen=True)
class Card:
    """One number to be seen at a glance."""

    name: str
    number: Number
    note: str = ""


Block = Paragraph | Figure | Grid


@dataclass(frozen=True)
class Section:
    """The answer to one question about the data.

    ``finding`` and ``advice`` are one sentence each and stand on the first screen; ``unseen`` says what was not looked
    at. Where something is missing that the section needs, ``left_out`` says what, and there is nothing else.
    """

    key: str = ""
    title: str = ""
    finding: Text = ()
    advice: Text = ()
    cards: tuple[Card, ...] = ()
    blocks: tuple[Block, ...] = ()
    unseen: tuple[str, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    left_out: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The section as JSON holds it."""
        found: dict[str, Any] = _to_plain(self)
        return found

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "Section":
        """The section that :meth:`to_dict` wrote."""
        inside = {name: _from_plain(one) for name, one in given.items()}
        return cls(**inside | {"cards": tuple(Card(**card) for card in inside["cards"])})


# What stands among other things in a section: its kind is written with it.
_KINDS: dict[str, type] = {"figure": Figure, "grid": Grid, "number": Number, "paragraph": Paragraph}


def _to_plain(thing: object) -> Any:
    """What sections are made of as JSON can hold it; :func:`_from_plain` reads it back."""
    if is_dataclass(thing):
        kind = next(({"kind": name} for name, one in _KINDS.items() if type(thing) is one), {})
        return kind | {one.name: _to_plain(getattr(thing, one.name)) for one in fields(thing)}
    if isinstance(thing, tuple):
        return [_to_plain(one) for one in thing]
    if isinstance(thing, Mapping):
        return {name: _to_plain(one) for name, one in thing.items()}
    return thing


def _from_plain(thing: Any) -> Any:
    """What :func:`_to_plain` was given."""
    if isinstance(thing, list):
        return tuple(_from_plain(one) for one in thing)
    if isinstance(thing, dict):
        inside = {name: _from_plain(one) for name, one in thing.items() if name != "kind"}
        return _KINDS[thing["kind"]](**inside) if "kind" in thing else inside
    return thing
