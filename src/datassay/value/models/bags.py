"""Out-of-bag values: how often models fitted to samples without a record predict it right."""

import math
from dataclasses import replace
from itertools import count
from typing import Any, Unpack, cast

import numpy as np

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._run import documented
from datassay.data import Labels, Points
from datassay.results import Floats, Parameter
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import Estimator, FittedModels, Task, make_model_game
from datassay.value.models.options import Bags, Sampled
from datassay.value.models.orders import data_shapley
from datassay.value.models.tally import Tally, quantile, supported


@documented(data_shapley)
def data_oob(
    model: Estimator,
    X: Points,
    y: Labels | None = None,
    *,
    max_bags: int | None = None,
    **options: Unpack[Bags],
) -> Estimate:
    """Out-of-bag values: how often models fitted to samples without a record predict it right. No validation set.

    Every model is fitted to a bag, as many records as there are, drawn with replacement; about 37% of the records are
    not in it, and the model is tried on them. The value is the mean over those models: the share that gets the label
    right, or for a regressor minus the squared error. Mislabelled records are predicted wrong, so low values are
    suspicious. With ``groups``, owners are drawn, and an owner's value is the mean over their records.

    Parameters
    ----------
    max_bags
        Models to fit (1,000 if neither time nor width is given).

    References
    ----------
    Kwon & Zou, Data-OOB: Out-of-bag Estimate as a Simple and Efficient Data Value, 2023.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> table = da.census(100, seed=1)
    >>> values = da.data_oob(DecisionTreeClassifier(), table, max_bags=50, n_jobs=1)
    >>> bool(values.values.min() >= 0) and bool(values.values.max() <= 1)
    True
    """
    if max_bags is not None:
        max_bags = _checks.integer("max_bags", max_bags, at_least=1)
    drawn: Sampled = {"max_coalitions": max_bags, "scoring": _unscored, "empty": 0.0, "fast": False}
    asked = cast(Sampled, options) | drawn
    game = make_model_game(model, X, y, X, y, asked, 1000)
    assert isinstance(game.evaluator, FittedModels)
    if game.n_players == 1:
        raise InputError("there is one player only, who is in every bag: nothing is out of it")
    n, owner, rules = game.n_players, game.owner, game.rules
    by_owner = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=n))
    sizes = np.diff(ends, prepend=0)
    tally = Tally(game, "data_oob", "bags")
    limit = rules.max_coalitions

    def bag(draw: int) -> Task:
        drawn = np.random.default_rng([rules.seed, draw]).integers(0, n, n)
        rows = [by_owner[ends[i] - sizes[i] : ends[i]] for i in drawn.tolist()]
        return Task("bag", np.empty(0, np.bool_), np.concatenate(rows).astype(np.int64))

    draws = count() if limit is None else range(limit)
    sums = (np.zeros(n), np.zeros(n), np.zeros(n))
    with tally.answering((bag(draw) for draw in draws), limit) as stream:
        for answer in stream:
            outside = ~np.isnan(answer.utilities)
            of = np.bincount(owner[outside], minlength=n)
            mean = np.bincount(owner[outside], answer.utilities[outside], minlength=n) / np.maximum(of, 1)
            sums = (sums[0] + mean, sums[1] + mean**2, sums[2] + (of > 0))
            half = _oob_errors(*sums) * quantile(rules.confidence, sums[2] - 1)
            tally.observe(sums[0] / np.maximum(sums[2], 1), half)
            if tally.stop_if_narrow(tally.coalitions, half):
                break
    total, squares, seen = sums
    if not (seen > 0).all():
        if tally.stopped or limit is None:
            tally.give_up("some without every record")
        raise UsageError(f"max_bags={limit} is too few: some records were in all of them")
    tally.stopped = tally.stopped or "coalitions"
    values, errors = total / seen, _oob_errors(total, squares, seen)
    half = errors * quantile(rules.confidence, seen - 1)
    parameters: dict[str, Parameter] = {"max_bags": limit}
    known = bool(np.isfinite(half).all())
    result = tally.result(values, "data_oob", parameters, errors if known else None, half if known else None)
    skip = ("empty", "full", "n_validation", "scoring")
    kept: dict[str, Any] = {name: value for name, value in result.parameters.items() if name not in skip}
    return replace(result, parameters=kept)


def _unscored(model: Any, X: Any, y: Any) -> float:
    """Bags are judged record by record: the model as a whole needs no score, nor a solver that is made for one."""
    return 0.0


def _oob_errors(total: Floats, squares: Floats, seen: Floats) -> Floats:
    """Errors of means over bags."""
    freedom = np.maximum(seen - 1, 1)
    variance = supported(np.maximum(squares - total**2 / np.maximum(seen, 1), 0.0) / freedom, freedom)
    return np.where(seen >= 2, np.sqrt(variance / np.maximum(seen, 1)), math.inf)
