"""Equal rows counted once: from typed columns to the distinct rows, what each stands for, and who has which.

Values become codes, codes one key a row; equal keys are found by address where keys are few, by hashing where they are
many. Distinct rows are in the order of their values either way.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay.data import Column, Table, missing_column

Coarsening = float | str | Mapping[str, str] | Sequence[float] | None
"""How an attribute is made coarser.

A number: bins of that width, or that many leading characters of a category. Numbers in a list: where bins begin. A
string: another column to take its place, or "year" or "month" of a date. A mapping: new names for values. None: all
become one, missing ones included.
"""

AS_IT_IS: Final = "as it is"
PERIODS: Final = {"year": "Y", "month": "M"}
UNIQUE_UP_TO: Final = 1.0  # a person is unique if their group has no more than this
MANY_FRACTIONS: Final = 20
MISSING_LEVEL: Final = "(missing)"
_KEY_LIMIT: Final = 2**62


@dataclass(frozen=True, eq=False)
class Coded:
    """One attribute as codes into the names of its levels; a missing value is the last level, where there is one."""

    codes: NDArray[np.int32]
    names: NDArray[np.str_]
    missing: bool

    def of_rows(self, rows: NDArray[np.intp]) -> "Coded":
        """The codes of these rows, among the levels that they have."""
        codes, used = self.codes[rows], np.zeros(len(self.names), bool)
        used[codes] = True
        return Coded(_renumbered(codes, used), self.names[used], self.missing and bool(used[-1]))


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct rows: ``codes[j, c]`` is the level of attribute j, ``weights[c]`` the people (or weight) in cell c."""

    columns: tuple[str, ...]
    codes: NDArray[np.int32]
    names: tuple[NDArray[np.str_], ...]
    weights: NDArray[np.float64]

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """How many levels each attribute has."""
        return np.array([len(names) for names in self.names], np.int64)

    @cached_property
    def entropies(self) -> NDArray[np.float64]:
        """Entropy of each attribute by itself, in bits."""
        each = zip(self.codes, self.levels, strict=True)
        return np.array([entropy(np.bincount(codes, self.weights, n).astype(np.float64)) for codes, n in each])

    def project(self, attributes: Sequence[int]) -> tuple["Cells", NDArray[np.int32]]:
        """The distinct rows over some of the attributes, and the new cell of each of the old ones."""
        chosen = list(attributes)
        coded = [Coded(self.codes[j], self.names[j], False) for j in chosen]
        return distinct(tuple(self.columns[j] for j in chosen), coded, len(self.weights), self.weights)


def entropy(sizes: NDArray[np.float64]) -> float:
    """Entropy of groups of these sizes, in bits."""
    share = sizes / sizes.sum()
    share = share[share > 0]
    return float(abs(-(share * np.log2(share)).sum()))


def share_unique(sizes: NDArray[np.float64]) -> float:
    """The share of people who are alone in their group, groups having these sizes."""
    return float(sizes[sizes <= UNIQUE_UP_TO].sum() / sizes.sum())


def in_words(how: object) -> str:
    """A way to make an attribute coarser (or to leave it), in few words."""
    if how is None:
        return "one bucket"
    if isinstance(how, Mapping):
        return "renamed"
    if isinstance(how, Sequence | np.ndarray) and not isinstance(how, str):
        return f"cut at {', '.join(f'{edge:g}' if isinstance(edge, int | float) else str(edge) for edge in how)}"
    return str(how)


