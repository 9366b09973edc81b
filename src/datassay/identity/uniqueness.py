"""Which attributes identify people, and whom: uniqueness Shapley values.

Revealing a set u of attributes of a person leaves N(u) people it could be, of n; val(u) = −log₂(N(u)/n) is the bits
they tell. The Shapley value of an attribute is what it adds on average over all orders in which attributes may be
revealed. Reference: Seiler, Mase & Owen, What makes you unique? (Mathematics §8).
"""

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
from datassay._work import Progress, chunks, in_order, thread_count
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
from datassay.identity.counting import (
    AS_IT_IS,
    MISSING_LEVEL,
    PERIODS,
    Cells,
    Coarsening,
    code,
    distinct,
    share_unique,
    told,
)
from datassay.identity.result import AttributeSets, AttributeTable, Groups, Uniqueness
from datassay.results import Parameter

Floats = NDArray[np.float64]
MEMORY: Final = 4 * 2**30
KEY: Final = "(key)"
DEFAULT_TOLERANCE: Final = 0.02
COUNT: Final = "(count)"


@dataclass(frozen=True)
class Reading:
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
    permutations: int | None
    tolerance: float | None
    seconds: float | None
    confidence: float
    seed: int
    n_jobs: int | None
    memory: int
    progress: Progress

    def means(self, cells: Cells) -> Floats:
        """Mean value of each attribute."""
        return self.sets(cells).means(len(cells.columns)) if self.exact else self.sample(cells).mean

    def sets(self, cells: Cells, people: Floats | None = None) -> engine.SetTable:
        """What every set of attributes tells of everyone, or of these people of each cell."""
        given = cells.weights if people is None else people
        return engine.exact(
            cells, given, key=False, values=False, n_jobs=self.n_jobs, memory=self.memory, progress=None
        )[1]

    def sample(self, cells: Cells) -> engine.Sampled:
        """Estimates from random orders."""
        return engine.sample(
            cells,
            permutations=self.permutations,
            tolerance=self.tolerance,
            seconds=self.seconds,
            confidence=self.confidence,
            seed=self.seed,
            n_jobs=self.n_jobs,
            memory=self.memory,
            progress=self.progress,
        )


def _ask(
    table: object,
    columns: Sequence[str] | None,
    coarsen: Mapping[str, Coarsening] | None,
    missing: str,
    weights: object,
    n_jobs: int | None,
    read: Reading | None = None,
    memory: int = MEMORY,
) -> Question:
    """Check what was asked, and bring the table."""
    _checks.choice("missing", missing, get_args(MissingValues))
    read = read or Reading()
    _checks.not_one_string("columns", columns)
    if coarsen is not None and not isinstance(coarsen, Mapping):
        raise UsageError(f"coarsen must map columns to how they are made coarser, got {type(coarsen).__name__}")
    coarsen = dict(coarsen or {})
    if columns is not None:
        if isinstance(weights, str) and weights in columns:
            raise UsageError(f"{weights!r} is the weight and cannot be an attribute as well")
        if read.id is not None and read.id in columns:
            raise UsageError(f"{read.id!r} is the id and cannot be an attribute as well")
        _must_be_among(coarsen, columns, "coarsen: ")
    thread_count(n_jobs)
    if isinstance(table, Table):
        if read != Reading():
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
    _must_be_among(coarsen, chosen, "coarsen: ")
    return Question(data, chosen, coarsen, missing, _weights(data, weights), n_jobs)  # type: ignore[arg-type]


def _must_be_among(names: Iterable[str], attributes: Sequence[str], what: str = "") -> None:
    for name in names:
        if name not in attributes:
            raise UsageError(f"{what}{name!r} is not among the attributes {_checks.listed(attributes, 12)}")


