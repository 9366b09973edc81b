"""The groups of people who are alike in some attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._version import __version__
from datassay.identity.counting import share_unique
from datassay.identity.figures import draw_group_sizes
from datassay.identity.results.words import counted, head_count, named
from datassay.results import Axes, Columns, Fact, Floats, Parameter, Result, as_facts, axes_on

SMALL: Final = (5, 10, 20)


@dataclass(frozen=True, eq=False)
class Groups(Result):
    """The groups of people who are alike in some attributes.

    Its frame has a row for each group, the smallest first: how many ``people``, and the values they share.

    Attributes
    ----------
    sizes
        People (or weight) in each group, smallest group first.
    attributes
        The values of each attribute that the people of a group share.
    """

    ASIDE: ClassVar = ("sizes", "attributes")

    sizes: Floats
    attributes: Mapping[str, NDArray[np.str_]]
    notes: tuple[str, ...] = ()
    version: str = __version__
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Groups({len(self):,} groups by {named(tuple(self.attributes))}; {self.unique:.1%} of people are alone)"

    def _columns(self) -> Columns:
        size = "people"
        while size in self.attributes:
            size = f"{size}_in_group"
        return {size: self.sizes, **self.attributes}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        size, *names = columns
        attributes = {name: columns[name].astype(np.str_) for name in names}
        return {**super()._fields(header, {}), "sizes": columns[size].astype(np.float64), "attributes": attributes}

    @property
    def values(self) -> Floats:
        """The sizes."""
        return self.sizes

    @property
    def ids(self) -> NDArray[np.intp]:
        """Groups are numbered, the smallest first."""
        return np.arange(len(self))

    @property
    def smallest(self) -> float:
        """The size of the smallest group: the data is k-anonymous in these attributes for k up to it."""
        return float(self.sizes[0])

    @property
    def unique(self) -> float:
        """The share of people who are alone in their group."""
        return share_unique(self.sizes)

    def share_below(self, k: float) -> float:
        """The share of people in groups smaller than k."""
        k = _checks.number("k", k, above=0)
        return float(self.sizes[self.sizes < k].sum() / self.sizes.sum())

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``people``, ``groups``, ``smallest_group``, ``share_unique``, and ``share_below.5``, ``share_below.10`` and
        ``share_below.20``, the share of people in groups of fewer than so many.
        """
        below = {f"share_below.{k}": self.share_below(k) for k in SMALL}
        whole = {"people": counted(self.sizes.sum()), "groups": len(self), "smallest_group": counted(self.smallest)}
        return as_facts({**whole, "share_unique": self.unique, **below})

    def summary(self, count: int = 5) -> str:
        """How many people are unique or in small groups, in words."""
        parts = [f"{self.share_below(k):.1%} in groups of fewer than {k}" for k in SMALL]
        lines = [
            f"{head_count(self.sizes.sum())} people in {len(self):,} groups alike in {named(tuple(self.attributes))}.",
            f"{self.unique:.1%} of them are unique; {', '.join(parts)}.",
            f"The smallest group has {head_count(self.smallest)}.",
        ]
        for i in range(min(count, len(self))):
            alike = ", ".join(f"{name} {column[i]!s}" for name, column in self.attributes.items())
            lines.append(f"  {head_count(self.sizes[i])}: {alike}")
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the share of people in groups up to each size; returns the axes. ``label`` is for the legend."""
        ax = axes_on(ax, 6, 4)
        draw_group_sizes(ax, self.sizes, label)
        ax.set_title(f"{self.unique:.1%} are unique by {named(tuple(self.attributes))}", loc="left")
        return ax
