"""A table that came in: typed columns, row ids, a label, and a record of what was noticed on the way.

Numbers are numbers and categories are integer codes with their names beside them, so that millions of rows stay
small. Missing is missing (NaN, code −1) until an encoder states what it does about it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Missing, Scaling
from datassay._errors import InputError, UsageError
from datassay._frozen import FrozenMapping
from datassay.results import Columns, Fact, Framed, as_facts, save_columns

Kind = Literal["numeric", "categorical"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column: numbers (missing is NaN), or codes into ``categories`` (missing is −1)."""

    kind: Kind
    data: NDArray[np.generic]
    categories: NDArray[np.str_] | None = None
    is_date: bool = False  # numbers are days since 1970-01-01

    def take(self, rows: NDArray[np.intp]) -> "Column":
        """The column at these rows."""
        return replace(self, data=self.data[rows])

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        if self.kind == "categorical":
            return np.asarray(self.data == np.array(-1))
        if self.data.dtype.kind != "f":
            return np.zeros(len(self.data), bool)
        return np.isnan(self.data.astype(np.float64, copy=False))

    def written(self) -> NDArray[np.generic]:
        """The values as they are written to a file: dates as dates."""
        return _as_dates(self.data) if self.is_date else self.decoded()

    def decoded(self) -> NDArray[np.generic]:
        """The values as a person would write them; a missing category is None."""
        if self.kind == "numeric" or self.categories is None:
            return self.data
        if not self.missing.any():
            return self.categories[self.data.astype(np.intp)]
        names = np.array([*self.categories.tolist(), None], dtype=object)
        return np.asarray(names[self.data.astype(np.intp)])


def _as_dates(days: NDArray[np.generic]) -> NDArray[np.generic]:
    """Days since 1970-01-01 as dates, or as moments where they are not whole; a missing one stays missing."""
    numbers = days.astype(np.float64)
    absent = np.isnan(numbers)
    whole = bool((numbers[~absent] == np.floor(numbers[~absent])).all())
    unit, scale = ("D", 1.0) if whole else ("us", 86_400e6)
    moments = np.where(absent, 0.0, numbers * scale).round().astype(np.int64).astype(f"datetime64[{unit}]")
    moments[absent] = np.array("NaT", moments.dtype)  # in its own unit
    return np.asarray(moments)


