"""What attributes tell: on average over people, in several rows, and set by set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._version import __version__
from datassay.identity.figures import draw_means, draw_pairs, draw_stacked_bars
from datassay.identity.results.words import counted, head_count, named, one_in
from datassay.results import Axes, Columns, Fact, Floats, Parameter, Result, as_facts, as_named, axes_on

Shape = Literal["groups", "changes", "pairs"]


@dataclass(frozen=True, eq=False)
class AttributeMeans(Result):
    """Mean bits by which each attribute identifies people, beside its entropy.

    Attributes
    ----------
    values, ids
        Mean uniqueness Shapley value of each attribute, and the attributes' names.
    entropies
        Entropy of each attribute by itself, over everyone: what it tells if nothing else is known.
    people
        How many people (or how much weight) the mean is over.
    lower, upper
        Confidence intervals where values were sampled; None where they are exact.
    """

    ROWS: ClassVar = "attributes"
    COLUMNS: ClassVar = {"attribute": "ids", "shapley": "values", "entropy": "entropies"} | as_named("lower", "upper")

    values: Floats
    ids: NDArray[np.str_]
    entropies: Floats
    people: float
    lower: Floats | None = None
    upper: Floats | None = None
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    version: str = __version__

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {value:.3g}" for name, value in zip(self.ids, self.values, strict=True))
        return f"AttributeMeans({head_count(self.people)} people, bits: {listed})"

    @property
    def total(self) -> float:
        """Bits that all attributes tell together."""
        return float(self.values.sum())

    def of(self, attribute: str) -> float:
        """The mean of one attribute."""
        return float(self.values[_row("attribute", attribute, self.ids)])

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``people``, ``attributes``, ``total_bits``; ``bits.NAME``, ``entropy.NAME`` of each."""
        names = self.ids.tolist()
        whole = {"people": counted(self.people), "attributes": len(names), "total_bits": self.total}
        bits = {f"bits.{name}": bits for name, bits in zip(names, self.values, strict=True)}
        alone = {f"entropy.{name}": bits for name, bits in zip(names, self.entropies, strict=True)}
        return as_facts({**whole, **bits, **alone})

    def in_order(self) -> list[str]:
        """A line for each attribute, in order of what they tell."""
        lines = []
        width = max(len(str(name)) for name in self.ids)
        total = self.total
        for j in np.argsort(-self.values, kind="stable"):
            interval = ""
            if self.lower is not None and self.upper is not None:
                interval = f" ({self.lower[j]:.2f} to {self.upper[j]:.2f})"
            share = f", {self.values[j] / total:.0%} of what all tell" if total > 0 else ""
            lines.append(
                f"  {self.ids[j]!s:<{width}}  {self.values[j]:6.2f} bits{interval}{share}; alone it tells "
                f"{self.entropies[j]:.2f} bits: it narrows a person down to {one_in(self.entropies[j])}"
            )
        return lines

    def summary(self) -> str:
        """The attributes in order of what they tell, in words."""
        return self._in_words(self.in_order())

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw each attribute's mean beside its entropy (with a ``label`` for the legend, alone); returns the axes."""
        ax = axes_on(ax, 7, min(12, 0.45 * len(self.ids) + 1.2))
        limits = None if self.lower is None or self.upper is None else (self.lower, self.upper)
        draw_means(ax, self.ids, self.values, limits, self.entropies, label)
        estimated = "" if limits is None else ", estimated"
        title = f"What identifies {head_count(self.people)} people: {self.total:.2f} bits in all{estimated}"
        ax.set_title(title, loc="left")
        return ax


def _row(what: str, name: str, ids: NDArray[np.str_]) -> int:
    found = np.flatnonzero(ids == str(name))
    if len(found) == 0:
        raise InputError(f"there is no {what} {name!r}; there are {_checks.listed(ids, 12)}")
    return int(found[0])


_FORMATS: Final = {"people": head_count, "share": "{:.1%}".format, "unique": "{:.1%}".format}


