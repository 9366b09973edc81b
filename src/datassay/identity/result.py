"""What uniqueness values say of people, attributes and groups, in tables, words and figures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._frozen import FrozenMapping
from datassay._version import __version__
from datassay.identity.counting import UNIQUE_UP_TO, entropy, share_unique
from datassay.results import (
    Fact,
    FrameKind,
    Parameter,
    as_facts,
    check_axes,
    freeze,
    frozen,
    make_frame,
    new_axes,
    row_of,
    save_columns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Shape = Literal["groups", "changes", "pairs"]


class Asked(Protocol):
    """What a result can still be asked while the data is at hand."""

    def groups(self, column: str, coarsen: object) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
        """The group of each record by a column of the table, and the groups' names."""
        ...

    def alike(self, columns: Sequence[str] | None) -> "Groups":
        """The groups alike in these attributes."""
        ...

    def interactions(self, people: Floats) -> "AttributeTable":
        """Interaction indices averaged over these people of each cell."""
        ...

    def sets(self) -> "AttributeSets":
        """What every set of attributes tells."""
        ...

    def compare(self, coarsen: Mapping[str, object], drop: Sequence[str], key: bool) -> "AttributeTable":
        """Means after changes of the data, each by itself."""
        ...

    def changes(self, drop: Sequence[str], key: bool) -> "AttributeTable":
        """What the coarsening asked for changes."""
        ...


COLOURS: Final = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#882255",
)  # fmt: skip
OTHERS: Final = "#bbbbbb"
SMALL_GROUPS: Final = (2, 5, 10, 20)


def one_in(bits: float) -> str:
    """Bits as odds, in words: 3 bits are «1 in 8»."""
    odds = 2.0**bits
    return f"1 in {odds:,.0f}" if odds >= 99.5 else f"1 in {odds:.3g}"


def head_count(number: float) -> str:
    """A number of people: whole, unless weights make it a fraction."""
    return f"{number:,.0f}" if float(number).is_integer() or number >= 1000 else f"{number:,.4g}"


def _counted(number: float) -> int | float:
    """A number of people as a fact: whole, unless weights make it a fraction."""
    return int(number) if float(number).is_integer() else float(number)


def _stacks(values: Floats, columns: Sequence[str], means: Floats) -> list[tuple[str, str, Floats]]:
    """What is drawn on top of each other: name, colour and bits of the most telling attributes, then all others."""
    order = np.argsort(-means, kind="stable")
    shown = order if len(order) <= len(COLOURS) else order[: len(COLOURS) - 1]
    parts = [(columns[j], COLOURS[place], values[:, j]) for place, j in enumerate(shown)]
    if len(shown) < len(order):
        rest = order[len(shown) :]
        parts.append((f"{len(rest)} others", OTHERS, values[:, rest].sum(axis=1)))
    return parts


def _in_our_order(given: object, ids: NDArray[np.generic], what: str) -> NDArray[np.generic]:
    """An array with one entry a record; what has an index of its own must have the ids, in their order."""
    index = getattr(given, "index", None)
    if hasattr(index, "equals"):
        labels = np.asarray(index)
        counted = type(index).__name__ == "RangeIndex" and np.array_equal(labels, np.arange(len(labels)))
        if not counted and not np.array_equal(labels, ids):
            raise InputError(
                f"{what} has another index than the records; align it first, or pass {what}.to_numpy() to match by "
                "position"
            )
    elif hasattr(given, "equals") and hasattr(given, "get_loc"):
        raise InputError(f"{what} is an index; give positions (counting from 0) or a mask")
    return np.asarray(given)


def _bits(number: float) -> str:
    return f"{number:.2f}"


def _percent(number: float) -> str:
    return f"{number:.1%}"


_FACT_NAMES: Final = {"unique": "share_unique"}
_TELL: Final = {"people": head_count, "share": _percent, "unique": _percent}


