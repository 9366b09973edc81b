"""Uniqueness Shapley values: how many bits each attribute contributes to finding each person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._version import __version__
from datassay.identity.counting import UNIQUE_UP_TO
from datassay.identity.figures import draw_people
from datassay.identity.results.asking import UniquenessQueries
from datassay.identity.results.attributes import AttributeMeans, AttributeSets, AttributeTable
from datassay.identity.results.groups import Groups
from datassay.identity.results.records import codes_of, people_among
from datassay.identity.results.words import counted, head_count, named, one_in
from datassay.results import Axes, Columns, Fact, Floats, Parameter, Result, as_facts, axes_on, row_of


@dataclass(frozen=True, eq=False)
class Uniqueness(Result):
    """Uniqueness Shapley values: how many bits each attribute contributes to finding each person.

    Made by :func:`datassay.uniqueness_shapley`. People with the same attributes have the same values, which are kept
    once.

    Attributes
    ----------
    columns, ids
        The attributes, and the people.
    cells, cell
        The values of each distinct row (× attributes), and which of them each person has.
    sizes
        For each distinct row, how many people have it.
    entropies
        Entropy of each attribute by itself, in bits.
    weights
        The weight of each person, None if all count alike.
    lower, upper, mean_half
        Confidence limits of ``cells``, and the half-width of the interval of each attribute's mean, where values were
        sampled; None where they are exact.
    """

    COLUMNS: ClassVar = {"id": "ids", "weight": "weights", "group": "cell"}
    ASIDE: ClassVar = ("cells", "sizes", "lower", "upper")

    columns: tuple[str, ...]
    ids: NDArray[np.generic]
    cells: Floats
    cell: NDArray[np.int32]
    sizes: Floats
    entropies: Floats
    weights: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    mean_half: Floats | None = None
    method: str = "uniqueness_shapley"
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__
    _queries: UniquenessQueries | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Uniqueness({len(self):,} records, {len(self.sizes):,} distinct, by {named(self.columns)})"

    @cached_property
    def values(self) -> Floats:
        """The value of each attribute for each person, in bits (people × attributes)."""
        values: Floats = self.cells[self.cell]
        values.setflags(write=False)
        return values

    @property
    def group_sizes(self) -> Floats:
        """For each person, how many there are with the same attributes."""
        return np.asarray(self.sizes[self.cell])

    @property
    def totals(self) -> Floats:
        """For each person, the bits of all attributes together: log₂ of how many they stand out from."""
        return np.asarray(self.cells.sum(axis=1)[self.cell])

    def of(self, id: object) -> dict[str, float]:
        """The bits of each attribute for the person with this id."""
        return dict(zip(self.columns, map(float, self.cells[self.cell[row_of(id, self.ids)]]), strict=True))

    @property
    def queries(self) -> UniquenessQueries:
        """Groups, sets, interactions and means after changes, while the data is at hand."""
        if self._queries is None:
            raise InputError(
                "this needs the data, which a result read from a file does not hold: compute it anew, with "
                "uniqueness_shapley"
            )
        return self._queries

    def _people(self, records: object) -> Floats:
        return people_among(records, self.ids, self.cell, self.weights, len(self.sizes))

    def mean(self, records: object = None) -> AttributeMeans:
        """Mean bits by which each attribute identifies people, everyone or ``records`` (a mask, or positions).

        Over everyone this is a weighted sum of conditional entropies (Proposition 3 of the paper), over some of them of
        cross entropies (Proposition 4). Entropies beside it are over everyone.
        """
        people = self._people(records)
        values = people @ self.cells / people.sum()
        lower = upper = None
        if self.mean_half is not None and records is None:
            lower, upper = np.maximum(values - self.mean_half, 0.0), values + self.mean_half
        total, notes, how = float(people.sum()), self._notes(whole=records is None), self._how()
        return AttributeMeans(values, np.array(self.columns), self.entropies, total, lower, upper, notes, how)

    def _how(self) -> dict[str, Parameter]:
        return {"method": self.method, **self.parameters, **({} if self.seed is None else {"seed": self.seed})}

    def _notes(self, whole: bool = False) -> tuple[str, ...]:
        if self.lower is None or whole:
            return self.notes
        return (*self.notes, "an interval is given for each person and for the mean over everyone, and not here")

    def by(self, group: object, coarsen: object = "as it is") -> AttributeTable:
        """Means for each group of people: by a column of the table, or by one entry a record.

        ``coarsen`` makes the groups coarser first, as :func:`datassay.uniqueness_shapley` does: ``by("age",
        coarsen=[32, 48, 64])``.
        """
        if isinstance(group, str):
            if self._queries is None:
                raise InputError(
                    "a result read from a file does not hold the table's other columns: give by() one entry a record"
                )
            name, (codes, names) = group, self.queries.by(group, coarsen)
        else:
            name, (codes, names) = getattr(group, "name", None) or "group", codes_of(group, self.ids)
        weights = np.ones(len(self)) if self.weights is None else self.weights
        people = np.bincount(codes, weights, minlength=len(names))
        sums = [np.bincount(codes, weights * bits[self.cell], minlength=len(names)) for bits in self.cells.T]
        values = np.column_stack(sums) / people[:, None]
        unique = self.sizes[self.cell] <= UNIQUE_UP_TO
        alone = np.bincount(codes, weights * unique, minlength=len(names)) / people
        beside = {"people": people, "share": people / people.sum(), "unique": alone}
        return AttributeTable(values, names, self.columns, name, "groups", beside, self._notes(), self._how())

    def entropy(self, columns: Sequence[str]) -> float:
        """Joint entropy of these attributes, in bits: :meth:`.UniquenessQueries.entropy`."""
        return self.queries.entropy(columns)

    def groups(self, columns: Sequence[str] | None = None) -> Groups:
        """The groups of people alike in these attributes: :meth:`.UniquenessQueries.groups`."""
        return self.queries.groups(columns)

    def sets(self) -> AttributeSets:
        """Every set of attributes with what it tells: :meth:`.UniquenessQueries.sets`."""
        return self.queries.sets()

    def interactions(self, records: object = None) -> AttributeTable:
        """Shapley interaction index of each pair of attributes: :meth:`.UniquenessQueries.interactions`."""
        return self.queries.interactions(records)

    def compare(
        self, coarsen: Mapping[str, object] | None = None, drop: Sequence[str] = (), key: bool = False
    ) -> AttributeTable:
        """Means after changes of the data, one row a change: :meth:`.UniquenessQueries.compare`."""
        return self.queries.compare(coarsen, drop, key)

    def changes(self, drop: Sequence[str] = (), key: bool = False) -> AttributeTable:
        """Means without the coarsening of this result, and with it: :meth:`.UniquenessQueries.changes`."""
        return self.queries.changes(drop, key)

    @property
    def unique(self) -> float:
        """The share of people who are alone with their attributes."""
        people = self._people(None)
        return float(people[self.sizes <= UNIQUE_UP_TO].sum() / people.sum())

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``records``; ``people``, which is how many they stand for if there are weights; ``attributes``, ``groups`` of
        people who are alike in them, ``smallest_group``; ``share_unique``, the share of people who are alone;
        ``total_bits`` and ``bits.ATTRIBUTE`` on average, ``entropy.ATTRIBUTE``.
        """
        here = {"records": len(self), "groups": len(self.sizes), "smallest_group": counted(self.sizes.min())}
        return as_facts({**here, "share_unique": self.unique}) | self.mean().facts()

    def summary(self, count: int = 5) -> str:
        """The attributes by what they tell, and the people easiest to find, in words."""
        means = self.mean()
        number = head_count(means.people)
        what = "record" if self.weights is None else "people (by weight)"
        plural = "s" if self.weights is None and means.people != 1 else ""
        different = len(self.sizes) if (self.sizes > UNIQUE_UP_TO).any() else means.people
        verb = "It tells" if len(self.columns) == 1 else "Together they tell"
        coarser = [f"{name[8:]}: {how}" for name, how in self.parameters.items() if name.startswith("coarsen ")]
        made = f", made coarser ({', '.join(coarser)})" if coarser else ""
        lines = [
            f"{number} {what}{plural}, {head_count(different)} different by {named(self.columns)}{made}.",
            f"{verb} {means.total:.2f} bits of the {np.log2(means.people):.2f} that single out one of {number}: a "
            f"person is narrowed down to {one_in(means.total)}, on average; {self.unique:.1%} are unique.",
            *means.in_order(),
        ]
        if self.mean_half is not None:
            lines.append(
                f"Sampled: {self.parameters.get('permutations'):,} orders of the attributes; intervals cover with "
                f"probability {self.parameters.get('confidence')}."
            )
        if count > 0 and means.total > 0:
            lines += self._easiest(count)
        return self._in_words(lines)

    def _easiest(self, count: int) -> list[str]:
        """The people who stand out most; where many are equally easy to find, some of them."""
        totals = self.totals
        top = np.argsort(-totals, kind="stable")[:count]
        equal = int((totals > totals.max() - 1e-9).sum())
        several = f" are {equal:,} equally, such as" if equal > count else ""
        lines = [f"Easiest to find{several} (bits, and the attribute that tells most):"]
        for i in top:
            j = int(self.cells[self.cell[i]].argmax())
            lines.append(
                f"  {self.ids[i]!s}: {totals[i]:.2f}, shared by {head_count(self.sizes[self.cell[i]])}; "
                f"{self.columns[j]} {self.cells[self.cell[i], j]:.2f}"
            )
        return lines

    def plot(self, ax: Axes | None = None, most: int = 1500, *, label: str | None = None) -> Axes:
        """Draw one stacked bar a person, ordered by total (of many, every so many-th person); returns the axes.

        With a ``label`` for the legend the totals are drawn as a line, so that several results can share the axes.
        """
        ax = axes_on(ax, 8, 4)
        step = max(1, -(-len(self) // _checks.integer("most", most, at_least=1)))
        order = np.argsort(self.totals, kind="stable")[::step]
        draw_people(ax, self.cells[self.cell[order]], self.columns, self.mean().values, step, label)
        ax.set_title(f"What makes each of {len(self):,} people unique", loc="left")
        return ax

    def _columns(self) -> Columns:
        columns = {**super()._columns(), "group_size": self.group_sizes, "total_bits": self.totals}
        sides = {"bits": self.cells, "lower": self.lower, "upper": self.upper}
        for j, name in enumerate(self.columns):
            columns |= {f"{side}_{name}": of[self.cell, j] for side, of in sides.items() if of is not None}
        return columns

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        first = np.unique(columns["group"], return_index=True)[1]  # a record of each distinct row
        found = {**super()._fields(header, columns), "sizes": columns["group_size"][first].astype(np.float64)}
        names = header["columns"]
        for side, field_name in (("bits", "cells"), ("lower", "lower"), ("upper", "upper")):
            if f"{side}_{names[0]}" in columns:
                parts = [columns[f"{side}_{name}"][first] for name in names]
                found[field_name] = np.column_stack(parts).astype(np.float64)
        return found
