"""Values from orders in which the records join one after the other: Data Shapley and Beta Shapley.

A semivalue is the mean, over coalitions of the others drawn by size, of what a record adds to the model's score. Each
coalition takes a model fit, so orders are sampled (Castro et al. 2009; Ghorbani & Zou 2019), and every value comes with
an interval. Games small enough for it are enumerated, and exact.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from typing import Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import DEFAULT_COALITIONS, Sampling
from datassay._errors import UsageError
from datassay._run import documented
from datassay._work import chunks
from datassay.data import Labels, Points
from datassay.results import Floats, Parameter
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import Estimator, ModelGame, Task, make_model_game
from datassay.value.models.enumeration import enumerated, is_small
from datassay.value.models.options import Intervals, Sampled, Utility
from datassay.value.models.tally import Moments, Tally

STRATA = 4


@documented(Utility, Intervals)
def data_shapley(
    model: Estimator,
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    *,
    sampling: Sampling = "auto",
    truncation: float | None = None,
    **options: Unpack[Sampled],
) -> Estimate:
    """Data Shapley: the mean, over orders in which the records join, of what a record adds to the model's score.

    φ_i = (1/n) Σ_k mean over coalitions C of k others of [v(C∪i) − v(C)], where v(C) is the score on the validation
    set of the model fitted to C. Values add up to v(everybody) − v(∅). ^C ends the run and returns the values so far.

    Parameters
    ----------
    model
        Any scikit-learn classifier or regressor, or pipeline of such. Random states left open are fixed by ``seed``.
    X, y
        Training features and labels: arrays, a data frame of numbers, or a :class:`Table`; for a regressor y holds
        numbers.
    X_val, y_val
        Records that the model is scored on, no part of the training data.
    sampling
        ``"plain"`` orders, ``"antithetic"`` ones (each order and its reverse), ``"stratified"`` ones (an order and
        rotations of it, so that a player comes at every stage of it), or ``"exact"``: all coalitions. ``"auto"`` is
        exact where that takes no more than ``max_coalitions``, else antithetic.
    truncation
        Follow an order only until the score is within this of everybody's, and take the rest to add nothing. Saves
        fits, and biases values in a way that the intervals do not show.

    References
    ----------
    Ghorbani & Zou, Data Shapley: Equitable Valuation of Data for Machine Learning, 2019. Mitchell et al., Sampling
    Permutations for Shapley Value Estimation, 2022 (antithetic orders).

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(200, seed=1).split(0.5)
    >>> values = da.data_shapley(LogisticRegression(), train, X_val=validation, max_coalitions=2000, n_jobs=1)
    >>> total = values.parameters["full"] - values.parameters["empty"]
    >>> bool(abs(values.values.sum() - total) < 1e-9)  # every order shares out the whole
    True
    """
    game = make_model_game(model, X, y, X_val, y_val, options, DEFAULT_COALITIONS)
    n = game.n_players
    return _by_orders(game, "data_shapley", sampling, truncation, np.full(n, 1 / n), {})


@documented(data_shapley)
def beta_shapley(
    model: Estimator,
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    *,
    alpha: float = 16.0,
    beta: float = 1.0,
    sampling: Sampling = "auto",
    truncation: float | None = None,
    **options: Unpack[Sampled],
) -> Estimate:
    """Beta(α, β) Shapley: Data Shapley with sizes of coalitions weighed by a beta-binomial distribution.

    The size of the coalition that a record joins has the distribution of a binomial number whose chance is Beta(β, α):
    with α > β small coalitions count more, where one record shows more. Values do not add up to the score.

    Parameters
    ----------
    alpha, beta
        Of the distribution; Beta(1, 1) is the Shapley value.

    References
    ----------
    Kwon & Zou, Beta Shapley: a Unified and Noise-reduced Data Valuation Framework for Machine Learning, 2022.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(200, seed=1).split(0.5)
    >>> values = da.beta_shapley(LogisticRegression(), train, X_val=validation, max_coalitions=500, n_jobs=1)
    >>> values.parameters["alpha"], values.parameters["beta"]
    (16.0, 1.0)
    """
    from scipy.stats import betabinom

    alpha, beta = _checks.number("alpha", alpha, above=0), _checks.number("beta", beta, above=0)
    game = make_model_game(model, X, y, X_val, y_val, options, DEFAULT_COALITIONS)
    n = game.n_players
    chance = betabinom.pmf(np.arange(n), n - 1, beta, alpha)
    parameters: dict[str, Parameter] = {"alpha": alpha, "beta": beta}
    return _by_orders(game, "beta_shapley", sampling, truncation, chance, parameters)


def _by_orders(
    game: ModelGame,
    method: str,
    sampling: Sampling,
    truncation: float | None,
    chance: Floats,
    parameters: dict[str, Parameter],
) -> Estimate:
    """Estimate from orders, or enumerate; ``chance`` is that of each size of the coalition that a player joins."""
    _checks.choice("sampling", sampling, get_args(Sampling))
    if truncation is not None:
        truncation = _checks.number("truncation", truncation, at_least=0)
    n, rules = game.n_players, game.rules
    if sampling == "exact" or (sampling == "auto" and is_small(game) and truncation is None):
        return enumerated(game, method, chance, parameters)
    # The last places of an order count for nothing where their weight is next to nothing.
    weights = n * chance  # in an order every size is as likely
    length = n - int(np.argmax(np.cumsum(weights[::-1]) > 1e-12 * n))
    limit = rules.max_coalitions
    if limit is not None and rules.by_default:
        limit = max(limit, 2 * length)
    if sampling == "auto":
        sampling = "plain" if limit is not None and truncation is None and limit < 4 * length else "antithetic"
    every = {"plain": 1, "antithetic": 2, "stratified": min(STRATA, n)}[sampling]
    if limit is not None and truncation is None and limit < 2 * every * length:
        raise UsageError(
            f"max_coalitions={limit:,} is not enough for two draws of {every} {sampling} orders of {n:,} players, "
            f"{2 * every * length:,} coalitions; allow more, value owners (groups), or cut orders short (truncation)"
        )
    parameters = parameters | {"sampling": sampling, "truncation": truncation, "max_coalitions": limit}
    run = Tally(replace(game, rules=replace(rules, max_coalitions=limit)), method)
    known = limit if truncation is None else None
    draws = count() if limit is None or truncation is not None else range(max(2, limit // (every * length)))

    # An order is one task if it may be cut short; else a few, so that not much is lost of what is cut off.
    cuts = chunks(length, length if truncation is not None else game.at_once)

    def tasks() -> Iterator[Task]:
        for draw in draws:
            for order in orders_of(n, sampling, rules.seed, draw):
                for cut in cuts:
                    before = np.zeros(n, np.bool_)
                    before[order[: cut.start]] = True
                    part = order[cut.start : cut.stop]
                    yield Task("chain", before, part, -1.0 if truncation is None else truncation)

    moments = Moments(n)
    with run.answering(tasks(), known) as stream:
        for draw in count():
            orders = orders_of(n, sampling, rules.seed, draw)
            answers = list(islice(stream, every * len(cuts)))
            if len(answers) < every * len(cuts):
                break
            total = np.zeros(n)
            for at, order in enumerate(orders):
                parts = [answer.utilities for answer in answers[at * len(cuts) : (at + 1) * len(cuts)]]
                steps = np.diff(game.filled(np.concatenate(parts)), prepend=game.empty)
                total[order[: len(steps)]] += weights[: len(steps)] * steps
            moments.add(total / every)
            half = moments.half_width(rules.confidence)
            run.observe(moments.mean, half)
            if run.stop_if_narrow(moments.draws, half) or run.stop_if_spent(moments.draws):
                break
    if moments.draws == 0:
        run.give_up(f"the {every * length:,} of one draw of {every} orders")
    run.stopped = run.stopped or "coalitions"
    notes = []
    if truncation is not None:
        notes.append(
            f"orders were cut short within {truncation:g} of everybody's score, and the rest taken to add nothing: a "
            "bias that the intervals do not show"
        )
    if moments.draws == 1:
        notes.append("there was one draw only, which says nothing of its error: no intervals")
        return run.result(moments.mean, method, parameters, notes=notes)
    half = moments.half_width(rules.confidence)
    return run.result(moments.mean, method, parameters, moments.errors(), half, notes)


def orders_of(n: int, sampling: str, seed: int, draw: int) -> list[NDArray[np.int64]]:
    """The orders of one draw; draws are independent of each other and known by their number."""
    rng = np.random.default_rng([seed, draw])
    order = rng.permutation(n)
    if sampling == "antithetic":
        return [order, order[::-1].copy()]
    if sampling == "stratified":
        strata = min(STRATA, n)
        return [np.roll(order, round(at * n / strata)) for at in range(strata)]
    return [order]