@dataclass(frozen=True, eq=False)
class AttributeMeans:
    """How much each attribute identifies people on average, in bits, beside its entropy.

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

    values: Floats
    ids: NDArray[np.str_]
    entropies: Floats
    people: float
    lower: Floats | None = None
    upper: Floats | None = None
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    version: str = __version__

    def __post_init__(self) -> None:
        freeze(self, "values", "ids", "entropies", "lower", "upper")

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {value:.3g}" for name, value in zip(self.ids, self.values, strict=True))
        return f"AttributeMeans({head_count(self.people)} people, bits: {listed})"

    @property
    def total(self) -> float:
        """Bits that all attributes tell together."""
        return float(self.values.sum())

    def of(self, attribute: str) -> float:
        """The mean of one attribute."""
        found = np.flatnonzero(self.ids == attribute)
        if len(found) == 0:
            raise InputError(f"there is no attribute {attribute!r}; there are {_checks.listed(self.ids, 12)}")
        return float(self.values[found[0]])

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        columns = {
            "attribute": self.ids,
            "shapley": self.values,
            "entropy": self.entropies,
            "lower": self.lower,
            "upper": self.upper,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """One row an attribute: attribute, shapley, entropy and, where sampled, lower and upper."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {
            "kind": "attribute means",
            "people": self.people,
            "notes": list(self.notes),
            "parameters": dict(self.parameters),
            "version": self.version,
        }
        return save_columns(path, header, self._columns())

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``people``, ``attributes``, ``total_bits``; ``bits.NAME``, ``entropy.NAME`` of each."""
        names = self.ids.tolist()
        return as_facts(
            {
                "people": _counted(self.people), "attributes": len(names), "total_bits": self.total,
                **{f"bits.{name}": bits for name, bits in zip(names, self.values, strict=True)},
                **{f"entropy.{name}": bits for name, bits in zip(names, self.entropies, strict=True)},
            }
        )  # fmt: skip

    def summary(self) -> str:
        """The attributes in order of what they tell, in words."""
        lines = []
        width = max(len(str(name)) for name in self.ids)
        total = self.total
        for j in np.argsort(-self.values, kind="stable"):
            interval = (
                "" if self.lower is None or self.upper is None else f" ({self.lower[j]:.2f} to {self.upper[j]:.2f})"
            )
            share = f", {self.values[j] / total:.0%} of what all tell" if total > 0 else ""
            lines.append(
                f"  {self.ids[j]!s:<{width}}  {self.values[j]:6.2f} bits{interval}{share}; alone it tells "
                f"{self.entropies[j]:.2f} bits: it narrows a person down to {one_in(self.entropies[j])}"
            )
        return "\n".join(lines)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw each attribute's mean beside its entropy; returns the axes."""
        if ax is None:
            ax = new_axes(7, min(12, 0.45 * len(self.ids) + 1.2))
        check_axes(ax)
        order = np.argsort(self.values, kind="stable")
        at = np.arange(len(order))
        error = None
        if self.lower is not None and self.upper is not None:
            error = np.vstack([self.values - self.lower, self.upper - self.values])[:, order]
        ax.barh(at + 0.2, self.values[order], 0.38, color="#4477aa", xerr=error, label="uniqueness Shapley")
        ax.barh(at - 0.2, self.entropies[order], 0.38, color="#bbbbbb", label="entropy, alone")
        ax.set_yticks(at, [str(self.ids[j]) for j in order])
        ax.set_xlabel("bits")
        estimated = "" if self.lower is None else ", estimated"
        title = f"What identifies {head_count(self.people)} people: {self.total:.2f} bits in all{estimated}"
        ax.set_title(title, loc="left")
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return ax