def _bring(
    source: object,
    columns: Sequence[str] | None,
    coarsen: Mapping[str, Coarsening],
    weights: object,
    read: Reading,
    memory: int,
) -> tuple[Table, object]:
    """Read a file or a frame; of many files, a Dask frame or a file too large for memory, the rows that differ."""
    options: dict[str, Any] = {"text": "categorical", "id": read.id, "categorical": list(read.categorical)}
    weight = weights if isinstance(weights, str) else None
    periods = set(PERIODS)
    others = [how for how in coarsen.values() if isinstance(how, str) and how not in periods]
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
        present = list(source.columns) if wanted is None else wanted  # type: ignore[attr-defined]
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


def _count(question: Question) -> Counted:
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
    for more in noted:
        notes += more
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
        each = (
            "differs from row to row, and by itself" if len(keys) == 1 else "differ from row to row, and each by itself"
        )
        notes.append(f"{_checks.listed(keys)} {each} tells everyone apart")
    if weights is not None and weights.min() < 1:
        notes.append("some weights are below 1: people are counted by weight, and unique means a weight of at most 1")
    cells, cell = distinct(question.columns, coded, n, weights)
    return Counted(cells, cell, kept, weights, tuple(notes))


def _concerns(note: str, columns: Sequence[str]) -> bool:
    """Whether a note made when the table was read is about what is asked: the attributes, or the table as a whole."""
    about = re.match(r"column '(.*?)' of ", note)
    aside = note.endswith(("is set aside", "name it as id"))  # not so here: attributes are used as they are
    return about is None or (about[1] in columns and not aside)


