"""Data Shapley of a model that is fitted again and again: against pyDVL, with the same orders cut short alike."""

import math
import time
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import datassay as da
from bench_values import gaussian
from common import Report, ask_peer
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import Task, make_model_game
from datassay.value.models.orders import orders_of
from datassay.value.models.workers import evaluate

JOBS = 2
RTOL = 0.01


def truncation_of(full: float) -> float:
    """What pyDVL calls close: np.allclose with this relative tolerance."""
    return RTOL * abs(full) + 1e-8


def coalitions_for(model: Any, data: tuple[np.ndarray, ...], orders: np.ndarray, fast: bool) -> tuple[int, int, float]:
    """Coalitions along these orders, the limit that ends after exactly these, and where they are cut; starts workers.

    Orders are cut short where the score says so, and data_shapley counts coalitions, not orders.
    """
    game = make_model_game(model, *data, {"empty": 0.0, "fast": fast})
    nobody, truncation = np.zeros(orders.shape[1], np.bool_), truncation_of(game.full)
    tasks = (Task("chain", nobody, order, truncation) for order in orders)
    ends = np.cumsum([len(answer.utilities) for answer in evaluate(game, tasks, n_jobs=JOBS)])
    draws = np.arange(1, len(orders) + 1)
    with_one_more = ends * (draws + 1) / draws
    limit = math.ceil(with_one_more[-1]) - 1
    assert (with_one_more[1:-1] <= limit).all(), "no limit ends after exactly these orders"
    return int(ends[-1]), limit, truncation


def ours(model: Any, data: tuple[np.ndarray, ...], orders: np.ndarray, fast: bool) -> tuple[float, Estimate]:
    """Seconds and values from exactly these orders, the workers started before."""
    coalitions, limit, truncation = coalitions_for(model, data, orders, fast)
    start = time.perf_counter()
    values = da.data_shapley(
        model, *data, sampling="plain", truncation=truncation, max_coalitions=limit, empty=0.0, fast=fast, n_jobs=JOBS
    )
    seconds = time.perf_counter() - start
    assert values.coalitions == coalitions
    return seconds, values


def agree(values: Estimate, theirs: np.ndarray) -> tuple[float, float]:
    """The largest difference in standard errors of ours, and the correlation; an error where they are too far apart."""
    assert values.errors is not None
    apart = float((np.abs(values.values - theirs) / values.errors).max())
    alike = float(np.corrcoef(values.values, theirs)[0, 1])
    if apart > 3 or alike < 0.99:
        raise AssertionError(f"values differ: by up to {apart:.2g} standard errors, correlation {alike:.4f}")
    return apart, alike


def race(
    name: str, model: Any, data: tuple[np.ndarray, ...], orders: np.ndarray, fasts: tuple[bool, ...]
) -> tuple[tuple[float, np.ndarray], list[tuple[float, Estimate]]]:
    """Seconds and values of pyDVL, and ours for each way to fit: in turns, the best of two for everyone."""
    given = dict(zip(("X", "y", "X_val", "y_val"), data, strict=True)) | {"orders": orders}
    rounds = [
        (
            ask_peer(name, given, rtol=RTOL, n_jobs=JOBS),
            *(ours(model, data, orders, fast) for fast in fasts),
        )
        for _ in range(2)
    ]
    theirs, *found = (min(tries, key=itemgetter(0)) for tries in zip(*rounds, strict=True))
    return theirs, found


def run(report: Report) -> None:
    """All measurements of this suite, printed as they come."""
    n, draws = 200, 30
    data = gaussian(n, 200, 10)
    orders = np.array([orders_of(n, "plain", 0, draw)[0] for draw in range(draws)])

    logistic = LogisticRegression()
    (theirs, their_values), found = race("pydvl_shapley_logistic", logistic, data, orders, (True, False))
    report(
        "pydvl_logistic_seconds",
        f"data_shapley, logistic regression, {n} × 10, {draws} orders: pyDVL 0.10, 2 jobs",
        theirs,
        "s",
    )
    report("pydvl_logistic_fit", "  pyDVL, wall time per fit", 1000 * theirs / found[-1][1].fits, "ms")
    solvers = (("our", "our", 3), ("sklearn", "scikit-learn's", None))
    for (key, solver, target), (seconds, values) in zip(solvers, found, strict=True):
        apart, alike = agree(values, their_values)
        report(f"logistic_{key}_seconds", f"  datassay, {solver} solver", seconds, "s")
        report(f"logistic_{key}_fit", "    wall time per fit", 1000 * seconds / values.fits, "ms")
        report(f"logistic_{key}_ratio", "    pyDVL / datassay", theirs / seconds, "×", target)
        report(f"logistic_{key}_apart", "    largest difference in value, in standard errors", apart, "σ", 3, False)
        report(f"logistic_{key}_correlation", "    correlation of the values", alike, "", 0.99)

    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    (theirs, their_values), [(seconds, values)] = race("pydvl_shapley_tree", tree, data, orders, (False,))
    np.testing.assert_allclose(values.values, their_values, atol=1e-9)
    report(
        "pydvl_tree_seconds", f"data_shapley, decision tree, {n} × 10, {draws} orders: pyDVL 0.10, 2 jobs", theirs, "s"
    )
    report("pydvl_tree_fit", "  pyDVL, wall time per fit", 1000 * theirs / values.fits, "ms")
    report("tree_seconds", "  datassay, same values", seconds, "s")
    report("tree_fit", "    wall time per fit", 1000 * seconds / values.fits, "ms")
    report("tree_ratio", "    pyDVL / datassay", theirs / seconds, "×")
