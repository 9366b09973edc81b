"""What uniqueness values say of people, attributes and groups, in tables, words and figures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._frozen import FrozenMapping
from datassay._version import __version__
from datassay.results import FrameKind, Parameter, check_axes, frozen, make_frame, new_axes, save_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Shape = Literal["groups", "changes", "pairs"]


class Asked(Protocol):
    """What a result can still be asked while the data is at hand."""

    def groups(self, column: str, coarsen: object) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
        """The group of each record by a column of the table, and the groups' names."""
        ...

    def alike(self, columns: Sequence[str]) -> "Groups":
        """The groups alike in these attributes."""
        ...

    def interactions(self, people: Floats) -> Floats:
        """Interaction indices averaged over these people of each cell."""
        ...

    def compare(self, coarsen: Mapping[str, object], drop: Sequence[str], key: bool) -> "AttributeTable":
        """Means after changes of the data."""
        ...


COLOURS: Final = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#ee7733", "#0077bb", "#009988",
)  # fmt: skip
SMALL_GROUPS: Final = (2, 5, 10, 20)


def one_in(bits: float) -> str:
    """Bits as odds, in words: 3 bits are «1 in 8»."""
    odds = 2.0**bits
    return f"1 in {odds:,.0f}" if odds >= 99.5 else f"1 in {odds:.3g}"


def head_count(number: float) -> str:
    """A number of people: whole, unless weights make it a fraction."""
    return f"{number:,.0f}" if float(number).is_integer() or number >= 1000 else f"{number:,.4g}"


def colour(place: int) -> str:
    """The colour of an attribute, by its place."""
    return COLOURS[place % len(COLOURS)]


def _bits(number: float) -> str:
    return f"{number:.2f}"