@dataclass(frozen=True, eq=False)
class Asked:
    """What a result can still be asked while the data is at hand."""

    question: Question
    counted: Counted
    way: Way

    def groups(self, column: str, coarsen: object) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
        """The group of each record by a column of the table, and the groups' names."""
        table = self.question.table
        if column not in table.columns:
            raise InputError(f"by: {missing_column(column, table.columns)}")
        found = code(table, column, coarsen, [])  # type: ignore[arg-type]
        if self.counted.kept is not None:
            found = found.of_rows(self.counted.kept)
        return found.codes, found.names

    def alike(self, columns: Sequence[str] | None) -> Groups:
        """The groups alike in these attributes."""
        return _alike(self.counted, self.question.columns if columns is None else columns)

    def interactions(self, people: Floats) -> AttributeTable:
        """Interaction indices averaged over these people of each cell."""
        columns = self.question.columns
        if not self.way.exact and int((self.counted.cells.levels > 1).sum()) > engine.MOST_EXACT:
            raise UsageError(f"interactions are exact, and for at most {engine.MOST_EXACT} attributes that vary")
        found = self.way.sets(self.counted.cells, people).interactions(len(columns))
        return AttributeTable(found, np.array(columns), columns, "attribute", "pairs")

    def sets(self) -> AttributeSets:
        """What every set of attributes tells."""
        columns = self.question.columns
        if len(columns) > engine.MOST_EXACT:
            raise UsageError(f"there are 2^{len(columns)} sets of {len(columns)} attributes; 2^20 is the most")
        found = self.way.sets(self.counted.cells)
        masks = np.arange(1, 2 ** len(columns))
        at = np.zeros(len(masks), np.int64)
        for bit, j in enumerate(found.members):
            at |= ((masks >> j) & 1) << bit
        inside = (masks[:, None] >> np.arange(len(columns)) & 1).astype(bool)
        return AttributeSets(
            columns, inside, found.entropy[at], found.groups[at], found.unique[at], found.smallest[at],
            self.counted.notes,
        )  # fmt: skip

    def compare(self, coarsen: Mapping[str, object], drop: Sequence[str], key: bool) -> AttributeTable:
        """Means after changes of the data, each by itself."""
        if not isinstance(coarsen, Mapping):
            raise UsageError(f"coarsen must map attributes to how they are made coarser, got {type(coarsen).__name__}")
        here = self.question.coarsen
        changes: dict[str, Mapping[str, Any]] = {"as coarsened" if here else AS_IT_IS: here}
        for name, ways in coarsen.items():
            for how in ways if isinstance(ways, tuple) else (ways,):
                changes[f"{name}: {told(how)}"] = {**here, name: how}
        changes |= self._dropped(drop)
        return self._table(changes, [*coarsen, *drop], key)

    def changes(self, drop: Sequence[str], key: bool) -> AttributeTable:
        """What the coarsening asked for changes, attribute by attribute and all together; then dropping, and a key."""
        here = self.question.coarsen
        needed = {name: how for name, how in here.items() if not self._can_be_told(name)}
        rows: dict[str, Mapping[str, Any]] = {}
        if len(needed) < len(here):
            rows[", ".join([AS_IT_IS, *(f"{name}: {told(how)}" for name, how in needed.items())])] = needed
            if len(here) - len(needed) > 1:
                for name, how in here.items():
                    if name not in needed:
                        rows[f"{name}: {told(how)}"] = {**needed, name: how}
        rows[", ".join(f"{name}: {told(how)}" for name, how in here.items()) or AS_IT_IS] = here
        return self._table(rows | self._dropped(drop), drop, key)

    def _can_be_told(self, name: str) -> bool:
        """Whether an attribute can be taken as it is: a measurement cannot."""
        try:
            code(self.question.table, name, AS_IT_IS, [])
        except InputError:
            return False
        return True

    def _dropped(self, drop: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        _checks.not_one_string("drop", drop, "attributes")
        return {f"{name}: dropped": {**self.question.coarsen, name: None} for name in drop}

    def _table(self, changes: Mapping[str, Mapping[str, Any]], named: Sequence[str], key: bool) -> AttributeTable:
        """Means for each way to coarsen, and for the question as it stands with a key."""
        columns = self.question.columns
        _must_be_among(named, columns)
        if key:
            _check_key(self.counted, self.way.exact)
        notes: list[str] = list(self.counted.notes)
        values, totals, unique = [], [], []
        for coarsen in changes.values():
            same = coarsen == self.question.coarsen
            counted = self.counted if same else _count(replace(self.question, coarsen=coarsen))
            notes += counted.notes
            values.append(self.way.means(counted.cells))
            totals.append(float(values[-1].sum()))
            unique.append(share_unique(counted.cells.weights))
        beside = {"total": totals, "unique": unique}
        rows = list(changes)
        if key:
            cells = self.counted.cells
            rows.append("with a database key")
            values.append(self.way.sets(cells).means(len(columns), key=True))
            totals.append(float(np.log2(cells.weights.sum())))
            unique.append(1.0)
            beside["key"] = [0.0] * (len(rows) - 1) + [totals[-1] - float(values[-1].sum())]
        if not self.way.exact:
            notes.append("the rows are estimates from random orders of the attributes")
        return AttributeTable(
            np.array(values), np.array(rows), columns, "change", "changes",
            {name: np.array(column) for name, column in beside.items()}, tuple(dict.fromkeys(notes)),
        )  # fmt: skip


def _alike(counted: Counted, columns: Sequence[str]) -> Groups:
    _checks.not_one_string("columns", columns, "attributes")
    cells = counted.cells
    _must_be_among(columns, cells.columns)
    if not columns:
        raise UsageError("columns names no attribute; without any, everyone is alike")
    some, _ = cells.project([cells.columns.index(name) for name in dict.fromkeys(columns)])
    order = np.argsort(some.weights, kind="stable")
    shared = {name: some.names[j][some.codes[j, order]] for j, name in enumerate(some.columns)}
    return Groups(some.weights[order], shared, counted.notes)


def _check_key(counted: Counted, exact: bool) -> None:
    if not exact:
        raise UsageError(
            f"key: what a key changes is told exactly, for at most {engine.MOST_EXACT} attributes, and not from samples"
        )
    if KEY in counted.cells.columns:
        raise InputError(f"key: there is an attribute {KEY!r} already; rename it")
    if counted.weights is not None and counted.weights.min() < 1:
        raise InputError("key: a key tells single people apart, and a weight below 1 is less than one person")


def group_sizes(
    table: object,
    columns: Sequence[str] | None = None,
    *,
    coarsen: Mapping[str, Coarsening] | None = None,
    missing: MissingValues = "value",
    weights: object = None,
) -> Groups:
    """The groups of people who are alike in some attributes: how many are unique, how small the smallest group is.

    A table is k-anonymous in these attributes (Sweeney 2002) if no group is smaller than k. Parameters are those of
    :func:`uniqueness_shapley`.

    Examples
    --------
    >>> import datassay as da
    >>> groups = da.group_sizes(da.voters(10_000), ["zip", "race"])
    >>> groups.smallest, groups.unique < groups.share_below(5)
    (1.0, True)
    """
    return _alike(counted := _count(_ask(table, columns, coarsen, missing, weights, None)), counted.cells.columns)


def uniqueness_shapley(
    table: object,
    columns: Sequence[str] | None = None,
    *,
    coarsen: Mapping[str, Coarsening] | None = None,
    missing: MissingValues = "value",
    weights: object = None,
    key: bool = False,
    method: str | None = None,
    permutations: int | None = None,
    tolerance: float | None = None,
    seconds: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    id: str | None = None,
    categorical: Sequence[str] = (),
    carry: Sequence[str] = (),
    n_jobs: int | None = None,
    memory: int = MEMORY,
    progress: Progress = None,
) -> Uniqueness:
    """How many bits each attribute contributes to finding each person among the others.

    If a set u of attributes of a person is revealed, N(u) of the n people match; the set has told
    val(u) = −log₂(N(u)/n) bits. An attribute's value φ_j is what it adds, averaged over all orders in which the
    attributes may be revealed: φ_j ≥ 0, and Σ_j φ_j = log₂(n/N(all)). Equal rows are counted once, then every set of
    attributes over the distinct rows (Seiler, Mase & Owen, *What makes you unique?*).

    Parameters
    ----------
    table
        A :class:`Table`, a data frame, or the path of a CSV or Parquet file. A file that would not fit into ``memory``,
        a folder or a pattern of Parquet files (``people/*.parquet``) and a Dask data frame are counted where they are;
        the records of the result are then the distinct rows, each with the weight of its count.
    columns
        The attributes; all features of the table if left out.
    coarsen
        How finely attributes are known, by column: a number (bins of that width; of categories, that many leading
        characters), a list of cut points, "year" or "month" of a date, the name of a column to take its place, a
        mapping of values to coarser ones, or None for one value.
    missing
        ``"value"``: a missing value is a value of its own. ``"exclude"``: rows that lack one are left out.
    weights
        A weight for each row, or the column that holds it: a row of weight 3 stands for three people.
    key
        Add a database key, such as a row number, as one more attribute "(key)", by formula (11): everyone is unique.
    method
        ``"exact"`` (at most 20 attributes that vary) or ``"sampled"``: random orders of the attributes, and intervals.
        Left out: exact up to 20, sampled beyond.
    permutations, tolerance, seconds
        Sampling: how many orders to draw, in rounds of as many as there are attributes, and at least 16 rounds; or
        until the intervals of the attributes' means are at most ± ``tolerance`` bits (0.02, if nothing is said), or
        until the time is over. The number drawn is in ``parameters``; as many with the same seed are the same numbers.
    confidence
        Probability that an interval covers, each by itself.
    seed
        Seed of the orders.
    id, categorical, carry
        Of a file or frame: the column that identifies a row, columns to read as categories although they look like
        numbers (zip codes, say), and others to keep for :meth:`Uniqueness.by`.
    n_jobs
        Threads; all cores if left out. They do not change the numbers.
    memory
        Bytes that the calculation may use beside the table; what would need more is refused beforehand, with the
        number, and a file of that size is counted on disk.
    progress
        True for a bar on standard error, or a function of (done, of how many).

    Returns
    -------
    Uniqueness
        ``.values`` (people × attributes), ``.of(id)``, ``.mean()`` with entropies, ``.by("county")``, ``.groups()``,
        ``.interactions()``, ``.compare(coarsen=…)``, figures by ``.plot()``.

    Examples
    --------
    >>> import datassay as da
    >>> found = da.uniqueness_shapley(da.voters(10_000), ["zip", "race", "age"])
    >>> found.values.shape
    (10000, 3)
    >>> means = found.mean()
    >>> means.of("zip") > means.of("age") > means.of("race")
    True
    >>> coarser = found.compare(coarsen={"age": (5, 10, None), "zip": "county"})
    >>> coarser.of("age: 10")["age"] < coarser.of("age: 5")["age"]
    True
    """
    if method is not None:
        _checks.choice("method", method, ("exact", "sampled"))
    memory = _checks.integer("memory", memory, at_least=1)
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    seed = _checks.integer("seed", seed, at_least=0)
    if permutations is not None:
        permutations = _checks.integer("permutations", permutations, at_least=1)
    if tolerance is not None:
        tolerance = _checks.number("tolerance", tolerance, above=0)
    if seconds is not None:
        seconds = _checks.number("seconds", seconds, above=0)
    sampling = {"permutations": permutations, "tolerance": tolerance, "seconds": seconds}
    given = [name for name, value in sampling.items() if value is not None]
    if given and method == "exact":
        raise UsageError(f"{given[0]} is for method='sampled'")
    if permutations is not None and len(given) > 1:
        raise UsageError(f"permutations says how many orders are drawn: leave out {given[1]}")
    for parameter, listed in (("categorical", categorical), ("carry", carry)):
        _checks.not_one_string(parameter, listed)
    read = Reading(id, tuple(categorical), tuple(carry))
    question = _ask(table, columns, coarsen, missing, weights, n_jobs, read, memory)
    counted = _count(question)
    cells = counted.cells
    varying = int((cells.levels > 1).sum())
    exact = method == "exact" or (method is None and not given and varying <= engine.MOST_EXACT)
    if not given and not exact:
        tolerance = DEFAULT_TOLERANCE
    way = Way(exact, permutations, tolerance, seconds, confidence, seed, n_jobs, memory, progress)
    if key:
        _check_key(counted, exact)
    entropies, sizes = cells.entropies, cells.weights
    parameters: dict[str, Parameter] = {
        "missing": missing,
        "weights": weights if isinstance(weights, str) else None if question.weights is None else "given",
        **{f"coarsen {name}": told(how) for name, how in question.coarsen.items()},
    }
    names, notes = cells.columns, counted.notes
    sampled: dict[str, Any] = {}
    if exact:
        values, _ = engine.exact(
            cells, cells.weights, key=key, values=True, n_jobs=n_jobs, memory=memory, progress=progress
        )
        if key:
            total = np.log2(cells.weights.sum())
            values = np.column_stack([values, total - values.sum(axis=1)])
            names, entropies, sizes = (*names, KEY), np.append(entropies, total), np.ones(len(sizes))
    else:
        found = way.sample(cells)
        values = found.values
        sampled = {
            "lower": np.maximum(values - found.half, 0.0),
            "upper": values + found.half,
            "mean_half": found.mean_half,
            "seed": seed,
        }
        parameters |= {"permutations": found.permutations, "confidence": confidence}
        why = "" if given or method else f" ({varying} attributes vary; at most {engine.MOST_EXACT} are done exactly)"
        notes = (
            *notes,
            f"estimated from {found.permutations:,} random orders of the attributes{why}: means are within "
            f"±{found.mean_half.max():.2g} bits with probability {confidence:g} each",
        )
    return Uniqueness(
        columns=names,
        ids=question.table.ids if counted.kept is None else question.table.ids[counted.kept],
        cells=values,
        cell=counted.cell,
        sizes=sizes,
        entropies=entropies,
        weights=counted.weights,
        method="uniqueness_shapley" if exact else "uniqueness_shapley, sampled",
        parameters=parameters,
        notes=notes,
        asked=Asked(question, counted, way),
        **sampled,
    )