def code(table: Table, name: str, coarsen: Coarsening, notes: list[str]) -> Coded:
    """The codes of a column, made coarser if asked for; ``AS_IT_IS`` leaves it."""
    if isinstance(coarsen, str) and coarsen != AS_IT_IS and not _is_period(table, name, coarsen):
        if coarsen not in table.columns:
            raise InputError(f"coarsen: {name!r} is to be replaced, but {missing_column(coarsen, table.columns)}")
        instead = code(table, coarsen, AS_IT_IS, notes)
        _note_if_finer(table, name, coarsen, instead, notes)
        return instead
    from datassay.identity import kernels

    column = table.columns[name]
    if coarsen is None:  # missing values included
        return Coded(np.zeros(len(table), np.int32), np.array(["(any)"]), False)
    if column.kind == "categorical":
        assert column.categories is not None
        codes = column.data.astype(np.int32, copy=False)
        values: NDArray[np.generic] = column.categories
    else:
        codes, values = _number_codes(column)
    if coarsen != AS_IT_IS:
        group, names = _coarser(name, column, values, coarsen, notes)
        if len(names) == len(values) > 1:
            notes.append(f"coarsening {name!r} to {in_words(coarsen)} leaves all its {len(names):,} values apart")
        codes = np.append(group, np.int32(-1))[codes]  # a missing value has the code −1, and keeps it
    else:
        _refuse_fractions(table, name, column, values)
        names = _names(column, values)
    used = np.zeros(len(names), bool)
    absent = kernels.mark_levels(codes, used)
    if not used.all():
        codes, names = _renumbered(codes, used), names[used]
    if absent:
        codes = np.where(codes < 0, np.int32(len(names)), codes)
        absent_name = MISSING_LEVEL
        while absent_name in names:
            absent_name = f"({absent_name})"
        names = np.append(names, absent_name)
    return Coded(codes, names, absent)


