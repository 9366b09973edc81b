"""What a disclosure game is played with: its rules, the data of both sides, and the mechanism between them."""

import math
from dataclasses import dataclass, replace
from typing import Final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import Metric, Unseen, Utility
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, Schedule
from datassay.data import Ids, Inputs, Labels, Points, prepare
from datassay.market.moving import METRICS, MovingNeighbours, knn_utility
from datassay.market.owner import DataOwner, Floats, Ints, RehearsingOwner
from datassay.market.strategies import NoisyShapley, Strategy, shapley_values
from datassay.neighbors import as_floats
from datassay.privacy import Ledger, NoisyRecords

Bounds = str | tuple[ArrayLike, ArrayLike] | NDArray[np.float64]
MOST_QUERIES: Final = 10**12  # of a record: far more than anybody will make, and still counted exactly
FARTHEST: Final = 50  # scales of Laplace noise: more than that has a chance of 2e-22


@dataclass(frozen=True)
class GameRules:
    """What a game is played by, checked."""

    t_max: int
    target: float | None
    k: int
    metric: Metric
    utility: Utility
    unseen: Unseen
    max_queries: int | None = None
    every: int | None = None
    exploration: float = 0.0
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        for name, kept in (
            ("t_max", _checks.integer("t_max", self.t_max, at_least=0)),
            ("k", _checks.integer("k", self.k, at_least=1)),
            ("metric", _checks.choice("metric", self.metric, METRICS)),
            ("utility", _checks.choice("utility", self.utility, get_args(Utility))),
            ("unseen", _checks.choice("unseen", self.unseen, get_args(Unseen))),
            ("exploration", _checks.number("exploration", self.exploration, at_least=0)),
            ("learning_rate", _checks.number("learning_rate", self.learning_rate, above=0, at_most=1)),
        ):
            object.__setattr__(self, name, kept)
        if self.target is not None:
            object.__setattr__(self, "target", _checks.number("target", self.target, above=0, at_most=1))
        if self.t_max > MOST_QUERIES:
            raise UsageError(f"t_max must be a whole number at most {MOST_QUERIES:,}; a larger one was given")
        for name, least in (("max_queries", 0), ("every", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checks.integer(name, getattr(self, name), at_least=least))


def inputs_of(X: Points, y: Labels | None, X_val: Points | None, y_val: Labels | None, ids: Ids | None) -> Inputs:
    """The owner's records and the consumer's validation points, encoded by the latter."""
    if X_val is None:
        raise UsageError("X_val must be given: the consumer's validation points, none of them the owner's records")
    return prepare(X, y, X_val, y_val, ids=ids, fitted_on="validation")


@dataclass(frozen=True, eq=False)
class GameSetup:
    """The data of a game: records, validation points, and the mechanism between them."""

    inputs: Inputs
    points: Floats
    points_val: Floats
    mechanism: NoisyRecords
    bounds: str
    run: Schedule

    @classmethod
    def of(cls, inputs: Inputs, epsilon: ArrayLike, bounds: Bounds, metric: Metric, run: Blocks) -> "GameSetup":
        """Check the data and set up the mechanism."""
        points = np.ascontiguousarray(as_floats("X", inputs.points), np.float64)
        points_val = np.ascontiguousarray(as_floats("X_val", inputs.points_val), np.float64)
        if not len(points) or not len(points_val):
            raise InputError(f"{'X_val' if len(points) else 'X'} has no rows")
        if points.shape[1] == 0:
            raise InputError("X has no features; there is nothing to disclose")
        if points.shape[1] != points_val.shape[1]:
            raise InputError(f"X has {points.shape[1]} features and X_val has {points_val.shape[1]}")
        for name, rows, labels in (("y", points, inputs.labels), ("y_val", points_val, inputs.labels_val)):
            if len(rows) != len(labels):
                raise InputError(f"{name} has {len(labels)} labels for {len(rows)} rows")
        zero = ~points_val.any(axis=1)
        if metric == "cosine" and zero.any():
            raise InputError(f"X_val has a row of length zero at row {int(zero.argmax())}: cosine has no meaning there")
        low, high = _bounds(bounds, points, points_val)
        schedule = replace(Schedule.of(run), progress=None, here=True)  # a bar counts queries, not passes
        return cls(inputs, points, points_val, NoisyRecords(low, high, epsilon), _in_words(bounds), schedule)

    def at(self, epsilon: float) -> "GameSetup":
        """The same with another ε."""
        return replace(self, mechanism=NoisyRecords(self.mechanism.low, self.mechanism.high, epsilon))

    @property
    def n(self) -> int:
        """Records."""
        return len(self.points)

    @property
    def epsilon(self) -> float:
        """ε a feature, on average."""
        return self.mechanism.cost / len(self.mechanism.epsilon)

    def evaluate(self, points: Floats, use: Ints | None, rules: GameRules) -> float:
        """Utility of these points, computed anew."""
        some = slice(None) if use is None else use
        return knn_utility(
            points[some], self.inputs.codes[some], self.points_val, self.inputs.codes_val, self.inputs.n_classes,
            k=rules.k, metric=rules.metric, utility=rules.utility, run=self.run,
        )  # fmt: skip

    def check_reach(self) -> Floats:
        """The farthest that noise can take a record, which distances must be able to hold."""
        mechanism = self.mechanism
        with np.errstate(over="ignore"):
            far = np.maximum(np.abs(mechanism.low), np.abs(mechanism.high))
            far = far + FARTHEST * mechanism.width / mechanism.epsilon
            reach = float(far.max()) + float(np.abs(self.points_val).max())
            fits = math.isfinite(4 * len(far) * reach * reach)
        if not fits:
            raise UsageError(
                f"epsilon is too small for such bounds: noise can reach {reach:.3g}, and distances that large can not "
                "be written down"
            )
        return far

    def try_out(self, rules: GameRules, chooser: Strategy | None) -> None:
        """Do once, for one validation point, what a game does again and again: what fails, fails before it is paid."""
        far = self.check_reach()
        if chooser is None:
            return  # the bandit moves single points
        first = replace(self.inputs, codes_val=self.inputs.codes_val[:1], labels_val=self.inputs.labels_val[:1])
        one = replace(self, points_val=self.points_val[:1], inputs=first)
        points = np.tile(far, (self.n, 1))
        one.evaluate(points, None, rules)
        if isinstance(chooser, NoisyShapley):
            one.values_of(points, rules)

    def secrets(self, rules: GameRules) -> tuple[float, Floats]:
        """What only the owner knows: the utility of the records as they are, and their true values."""
        worth = self.values_of(self.points, rules)
        return self.evaluate(self.points, None, rules), worth

    def values_of(self, points: Floats, rules: GameRules) -> Floats:
        """k-NN Shapley values of these points."""
        labels, labels_val = self.inputs.labels, self.inputs.labels_val
        return shapley_values(points, labels, self.points_val, labels_val, rules.k, rules.metric, self.run)

    def owner(self, t_max: int, rng: np.random.Generator | None, ledger: Ledger | None) -> DataOwner:
        """The owner's agent: for real without a generator, rehearsing with one."""
        ids = self.inputs.ids
        if rng is not None:
            return RehearsingOwner(self.points, self.mechanism, t_max, rng, ids)
        return DataOwner(self.points, self.mechanism, t_max, ids=ids, ledger=ledger, n_jobs=self.run.n_jobs)

    def model(self, rules: GameRules) -> MovingNeighbours:
        """The consumer's classifier before the first query."""
        inputs = self.inputs
        return MovingNeighbours(
            self.n, inputs.codes, self.points_val, inputs.codes_val, inputs.n_classes, k=rules.k, metric=rules.metric,
            utility=rules.utility, unseen=rules.unseen,
        )  # fmt: skip


def _bounds(bounds: Bounds, points: Floats, points_val: Floats) -> tuple[Floats, Floats]:
    d = points.shape[1]
    if isinstance(bounds, str):
        _checks.choice("bounds", bounds, ("validation", "data"))
        of = points if bounds == "data" else points_val
        return of.min(axis=0), of.max(axis=0)
    try:
        low, high = (_checks.real_numbers(bound) for bound in bounds)
        if low is not None and high is not None:
            return np.broadcast_to(low, (d,)).copy(), np.broadcast_to(high, (d,)).copy()
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f'bounds must be "validation", "data" or (low, high), each a number or {d} numbers; got {bounds!r}'
    )


def _in_words(bounds: Bounds) -> str:
    """Bounds in a word, or as numbers if there are two."""
    if isinstance(bounds, str):
        return bounds
    low, high = (np.asarray(bound, np.float64) for bound in bounds)
    return f"{float(low):g} to {float(high):g}" if low.ndim == high.ndim == 0 else "given, one a feature"
