"""Which attributes identify people, and whom: uniqueness Shapley values.

Reference: Seiler, Mase & Owen, What makes you unique? (Mathematics §8).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Unpack, get_args

import numpy as np

from datassay import _checks
from datassay._choices import Calculation, MissingValues
from datassay._errors import UsageError
from datassay._run import Schedule, Threads, documented
from datassay.data import DaskFrame, RowWeights, TableLike
from datassay.identity import engine
from datassay.identity.counting import Coarsening, in_words
from datassay.identity.question import MEMORY, FileReading, Way, ask, count
from datassay.identity.results import KEY, Groups, Uniqueness, UniquenessQueries, alike, check_key
from datassay.results import Parameter

DEFAULT_TOLERANCE: Final = 0.02


@documented()
def group_sizes(
    table: TableLike | DaskFrame,
    columns: Sequence[str] | None = None,
    *,
    coarsen: Mapping[str, Coarsening] | None = None,
    missing: MissingValues = "value",
    weights: RowWeights | None = None,
) -> Groups:
    """The groups of people who are alike in some attributes: k-anonymity, and the share of people who are unique.

    A table is k-anonymous in these attributes (Sweeney 2002) if no group is smaller than k.

    Parameters
    ----------
    table
        A :class:`Table`, a data frame, or the path of a CSV or Parquet file. A file that would not fit into memory, a
        folder or a pattern of Parquet files (``people/*.parquet``) and a Dask data frame are counted where they are;
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

    Returns
    -------
    Groups
        ``.smallest``, ``.unique`` (the share of people who are alone), ``.share_below(k)``; a row for each group.

    Examples
    --------
    >>> import datassay as da
    >>> groups = da.group_sizes(da.voters(10_000), ["zip", "race"])
    >>> groups.smallest, groups.unique < groups.share_below(5)
    (1.0, True)
    """
    return alike(counted := count(ask(table, columns, coarsen, missing, weights, None)), counted.cells.columns)


@documented(group_sizes)
def uniqueness_shapley(
    table: TableLike | DaskFrame,
    columns: Sequence[str] | None = None,
    *,
    coarsen: Mapping[str, Coarsening] | None = None,
    missing: MissingValues = "value",
    weights: RowWeights | None = None,
    key: bool = False,
    method: Calculation | None = None,
    permutations: int | None = None,
    tolerance: float | None = None,
    seconds: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    id: str | None = None,
    categorical: Sequence[str] = (),
    carry: Sequence[str] = (),
    memory: int = MEMORY,
    **run: Unpack[Threads],
) -> Uniqueness:
    """Uniqueness Shapley value of each attribute for each person: the bits it contributes to finding them.

    If a set u of attributes of a person is revealed, N(u) of the n people match; the set tells
    val(u) = −log₂(N(u)/n) bits. An attribute's value φ_j is what it adds, averaged over all orders in which the
    attributes may be revealed: φ_j ≥ 0, and Σ_j φ_j = log₂(n/N(all)). Equal rows are counted once, then every set of
    attributes over the distinct rows.

    Parameters
    ----------
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
    memory
        Bytes that the calculation may use beside the table; what would need more is refused beforehand, with the
        number, and a file of that size is counted on disk.

    Returns
    -------
    Uniqueness
        ``.values`` (people × attributes), ``.of(id)``, ``.mean()`` with entropies, ``.by("county")``, ``.groups()``,
        ``.interactions()``, ``.compare(coarsen=…)``, figures by ``.plot()``.

    References
    ----------
    Seiler, Mase & Owen, What makes you unique? Mathematics §8.

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
        _checks.choice("method", method, get_args(Calculation))
    schedule = replace(Schedule.of(run), memory=_checks.integer("memory", memory, at_least=1))
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    seed = _checks.integer("seed", seed, at_least=0)
    permutations = permutations if permutations is None else _checks.integer("permutations", permutations, at_least=1)
    tolerance = tolerance if tolerance is None else _checks.number("tolerance", tolerance, above=0)
    seconds = seconds if seconds is None else _checks.number("seconds", seconds, above=0)
    sampling = {"permutations": permutations, "tolerance": tolerance, "seconds": seconds}
    given = [name for name, value in sampling.items() if value is not None]
    if given and method == "exact":
        raise UsageError(f"{given[0]} is for method='sampled'")
    if permutations is not None and len(given) > 1:
        raise UsageError(f"permutations says how many orders are drawn: leave out {given[1]}")
    for parameter, listed in (("categorical", categorical), ("carry", carry)):
        _checks.not_one_string(parameter, listed)
    read = FileReading(id, tuple(categorical), tuple(carry))
    question = ask(table, columns, coarsen, missing, weights, schedule.n_jobs, read, schedule.memory)
    counted = count(question)
    cells = counted.cells
    varying = int((cells.levels > 1).sum())
    exact = method == "exact" or (method is None and not given and varying <= engine.MOST_EXACT)
    if not given and not exact:
        tolerance = DEFAULT_TOLERANCE
    way = Way(exact, engine.RandomOrders(permutations, tolerance, seconds, seed, confidence), schedule)
    if key:
        check_key(counted, exact)
    entropies, sizes = cells.entropies, cells.weights
    parameters: dict[str, Parameter] = {
        "missing": missing,
        "weights": weights if isinstance(weights, str) else None if question.weights is None else "given",
        **{f"coarsen {name}": in_words(how) for name, how in question.coarsen.items()},
    }
    names, notes = cells.columns, counted.notes
    sampled: dict[str, Any] = {}
    if exact:
        values, _ = engine.exact(cells, sizes, schedule, wanted=len(sizes), key=key)
        if key:
            total = np.log2(cells.weights.sum())
            values = np.column_stack([values, total - values.sum(axis=1)])
            names, entropies, sizes = (*names, KEY), np.append(entropies, total), np.ones(len(sizes))
    else:
        found = engine.sample(cells, way.orders, schedule)
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
    name = "uniqueness_shapley" if exact else "uniqueness_shapley, sampled"
    how = {"method": name, **parameters, **({"seed": seed} if sampled else {})}
    for array in (values, counted.cell, sizes):
        array.setflags(write=False)  # so that the result need not copy them
    return Uniqueness(
        columns=names,
        ids=question.table.ids if counted.kept is None else question.table.ids[counted.kept],
        cells=values,
        cell=counted.cell,
        sizes=sizes,
        entropies=entropies,
        weights=counted.weights,
        method=name,
        parameters=parameters,
        notes=notes,
        _queries=UniquenessQueries(question, counted, way, how, notes),
        **sampled,
    )
