"""What a record is worth to a k-nearest-neighbour classifier: Shapley, Banzhaf and leave-one-out values, exactly.

With the training points sorted by distance from a validation point, each of these is one suffix sum over the
ranking (Mathematics §1, §2). References: Jia et al. 2019 (``fraction``), Wang & Jia 2023 (``soft``).

The two Shapley utilities differ by a constant for each class. From the recursions, with K = min(k, N), S matching
labels among N and C classes,

    φ_soft = φ_fraction + (H_K − 1)/(N − 1) · (b − S/N) − 1/(C N),

whose last two terms depend on a record through its label only. So both cost one pass, and a truncated ranking
serves both with the same bound.
"""

import math
from bisect import bisect_left
from typing import Unpack, get_args

import numpy as np

from datassay import _checks
from datassay._choices import KnnUtility, Metric
from datassay._errors import UsageError
from datassay._run import Run, documented
from datassay.data import Ids, Labels, Points
from datassay.neighbors import EUCLIDEAN, FullRanking, Given, NearestRanking, NeighbourGraph, Neighbours
from datassay.results import Floats, Parameter, Values
from datassay.value.game import Game, Weights, make_game

NEEDS_ALL = (
    "exact k-NN Shapley values need the full ranking of all records, which cannot be put together from blocks; "
    "knn_banzhaf, knn_loo, waka and tknn_shapley are exact. Or give a tolerance well below what a record is worth (all "
    "of them together: at most 1): values are then within it, from the nearest 1/tolerance records"
)