def _renumbered(codes: NDArray[np.int32], used: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Codes among the levels that are used; a missing value (−1) stays missing."""
    return np.append(np.cumsum(used) - 1, -1).astype(np.int32)[codes]


def _number_codes(column: Column) -> tuple[NDArray[np.int32], NDArray[np.generic]]:
    """Codes of numbers in ascending order (−1 where missing), and the numbers."""
    from datassay.identity import kernels

    absent = column.missing if column.data.dtype.kind == "f" else None
    if absent is not None and not absent.any():
        absent = None
    numbers = column.data if absent is None else column.data[~absent]
    if len(numbers) == 0:
        return np.full(len(column.data), -1, np.int32), np.empty(0)
    if numbers.dtype.kind == "f":
        whole = bool((np.abs(numbers) < 2.0**53).all() and (numbers == np.floor(numbers)).all())
        # Equal numbers must have equal bits: −0 becomes 0.
        numbers = numbers.astype(np.int64) if whole else numbers.astype(np.float64) + 0.0
    low, high = numbers.min(), numbers.max()
    if numbers.dtype.kind in "iu" and int(high) < 2**63 and int(high) - int(low) < 2 * len(numbers) + 2**16:
        numbers = numbers.astype(np.int64, copy=False) if numbers.dtype == np.uint64 else numbers
        found, seen = np.empty(len(numbers), np.int32), np.zeros(int(high) - int(low) + 1, bool)
        kernels.subtract(numbers, int(low), found, seen)
        values: NDArray[np.generic] = np.flatnonzero(seen) + int(low)
        if not seen.all():
            found = _renumbered(found, seen)
    else:
        found, first = _ranks_of(numbers)
        values = numbers[first]
    if absent is None:
        return found, values
    codes = np.full(len(absent), -1, np.int32)
    codes[~absent] = found
    return codes, values


def _ranks_of(numbers: NDArray[np.generic]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """The rank of each number among the distinct ones, and the first row of each."""
    from datassay.identity import kernels

    number, first = kernels.first_rows_by_hash(numbers.astype(f"{numbers.dtype.kind}8", copy=False).view(np.int64))
    order = np.argsort(numbers[first], kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return rank[number], first[order]


def _moments(days: NDArray[np.generic]) -> NDArray[np.datetime64]:
    """Days since 1970-01-01 as moments, to the second."""
    return (days.astype(np.float64) * 86_400).round().astype("datetime64[s]")


def _names(column: Column, values: NDArray[np.generic]) -> NDArray[np.str_]:
    """What values are called: numbers by the fewest digits that tell them apart, dates as dates."""
    if column.is_date:
        moments = _moments(values)
        whole = bool((moments == moments.astype("datetime64[D]")).all())
        return (moments.astype("datetime64[D]") if whole else moments).astype(np.str_)
    if column.kind == "categorical" or values.dtype.kind in "iu":
        return values.astype(np.str_)
    return np.array([repr(value) for value in values.tolist()], np.str_)


def _is_period(table: Table, name: str, coarsen: str) -> bool:
    """Whether a date is to be known by year or month, and no column of that name is meant."""
    return coarsen in PERIODS and coarsen not in table.columns and table.columns[name].is_date


def _note_if_finer(table: Table, name: str, other: str, instead: Coded, notes: list[str]) -> None:
    """Say so where the column that takes another's place tells apart people whom that one does not."""
    column = table.columns[name]
    codes = (column.data if column.kind == "categorical" else _number_codes(column)[0]).astype(np.int64)
    pairs = (codes + 1) * len(instead.names) + instead.codes
    if len(_ranks_of(pairs)[1]) > len(_ranks_of(codes)[1]):
        notes.append(f"{other!r} is no coarser {name!r}: it tells apart people who are alike in {name!r}")


def _refuse_fractions(table: Table, name: str, column: Column, values: NDArray[np.generic]) -> None:
    """A measured number is different for nearly everyone: equality is no question to ask of it."""
    if column.kind == "categorical" or values.dtype.kind != "f":
        return
    if not np.isfinite(values.astype(np.float64)).all():
        row = int(np.isinf(column.data.astype(np.float64)).argmax())
        raise InputError(f"column {name!r} of {table.name} is infinite at row {row} (counting from 0); mend that cell")
    if len(values) > MANY_FRACTIONS and not column.is_date:
        low, high = float(values[0]), float(values[-1])
        width = 10.0 ** np.floor(np.log10((high - low) / 10))
        raise InputError(
            f"column {name!r} of {table.name} holds {len(values):,} different numbers with decimals between {low:g} "
            f"and {high:g}: measurements, which hardly anyone has in common. Say how finely it is known "
            f"(coarsen {name!r} to bins of {width:g}, say), read it as a category, or leave the column out"
        )


def _coarser(
    name: str, column: Column, values: NDArray[np.generic], how: Coarsening, notes: list[str]
) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    """The coarser level of each value, and the levels' names."""
    if isinstance(how, str):
        return _numbered(_moments(values).astype(f"datetime64[{PERIODS[how]}]").astype(np.str_).tolist())
    numeric = column.kind == "numeric"
    if isinstance(how, Mapping):
        texts = _names(column, values)
        wanted = {str(old): str(new) for old, new in how.items()}
        unknown = sorted(set(wanted) - set(texts.tolist()))
        if unknown:
            raise InputError(f"coarsen: {name!r} has no value {_checks.listed(unknown)}")
        return _numbered([wanted.get(text, text) for text in texts.tolist()])
    if isinstance(how, Sequence | np.ndarray):
        if not numeric:
            raise UsageError(f"coarsen: {name!r} holds categories; cut points are for numbers. Give a mapping")
        edges = np.asarray([_checks.number(f"coarsen: a cut point of {name!r}", edge) for edge in how])
        if len(edges) == 0 or (np.diff(edges) <= 0).any():
            raise UsageError(f"coarsen: the cut points of {name!r} must increase, got {list(how)}")
        _checks.exact_as_float(f"column {name!r}", values)
        names = [f"< {edges[0]:.15g}", *(f"{a:.15g} to < {b:.15g}" for a, b in pairwise(edges))]
        at = np.searchsorted(edges, values.astype(np.float64), side="right").astype(np.int32)
        return at, np.array([*names, f"≥ {edges[-1]:.15g}"])
    if not numeric:
        keep = _checks.integer(f"coarsen: the leading characters to keep of {name!r}", how, at_least=1)
        return _numbered([text[:keep] for text in values.astype(np.str_).tolist()])
    width = _checks.number(f"coarsen: the width of the bins of {name!r}", how, above=0)
    whole = values.dtype.kind in "iu" and width.is_integer() and width < 2**62
    bins: NDArray[np.generic]
    if whole:
        bins = np.floor_divide(values, int(width))
    else:
        parts = values.astype(np.float64) / width
        if not np.isfinite(parts).all() or np.abs(parts).max() > 2**52:
            raise InputError(f"coarsen: {name!r} holds numbers too large to be cut into bins of {width:g}")
        # 0.3 / 0.1 falls short of 3 by rounding alone, and 0.3 belongs to the bin that begins there.
        nearest = np.round(parts)
        bins = np.where(np.abs(parts - nearest) <= 1e-9 * np.maximum(1.0, np.abs(parts)), nearest, np.floor(parts))
    if values.dtype.kind in "iu" and len(values) > 1 and len({len(str(abs(v))) for v in values.tolist()}) == 1:
        digits = len(str(abs(int(values[0]))))
        if digits >= 4 and width <= digits:
            notes.append(
                f"{name!r} is cut into bins of width {width:g}; if its numbers of {digits} digits are codes, such as "
                "postal codes, read it as a category, and the number says how many leading digits to keep"
            )
    present, found = np.unique(bins, return_inverse=True)
    step = int(width) if whole else width
    ends = [(low * step, (low + 1) * step) for low in present.tolist()]
    names = [f"{a}–{b - 1}" if whole else f"{a:.12g} to < {b:.12g}" for a, b in ends]
    if column.is_date:
        starts = _moments(np.array([a for a, _ in ends])).astype("datetime64[m]")
        names = [f"from {start}" for start in starts.astype(np.str_).tolist()]
    return found.astype(np.int32), np.array(names)


def _numbered(texts: list[str]) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    names, at = np.unique(np.array(texts, np.str_), return_inverse=True)
    return at.astype(np.int32), names


def distinct(
    columns: tuple[str, ...], coded: Sequence[Coded], n: int, weights: NDArray[np.float64] | None
) -> tuple[Cells, NDArray[np.int32]]:
    """The distinct rows, in the order of their codes, and the cell of each row."""
    from datassay.identity import kernels

    levels = [len(attribute.names) for attribute in coded]
    span = math.prod(levels)
    names = tuple(attribute.names for attribute in coded)
    if span <= max(2 * n, 2**16):  # keys are addresses, and say what they are made of
        keys = np.zeros(n, np.int32 if span < 2**31 else np.int64)
        for attribute in coded:
            kernels.pack(keys, attribute.codes, len(attribute.names))
        counts = np.zeros(span, np.int32 if n < 2**31 else np.int64)
        kernels.count_by_address(keys, counts)
        found = np.flatnonzero(counts)
        rank = np.empty(span, np.int32)
        rank[found] = np.arange(len(found))
        cell = np.empty(n, np.int32)
        kernels.look_up(rank, keys, cell)
        codes = np.empty((len(coded), len(found)), np.int32)
        sizes = counts[found].astype(np.float64)
        for j in reversed(range(len(coded))):
            found, codes[j] = np.divmod(found, levels[j])
    else:
        cell, first = _numbered_keys(coded, n)
        codes = np.array([attribute.codes[first] for attribute in coded])
        sizes = np.bincount(cell).astype(np.float64)
    if weights is not None:
        sizes = np.bincount(cell, weights).astype(np.float64)
    return Cells(columns, codes, names, sizes), cell


def _numbered_keys(coded: Sequence[Coded], n: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rank of each row's key among the distinct ones, and the first row of each rank, by hashing."""
    from datassay.identity import kernels

    keys, span = np.zeros(n, np.int64), 1
    for attribute in coded:
        levels = len(attribute.names)
        if span * levels >= _KEY_LIMIT:  # number the keys so far anew: they are at most as many as rows
            ranks, first = _ranks_of(keys)
            keys, span = ranks.astype(np.int64), len(first)
        kernels.pack(keys, attribute.codes, levels)
        span *= levels
    return _ranks_of(keys)
