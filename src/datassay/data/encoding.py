"""From typed columns to points in space, fitted on training data only (or on public data only, for private values).

Numbers are standardised (or min–max scaled), categories become one 0/1 column each. Missing numbers become the
training median, a missing category one more category; both are noted. Categories never seen in training become
all zeros, and are noted too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Missing, Scaling
from datassay._errors import InputError
from datassay.data.files import MISSING_IN_CSV
from datassay.data.labels import is_missing
from datassay.data.table import Column, Table, categorical, check_encoding, usable_scale


class _Number(NamedTuple):
    name: str
    centre: float
    width: float
    fill: float


class _Category(NamedTuple):
    name: str
    categories: tuple[str, ...]
    missing: bool


@dataclass(frozen=True)
class Encoder:
    """How columns become numbers; made by :func:`fit_encoder`, applied with :meth:`transform`."""

    parts: tuple[_Number | _Category, ...]
    scale: Scaling
    missing: Missing
    dtype: np.dtype[np.float32] | np.dtype[np.float64]
    source: str = "training"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns, such as ``age`` and ``job=cook``."""
        names: list[str] = []
        for part in self.parts:
            if isinstance(part, _Number):
                names.append(part.name)
            else:
                names += [f"{part.name}={category}" for category in part.categories]
                names += [f"{part.name} missing"] if part.missing else []
        return tuple(names)

    def transform(self, table: Table) -> tuple[NDArray[np.float32] | NDArray[np.float64], tuple[str, ...]]:
        """The encoded rows, and notes on what had to be filled in."""
        self._same_columns(table)
        out = np.zeros((len(table), len(self.feature_names)), self.dtype)
        notes: list[str] = []
        at = 0
        for part in self.parts:
            column = table.columns[part.name]
            absent = column.missing
            if absent.any() and self.missing == "error":
                raise InputError(
                    f"column {part.name!r} of {table.name} is missing at row {int(absent.argmax())} (counting from 0)"
                )
            if isinstance(part, _Number):
                how = f"the {self.source} median {part.fill:g}"
                numbers = np.where(absent, part.fill, _numbers(table, part.name))
                out[:, at] = (numbers - part.centre) / part.width
                at += 1
            else:
                how = "a category of their own" if part.missing else f"none of the {self.source} categories"
                assert column.categories is not None
                position = {category: i for i, category in enumerate(part.categories)}
                translate = np.array([position.get(str(c), -1) for c in column.categories] + [-1], np.intp)
                codes = translate[column.data.astype(np.intp)]
                unseen = (codes < 0) & ~absent
                if unseen.any():
                    names = np.unique(column.decoded()[unseen].astype(np.str_))
                    notes.append(
                        f"{table.name}: {unseen.sum():,} values of {part.name!r} never occur in {self.source} "
                        f"({_checks.listed(names)}) and match none of its categories"
                    )
                rows = np.flatnonzero(codes >= 0)
                out[rows, at + codes[rows]] = 1
                at += len(part.categories)
                if part.missing:
                    out[absent, at] = 1
                    at += 1
            if absent.any():
                notes.append(f"{table.name}: {absent.sum():,} missing values of {part.name!r} taken as {how}")
        return out, tuple(notes)

    def transform_record(self, record: Mapping[str, object]) -> NDArray[np.float32] | NDArray[np.float64]:
        """One encoded row from the values of one record by column name; None is missing."""
        columns: dict[str, Column] = {}
        for part in self.parts:
            if part.name not in record:
                raise InputError(
                    f"the record lacks {part.name!r}; it needs {_checks.listed(p.name for p in self.parts)}"
                )
            given = record[part.name]
            if isinstance(part, _Category):
                text = _as_category(given, part.categories)
                if text is not None and text not in part.categories:
                    raise InputError(
                        f"{part.name!r} of the record is {given!r}, which is none of its categories: "
                        f"{_checks.listed(part.categories, 12)}; None stands for a missing value"
                    )
                columns[part.name] = categorical([text])
                continue
            try:
                number = np.nan if is_missing(given) else float(given)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise InputError(f"{part.name!r} of the record must be a number, got {given!r}") from None
            columns[part.name] = Column("numeric", np.array([number]))
        return self.transform(Table(columns, np.arange(1), name="the record"))[0]

    def to_dict(self) -> dict[str, object]:
        """The encoder as plain values, for JSON."""
        parts = [{"kind": type(part).__name__.strip("_").lower(), **part._asdict()} for part in self.parts]
        how = {"scale": self.scale, "missing": self.missing, "dtype": self.dtype.name, "source": self.source}
        return {"parts": parts, **how}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Encoder":
        """The encoder that :meth:`to_dict` wrote down."""
        parts: list[_Number | _Category] = []
        for given in plain["parts"]:
            if given["kind"] == "number":
                parts.append(_Number(*(given[name] for name in _Number._fields)))
            else:
                parts.append(_Category(given["name"], tuple(given["categories"]), given["missing"]))
        return cls(tuple(parts), plain["scale"], plain["missing"], np.dtype(plain["dtype"]), plain["source"])

    def _same_columns(self, table: Table) -> None:
        expected, found = {part.name for part in self.parts}, set(table.features)
        lacking, more = _checks.listed(sorted(expected - found)), _checks.listed(sorted(found - expected))
        if lacking:
            raise InputError(f"{table.name} lacks the column {lacking} that the {self.source} data has")
        if more:
            raise InputError(
                f"{table.name} has the column {more} that the {self.source} data lacks; ignore it or add it there"
            )
        for part in self.parts:
            numeric = isinstance(part, _Number)
            if (table.columns[part.name].kind == "numeric") != numeric:
                raise InputError(
                    f"column {part.name!r} is {'numeric' if numeric else 'categorical'} in the {self.source} data and "
                    f"{table.columns[part.name].kind} in {table.name}"
                )