@dataclass(frozen=True, eq=False)
class AttributeTable(Result):
    """Bits of each attribute in several rows: one for each group of people, change of the data, or attribute.

    Its frame has a column of the rows' names, the columns of ``beside``, and ``bits_NAME`` for each attribute.

    Attributes
    ----------
    values
        Rows × attributes, in bits.
    ids, columns
        What the rows are, and the attributes.
    rows, shape
        What a row is: one of the groups by a column, whose name this is; a change; or, in pairs, an attribute.
    beside
        More columns, such as people, share (of all), unique (the share of them who are alone).
    """

    ROWS: ClassVar = "rows"
    COLUMNS: ClassVar = {"bits_*": "values"}
    ASIDE: ClassVar = ("ids", "beside")

    values: Floats
    ids: NDArray[np.str_]
    columns: tuple[str, ...]
    rows: str
    shape: Shape = "groups"
    beside: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    version: str = __version__

    def __post_init__(self) -> None:
        _checks.choice("shape", self.shape, get_args(Shape))
        if self.rows in self.beside or self.rows in (f"bits_{name}" for name in self.columns):
            object.__setattr__(self, "rows", f"{self.rows} (group)")
        super().__post_init__()

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"AttributeTable({len(self)} rows by {self.rows!r}: {named(self.columns)})"

    def _columns(self) -> Columns:
        return {self.rows: self.ids, **self.beside, **super()._columns()}

    def _header(self) -> dict[str, object]:
        return {**super()._header(), "beside": list(self.beside)}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        beside = {name: columns[name].astype(np.float64) for name in header["beside"]}
        ids = columns[header["rows"]].astype(np.str_)
        return {**super()._fields(header, columns), "ids": ids, "beside": beside}

    def of(self, row: str) -> dict[str, float]:
        """The bits of each attribute in one row."""
        return dict(zip(self.columns, map(float, self.values[_row("row", row, self.ids)]), strict=True))

    def facts(self) -> dict[str, Fact]:
        """The numbers of every row: ``bits.ATTRIBUTE.ROWS=ROW`` and, where known, ``people.ROWS=ROW`` and so on.

        By county, say, ``bits.zip.county=Wake``, ``people.county=Wake``, ``share.county=Wake`` (of all people) and
        ``share_unique.county=Wake``.
        """
        found: dict[str, object] = {}
        for i, row in enumerate(self.ids.tolist()):
            for name, column in self.beside.items():
                found[f"{'share_unique' if name == 'unique' else name}.{self.rows}={row}"] = column[i]
            found |= {f"bits.{name}.{self.rows}={row}": self.values[i, j] for j, name in enumerate(self.columns)}
        return as_facts(found)

    def summary(self, most: int = 40) -> str:
        """The table as text; of more than ``most`` rows, those with most people."""
        chosen = self._largest(most)
        first = max(len(self.rows), *(len(str(name)) for name in self.ids[chosen]))
        head = [f"{self.rows:<{first}}", *(f"{name:>10}" for name in (*self.columns, *self.beside))]
        lines = ["  ".join(head)]
        for i in chosen:
            numbers = zip(self.columns, self.values[i], strict=True)
            cells = [f"{bits:>{max(10, len(name))}.2f}" for name, bits in numbers]
            for name, column in self.beside.items():
                cells.append(f"{_FORMATS.get(name, '{:.2f}'.format)(float(column[i])):>{max(10, len(name))}}")
            lines.append("  ".join([f"{self.ids[i]!s:<{first}}", *cells]))
        if len(chosen) < len(self):
            lines.append(f"and {len(self) - len(chosen):,} more rows, with fewer people")
        return self._in_words(lines)

    def _largest(self, most: int) -> NDArray[np.intp]:
        if len(self) <= most or "people" not in self.beside:
            return np.arange(len(self))[:most]
        return np.sort(np.argsort(-self.beside["people"], kind="stable")[:most])

    def plot(self, ax: Axes | None = None, most: int = 30, *, label: str | None = None) -> Axes:
        """Draw the rows as stacked bars, attribute on attribute; a table of interactions as a map. Returns the axes.

        With a ``label`` for the legend each row is one bar, so that several results can share the axes.
        """
        if self.shape == "pairs":
            side = min(12.0, 0.6 * len(self) + 2.5)
            ax = axes_on(ax, side + 1, side)
            draw_pairs(ax, self.ids.tolist(), self.columns, self.values)
            ax.set_title("Interaction of attributes" + ("" if label is None else f": {label}"), loc="left")
            return ax
        ax = axes_on(ax, 8, 0.32 * min(len(self), most) + 1.6)
        chosen = self._largest(most)
        key = self.beside["key"][chosen] if "key" in self.beside else None
        rows, means = self.ids[chosen].tolist(), self.values.mean(axis=0)
        draw_stacked_bars(ax, rows, self.columns, self.values[chosen], means, key, label)
        some = f", the largest {len(chosen)} of {len(self):,} groups" if len(chosen) < len(self) else ""
        ax.set_title("What changes" if self.shape == "changes" else f"By {self.rows}{some}", loc="left")
        return ax


