"""Which records are likely mislabelled: those that hurt, and whose neighbours confidently say another class."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, Schedule, documented
from datassay._version import __version__
from datassay.data import Ids, Labels, Points
from datassay.neighbors import EUCLIDEAN, Given, NearestRanking, Neighbours, Ranked, neighbours_of
from datassay.results import MOST_CLASSES, Fact, Floats, Parameter, PerRecord, Values, as_facts
from datassay.value import knn_shapley


@dataclass(frozen=True, eq=False)
class Suspects(PerRecord):
    """Which labels are likely wrong, and what the neighbours say instead.

    Attributes
    ----------
    values, ids, labels
        The k-NN Shapley value, id and label of every record.
    suggested
        The class that most neighbours have; of equally many, the one that sorts first.
    own, votes
        The shares of neighbours that have the record's own label, and the suggested one.
    likely
        Whether the label is likely wrong.
    parameters, notes, version
        How they were found.
    """

    COLUMNS: ClassVar = {
        "id": "ids", "label": "labels", "likely": "likely", "suggested": "suggested", "own": "own", "votes": "votes",
        "value": "values",
    }  # fmt: skip

    values: Floats
    ids: NDArray[np.generic]
    labels: NDArray[np.generic]
    suggested: NDArray[np.generic]
    own: Floats
    votes: Floats
    likely: NDArray[np.bool_]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"Suspects({int(self.likely.sum()):,} of {len(self):,} records)"

    def first(self, count: int = 10) -> NDArray[np.intp]:
        """Positions of the likely mislabelled records, the least valuable first; ties by position."""
        rows = np.flatnonzero(self.likely)
        ranked = rows[np.argsort(self.values[rows], kind="stable")]
        return ranked[: _checks.integer("count", count, at_least=0)]

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``records``, ``likely``, ``share_likely``; ``likely.CLASS`` for each label."""
        names, sizes = np.unique(self.labels[self.likely], return_counts=True)
        counts = {f"likely.{name}": size for name, size in zip(names.tolist(), sizes, strict=True)}
        found = {"records": len(self), "likely": self.likely.sum(), "share_likely": self.likely.mean()}
        return as_facts(found | (counts if len(counts) <= MOST_CLASSES else {}))

    def summary(self, count: int = 10) -> str:
        """Whose label to check, in words."""
        found = int(self.likely.sum())
        lines = [f"{found:,} of {len(self):,} records ({found / len(self):.1%}) are likely mislabelled."]
        for i in self.first(count):
            lines.append(
                f"  {self.ids[i]!s}: labelled {self.labels[i]!s}; {self.votes[i]:.0%} of its neighbours are "
                f"{self.suggested[i]!s} (value {self.values[i]:.3g})"
            )
        return self._in_words(lines)


@documented(knn_shapley)
def likely_errors(
    X: Points | Neighbours,
    y: Labels | None = None,
    values: Values | None = None,
    k: int = 10,
    metric: Metric = EUCLIDEAN,
    *,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> Suspects:
    """Records that are likely mislabelled: of negative value, and outvoted by confident neighbours.

    With p_i(c) the share of class c among the k nearest others of record i, and t_c the mean of p_i(c) over the
    records labelled c, record i is a suspect if p_i(c) ≥ t_c and p_i(c) > p_i(own) for the class c that most of its
    neighbours have, and its value is negative.

    Parameters
    ----------
    X, y
        Features and labels, or a table; or :class:`datassay.Neighbours` of the records among themselves.
    values
        The records' values, of negative sign where they hurt; k-NN Shapley values of each record by the others if left
        out.
    k
        How many neighbours vote.

    References
    ----------
    Northcutt, Jiang & Chuang, Confident Learning: Estimating Uncertainty in Dataset Labels, JAIR 2021.

    Examples
    --------
    >>> import datassay as da
    >>> suspects = da.likely_errors(da.census(500))
    >>> bool(suspects.likely.mean() < 0.15) and len(suspects.first(3)) == 3
    True
    """
    k = _checks.integer("k", k, at_least=1)
    schedule = Schedule.of(run)
    near = neighbours_of(Given(X, y, metric=metric, ids=ids, among=True), schedule)
    inputs = near.inputs
    n, classes = len(inputs.codes), len(inputs.classes)
    if n < 2:
        raise InputError("a label is judged by its neighbours: give at least 2 records")
    if values is None:
        if near is not X:
            near.keep(k)
        values = knn_shapley(near, **run)
    if not isinstance(values, Values):
        raise UsageError(f"values must be Values, got {type(values).__name__}")
    if not np.array_equal(values.ids, inputs.ids):
        raise UsageError("values must be those of these records, in their order")
    depth = min(k, n - 1)
    codes = inputs.codes

    def compute(block: Ranked) -> tuple[NDArray[np.int64], Floats, Floats]:
        from datassay.evaluate import kernels

        rows = len(block.order)
        top, votes, own = np.empty(rows, np.int64), np.empty(rows), np.empty(rows)
        kernels.vote(block.order, codes, codes[block.rows], classes, top, votes, own)
        return top, votes, own

    top, votes, own = near.collect(NearestRanking(depth), compute, schedule)
    sizes = np.bincount(inputs.codes, minlength=classes)
    confident = np.bincount(inputs.codes, own, minlength=classes) / np.maximum(sizes, 1)
    likely = (votes >= confident[top]) & (votes > own) & (values.values < 0)
    return Suspects(
        values.values,
        inputs.ids,
        inputs.labels,
        inputs.classes[top],
        own,
        votes,
        likely,
        {"k": k, "metric": near.metric, "values": values.method},
        inputs.notes,
    )
