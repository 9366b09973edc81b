"""Values from coalitions drawn as sets that serve all records at once: Banzhaf values, and leave-one-out values."""

import math
from dataclasses import dataclass
from itertools import count
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import DEFAULT_COALITIONS
from datassay._errors import UsageError
from datassay._run import documented
from datassay._work import chunks
from datassay.data import Labels, Points
from datassay.results import Parameter
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import Estimator, Task, make_model_game
from datassay.value.models.enumeration import enumerated, is_small
from datassay.value.models.options import Sampled, Stopping, Utility
from datassay.value.models.orders import data_shapley
from datassay.value.models.tally import Tally, quantile

Floats = NDArray[np.float64]


@documented(data_shapley)
def data_banzhaf(
    model: Estimator,
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    *,
    sampling: Literal["auto", "plain", "exact"] = "auto",
    **options: Unpack[Sampled],
) -> Estimate:
    """Data Banzhaf: the mean, over all coalitions of the others, of what a record adds to the model's score.

    Estimated with maximum sample reuse: every coalition drawn, each record in it by the toss of a coin, tells about
    every record. φ_i is the mean score of the coalitions with i less that of those without.

    References
    ----------
    Wang & Jia, Data Banzhaf: A Robust Data Valuation Framework for Machine Learning, 2023.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(200, seed=1).split(0.5)
    >>> values = da.data_banzhaf(LogisticRegression(), train, X_val=validation, max_coalitions=500, n_jobs=1)
    >>> len(values), values.coalitions
    (100, 500)
    """
    rules = Stopping.of(options, DEFAULT_COALITIONS)
    _checks.choice("sampling", sampling, ("auto", "plain", "exact"))
    game = make_model_game(model, X, y, X_val, y_val, options)
    n = game.n_players
    if sampling == "exact" or (sampling == "auto" and is_small(n, rules)):
        halves = np.array([math.comb(n - 1, k) * 0.5 ** (n - 1) for k in range(n)])
        return enumerated(game, "data_banzhaf", rules, halves, {})
    run, limit, at_once = Tally(game, rules, "data_banzhaf"), rules.max_coalitions, 32

    def members(draw: int) -> NDArray[np.bool_]:
        here = at_once if limit is None else min(at_once, limit - draw * at_once)
        return np.random.default_rng([rules.seed, draw]).integers(0, 2, (here, n), np.uint8).astype(np.bool_)

    draws = count() if limit is None else range(math.ceil(limit / at_once))
    tasks = (Task("sets", members(draw)) for draw in draws)
    sides = (_Side.of(n), _Side.of(n))
    values, half = np.zeros(n), np.full(n, math.inf)
    stream = run.answers(tasks, limit)
    with run.keeping():
        for draw, answer in enumerate(stream):
            scores, joined = game.filled(answer.utilities) - game.full, members(draw)
            sides = (sides[0].plus(joined, scores), sides[1].plus(~joined, scores))
            values, half = _contrast(*sides, rules.confidence)
            run.observe(values, half)
            if run.stop_if_narrow(run.coalitions, half):
                break
    stream.close()  # type: ignore[attr-defined]
    if run.coalitions < 4 or not np.isfinite(half).all():
        if run.stopped in ("interrupted", "workers", "seconds"):
            run.give_up("some with and some without every player")
        raise UsageError(
            f"max_coalitions={limit} is too few: every player must be in some coalitions and out of others"
        )
    run.stopped = run.stopped or "coalitions"
    values, half = _contrast(*sides, rules.confidence)
    parameters: dict[str, Parameter] = {"sampling": "plain", "max_coalitions": limit}
    return run.result(values, "data_banzhaf", parameters, half / quantile(rules.confidence, run.coalitions - 2), half)


@dataclass(frozen=True, eq=False)
class _Side:
    """Scores of the coalitions with, or without, each player."""

    count: Floats
    total: Floats
    squares: Floats

    @classmethod
    def of(cls, n: int) -> "_Side":
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))

    def plus(self, members: NDArray[np.bool_], scores: Floats) -> "_Side":
        return _Side(
            self.count + members.sum(axis=0), self.total + scores @ members, self.squares + scores**2 @ members
        )

    def mean(self) -> Floats:
        return np.asarray(self.total / np.maximum(self.count, 1))

    def variance_of_mean(self) -> Floats:
        spread = np.maximum(self.squares - self.count * self.mean() ** 2, 0.0)
        enough = self.count >= 2
        return np.where(enough, spread / np.where(enough, (self.count - 1) * self.count, 1), math.inf)


def _contrast(inside: _Side, outside: _Side, confidence: float) -> tuple[Floats, Floats]:
    """Banzhaf values, the mean of one side less that of the other, and the half-widths of their intervals."""
    error2 = inside.variance_of_mean() + outside.variance_of_mean()
    number = float((inside.count + outside.count).max())
    return inside.mean() - outside.mean(), np.sqrt(error2) * quantile(confidence, number - 2)


@documented(data_shapley)
def leave_one_out(
    model: Estimator,
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    **options: Unpack[Utility],
) -> Estimate:
    """Leave-one-out values: what the model's score loses without a record, v(D) − v(D∖i). Exact; n fits.

    Cheap to state and to compute, but one record among many rarely changes a
    model: most values are 0 or nearly so.

    References
    ----------
    Cook, Detection of Influential Observation in Linear Regression, 1977.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(100, seed=1).split(0.5)
    >>> da.leave_one_out(LogisticRegression(), train, X_val=validation, n_jobs=1).coalitions
    50
    """
    rules = Stopping.of(options)
    game = make_model_game(model, X, y, X_val, y_val, options)
    n = game.n_players
    run = Tally(game, rules, "leave_one_out")

    def without(part: range) -> NDArray[np.bool_]:
        members = np.ones((len(part), n), np.bool_)
        members[np.arange(len(part)), np.arange(part.start, part.stop)] = False
        return members

    found: list[Floats] = []
    with run.keeping():
        for answer in run.answers((Task("sets", without(part)) for part in chunks(n, min(16, game.at_once))), n):
            found.append(game.filled(answer.utilities))
    if sum(map(len, found)) < n:
        run.give_up(f"all {n:,}")
    run.stopped = "exact"
    return run.result(game.full - np.concatenate(found), "leave_one_out", {})
