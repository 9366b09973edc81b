"""Values from coalitions drawn as sets that serve all records at once: Banzhaf values, and leave-one-out values."""

import math
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
from datassay.results import Floats, Parameter
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import Estimator, Task, make_model_game
from datassay.value.models.enumeration import enumerated, is_small
from datassay.value.models.options import Sampled, Utility
from datassay.value.models.orders import data_shapley
from datassay.value.models.tally import Tally, quantile


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
    _checks.choice("sampling", sampling, ("auto", "plain", "exact"))
    game = make_model_game(model, X, y, X_val, y_val, options, DEFAULT_COALITIONS)
    n, rules = game.n_players, game.rules
    if sampling == "exact" or (sampling == "auto" and is_small(game)):
        halves = np.array([math.comb(n - 1, k) * 0.5 ** (n - 1) for k in range(n)])
        return enumerated(game, "data_banzhaf", halves, {})
    run, limit, at_once = Tally(game, "data_banzhaf"), rules.max_coalitions, 32

    def members(draw: int) -> NDArray[np.bool_]:
        here = at_once if limit is None else min(at_once, limit - draw * at_once)
        return np.random.default_rng([rules.seed, draw]).integers(0, 2, (here, n), np.uint8).astype(np.bool_)

    draws = count() if limit is None else range(math.ceil(limit / at_once))
    tasks = (Task("sets", members(draw)) for draw in draws)
    # Of coalitions with each player, and without: how many there are, the sum of their scores, and of the squares.
    sides = np.zeros((2, 3, n))
    values, half = np.zeros(n), np.full(n, math.inf)
    with run.answering(tasks, limit) as stream:
        for draw, answer in enumerate(stream):
            scores, joined = game.filled(answer.utilities) - game.full, members(draw)
            sides = sides + [[side.sum(axis=0), scores @ side, scores**2 @ side] for side in (joined, ~joined)]
            values, half = _contrast(sides, rules.confidence)
            run.observe(values, half)
            if run.stop_if_narrow(run.coalitions, half):
                break
    if run.coalitions < 4 or not np.isfinite(half).all():
        if run.stopped in ("interrupted", "workers", "seconds"):
            run.give_up("some with and some without every player")
        raise UsageError(
            f"max_coalitions={limit} is too few: every player must be in some coalitions and out of others"
        )
    run.stopped = run.stopped or "coalitions"
    values, half = _contrast(sides, rules.confidence)
    parameters: dict[str, Parameter] = {"sampling": "plain", "max_coalitions": limit}
    return run.result(values, "data_banzhaf", parameters, half / quantile(rules.confidence, run.coalitions - 2), half)


def _contrast(sides: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Banzhaf values, the mean of one side less that of the other, and the half-widths of their intervals."""
    count, total, squares = sides.swapaxes(0, 1)
    mean = total / np.maximum(count, 1)
    spread = np.maximum(squares - count * mean**2, 0.0)
    enough = count >= 2
    error2 = np.where(enough, spread / np.where(enough, (count - 1) * count, 1), math.inf).sum(axis=0)
    number = float(count.sum(axis=0).max())
    return mean[0] - mean[1], np.sqrt(error2) * quantile(confidence, number - 2)


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

    Cheap, but one record among many rarely changes a model: most values are 0 or nearly so.

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
    game = make_model_game(model, X, y, X_val, y_val, options)
    n = game.n_players
    run = Tally(game, "leave_one_out")
    every = np.arange(n)
    tasks = (Task("sets", np.array(part)[:, None] != every) for part in chunks(n, min(16, game.at_once)))
    found: list[Floats] = []
    with run.answering(tasks, n) as stream:
        for answer in stream:
            found.append(game.filled(answer.utilities))
    if sum(map(len, found)) < n:
        run.give_up(f"all {n:,}")
    run.stopped = "exact"
    return run.result(game.full - np.concatenate(found), "leave_one_out", {})