@dataclass(frozen=True, eq=False)
class AttributeTable:
    """Bits of each attribute in several rows: one for each group of people, change of the data, or attribute.

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
        rows, taken = self.rows, {*self.beside, *(f"bits_{name}" for name in self.columns)}
        object.__setattr__(self, "rows", f"{rows} (group)" if rows in taken else rows)
        freeze(self, "values", "ids")
        object.__setattr__(
            self, "beside", FrozenMapping({name: frozen(column) for name, column in self.beside.items()})
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"AttributeTable({len(self)} rows by {self.rows!r}: {_named(self.columns)})"

    def of(self, row: str) -> dict[str, float]:
        """The bits of each attribute in one row."""
        found = np.flatnonzero(self.ids == str(row))
        if len(found) == 0:
            raise InputError(f"there is no row {row!r}; there are {_checks.listed(self.ids, 12)}")
        return dict(zip(self.columns, map(float, self.values[found[0]]), strict=True))

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        bits = {f"bits_{name}": self.values[:, j] for j, name in enumerate(self.columns)}
        return {self.rows: self.ids, **self.beside, **bits}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """The table as a data frame; an attribute's column is ``bits_`` and its name."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {
            "kind": "attribute table",
            "rows": self.rows,
            "shape": self.shape,
            "columns": list(self.columns),
            "beside": list(self.beside),
            "notes": list(self.notes),
            "parameters": dict(self.parameters),
            "version": self.version,
        }
        return save_columns(path, header, self._columns())

    def facts(self) -> dict[str, Fact]:
        """The numbers of every row: ``bits.ATTRIBUTE.ROWS=ROW`` and, where known, ``people.ROWS=ROW`` and so on.

        By county, say, ``bits.zip.county=Wake``, ``people.county=Wake``, ``share.county=Wake`` (of all people) and
        ``share_unique.county=Wake``.
        """
        found: dict[str, object] = {}
        for i, row in enumerate(self.ids.tolist()):
            beside = {_FACT_NAMES.get(name, name): column[i] for name, column in self.beside.items()}
            found |= {f"{name}.{self.rows}={row}": number for name, number in beside.items()}
            found |= {f"bits.{name}.{self.rows}={row}": self.values[i, j] for j, name in enumerate(self.columns)}
        return as_facts(found)

    def summary(self, most: int = 40) -> str:
        """The table as text; of more than ``most`` rows, those with most people."""
        chosen = self._largest(most)
        first = max(len(self.rows), *(len(str(name)) for name in self.ids[chosen]))
        head = [f"{self.rows:<{first}}", *(f"{name:>10}" for name in self.columns)]
        head += [f"{name:>10}" for name in self.beside]
        lines = ["  ".join(head)]
        for i in chosen:
            cells = [f"{self.ids[i]!s:<{first}}"]
            cells += [
                f"{value:>{max(10, len(name))}.2f}" for name, value in zip(self.columns, self.values[i], strict=True)
            ]
            for name, column in self.beside.items():
                told = _TELL.get(name, _bits)(float(column[i]))
                cells.append(f"{told:>{max(10, len(name))}}")
            lines.append("  ".join(cells))
        if len(chosen) < len(self):
            lines.append(f"and {len(self) - len(chosen):,} more rows, with fewer people")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _largest(self, most: int) -> NDArray[np.intp]:
        if len(self) <= most or "people" not in self.beside:
            return np.arange(len(self))[:most]
        return np.sort(np.argsort(-self.beside["people"], kind="stable")[:most])

    def plot(self, ax: "Axes | None" = None, most: int = 30) -> "Axes":
        """Draw the rows as stacked bars, attribute on attribute; a table of interactions as a map. Returns the axes."""
        if self.shape == "pairs":
            return self._map(ax)
        if ax is None:
            ax = new_axes(8, 0.32 * min(len(self), most) + 1.6)
        check_axes(ax)
        chosen = self._largest(most)[::-1]
        at, left = np.arange(len(chosen)), np.zeros(len(chosen))
        parts = _stacks(self.values[chosen], self.columns, self.values.mean(axis=0))
        if "key" in self.beside:
            parts.append(("the key", "#222222", self.beside["key"][chosen]))
        for name, colour, bits in parts:
            ax.barh(at, bits, 0.75, left, color=colour, label=name)
            left += bits
        ax.set_ylim(-0.6, len(chosen) - 0.4)
        ax.set_yticks(at, [str(self.ids[i]) for i in chosen])
        ax.set_xlabel("bits that identify a person, on average")
        some = f", the largest {len(chosen)} of {len(self):,} groups" if len(chosen) < len(self) else ""
        ax.set_title("What changes" if self.shape == "changes" else f"By {self.rows}{some}", loc="left")
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _map(self, ax: "Axes | None") -> "Axes":
        if ax is None:
            side = min(12.0, 0.6 * len(self) + 2.5)
            ax = new_axes(side + 1, side)
        check_axes(ax)
        shown = self.values.copy()
        np.fill_diagonal(shown, np.nan)
        most = float(np.nanmax(np.abs(shown))) if len(shown) > 1 else 0.0
        image = ax.imshow(shown, cmap="RdBu_r", vmin=-(most or 1.0), vmax=most or 1.0)
        if len(self) <= 12:
            for i in range(len(self)):
                for j in range(len(self)):
                    if i != j:
                        dark = "white" if abs(shown[i, j]) > 0.6 * most > 0 else "black"
                        ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=8, color=dark)
        ax.set_xticks(range(len(self)), self.columns, rotation=45, ha="right")
        ax.set_yticks(range(len(self)), [str(name) for name in self.ids])
        ax.figure.colorbar(image, ax=ax, label="bits together beyond apart", shrink=0.8)
        ax.set_title("Interaction of attributes", loc="left")
        return ax