@dataclass(frozen=True, eq=False)
class AttributeSets(Result):
    """Every set of attributes with what it tells of everyone: its entropy, its groups, who is unique in it.

    Its frame has a row for each set: its name, entropy, groups, unique, smallest, and ``has_NAME`` for each attribute.

    Attributes
    ----------
    columns, inside
        The attributes, and which of them are in each set (sets × attributes).
    values
        Joint entropy of each set, in bits: 2 to it is «1 in so many».
    groups, unique, smallest
        For each set, how many different groups there are, the share of people who are unique, the smallest group.
    """

    ROWS: ClassVar = "sets"
    COLUMNS: ClassVar = {"entropy": "values"} | as_named("groups", "unique", "smallest") | {"has_*": "inside"}

    columns: tuple[str, ...]
    inside: NDArray[np.bool_]
    values: Floats
    groups: Floats
    unique: Floats
    smallest: Floats
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    version: str = __version__

    def __repr__(self) -> str:
        return f"AttributeSets({len(self):,} sets of {named(self.columns)})"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def ids(self) -> NDArray[np.str_]:
        """The sets by name."""
        return np.array([self._name(row) for row in self.inside])

    def _name(self, inside: NDArray[np.bool_]) -> str:
        return " + ".join(np.array(self.columns)[inside])

    def _columns(self) -> Columns:
        return {"set": self.ids, **super()._columns()}

    def of(self, columns: Sequence[str]) -> dict[str, float]:
        """Entropy, number of groups, unique share and smallest group of one set."""
        if isinstance(columns, str) or not set(columns) <= set(self.columns):
            raise UsageError(f"columns must be a list of attributes among {_checks.listed(self.columns, 12)}")
        wanted = np.isin(np.array(self.columns), list(columns))
        at = np.flatnonzero((self.inside == wanted).all(axis=1))
        if len(at) == 0:
            raise UsageError("columns names no attribute; without any, everyone is alike")
        names = {column: name for column, name in self.COLUMNS.items() if "*" not in column}
        return {column: float(getattr(self, name)[at[0]]) for column, name in names.items()}

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``sets``, ``attributes``; and for each number of attributes ``share_unique.NUMBER`` and ``entropy.NUMBER``, the
        largest share of people who are unique, and the largest entropy, in a set of so many.
        """
        sizes = self.inside.sum(axis=1)
        found: dict[str, object] = {"sets": len(self), "attributes": len(self.columns)}
        for size in range(1, len(self.columns) + 1):
            rows = sizes == size
            found |= {f"share_unique.{size}": self.unique[rows].max(), f"entropy.{size}": self.values[rows].max()}
        return as_facts(found)

    def summary(self, largest: int = 4, count: int = 3) -> str:
        """For each number of attributes up to ``largest``, the ``count`` sets that make most people unique."""
        sizes = self.inside.sum(axis=1)
        lines = []
        for size in range(1, min(largest, len(self.columns)) + 1):
            rows = np.flatnonzero(sizes == size)
            best = rows[np.lexsort((rows, -self.values[rows], -self.unique[rows]))][:count]
            lines.append("One attribute:" if size == 1 else f"{size} attributes:")
            lines += [
                f"  {self.unique[i]:6.1%} unique, 1 in {2.0 ** self.values[i]:,.4g}, smallest group "
                f"{head_count(self.smallest[i])}: {self._name(self.inside[i])}"
                for i in best
            ]
        return self._in_words(lines)
