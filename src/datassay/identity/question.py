"""Whose identity is asked about, by which attributes, known how finely: checked, read and counted."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import MissingValues
from datassay._errors import InputError, UsageError
from datassay._run import Schedule
from datassay._work import chunks, in_order, thread_count
from datassay.data import (
    Table,
    bytes_in_memory,
    column_names,
    frame_columns,
    is_dask,
    is_many,
    missing_column,
    read_distinct,
    read_table,
)
from datassay.identity import engine
from datassay.identity.counting import AS_IT_IS, MISSING_LEVEL, PERIODS, Cells, Coarsening, code, distinct
from datassay.results import Floats

MEMORY: Final = 4 * 2**30
COUNT: Final = "(count)"


@dataclass(frozen=True)
class FileReading:
    """How a file or frame is read: its id, columns that are categories, and others to keep."""

    id: str | None = None
    categorical: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Question:
    """Whose identity, by which attributes, known how finely."""

    table: Table
    columns: tuple[str, ...]
    coarsen: Mapping[str, Any]
    missing: MissingValues
    weights: Floats | None
    n_jobs: int | None


@dataclass(frozen=True, eq=False)
class Counted:
    """The distinct rows of a question, and who is in which."""

    cells: Cells
    cell: NDArray[np.int32]
    kept: NDArray[np.intp] | None
    weights: Floats | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Way:
    """How values are obtained: exactly, or from random orders."""

    exact: bool
    orders: engine.RandomOrders
    schedule: Schedule

    def means(self, cells: Cells) -> Floats:
        """Mean value of each attribute."""
        if self.exact:
            return self.sets(cells).means(len(cells.columns))
        return engine.sample(cells, self.orders, self.schedule).mean

    def sets(self, cells: Cells, people: Floats | None = None) -> engine.SetTable:
        """What every set of attributes tells of everyone, or of these people of each cell."""
        given = cells.weights if people is None else people
        return engine.exact(cells, given, replace(self.schedule, progress=None))[1]


def ask(
    table: object,
    columns: Sequence[str] | None,
    coarsen: Mapping[str, Coarsening] | None,
    missing: str,
    weights: object,
    n_jobs: int | None,
    read: FileReading | None = None,
    memory: int = MEMORY,
) -> Question:
    """Check what was asked, and bring the table."""
    _checks.choice("missing", missing, get_args(MissingValues))
    read = read or FileReading()
    _checks.not_one_string("columns", columns)
    if coarsen is not None and not isinstance(coarsen, Mapping):
        raise UsageError(f"coarsen must map columns to how they are made coarser, got {type(coarsen).__name__}")
    coarsen = dict(coarsen or {})
    if columns is not None:
        if isinstance(weights, str) and weights in columns:
            raise UsageError(f"{weights!r} is the weight and cannot be an attribute as well")
        if read.id is not None and read.id in columns:
            raise UsageError(f"{read.id!r} is the id and cannot be an attribute as well")
        must_be_among(coarsen, columns, "coarsen: ")
    thread_count(n_jobs)
    if isinstance(table, Table):
        if read != FileReading():
            raise UsageError("id, categorical and carry say how a file or frame is read; a table is read already")
        data = table
    else:
        data, weights = _bring(table, columns, coarsen, weights, read, memory)
    weight = weights if isinstance(weights, str) else None
    chosen = tuple(name for name in data.features if name != weight) if columns is None else tuple(columns)
    if not chosen:
        raise InputError(f"{data.name} has no attributes to look at; name them with columns")
    for name in chosen:
        if name not in data.columns:
            raise InputError(f"{data.name}: {missing_column(name, data.columns)}")
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise UsageError(f"columns names {twice[0]!r} more than once")
    must_be_among(coarsen, chosen, "coarsen: ")
    return Question(data, chosen, coarsen, missing, _weights(data, weights), n_jobs)  # type: ignore[arg-type]


def must_be_among(names: Iterable[str], attributes: Sequence[str], what: str = "") -> None:
    """Refuse names that are none of the attributes."""
    for name in names:
        if name not in attributes:
            raise UsageError(f"{what}{name!r} is not among the attributes {_checks.listed(attributes, 12)}")


def _bring(
    source: Any,
    columns: Sequence[str] | None,
    coarsen: Mapping[str, Coarsening],
    weights: object,
    read: FileReading,
    memory: int,
) -> tuple[Table, object]:
    """Read a file or a frame; of many files, a Dask frame or a file too large for memory, the rows that differ."""
    options: dict[str, Any] = {"text": "categorical", "id": read.id, "categorical": list(read.categorical)}
    weight = weights if isinstance(weights, str) else None
    others = [how for how in coarsen.values() if isinstance(how, str) and how not in PERIODS]
    named = [*(columns or ()), *others, *read.carry, *read.categorical, *([] if weight is None else [weight])]
    if not isinstance(source, str | os.PathLike) and not is_dask(source):
        if columns is not None:  # the others stay at hand, but need not be fit to use
            options["ignore"] = [name for name in frame_columns(source) if name not in {*named, read.id}]
        return read_table(source, **options), weights
    wanted = None if columns is None else list(dict.fromkeys(named))
    if isinstance(source, str | os.PathLike):
        if not is_many(source) and bytes_in_memory(source, wanted) <= memory:
            return read_table(source, columns=wanted, **options), weights
        name, how = str(source) if is_many(source) else Path(source).name, "on disk"
        present = column_names(source) if wanted is None else wanted
    else:
        name, how = "the data frame", "partition by partition"
        present = list(source.columns) if wanted is None else wanted
    if weights is not None and weight is None:
        raise UsageError(f"{name} is counted {how}; name the column of the weights")
    count = COUNT
    while count in present:
        count = f"({count})"
    aside = {read.id, weight}
    counted = read_distinct(
        source,
        None if wanted is None and aside == {None} else [name for name in present if name and name not in aside],
        count=count,
        weight=weight,
        categorical=list(read.categorical),
        memory=max(memory, 2**26),
    )
    people = float(counted[count].astype(np.float64).sum())
    note = (
        f"{name} was counted {how}: its {people:,.0f} people are {len(counted):,} distinct rows, and "
        "each record here is one of these, with its count as weight"
    )
    return replace(counted, notes=(note,)), count


def _weights(table: Table, weights: object) -> Floats | None:
    """The weight of each row: positive numbers."""
    if weights is None:
        return None
    if isinstance(weights, str):
        if weights not in table.columns:
            raise InputError(f"weights: {missing_column(weights, table.columns)}")
        column = table.columns[weights]
        if column.kind != "numeric":
            raise InputError(f"weights: column {weights!r} holds no numbers")
        given: NDArray[np.generic] = column.data
    else:
        given = np.asarray(weights)
        if given.shape != (len(table),) or given.dtype.kind not in "iuf":
            raise UsageError(f"weights must be one number for each of the {len(table)} rows, or the name of a column")
    found = given.astype(np.float64)
    bad = ~(np.isfinite(found) & (found > 0))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"weights must be positive: row {row} (counting from 0) has {found[row]:g}; leave out rows that count for "
            "nobody"
        )
    if found.max() > 2**53 / len(found):
        raise InputError("weights are too large: beyond 2**53 people are not counted exactly; scale them down")
    return found


def count(question: Question) -> Counted:
    """Find the distinct rows."""
    table = question.table
    notes = [note for note in table.notes if _concerns(note, question.columns)]
    noted: list[list[str]] = [[] for _ in question.columns]

    def task(at: range) -> Any:
        name = question.columns[at.start]
        how = question.coarsen.get(name, AS_IT_IS)
        return code(table, name, how, noted[at.start])

    # Threads of this process: to send a column elsewhere takes longer than to code it.
    coded = list(in_order(task, chunks(len(question.columns), 1), thread_count(question.n_jobs), lambda _: None))
    notes += [note for more in noted for note in more]
    n, weights, kept = len(table), question.weights, None
    absent = {name: attribute for name, attribute in zip(question.columns, coded, strict=True) if attribute.missing}
    if absent and question.missing == "exclude":
        out = np.zeros(n, bool)
        for attribute in absent.values():
            out |= attribute.codes == len(attribute.names) - 1
        if out.all():
            raise InputError(f"every row of {table.name} lacks a value; nobody is left")
        kept = np.flatnonzero(~out)
        coded = [attribute.of_rows(kept) for attribute in coded]
        weights = None if weights is None else weights[kept]
        notes.append(f"{out.sum():,} of {n:,} rows are left out: they lack {_checks.listed(absent)}")
        n = len(kept)
    elif absent:
        notes.append(f"missing values of {_checks.listed(absent)} are a value of their own, {MISSING_LEVEL}")
    keys = [name for name, attribute in zip(question.columns, coded, strict=True) if len(attribute.names) == n > 1]
    if keys:
        differ, each = ("differs", "by") if len(keys) == 1 else ("differ", "each by")
        notes.append(f"{_checks.listed(keys)} {differ} from row to row, and {each} itself tells everyone apart")
    if weights is not None and weights.min() < 1:
        notes.append("some weights are below 1: people are counted by weight, and unique means a weight of at most 1")
    cells, cell = distinct(question.columns, coded, n, weights)
    return Counted(cells, cell, kept, weights, tuple(notes))


def _concerns(note: str, columns: Sequence[str]) -> bool:
    """Whether a note made when the table was read is about what is asked: the attributes, or the table as a whole."""
    about = re.match(r"column '(.*?)' of ", note)
    aside = note.endswith(("is set aside", "name it as id"))  # not so here: attributes are used as they are
    return about is None or (about[1] in columns and not aside)