def harmonic(n: int) -> Floats:
    """H_0 … H_n."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])


def _truncation(n: int, k: int, tolerance: float | None) -> tuple[int, float | None]:
    """How many of n ranks to look at, and what values may then be off by; all and None without a tolerance.

    max(k, ⌈1/tolerance⌉) neighbours give ``fraction`` values to within the tolerance (Mathematics §1).
    """
    if tolerance is None:
        return n, None
    tolerance = _checks.number("tolerance", tolerance, above=0)
    limit = max(k, math.ceil(min(1.0 / tolerance, 2.0**62)))
    return (n, None) if limit >= n else (limit, 1.0 / limit)


def approximate(limit: int, error: float | None) -> tuple[str, ...]:
    """The note of a result that is off by at most ``error``; none if it is exact."""
    if error is None:
        return ()
    return (
        f"approximate, as asked: only the {limit} nearest neighbours were looked at; every value is within "
        f"{error:.3g} of the exact one",
    )


@documented()
def knn_shapley(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    k: int = 5,
    utility: KnnUtility = "soft",
    metric: Metric = EUCLIDEAN,
    weights: Weights = None,
    *,
    tolerance: float | None = None,
    n_classes: int | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """Exact Shapley value of every training record for a k-NN classifier.

    A record's value is its average contribution, over all coalitions of the other records, to how well the k
    nearest neighbours predict the validation labels. Sorting replaces the sum over coalitions: from the farthest
    rank inwards, φ_i = φ_{i+1} + (b_i − b_{i+1}) / max(k, i), b being 1 where labels match.

    Parameters
    ----------
    X, y
        Training features and labels: arrays, a data frame of numbers, or a :class:`Table` (then y may be left out). Or
        :class:`Records` from :func:`open_records` and no y: read in blocks, with X_val and a tolerance given. Or
        :class:`Neighbours` in the place of all data, metric and ids: several methods then share one search.
    X_val, y_val
        Validation features and labels. Left out, every record is valued by the others: each takes its turn as the
        validation point, with itself removed.
    k
        Number of neighbours; may exceed the number of records.
    utility
        ``"soft"``: the share of correct labels among the k nearest present (1/C when nobody is). ``"fraction"``: the
        same count divided by k always.
    metric
        ``"euclidean"``, ``"cosine"`` (minus the similarity), ``"manhattan"``, or ``"precomputed"``: then X is None and
        X_val is the matrix of distances (validation × training), or a :class:`NeighbourGraph` or sparse matrix.
    weights
        A weight for each validation point, or ``"balanced"`` (see :func:`balance_weights`).
    tolerance
        None for exact values. Otherwise values may be off by as much, and only the nearest 1/tolerance neighbours
        are looked at.
    n_classes
        Number of classes, if larger than the number of distinct labels.
    ids
        Ids of the training records; 0, 1, … or the frame's index or the table's ids if left out.

    Returns
    -------
    Values
        Values add up to v(D) − v(∅): what the classifier scores on the validation set, less what it scores by
        guessing (``soft``) or 0 (``fraction``).

    References
    ----------
    Jia et al., Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms, VLDB 2019. Wang & Jia, A Note on
    "Efficient …", 2023. Mathematics §1, with erratum 1.

    Examples
    --------
    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "a"]
    >>> da.knn_shapley(X, y, [[0.1]], ["a"], k=1, utility="fraction").values.round(4).tolist()
    [0.4167, 0.4167, -0.0833, 0.25]
    """
    k = _checks.integer("k", k, at_least=1)
    _checks.choice("utility", utility, get_args(KnnUtility))
    game = make_game(Given(X, y, X_val, y_val, metric, ids), weights, n_classes, **run)
    if game.streamed and tolerance is None:
        raise UsageError(NEEDS_ALL)
    n = game.n_players
    used = min(k, n) if utility == "soft" else k  # erratum 1
    limit, error = _truncation(n, used, tolerance)
    told: dict[str, Parameter] = {"k": k, "utility": utility, "tolerance": tolerance}
    total = shapley_total(game.keeping("knn_shapley", told), used, limit)
    if utility == "soft":
        per_match = (harmonic(used)[used] - 1.0) / (n - 1) if n > 1 else 0.0
        total += game.by_class(per_match, -per_match * game.class_sizes / n - 1.0 / (game.n_classes * n))
    return game.result(game.mean(total), "knn_shapley", told, approximate(limit, error), error)


def shapley_total(game: Game, k: int, limit: int | None = None) -> Floats:
    """Weighted sums over validation points of ``fraction`` Shapley values, from the ``limit`` nearest (or all)."""
    n = game.n_players
    limit = n if limit is None else limit
    step = 1.0 / np.maximum(k, np.arange(1, limit + 1))
    if limit < n:
        step[-1] = 0.0  # ranks from the limit on are taken to be worth nothing
    return game.total(FullRanking() if limit == n else NearestRanking(limit), "add_shapley", step)


@documented(knn_shapley)
def knn_loo(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    k: int = 5,
    utility: KnnUtility = "soft",
    metric: Metric = EUCLIDEAN,
    weights: Weights = None,
    *,
    n_classes: int | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """Leave-one-out value for a k-NN classifier: what the whole training set loses without the record.

    Only the k nearest matter, and when one goes, rank k+1 moves up: (b_i − b_{k+1}) / k.

    >>> import datassay as da
    >>> da.knn_loo([[0.0], [1.0], [2.0]], ["a", "a", "b"], [[0.1]], ["a"], k=2).values.tolist()
    [0.5, 0.5, 0.0]
    """
    k = _checks.integer("k", k, at_least=1)
    _checks.choice("utility", utility, get_args(KnnUtility))
    game = make_game(Given(X, y, X_val, y_val, metric, ids), weights, n_classes, **run)
    n = game.n_players
    told: dict[str, Parameter] = {"k": k, "utility": utility}
    if n > k:
        total = game.keeping("knn_loo", told).total(NearestRanking(k + 1), "add_leave_one_out")
    elif utility == "fraction":
        total = game.by_class(1.0 / k)
    elif n == 1:
        total = game.by_class(1.0, -1.0 / game.n_classes)
    else:  # everybody votes: S/N with the record, (S − b)/(N − 1) without
        total = game.by_class(1.0 / (n - 1), -game.class_sizes / (n * (n - 1)))
    return game.result(game.mean(total), "knn_loo", told)


def banzhaf_chances(k: int, n: int) -> Floats:
    """Chance that rank j is the k-th one chosen, C(j−2, k−1)/2^{j−1}, for j = 1 … n; cut where doubles become 0.

    Each player but the first is chosen by a fair coin; consecutive chances have the ratio (j−1)/(2(j−k)). They are
    scaled by powers of two on the way, so that a large k does not underflow at the start.
    """
    chances: list[float] = [0.0] * min(k, n)
    mantissa, exponent = 1.0, -k
    for j in range(k + 1, n + 1):
        chance = math.ldexp(mantissa, exponent)
        if chance == 0.0 and j > 2 * k:
            break
        chances.append(chance)
        mantissa, shift = math.frexp(mantissa * (j - 1) / (2.0 * (j - k)))
        exponent += shift
    return np.array(chances)


def chance_of_fewer(n: int, k: int) -> float:
    """P(Bin(n, ½) < k)."""
    from scipy.special import bdtr

    return 1.0 if k > n else float(bdtr(k - 1, n, 0.5))


@documented(knn_shapley)
def knn_banzhaf(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    weights: Weights = None,
    *,
    tolerance: float | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """Exact Banzhaf value of every training record for a k-NN classifier (``fraction`` utility).

    The average contribution to a coalition in which every other record is present by a fair coin:
    φ_i = (1/k) [b_i P(Bin(N−1, ½) < k) + Σ_{j>i} (b_i − b_j) C(j−2, k−1)/2^{j−1}] (Mathematics §2). The chances
    concentrate near rank 2k and vanish in double precision a thousand ranks on, so the exact value needs only those
    neighbours. ``tolerance`` looks at fewer still: the error is at most P(Bin(J−1, ½) < k)/k with J neighbours. Other
    parameters as in :func:`knn_shapley`.

    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "a", "b"]
    >>> da.knn_banzhaf(X, y, [[0.1]], ["a"], k=1).values.tolist()
    [0.5, 0.5, 0.0]
    """
    k = _checks.integer("k", k, at_least=1)
    game = make_game(Given(X, y, X_val, y_val, metric, ids), weights, **run)
    n = game.n_players
    chances = banzhaf_chances(k, n)
    error: float | None = None
    if tolerance is not None:
        limit = banzhaf_ranks(k, len(chances), _checks.number("tolerance", tolerance, above=0))
        if limit < len(chances):
            chances, error = chances[:limit], chance_of_fewer(limit - 1, k) / k
    told: dict[str, Parameter] = {"k": k, "utility": "fraction", "tolerance": tolerance}
    total = game.keeping("knn_banzhaf", told).total(NearestRanking(len(chances)), "add_banzhaf", chances, k)
    total += game.by_class(chance_of_fewer(n - 1, k) / k)
    return game.result(game.mean(total), "knn_banzhaf", told, approximate(len(chances), error), error)


def banzhaf_ranks(k: int, n: int, tolerance: float) -> int:
    """The smallest J ≤ n with P(Bin(J−1, ½) < k)/k ≤ tolerance (Mathematics §2), by bisection."""
    return 1 + bisect_left(range(1, n), True, key=lambda J: chance_of_fewer(J - 1, k) / k <= tolerance)


@documented(knn_shapley)
def self_shapley(
    X: Points | Neighbours,
    y: Labels | None = None,
    k: int = 5,
    utility: KnnUtility = "soft",
    metric: Metric = EUCLIDEAN,
    *,
    tolerance: float | None = None,
    n_classes: int | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """Shapley value of each record for predicting itself: high where nobody else could vouch for it.

    The record is its own validation point and its own nearest neighbour, whatever its duplicates:
    φ_1 = 1/k − Σ_{j>k} b_j / (j (j−1)) over the other ranks.

    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [9.0]], ["a", "a", "b"]
    >>> da.self_shapley(X, y, k=1, utility="fraction").values.tolist()
    [0.5, 0.5, 1.0]
    """
    k = _checks.integer("k", k, at_least=1)
    _checks.choice("utility", utility, get_args(KnnUtility))
    game = make_game(Given(X, y, metric=metric, ids=ids, among=True), n_classes=n_classes, **run)
    n = game.space.n_train
    used = min(k, n) if utility == "soft" else k
    limit, error = _truncation(n, used, tolerance)
    ranks = np.arange(2.0, max(limit, 2) + 1)
    drop = 1.0 / (ranks * (ranks - 1.0))
    view = FullRanking() if limit == n else NearestRanking(max(1, limit - 1))
    game.told["validation"] = "itself"
    told: dict[str, Parameter] = {"k": k, "utility": utility, "tolerance": tolerance}
    values = game.keeping("self_shapley", told).each(view, "write_self_shapley", used, drop)
    if utility == "soft":
        sizes = np.bincount(game.inputs.codes)[game.inputs.codes]
        per_match = (harmonic(used)[used] - 1.0) / (n - 1)
        values += per_match * (1.0 - sizes / n) - 1.0 / (game.n_classes * n)
    return game.result(values, "self_shapley", told, approximate(limit, error), error)