def categorical(values: Sequence[object] | NDArray[np.generic]) -> Column:
    """A categorical column from values; None is missing. Categories are sorted by name.

    >>> column = categorical(["b", None, "a", "b"])
    >>> column.data.tolist(), column.categories.tolist()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    given = np.asarray(values, dtype=object)
    present = np.array([value is not None for value in given], bool)
    names, codes = np.unique(given[present].astype(np.str_), return_inverse=True)
    data = np.full(len(given), -1, np.int32)
    data[present] = codes
    return Column("categorical", data, names)


@dataclass(frozen=True, eq=False)
class Table(Framed):
    """A data set: features, an optional label, one id a row, and columns carried along but not used.

    Make one with :func:`datassay.read_table` or :func:`datassay.load_dataset`.

    >>> import datassay as da
    >>> table = da.load_dataset("iris")
    >>> len(table), table.label, table.features[:2]
    (150, 'target', ('sepal length (cm)', 'sepal width (cm)'))
    >>> train, validation = table.split(0.8, seed=0)
    >>> len(train), len(validation)
    (120, 30)
    """

    columns: Mapping[str, Column]
    ids: NDArray[np.generic]
    label: str | None = None
    carried: tuple[str, ...] = ()
    name: str = "table"
    notes: tuple[str, ...] = ()
    scale: Scaling = "standard"
    missing: Missing = "impute"
    id: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", FrozenMapping(self.columns))
        check_encoding(self.scale, self.missing)
        n = len(self.ids)
        for name, column in self.columns.items():
            if len(column.data) != n:
                raise InputError(f"column {name!r} has {len(column.data)} rows, and there are {n} ids")
        for name in (*self.carried, *([] if self.label is None else [self.label])):
            self._must_have(name)

    def _must_have(self, name: str) -> None:
        if name not in self.columns:
            raise InputError(missing_column(name, self.columns))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        label = "no label" if self.label is None else f"label {self.label!r}"
        return f"Table({self.name!r}: {len(self):,} rows, {len(self.features)} features, {label})"

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        """The values of one column."""
        self._must_have(name)
        return self.columns[name].decoded()

    @property
    def features(self) -> tuple[str, ...]:
        """Columns that describe a record: neither the label nor carried along."""
        aside = {self.label, *self.carried}
        return tuple(name for name in self.columns if name not in aside)

    @property
    def labels(self) -> NDArray[np.generic]:
        """The label of every row; an error if the table has none or one is missing."""
        if self.label is None:
            raise InputError(f"{self.name} has no label; name its column with label=")
        column = self.columns[self.label]
        missing = column.missing
        if missing.any():
            raise InputError(
                f"the label {self.label!r} of {self.name} is missing in {_checks.counted(int(missing.sum()), 'row')}, "
                f"first at row {int(missing.argmax())} (counting from 0); fill it in or leave those rows out"
            )
        return column.decoded()

    def set_aside(self, names: Sequence[str]) -> "Table":
        """The same table with these columns carried along instead of used as features."""
        for name in names:
            self._must_have(name)
            if name == self.label:
                raise UsageError(f"{name!r} is the label of {self.name} and cannot be set aside")
        return replace(self, carried=(*self.carried, *(name for name in names if name not in self.carried)))

    def select(self, rows: NDArray[np.generic] | Sequence[int], name: str | None = None) -> "Table":
        """The table of these rows, by position or by a Boolean mask; ids stay with their rows."""
        given = np.asarray(rows)
        if given.dtype == bool and given.shape != (len(self),):
            raise InputError(f"the mask has shape {given.shape} for {len(self)} rows")
        if given.dtype.kind not in "biu" and given.size:
            raise InputError(f"rows must be positions or a Boolean mask, got {given.dtype} values")
        at = np.flatnonzero(given) if given.dtype == bool else given.astype(np.intp)
        return replace(
            self,
            columns={name: column.take(at) for name, column in self.columns.items()},
            ids=self.ids[at],
            name=name or self.name,
        )

    def split(self, *shares: float, seed: int = 0, stratify: bool = True) -> tuple["Table", ...]:
        """Split at random: ``split(0.8)`` into two, ``split(0.6, 0.2, 0.2)`` into three tables.

        Shares must not add up to more than 1; where they fall short, the rest becomes one more table. With
        ``stratify`` every part has each class in the proportion of the whole, as nearly as rows allow. Rows keep
        their order and ids.
        """
        if not shares:
            raise UsageError("split needs at least one share, such as 0.8")
        parts = [_checks.number("share", share, above=0, at_most=1) for share in shares]
        if sum(parts) > 1 + 1e-9:
            raise UsageError(f"the shares {', '.join(f'{p:g}' for p in parts)} add up to more than 1")
        if sum(parts) < 1 - 1e-9:
            parts.append(1 - sum(parts))
        rng = np.random.default_rng(_checks.integer("seed", seed, at_least=0))
        shuffled = rng.permutation(len(self))
        if stratify and self.label is not None:
            codes = np.unique(self.labels, return_inverse=True)[1]
            # Place in the class, as a fraction of the class, spreads every class evenly over the new order; the
            # random part of a place keeps small classes from always landing in the same section.
            by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
            sizes = np.bincount(codes)
            place = np.arange(len(self)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            at = (place + rng.random(len(self))) / np.repeat(sizes, sizes)
            shuffled = by_class[np.argsort(at, kind="stable")]
        ends = np.round(np.cumsum([0, *parts]) * len(self)).astype(int)
        sections = [np.sort(shuffled[low:high]) for low, high in pairwise(ends)]
        if any(len(section) == 0 for section in sections):
            raise InputError(
                f"splitting {len(self)} rows by {', '.join(f'{p:g}' for p in parts)} leaves a part with no rows"
            )
        return tuple(self.select(section) for section in sections)

    @property
    def id_column(self) -> str:
        """The name of the ids where they are written as a column."""
        name = self.id or "id"
        while name in self.columns:
            name = f"row_{name}"
        return name

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``records``, ``columns``, ``features``, the ``label``, ``missing`` values in all; and ``missing.COLUMN``,
        ``kind.COLUMN`` and, of a categorical one, how many ``values.COLUMN`` it has.
        """
        lacking = {name: int(column.missing.sum()) for name, column in self.columns.items()}
        sizes = {"records": len(self), "columns": len(self.columns), "features": len(self.features)}
        found: dict[str, object] = {**sizes, "label": self.label, "missing": sum(lacking.values())}
        for name, column in self.columns.items():
            found |= {f"kind.{name}": column.kind, f"missing.{name}": lacking[name]}
            if column.categories is not None:
                found[f"values.{name}"] = len(column.categories)
        return as_facts(found)

    def _columns(self) -> Columns:
        return {self.id_column: self.ids, **{n: column.written() for n, column in self.columns.items()}}

    def _top(self, most: int) -> tuple[Columns, int]:
        return self.select(range(min(most, len(self))))._columns(), len(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all columns, the id first, to a .csv or .parquet file."""
        header = {"kind": "table", "name": self.name, "label": self.label, "carried": list(self.carried)}
        return save_columns(path, header, self._columns())


def usable_scale(where: str, centre: float, width: float, low: float, high: float) -> tuple[float, float]:
    """The centre and width by which numbers from ``low`` to ``high`` are scaled: a constant becomes 0."""
    if not np.isfinite(width) or not np.isfinite(centre):
        raise InputError(f"{where} holds numbers too large to scale; divide it first")
    if low == high:
        return low, 1.0
    if width == 0:
        raise InputError(f"{where} holds numbers too small to scale; multiply it first")
    return centre, width


def check_encoding(scale: object, missing: object) -> None:
    """Check how columns are to become numbers."""
    _checks.choice("scale", scale, get_args(Scaling))
    _checks.choice("missing", missing, get_args(Missing))


def missing_column(name: str, columns: Mapping[str, object] | Sequence[str]) -> str:
    """Say that a column is not there, and which one was probably meant."""
    close = _checks.closest(name, columns)
    hint = f"; did you mean {close!r}?" if close else f"; there are {_checks.listed(columns, 12)}"
    return f"there is no column {name!r}{hint}"
