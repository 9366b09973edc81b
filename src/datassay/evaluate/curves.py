"""What happens to a classifier as records are removed or added in the order of their value.

A good value finds records that can go without loss, and records that must come first. Every curve stands beside a
random order and its band.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, Schedule, documented
from datassay._version import __version__
from datassay._work import Bar
from datassay.data import Inputs, Labels, Points
from datassay.evaluate.figures import draw_curve
from datassay.neighbors import (
    EUCLIDEAN,
    FullRanking,
    Given,
    NeighbourGraph,
    Neighbours,
    Ranked,
    as_floats,
    neighbours_of,
)
from datassay.results import Axes, Columns, Fact, Floats, Parameter, Result, Values, as_facts, axes_on
from datassay.value import Estimator, knn_shapley, model_name

Ints = NDArray[np.int64]
METRICS = ("accuracy", "macro_f1", "mcc", "class_ratio")
# What there is of every metric, and how its column is called after it.
TRACKS = {"scores": "", "random": "_random", "random_low": "_random_low", "random_high": "_random_high"}


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """Scores on the test set as records go or come, by value and in random order.

    Attributes
    ----------
    kind
        removal or addition.
    fractions
        Shares of the records that are gone, or there.
    scores, random, random_low, random_high
        By metric, one number for each fraction: the score in order of value, the mean of the random orders, and their
        5% and 95% quantiles. ``class_ratio`` is the size of the smallest class over that of the largest, among the
        records present.
    parameters, notes, version
        How the curve was made.

    Its data frames have a row for each fraction, and four columns for each metric: ``mcc``, ``mcc_random``,
    ``mcc_random_low``, ``mcc_random_high``.
    """

    COLUMNS: ClassVar = {"fraction": "fractions"}

    kind: Literal["removal", "addition"]
    fractions: Floats
    scores: Mapping[str, Floats]
    random: Mapping[str, Floats]
    random_low: Mapping[str, Floats]
    random_high: Mapping[str, Floats]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        what = f"{len(self.fractions)} steps of {self.kind}"
        return f"Curve({what}; accuracy {self.gain():+.3f} and MCC {self.gain('mcc'):+.3f} against random order)"

    def _who(self) -> str:
        return "steps"

    def _columns(self) -> Columns:
        tracks = {f"{m}{after}": getattr(self, name)[m] for m in METRICS for name, after in TRACKS.items()}
        return super()._columns() | tracks

    def _header(self) -> dict[str, object]:
        rest = {name: value for name, value in super()._header().items() if name not in TRACKS}
        return rest | {"kind": self._kind(), "curve": self.kind}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        tracks = {name: {m: columns[f"{m}{after}"] for m in METRICS} for name, after in TRACKS.items()}
        return super()._fields({**header, **tracks, "kind": header["curve"]}, columns)

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``steps``; ``gain.METRIC``, the mean height above random order; ``last.METRIC``."""
        gains = {f"gain.{name}": self.gain(name) for name in METRICS}
        last = {f"last.{name}": self.scores[name][-1] for name in METRICS}
        return as_facts({"steps": len(self), **gains, **last})

    def gain(self, metric: str = "accuracy") -> float:
        """Mean height of the curve above the random one."""
        _checks.choice("metric", metric, METRICS)
        return float((self.scores[metric] - self.random[metric]).mean())

    def plot(self, metric: str = "accuracy", ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw one metric, with the random order and its band; returns the axes.

        ``label`` names this curve in the legend, so that several can share the axes: then without random order.
        """
        _checks.choice("metric", metric, METRICS)
        band = (self.random_low[metric], self.random[metric], self.random_high[metric])
        ax = draw_curve(axes_on(ax, 6, 4), self.fractions, self.scores[metric], band, label)
        ax.set_title(f"{self.gain(metric):+.3f} against random order, on average", loc="left")
        ax.set_xlabel(f"fraction of records {'removed' if self.kind == 'removal' else 'added'}")
        ax.set_ylabel(metric)
        return ax


@documented(knn_shapley)
def removal_curve(
    values: Values | ArrayLike,
    X: Points | Neighbours,
    y: Labels | None = None,
    X_test: Points | NeighbourGraph | None = None,
    y_test: Labels | None = None,
    *,
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    model: Estimator | None = None,
    first: Literal["lowest", "highest"] = "lowest",
    fractions: Sequence[float] | None = None,
    n_random: int = 20,
    seed: int = 0,
    **run: Unpack[Blocks],
) -> Curve:
    """Scores of a classifier as records are removed in the order of their value.

    A good value keeps the score up longer than random removal, or brings it down sooner where the highest go first. For
    k-NN the scores of all steps come from one ranking.

    Parameters
    ----------
    values
        The values of the records; joined by id if they have ids, or else in the order of X.
    X
        The records, or :class:`datassay.Neighbours` of the records and the test set.
    X_test, y_test
        A test set that played no part in the values.
    k
        Number of neighbours of the classifier.
    model
        Any classifier with ``fit`` and ``predict`` in place of k-NN.
    first
        Which records go first.
    fractions
        Shares of the records removed, 0 to 0.95 in steps of 0.05 if left out.
    n_random, seed
        How many random orders make up the band, and the seed they are drawn with.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation, test = da.census(600, seed=1).split(0.5, 0.25, 0.25)
    >>> values = da.knn_shapley(train, X_val=validation)
    >>> curve = da.removal_curve(values, train, X_test=test, fractions=[0, 0.2])
    >>> sorted(curve.scores)
    ['accuracy', 'class_ratio', 'macro_f1', 'mcc']
    """
    shares = np.round(np.arange(0, 1, 0.05), 2) if fractions is None else fractions
    given = Given(X, y, X_test, y_test, metric, held_out="test")
    return _curve("removal", values, given, _Asked(k, model, first, shares, n_random, seed), Schedule.of(run))


@documented(removal_curve, knn_shapley)
def addition_curve(
    values: Values | ArrayLike,
    X: Points | Neighbours,
    y: Labels | None = None,
    X_test: Points | NeighbourGraph | None = None,
    y_test: Labels | None = None,
    *,
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    model: Estimator | None = None,
    first: Literal["lowest", "highest"] = "highest",
    fractions: Sequence[float] | None = None,
    n_random: int = 20,
    seed: int = 0,
    **run: Unpack[Blocks],
) -> Curve:
    """Scores of a classifier as records are added to nothing in the order of their value.

    By default the most valuable come first; a good value reaches a given score with fewer records than a random order.

    Parameters
    ----------
    first
        Which records come first.
    fractions
        Shares of the records present, 0.05 to 1 in steps of 0.05 if left out.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation, test = da.census(600, seed=1).split(0.5, 0.25, 0.25)
    >>> values = da.knn_shapley(train, X_val=validation)
    >>> curve = da.addition_curve(values, train, X_test=test)
    >>> curve.fractions[[0, -1]].tolist()
    [0.05, 1.0]
    """
    shares = np.round(np.arange(0.05, 1.01, 0.05), 2) if fractions is None else fractions
    given = Given(X, y, X_test, y_test, metric, held_out="test")
    return _curve("addition", values, given, _Asked(k, model, first, shares, n_random, seed), Schedule.of(run))


@dataclass(frozen=True, eq=False)
class _Asked:
    """Which classifier is scored on which records."""

    k: int
    model: Estimator | None
    first: str
    fractions: Sequence[float] | Floats
    n_random: int
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("n_random", 1), ("seed", 0)):
            object.__setattr__(self, name, _checks.integer(name, getattr(self, name), at_least=least))
        _checks.choice("first", self.first, ("lowest", "highest"))


def _curve(
    kind: Literal["removal", "addition"], values: Values | ArrayLike, given: Given, asked: _Asked, run: Schedule
) -> Curve:
    if not given.has_validation:
        raise UsageError("X_test must be given: a test set that played no part in the values")
    near, k, model = neighbours_of(given), asked.k, asked.model
    inputs, rng = near.inputs, np.random.default_rng(asked.seed)
    n = len(inputs.codes)
    scores = _aligned(values, inputs)
    shares = np.unique([_checks.number("fractions", share, at_least=0, at_most=1) for share in asked.fractions])
    counts = np.round(shares * n).astype(int)
    present = n - counts if kind == "removal" else counts
    if len(shares) == 0 or present.min() < 1:
        raise UsageError(f"fractions must leave at least one of the {n} records present at every step")

    order = np.argsort(scores if asked.first == "lowest" else -scores, kind="stable")
    orders = np.stack([order, *(rng.permutation(n) for _ in range(asked.n_random))])
    # Step at which a record, by its place in the order, is reached: the first whose count exceeds the place.
    reached = np.empty(orders.shape, np.int64)
    np.put_along_axis(reached, orders, np.searchsorted(counts, np.arange(n), side="right")[None, :], axis=1)
    never, always = np.full_like(reached, len(counts)), np.zeros_like(reached)
    arrives, leaves = (always, reached) if kind == "removal" else (reached, never)
    n_classes = len(inputs.classes)
    how: dict[str, Parameter] = {"k": k, "metric": near.metric} if model is None else {"model": model_name(model)}
    if model is None:
        predicted = _knn_predictions(near, arrives, leaves, len(counts), k, run)
    else:
        predicted = _model_predictions(inputs, arrives, leaves, len(counts), model, run)
    found = {name: np.empty(predicted.shape[:2]) for name in METRICS}
    in_training = np.unique(inputs.codes)
    for r in range(predicted.shape[0]):
        for step in range(predicted.shape[1]):
            here = (arrives[r] <= step) & (step < leaves[r])
            sizes = np.bincount(inputs.codes[here], minlength=n_classes)
            measured = _measure(inputs.codes_val, predicted[r, step], n_classes)
            measured["class_ratio"] = float(sizes[in_training].min() / sizes[in_training].max())
            for name, score in measured.items():
                found[name][r, step] = score
    by_chance = {name: scores[1:] for name, scores in found.items()}
    return Curve(
        kind,
        shares,
        {name: scores[0] for name, scores in found.items()},
        {name: scores.mean(axis=0) for name, scores in by_chance.items()},
        {name: np.quantile(scores, 0.05, axis=0) for name, scores in by_chance.items()},
        {name: np.quantile(scores, 0.95, axis=0) for name, scores in by_chance.items()},
        {"first": asked.first, **how, "n_random": asked.n_random, "seed": asked.seed},
        inputs.notes,
    )


def _aligned(values: Values | ArrayLike, inputs: Inputs) -> Floats:
    """The values in the order of the records: joined by id, or by position where the records have no ids."""
    n = len(inputs.ids)
    scores = np.asarray(values, np.float64)
    if scores.shape != (n,):
        raise InputError(f"there are {scores.size} values for {n} records")
    if not np.isfinite(scores).all():
        raise InputError(f"values holds a number that is not finite at row {int((~np.isfinite(scores)).argmax())}")
    if not isinstance(values, Values) or not inputs.ids_given:
        return scores
    by_value, by_record = np.argsort(values.ids), np.argsort(inputs.ids)
    if np.array_equal(values.ids[by_value], inputs.ids[by_record]):
        joined = np.empty(n)
        joined[by_record] = scores[by_value]
        return joined
    raise InputError("the values and the records have different ids; value these records, or pass an array")


def _knn_predictions(near: Neighbours, arrives: Ints, leaves: Ints, steps: int, k: int, run: Schedule) -> Ints:
    codes, classes = near.inputs.codes, len(near.inputs.classes)

    def compute(block: Ranked) -> tuple[Ints]:
        from datassay.evaluate import kernels

        found = np.empty((arrives.shape[0], steps, len(block.order)), np.int64)
        kernels.write_predictions(block.order, codes, arrives, leaves, k, classes, found)
        return (np.moveaxis(found, 2, 0),)

    (predicted,) = near.collect(FullRanking(), compute, run)
    return np.ascontiguousarray(np.moveaxis(predicted, 0, 2))


def _model_predictions(
    inputs: Inputs, arrives: Ints, leaves: Ints, steps: int, model: Estimator, run: Schedule
) -> Ints:
    points, points_test = as_floats("X", inputs.points), as_floats("X_test", inputs.points_val)
    for name, codes, rows in (("y", inputs.codes, points), ("y_test", inputs.codes_val, points_test)):
        if len(codes) != len(rows):
            raise InputError(f"{name} has {len(codes)} labels for {len(rows)} rows")
    predicted = np.empty((arrives.shape[0], steps, len(points_test)), np.int64)
    with Bar(run.progress, predicted.shape[0] * steps, "models") as report:
        for r in range(predicted.shape[0]):
            for step in range(steps):
                here = (arrives[r] <= step) & (step < leaves[r])
                codes = inputs.codes[here]
                if len(np.unique(codes)) == 1:  # most classifiers refuse to learn a single class
                    predicted[r, step] = codes[0]
                else:
                    fitted = copy.deepcopy(model)
                    fitted.fit(points[here], codes)
                    predicted[r, step] = fitted.predict(points_test)
                report(1)
    return predicted


def _measure(truth: NDArray[np.generic], predicted: Ints, n_classes: int) -> dict[str, float]:
    """Accuracy, macro-F1 over the classes that occur, and Matthews correlation, from the confusion counts."""
    pairs = np.bincount(truth.astype(np.int64) * n_classes + predicted, minlength=n_classes**2)
    table = pairs.reshape(n_classes, n_classes).astype(np.float64)
    hits, true, claimed, n = np.diag(table), table.sum(axis=1), table.sum(axis=0), table.sum()
    occurs = true + claimed > 0
    f1 = 2 * hits[occurs] / (true + claimed)[occurs]
    spread = np.sqrt(n**2 - (claimed**2).sum()) * np.sqrt(n**2 - (true**2).sum())
    mcc = (hits.sum() * n - (true * claimed).sum()) / spread if spread > 0 else 0.0
    return {"accuracy": float(hits.sum() / n), "macro_f1": float(f1.mean()), "mcc": float(mcc)}