def _as_category(given: object, categories: tuple[str, ...]) -> str | None:
    """One value as its column would have been read: 7.0 is 7, and true is True where there is nothing else."""
    if is_missing(given):
        return None
    text = str(int(given)) if isinstance(given, float) and given.is_integer() else str(given).strip()
    if set(categories) <= {"False", "True"} and text.casefold() in ("true", "false"):
        return text.capitalize()
    return None if text in MISSING_IN_CSV else text


def _numbers(table: Table, name: str) -> NDArray[np.float64]:
    """A numeric column as floats, NaN where missing; infinite numbers are refused."""
    numbers = table.columns[name].data.astype(np.float64)
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise InputError(
            f"column {name!r} of {table.name} is infinite at row {row} (counting from 0); features must be finite"
        )
    return numbers


def fit_encoder(
    table: Table,
    *,
    scale: Scaling | None = None,
    missing: Missing | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    source: str = "training",
) -> Encoder:
    """The encoder of a table: how its columns become numbers, learned from the training data alone.

    Parameters
    ----------
    table
        The training table.
    scale
        ``"standard"`` (mean 0, deviation 1), ``"minmax"`` (0 to 1) or ``"none"``; a constant becomes 0. Left out, what
        the table was read with.
    missing
        ``"impute"`` fills missing values in, ``"error"`` refuses them. Left out, what the table was read with.
    dtype
        The type of the encoded numbers.
    source
        What messages call the table.

    Returns
    -------
    Encoder
        ``.transform(table)`` encodes any table with these columns.

    Examples
    --------
    >>> import datassay as da, pandas as pd
    >>> table = da.read_table(pd.DataFrame({"age": [20, 40], "job": ["cook", "nurse"]}))
    >>> encoder = da.fit_encoder(table)
    >>> encoder.feature_names
    ('age', 'job=cook', 'job=nurse')
    >>> encoder.transform(table)[0].tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    scale, missing = scale or table.scale, missing or table.missing
    check_encoding(scale, missing)
    _checks.choice("dtype", dtype, ("float64", "float32"))
    if not table.features:
        raise InputError(f"{table.name} has no feature columns; there is nothing to measure distances with")
    parts: list[_Number | _Category] = []
    for name in table.features:
        column = table.columns[name]
        absent = column.missing
        if column.kind == "categorical":
            assert column.categories is not None
            used = np.bincount(column.data[~absent].astype(np.intp), minlength=len(column.categories)) > 0
            parts.append(_Category(name, tuple(map(str, column.categories[used])), bool(absent.any())))
            continue
        numbers = _numbers(table, name)[~absent]
        if len(numbers) == 0:
            raise InputError(f"column {name!r} of {table.name} has no values; ignore it")
        fill = float(np.median(numbers))
        filled = np.where(absent, fill, column.data.astype(np.float64))
        low, high, centre, width = float(filled.min()), float(filled.max()), 0.0, 1.0
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
            if scale == "standard":
                centre, width = float(filled.mean()), float(filled.std())
            elif scale == "minmax":
                centre, width = low, float(np.ptp(filled))
        where = f"column {name!r} of {table.name}"
        centre, width = usable_scale(where, centre, width, low, high)
        _checks.exact_as_float(where, column.data)
        parts.append(_Number(name, centre, width, fill))
    return Encoder(tuple(parts), scale, missing, np.dtype(dtype), source)