def _percent(number: float) -> str:
    return f"{number:.1%}"


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
    version: str = __version__

    def __post_init__(self) -> None:
        for name in ("values", "ids", "entropies", "lower", "upper"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))

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
        header = {"kind": "attribute means", "people": self.people, "notes": list(self.notes), "version": self.version}
        return save_columns(path, header, self._columns())

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
            ax = new_axes(7, 0.6 * len(self.ids) + 1.2)
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
        ax.set_title(f"What identifies {head_count(self.people)} people: {self.total:.2f} bits in all", loc="left")
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
    version: str = __version__

    def __post_init__(self) -> None:
        _checks.choice("shape", self.shape, get_args(Shape))
        rows, taken = self.rows, {*self.beside, *(f"bits_{name}" for name in self.columns)}
        object.__setattr__(self, "rows", f"{rows} (group)" if rows in taken else rows)
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "ids", frozen(self.ids))
        object.__setattr__(
            self, "beside", FrozenMapping({name: frozen(column) for name, column in self.beside.items()})
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"AttributeTable({len(self)} rows by {self.rows!r}: {', '.join(self.columns)})"

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
        """The table as a data frame; an attribute's column is bits_ and its name."""
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
            "version": self.version,
        }
        return save_columns(path, header, self._columns())

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
        if ax is None:
            ax = new_axes(7.5, 0.32 * min(len(self), most) + 1.6)
        check_axes(ax)
        if self.shape == "pairs":
            return self._map(ax)
        chosen = self._largest(most)[::-1]
        at, left = np.arange(len(chosen)), np.zeros(len(chosen))
        for j, name in enumerate(self.columns):
            ax.barh(at, self.values[chosen, j], 0.75, left, color=colour(j), label=name)
            left += self.values[chosen, j]
        ax.set_yticks(at, [str(self.ids[i]) for i in chosen])
        ax.set_xlabel("bits that identify a person, on average")
        ax.set_title("What changes" if self.shape == "changes" else f"By {self.rows}", loc="left")
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _map(self, ax: "Axes") -> "Axes":
        shown = self.values.copy()
        np.fill_diagonal(shown, np.nan)
        most = np.nanmax(np.abs(shown)) if len(shown) > 1 else 1.0
        image = ax.imshow(shown, cmap="RdBu_r", vmin=-(most or 1.0), vmax=most or 1.0)
        ax.set_xticks(range(len(self)), self.columns, rotation=45, ha="right")
        ax.set_yticks(range(len(self)), [str(name) for name in self.ids])
        ax.figure.colorbar(image, ax=ax, label="bits together beyond apart")
        ax.set_title("Interaction of attributes", loc="left")
        return ax


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
        return f"Groups({len(self):,} groups by {', '.join(self.attributes)}; {self.unique:.1%} of people are alone)"

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
        return float(self.sizes[self.sizes <= 1].sum() / self.sizes.sum())

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

    def summary(self, count: int = 5) -> str:
        """How people hide among each other, in words."""
        parts = [f"{self.share_below(k):.1%} in groups of fewer than {k}" for k in SMALL_GROUPS[1:]]
        lines = [
            f"{head_count(self.sizes.sum())} people in {len(self):,} groups alike in {', '.join(self.attributes)}.",
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
        ax.set_title(f"{self.unique:.1%} are unique by {', '.join(self.attributes)}", loc="left")
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
            if array is not None:
                array = array.view()
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Uniqueness({len(self):,} records, {len(self.sizes):,} distinct, by {', '.join(self.columns)})"

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
        found = np.flatnonzero(self.ids == id)
        if len(found) == 0:
            raise InputError(f"there is no record with id {id!r}")
        return dict(zip(self.columns, map(float, self.cells[self.cell[found[0]]]), strict=True))

    def _people(self, records: object) -> Floats:
        """The people of each cell among these records."""
        if records is None:
            if self.weights is None:
                return np.bincount(self.cell, minlength=len(self.sizes)).astype(np.float64)
            return np.asarray(np.bincount(self.cell, self.weights, minlength=len(self.sizes)), np.float64)
        given = np.asarray(records)
        if given.dtype == bool and given.shape != (len(self),):
            raise InputError(f"records: the mask has shape {given.shape} for {len(self)} records")
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
        return AttributeMeans(values, np.array(self.columns), self.entropies, float(people.sum()), lower, upper)

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
            name, coded = "group", _codes_of(group, len(self))
        codes, names = coded
        weights = np.ones(len(self)) if self.weights is None else self.weights
        people = np.bincount(codes, weights, minlength=len(names))
        values = np.column_stack(
            [
                np.bincount(codes, weights * self.cells[self.cell, j], minlength=len(names)) / people
                for j in range(len(self.columns))
            ]
        )
        alone = np.bincount(codes, weights * (self.sizes[self.cell] <= 1), minlength=len(names)) / people
        beside = {"people": people, "share": people / people.sum(), "unique": alone}
        return AttributeTable(values, names, self.columns, name, "groups", beside, self._estimated())

    def _estimated(self) -> tuple[str, ...]:
        return (
            () if self.lower is None else ("values were sampled; intervals are given for the mean over everyone only",)
        )

    def _need_asked(self, what: str) -> Asked:
        if self.asked is None:
            raise InputError(f"{what} needs the data, which a result read from a file does not hold: compute it anew")
        return self.asked

    def entropy(self, columns: Sequence[str]) -> float:
        """Joint entropy of these attributes, in bits: how much they tell together, on average."""
        sizes = self.groups(columns).sizes
        share = sizes / sizes.sum()
        return float(abs(-(share * np.log2(share)).sum()))

    def groups(self, columns: Sequence[str] | None = None) -> Groups:
        """The groups of people alike in these attributes (all, if left out): who is unique, how small groups are."""
        return self._need_asked("groups").alike(self.columns if columns is None else columns)

    def interactions(self, records: object = None) -> AttributeTable:
        """Shapley interaction index of each pair of attributes: bits they tell together beyond apart.

        Over everyone it is never positive, being minus a mean of conditional mutual informations: attributes that go
        together repeat each other. For ``records`` (a mask, or positions) whose combinations are unusual it can be.
        """
        found = self._need_asked("interactions").interactions(self._people(records))
        notes = (
            "bits that two attributes tell together beyond apart; over everyone never more than 0, for they can only "
            "repeat each other",
        )
        return AttributeTable(
            found, np.array(self.columns), self.columns, "attribute", "pairs", notes=notes if records is None else ()
        )

    def compare(
        self, coarsen: Mapping[str, object] | None = None, drop: Sequence[str] = (), key: bool = False
    ) -> AttributeTable:
        """Means after changes of the data, one row a change: attributes made coarser, dropped, or a key added.

        ``coarsen`` names for each attribute one way to make it coarser or a tuple of several, tried one at a time:
        ``compare(coarsen={"age": (5, 10, 25), "zip": "county"}, drop=["race"], key=True)``. A dropped attribute tells
        nothing; with a database key (a row number, say, formula 11) everyone is unique, and other attributes lose what
        the key tells before them.
        """
        return self._need_asked("compare").compare(coarsen or {}, drop, key)

    def summary(self, count: int = 5) -> str:
        """What identifies whom, in words."""
        means = self.mean()
        number = head_count(means.people)
        unique = float(self._people(None)[self.sizes <= 1].sum() / means.people)
        told = "records" if self.weights is None else "people (by weight)"
        rest = len(self.columns) == 1
        lines = [
            f"{number} {told}, {len(self.sizes):,} different by {', '.join(self.columns)}.",
            f"{'It tells' if rest else 'Together they tell'} {means.total:.2f} bits of the {np.log2(means.people):.2f} "
            f"that single out one of {number}: a person is narrowed down to {one_in(means.total)}, on average; "
            f"{unique:.1%} are unique.",
            means.summary(),
        ]
        if self.mean_half is not None:
            lines.append(
                f"Sampled: {self.parameters.get('permutations'):,} orders of the attributes; intervals cover with "
                f"probability {self.parameters.get('confidence')}."
            )
        totals = self.totals
        if count > 0 and (totals > totals.max() - 1e-9).sum() <= 4 * count:  # where many are alike, none stands out
            top = np.argsort(-totals, kind="stable")[:count]
            lines.append("Easiest to find (bits, and the attribute that tells most):")
            for i in top:
                j = int(self.cells[self.cell[i]].argmax())
                lines.append(
                    f"  {self.ids[i]!s}: {totals[i]:.2f}, shared by {head_count(self.sizes[self.cell[i]])}; "
                    f"{self.columns[j]} {self.cells[self.cell[i], j]:.2f}"
                )
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

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
        by_mean = np.argsort(-self.mean().values, kind="stable")
        for j in by_mean:
            above = below + self.cells[self.cell[order], j]
            ax.stairs(above, edges, baseline=below, fill=True, color=colour(int(j)), label=self.columns[j])
            below = above
        ax.set_xlim(0, len(order))
        ax.set_xlabel("people" if step == 1 else f"people, every {step:,}th", labelpad=4)
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
        """One row a person: id, group (people in the same one are alike), its size, total_bits, bits_ by attribute."""
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


def _codes_of(group: object, n: int) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    given = np.asarray(group)
    if given.shape != (n,):
        raise InputError(f"by: give the name of a column or one entry for each of the {n} records, got {given.shape}")
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