@dataclass(frozen=True, eq=False)
class AttributeSets:
    """What every set of attributes tells of everyone: its entropy, its groups, who is unique in it.

    Attributes
    ----------
    columns, inside
        The attributes, and which of them are in each set (sets × attributes).
    values
        Joint entropy of each set, in bits: 2 to it is «1 in so many».
    groups, unique, smallest
        For each set, how many different groups there are, the share of people who are unique, the smallest group.
    """

    columns: tuple[str, ...]
    inside: NDArray[np.bool_]
    values: Floats
    groups: Floats
    unique: Floats
    smallest: Floats
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    version: str = __version__

    def __post_init__(self) -> None:
        freeze(self, "inside", "values", "groups", "unique", "smallest")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"AttributeSets({len(self):,} sets of {_named(self.columns)})"

    @property
    def ids(self) -> NDArray[np.str_]:
        """The sets by name."""
        return np.array([" + ".join(np.array(self.columns)[row]) for row in self.inside])

    def of(self, columns: Sequence[str]) -> dict[str, float]:
        """Entropy, number of groups, unique share and smallest group of one set."""
        if isinstance(columns, str) or not set(columns) <= set(self.columns):
            raise UsageError(f"columns must be a list of attributes among {_checks.listed(self.columns, 12)}")
        wanted = np.isin(np.array(self.columns), list(columns))
        at = np.flatnonzero((self.inside == wanted).all(axis=1))
        if len(at) == 0:
            raise UsageError("columns names no attribute; without any, everyone is alike")
        row = int(at[0])
        return {
            "entropy": float(self.values[row]),
            "groups": float(self.groups[row]),
            "unique": float(self.unique[row]),
            "smallest": float(self.smallest[row]),
        }

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        has = {f"has_{name}": self.inside[:, j] for j, name in enumerate(self.columns)}
        numbers = {"entropy": self.values, "groups": self.groups, "unique": self.unique, "smallest": self.smallest}
        return {"set": self.ids, **numbers, **has}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """One row a set: its name, entropy, groups, unique, smallest, and a column ``has_`` for each attribute."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {
            "kind": "attribute sets",
            "columns": list(self.columns),
            "notes": list(self.notes),
            "parameters": dict(self.parameters),
            "version": self.version,
        }
        return save_columns(path, header, self._columns())

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
                f"{head_count(self.smallest[i])}: {name}"
                for i, name in zip(
                    best, [" + ".join(np.array(self.columns)[self.inside[i]]) for i in best], strict=True
                )
            ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of people who are alike in some attributes.

    Attributes
    ----------
    sizes
        People (or weight) in each group, smallest group first.
    attributes
        The values of each attribute that the people of a group share.
    """

    sizes: Floats
    attributes: Mapping[str, NDArray[np.str_]]
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", frozen(self.sizes))
        object.__setattr__(self, "attributes", FrozenMapping({k: frozen(v) for k, v in self.attributes.items()}))

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return (
            f"Groups({len(self):,} groups by {_named(tuple(self.attributes))}; {self.unique:.1%} of people are alone)"
        )

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

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        size = "people"
        while size in self.attributes:
            size = f"{size}_in_group"
        return {size: self.sizes, **self.attributes}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """One row a group, smallest first: people, and the values they share."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {"kind": "groups", "notes": list(self.notes), "version": self.version}
        return save_columns(path, header, self._columns())

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``people``, ``groups``, ``smallest_group``, ``share_unique``, and ``share_below.5``, ``share_below.10`` and
        ``share_below.20``, the share of people in groups of fewer than so many.
        """
        below = {f"share_below.{k}": self.share_below(k) for k in SMALL_GROUPS[1:]}
        return as_facts(
            {
                "people": _counted(self.sizes.sum()), "groups": len(self), "smallest_group": _counted(self.smallest),
                "share_unique": self.unique, **below,
            }
        )  # fmt: skip

    def summary(self, count: int = 5) -> str:
        """How people hide among each other, in words."""
        parts = [f"{self.share_below(k):.1%} in groups of fewer than {k}" for k in SMALL_GROUPS[1:]]
        lines = [
            f"{head_count(self.sizes.sum())} people in {len(self):,} groups alike in {_named(tuple(self.attributes))}.",
            f"{self.unique:.1%} of them are unique; {', '.join(parts)}.",
            f"The smallest group has {head_count(self.smallest)}.",
        ]
        for i in range(min(count, len(self))):
            alike = ", ".join(f"{name} {column[i]!s}" for name, column in self.attributes.items())
            lines.append(f"  {head_count(self.sizes[i])}: {alike}")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the share of people in groups up to each size; returns the axes."""
        if ax is None:
            ax = new_axes(6, 4)
        check_axes(ax)
        ax.step(self.sizes, np.cumsum(self.sizes) / self.sizes.sum(), where="post", color="#4477aa")
        ax.set_xscale("log")
        ax.set_ylim(0, 1.02)
        ax.set_xlabel("size of the group")
        ax.set_ylabel("share of people in groups up to this size")
        ax.set_title(f"{self.unique:.1%} are unique by {_named(tuple(self.attributes))}", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax


@dataclass(frozen=True, eq=False)
class Uniqueness:
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
    method, parameters, seed, notes, version
        How the values were obtained.
    """

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
    asked: Asked | None = None

    def __post_init__(self) -> None:
        for name in ("ids", "cells", "cell", "sizes", "entropies", "weights", "lower", "upper", "mean_half"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                array = frozen(array) if name == "ids" else array  # the ids are the table's, and shared with it
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Uniqueness({len(self):,} records, {len(self.sizes):,} distinct, by {_named(self.columns)})"

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

    def _people(self, records: object) -> Floats:
        """The people of each cell among these records."""
        if records is None:
            if self.weights is None:
                return np.bincount(self.cell, minlength=len(self.sizes)).astype(np.float64)
            return np.asarray(np.bincount(self.cell, self.weights, minlength=len(self.sizes)), np.float64)
        given = _in_our_order(records, self.ids, "records")
        if given.dtype == bool and given.shape != (len(self),):
            raise InputError(f"records: the mask has shape {given.shape} for {len(self)} records")
        if given.shape == (0,):
            raise InputError("records: nobody is chosen")
        if given.dtype.kind not in "biu" or given.ndim != 1:
            raise InputError("records must be a Boolean mask or positions of records")
        at = np.flatnonzero(given) if given.dtype == bool else given.astype(np.intp)
        if len(at) == 0:
            raise InputError("records: nobody is chosen")
        if at.min() < 0 or at.max() >= len(self):
            raise InputError(f"records must be positions from 0 to {len(self) - 1}")
        weights = None if self.weights is None else self.weights[at]
        return np.bincount(self.cell[at], weights, minlength=len(self.sizes)).astype(np.float64)

    def mean(self, records: object = None) -> AttributeMeans:
        """How much each attribute identifies people on average, everyone or ``records`` (a mask, or positions).

        Over everyone this is a weighted sum of conditional entropies (Proposition 3 of the paper), over some of them of
        cross entropies (Proposition 4). Entropies beside it are over everyone.
        """
        people = self._people(records)
        values = people @ self.cells / people.sum()
        lower = upper = None
        if self.mean_half is not None and records is None:
            lower, upper = np.maximum(values - self.mean_half, 0.0), values + self.mean_half
        return AttributeMeans(
            values, np.array(self.columns), self.entropies, float(people.sum()), lower, upper,
            self._notes(whole=records is None), self._how(),
        )  # fmt: skip

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
            if self.asked is None:
                raise InputError(
                    "a result read from a file does not hold the table's other columns: give by() one entry a record"
                )
            name, coded = group, self.asked.groups(group, coarsen)
        else:
            name, coded = getattr(group, "name", None) or "group", _codes_of(group, self.ids)
        codes, names = coded
        weights = np.ones(len(self)) if self.weights is None else self.weights
        people = np.bincount(codes, weights, minlength=len(names))
        values = np.column_stack(
            [
                np.bincount(codes, weights * self.cells[self.cell, j], minlength=len(names)) / people
                for j in range(len(self.columns))
            ]
        )
        unique = self.sizes[self.cell] <= UNIQUE_UP_TO
        alone = np.bincount(codes, weights * unique, minlength=len(names)) / people
        beside = {"people": people, "share": people / people.sum(), "unique": alone}
        return AttributeTable(values, names, self.columns, name, "groups", beside, self._notes(), self._how())

    def _need_asked(self, what: str) -> Asked:
        if self.asked is None:
            raise InputError(f"{what} needs the data, which a result read from a file does not hold: compute it anew")
        return self.asked

    def entropy(self, columns: Sequence[str]) -> float:
        """Joint entropy of these attributes, in bits: how much they tell together, on average."""
        return entropy(self.groups(columns).sizes)

    def groups(self, columns: Sequence[str] | None = None) -> Groups:
        """The groups of people alike in these attributes (all, if left out): who is unique, how small groups are."""
        return self._need_asked("groups").alike(columns)

    def sets(self) -> AttributeSets:
        """What every set of attributes tells: entropy, groups, the share of people who are unique, the smallest group.

        There are 2^d of them. ``sets().summary()`` names the sets of one, two, three, … attributes that make most
        people unique.
        """
        return replace(self._need_asked("sets").sets(), parameters=self._how())

    def interactions(self, records: object = None) -> AttributeTable:
        """Shapley interaction index of each pair of attributes: bits they tell together beyond apart.

        Over everyone it is never positive, being minus a mean of conditional mutual informations: attributes that go
        together repeat each other. For ``records`` (a mask, or positions) whose combinations are unusual it can be.
        """
        found = self._need_asked("interactions").interactions(self._people(records))
        over_everyone = (
            "bits that two attributes tell together beyond apart; over everyone never more than 0, for they can only "
            "repeat each other",
        )
        notes = (*self.notes, *(over_everyone if records is None else ()))
        return replace(found, notes=notes, parameters=self._how())

    def compare(
        self, coarsen: Mapping[str, object] | None = None, drop: Sequence[str] = (), key: bool = False
    ) -> AttributeTable:
        """Means after changes of the data, one row a change: attributes made coarser, dropped, or a key added.

        ``coarsen`` names for each attribute one way to make it coarser or a tuple of several, tried one at a time:
        ``compare(coarsen={"age": (5, 10, 25), "zip": "county"}, drop=["race"], key=True)``. A dropped attribute tells
        nothing; with a database key (a row number, say, formula 11) everyone is unique, and other attributes lose what
        the key tells before them. In a result that is coarsened already, the others stay so.
        """
        return replace(self._need_asked("compare").compare(coarsen or {}, drop, key), parameters=self._how())

    def changes(self, drop: Sequence[str] = (), key: bool = False) -> AttributeTable:
        """What the coarsening of this result has changed: means without it, with each part of it, and with all.

        Then what dropping attributes, and a key, would change beside it. (A measurement, which cannot be taken as it
        is, stays coarse in all rows.)
        """
        return replace(self._need_asked("changes").changes(drop, key), parameters=self._how())

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
        here = {"records": len(self), "groups": len(self.sizes), "smallest_group": _counted(self.sizes.min())}
        return as_facts({**here, "share_unique": self.unique}) | self.mean().facts()

    def summary(self, count: int = 5) -> str:
        """What identifies whom, in words."""
        means = self.mean()
        number = head_count(means.people)
        what = "record" if self.weights is None else "people (by weight)"
        plural = "s" if self.weights is None and means.people != 1 else ""
        different = len(self.sizes) if (self.sizes > UNIQUE_UP_TO).any() else means.people
        verb = "It tells" if len(self.columns) == 1 else "Together they tell"
        coarser = [f"{name[8:]}: {how}" for name, how in self.parameters.items() if name.startswith("coarsen ")]
        made = f", made coarser ({', '.join(coarser)})" if coarser else ""
        lines = [
            f"{number} {what}{plural}, {head_count(different)} different by {_named(self.columns)}{made}.",
            f"{verb} {means.total:.2f} bits of the {np.log2(means.people):.2f} that single out one of {number}: a "
            f"person is narrowed down to {one_in(means.total)}, on average; {self.unique:.1%} are unique.",
            means.summary(),
        ]
        if self.mean_half is not None:
            lines.append(
                f"Sampled: {self.parameters.get('permutations'):,} orders of the attributes; intervals cover with "
                f"probability {self.parameters.get('confidence')}."
            )
        if count > 0 and means.total > 0:
            lines += self._easiest(count)
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _easiest(self, count: int) -> list[str]:
        """Those who stand out most; where many are equally easy to find, some of them."""
        totals = self.totals
        top = np.argsort(-totals, kind="stable")[:count]
        equal = int((totals > totals.max() - 1e-9).sum())
        lines = ["Easiest to find (bits, and the attribute that tells most):"]
        if equal > count:
            lines = [f"Easiest to find are {equal:,} equally, such as (bits, and the attribute that tells most):"]
        for i in top:
            j = int(self.cells[self.cell[i]].argmax())
            lines.append(
                f"  {self.ids[i]!s}: {totals[i]:.2f}, shared by {head_count(self.sizes[self.cell[i]])}; "
                f"{self.columns[j]} {self.cells[self.cell[i], j]:.2f}"
            )
        return lines

    def plot(self, ax: "Axes | None" = None, most: int = 1500) -> "Axes":
        """Draw one stacked bar a person, ordered by total (of many, every so many-th person); returns the axes."""
        if ax is None:
            ax = new_axes(8, 4)
        check_axes(ax)
        step = max(1, -(-len(self) // _checks.integer("most", most, at_least=1)))
        totals = self.totals
        order = np.argsort(totals, kind="stable")[::step]
        edges = np.arange(len(order) + 1)
        below = np.zeros(len(order))
        for name, colour, bits in _stacks(self.cells[self.cell[order]], self.columns, self.mean().values):
            above = below + bits
            ax.stairs(above, edges, baseline=below, fill=True, color=colour, label=name)
            below = above
        ax.set_xlim(0, len(order))
        ax.set_xlabel("people, by total" if step == 1 else f"one in {step:,} people, by total", labelpad=4)
        ax.set_ylabel("bits")
        ax.set_title(f"What makes each of {len(self):,} people unique", loc="left")
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        columns: dict[str, NDArray[np.generic]] = {"id": self.ids}
        if self.weights is not None:
            columns["weight"] = self.weights
        columns["group"] = self.cell
        columns["group_size"] = self.group_sizes
        columns["total_bits"] = self.totals
        for j, name in enumerate(self.columns):
            columns[f"bits_{name}"] = self.cells[self.cell, j]
            if self.lower is not None and self.upper is not None:
                columns[f"lower_{name}"] = self.lower[self.cell, j]
                columns[f"upper_{name}"] = self.upper[self.cell, j]
        return columns

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """One row a person: id, group (people in the same are alike), its size, total_bits, ``bits_`` by attribute."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone).

        Values are written, and not the attributes themselves.
        """
        header = {
            "kind": "uniqueness",
            "columns": list(self.columns),
            "entropies": self.entropies.tolist(),
            "mean_half": None if self.mean_half is None else self.mean_half.tolist(),
            "method": self.method,
            "parameters": dict(self.parameters),
            "seed": self.seed,
            "notes": list(self.notes),
            "version": self.version,
        }
        return save_columns(path, header, self._columns())


def _named(columns: Sequence[str]) -> str:
    """Names in a row; one with a comma in it is quoted."""
    return ", ".join(f"'{name}'" if "," in name else name for name in columns)


def _codes_of(group: object, ids: NDArray[np.generic]) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    given = _in_our_order(group, ids, "group")
    if given.shape != ids.shape:
        raise InputError(f"by: give the name of a column or one entry for each of the {len(ids)} records")
    names, codes = np.unique(given.astype(np.str_), return_inverse=True)
    return codes.astype(np.int32), names


def _floats(column: NDArray[np.generic]) -> Floats:
    return column.astype(np.float64)


def load_uniqueness(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Uniqueness:
    """The result that :meth:`Uniqueness.save` wrote."""
    cell = columns["group"].astype(np.int32)
    first = np.unique(cell, return_index=True)[1]
    names = tuple(map(str, header["columns"]))
    values = np.column_stack([_floats(columns[f"bits_{name}"])[first] for name in names])
    limits = {
        side: np.column_stack([_floats(columns[f"{side}_{name}"])[first] for name in names])
        for side in ("lower", "upper")
        if f"{side}_{names[0]}" in columns
    }
    half = header["mean_half"]
    return Uniqueness(
        columns=names,
        ids=columns["id"],
        cells=values,
        cell=cell,
        sizes=_floats(columns["group_size"])[first],
        entropies=np.array(header["entropies"], np.float64),
        weights=_floats(columns["weight"]) if "weight" in columns else None,
        mean_half=None if half is None else np.array(half, np.float64),
        method=str(header["method"]),
        parameters=header["parameters"],
        seed=header["seed"],
        notes=tuple(map(str, header["notes"])),
        version=str(header["version"]),
        lower=limits.get("lower"),
        upper=limits.get("upper"),
    )


def load_attribute_means(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> AttributeMeans:
    """The means that :meth:`AttributeMeans.save` wrote."""
    limits = {side: _floats(columns[side]) for side in ("lower", "upper") if side in columns}
    return AttributeMeans(
        _floats(columns["shapley"]),
        columns["attribute"].astype(np.str_),
        _floats(columns["entropy"]),
        float(header["people"]),
        notes=tuple(map(str, header["notes"])),
        parameters=header["parameters"],
        version=str(header["version"]),
        **limits,
    )


def load_attribute_table(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> AttributeTable:
    """The table that :meth:`AttributeTable.save` wrote."""
    names = tuple(map(str, header["columns"]))
    return AttributeTable(
        np.column_stack([_floats(columns[f"bits_{name}"]) for name in names]),
        columns[header["rows"]].astype(np.str_),
        names,
        str(header["rows"]),
        header["shape"],
        {name: _floats(columns[name]) for name in header["beside"]},
        tuple(map(str, header["notes"])),
        header["parameters"],
        str(header["version"]),
    )


def load_groups(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Groups:
    """The groups that :meth:`Groups.save` wrote."""
    size, *names = columns
    return Groups(
        _floats(columns[size]),
        {name: columns[name].astype(np.str_) for name in names},
        tuple(map(str, header["notes"])),
        str(header["version"]),
    )


def load_attribute_sets(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> AttributeSets:
    """The sets that :meth:`AttributeSets.save` wrote."""
    names = tuple(map(str, header["columns"]))
    return AttributeSets(
        names,
        np.column_stack([columns[f"has_{name}"].astype(bool) for name in names]),
        _floats(columns["entropy"]),
        _floats(columns["groups"]),
        _floats(columns["unique"]),
        _floats(columns["smallest"]),
        notes=tuple(map(str, header["notes"])),
        parameters=header["parameters"],
        version=str(header["version"]),
    )
