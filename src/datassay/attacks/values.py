"""The value-score attack: submit a copy of a person's record, look at what it is worth, and know if they are in.

What it is worth less (or more) if a twin is there is learned from shadow data sets with and without the record (Wang et
al. 2023, algorithm 1, with the IN and OUT of its lines 5, 6 and 9 put right; Mathematics §7).
"""

from typing import Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import KnnUtility, Metric
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, Schedule, documented
from datassay._tensors import as_array
from datassay.attacks.result import Attack
from datassay.neighbors import (
    COSINE,
    EUCLIDEAN,
    AnySpace,
    Given,
    Labels,
    NearestDistances,
    NeighbourGraph,
    Neighbours,
    Points,
    WithinThreshold,
    collect,
    make_space,
    neighbours_of,
    one_by_one,
)
from datassay.privacy import add_noise, calibrate, check_delta, check_epsilon, worths
from datassay.privacy import sampling as samples
from datassay.results import Floats, Parameter
from datassay.value import harmonic, knn_shapley

Scored = Literal["knn_shapley", "tknn_shapley", "private_knn_shapley", "private_tknn_shapley"]


@documented(knn_shapley)
def value_score_attack(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    *,
    scores: Scored = "knn_shapley",
    k: int = 5,
    utility: KnnUtility = "soft",
    tau: float = -0.5,
    metric: Metric | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    sampling: float = 1.0,
    members: int = 200,
    shadow: int = 400,
    shadow_sets: int = 32,
    seed: int = 0,
    **run: Unpack[Blocks],
) -> Attack:
    """Membership inference from the value of a copy: are value scores safe to tell?

    From the population (X, y), ``members`` records are drawn to be the operator's data set, as many others to be
    non-members, and ``shadow`` more from which the attacker draws ``shadow_sets`` data sets of the operator's size. The
    attacker submits a copy of each target, sees its value φ, and compares the likelihoods of φ under two Gaussians:
    fitted to the copy's values in the shadow sets with the target (IN), and without it (OUT).

    Parameters
    ----------
    X, y
        The population: features and labels, or a table; or :class:`Neighbours` in the place of all data and metric.
    X_val, y_val
        The operator's (public) validation set; left out, the population's records that are not drawn, at most 200.
    scores
        Which values the operator tells: ``"knn_shapley"``, ``"tknn_shapley"``, ``"private_knn_shapley"`` or
        ``"private_tknn_shapley"``.
    k, utility
        Of k-NN values: number of neighbours, and ``"soft"`` or ``"fraction"`` (private ones are the latter).
    tau
        Of threshold values: the largest distance of a neighbour.
    metric
        ``"euclidean"``, ``"cosine"`` or ``"manhattan"``. Cosine for threshold neighbours and Euclidean otherwise, if
        left out.
    epsilon, delta, sampling
        Of private values: the promise (for records added or removed), and the chance of being sampled.
    members
        Records of the operator's data set, and as many that are not in it: the targets.
    shadow, shadow_sets
        Records that the attacker has, and the number of data sets drawn from them.
    seed
        Seed of the draws. Private noise has none.

    Returns
    -------
    Attack
        A score for each target, the higher the more it looks like a member.

    References
    ----------
    Wang et al., Threshold KNN-Shapley, 2023, appendix B.2.2, algorithm 1. Mathematics §7.

    Examples
    --------
    >>> import datassay as da
    >>> table = da.load_dataset("census")
    >>> attack = da.value_score_attack(table, members=100, shadow=200, k=1)
    >>> 0.5 < attack.auc < 1.0
    True
    """
    _checks.choice("scores", scores, get_args(Scored))
    k = _checks.integer("k", k, at_least=1)
    _checks.choice("utility", utility, get_args(KnnUtility))
    tau = _checks.number("tau", tau)
    members = _checks.integer("members", members, at_least=2)
    shadow_sets = _checks.integer("shadow_sets", shadow_sets, at_least=2)
    shadow = _checks.integer("shadow", shadow, at_least=members)
    seed = _checks.integer("seed", seed, at_least=0)
    private = scores.startswith("private")
    threshold = scores.endswith("tknn_shapley")
    given = neighbours_of(Given(X, y, X_val, y_val, metric or (COSINE if threshold else EUCLIDEAN)))
    metric, inputs = given.metric, given.inputs
    n = len(inputs.labels)
    drawn = 2 * members + shadow
    if n < drawn + (inputs.points_val is None):
        raise InputError(
            f"the game needs {drawn:,} records ({members} members, as many non-members, {shadow} shadow records)"
            f"{' and some to validate with' if inputs.points_val is None else ''}, and there are {n:,}"
        )
    if metric == "precomputed":
        raise UsageError("the value-score attack needs features, not distances: members are left out of the data")
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    chosen, points = order[:drawn], as_array(inputs.points)
    points_val, codes_val = as_array(inputs.points_val), inputs.codes_val
    if inputs.points_val is None:
        rest = order[drawn : drawn + 200]
        points_val, codes_val = points[rest], inputs.codes[rest]
    space = make_space(points[chosen], points_val, metric)
    if isinstance(space, NeighbourGraph):
        raise UsageError("the value-score attack needs features, not a neighbour graph")
    # Data set 0 is the operator's; the others are the attacker's.
    sets = np.zeros((1 + shadow_sets, drawn), np.uint8)
    sets[0, :members] = 1
    for row in sets[1:]:
        row[2 * members + rng.choice(shadow, members, replace=False)] = 1
    schedule = Schedule.of(run)
    codes, n_classes = inputs.codes[chosen], inputs.n_classes
    settings: dict[str, Parameter] = {"scores": scores, "metric": metric}
    if private:
        settings |= {"epsilon": check_epsilon(epsilon), "delta": check_delta(delta)}
    if threshold:
        settings |= {"tau": tau}
        chance = _checks.number("sampling", sampling, above=0, at_most=1) if private else 1.0
        (near,) = collect(space, WithinThreshold(tau), lambda block: (block.inside.copy(),), schedule)
        match = codes == codes_val[:, None]
        counts, coins = _counts(sets, near, match, chance)
        if private:
            settings |= {"sampling": chance}
            noise = calibrate("discrete gaussian", epsilon, delta, count=len(codes_val), sampling=chance)
            counts = np.asarray(add_noise(counts, noise.noise, noise.scale))
        targets = slice(2 * members)
        alone, twin = _threshold_values(counts, coins, near[:, targets], match[:, targets], n_classes)
    else:
        settings |= {"k": k, "utility": utility}
        fraction = private or utility == "fraction"
        classes = None if fraction else n_classes
        alone, twin = _knn_values(space, codes, codes_val, sets, 2 * members, k, classes, schedule)
        if private:
            if sampling != 1:
                raise UsageError("sampling applies to threshold values here; leave it out for private_knn_shapley")
            noise = calibrate("gaussian", epsilon, delta, sensitivity=1 / (k * (k + 1)))
            alone, twin = (np.asarray(add_noise(v, noise.noise, noise.scale), np.float64) for v in (alone, twin))
    return Attack(
        values=_log_ratio(alone[0], twin[1:], alone[1:]),
        ids=inputs.ids[chosen[: 2 * members]],
        members=np.arange(2 * members) < members,
        method=f"value-score attack on {scores}",
        parameters=settings
        | {"members": members, "shadow": shadow, "shadow_sets": shadow_sets, "n_validation": len(codes_val)},
        seed=seed,
        notes=inputs.notes,
    )


def _log_ratio(seen: Floats, inside: Floats, outside: Floats) -> Floats:
    """Log N(φ; IN) − log N(φ; OUT), with the means and deviations of the shadow values of each target."""
    floor = 1e-9 * max(float(np.abs(inside).max()), float(np.abs(outside).max()), 1e-300)

    def log_density(shadow: Floats) -> Floats:
        deviation = np.maximum(shadow.std(axis=0), floor)
        return np.asarray(-np.log(deviation) - 0.5 * ((seen - shadow.mean(axis=0)) / deviation) ** 2)

    return log_density(inside) - log_density(outside)


def _counts(
    sets: NDArray[np.uint8], near: NDArray[np.uint8], match: NDArray[np.bool_], chance: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(Matching, other) neighbours of every validation point in a sample of every set; 1 where one more would be in."""
    coins = np.ones((len(sets), len(near)), np.int64)
    counts = np.empty((len(sets), len(near), 2), np.int64)
    for s, members in enumerate(sets.astype(bool)):
        seen = near[:, members] != 0
        if chance < 1:
            key, n = samples.new_key(), seen.shape[1]
            for t in range(len(seen)):
                sampled = np.zeros(n + 1, bool)
                sampled[samples.members(key, (t,), n + 1, chance)] = True
                seen[t] &= sampled[:n]
                coins[s, t] = sampled[n]
        counts[s, :, 0] = (seen & match[:, members]).sum(axis=1)
        counts[s, :, 1] = (seen & ~match[:, members]).sum(axis=1)
    return counts, coins


def _threshold_values(
    counts: NDArray[np.int64],
    coins: NDArray[np.int64],
    near: NDArray[np.uint8],
    match: NDArray[np.bool_],
    n_classes: int,
) -> tuple[Floats, Floats]:
    """Values of copies that join each set: as it is, and after the record itself joined."""
    weights = np.ones(len(near))
    hit, miss = (near & match).astype(np.float64), (near & ~match).astype(np.float64)
    alone, twin = np.empty((2, len(counts), near.shape[1]))
    for s, released in enumerate(counts):
        joining = worths(released, weights, n_classes)[0]
        alone[s] = joining[:, 1] @ hit + joining[:, 0] @ miss
        with_match = worths(released + np.stack([coins[s], 0 * coins[s]], axis=1), weights, n_classes)[0]
        with_other = worths(released + np.stack([0 * coins[s], coins[s]], axis=1), weights, n_classes)[0]
        twin[s] = with_match[:, 1] @ hit + with_other[:, 0] @ miss
    return alone / len(near), twin / len(near)


def _knn_values(
    space: AnySpace,
    codes: NDArray[np.generic],
    codes_val: NDArray[np.generic],
    sets: NDArray[np.uint8],
    targets: int,
    k: int,
    n_classes: int | None,
    run: Schedule,
) -> tuple[Floats, Floats]:
    """k-NN Shapley values of copies that join each set, ``soft`` if the number of classes is given."""
    from datassay.attacks import kernels

    size = int(sets[0].sum())  # the same for all
    used, shift = (k, k), np.zeros(4)
    if n_classes is not None:
        used = min(k, size + 1), min(k, size + 2)
        for at, (n, k_used) in enumerate(zip((size + 1, size + 2), used, strict=True)):
            shift[2 * at] = (harmonic(k_used)[k_used] - 1.0) / (n - 1)
            shift[2 * at + 1] = -1.0 / (n_classes * n)
    wanted = np.arange(targets)
    alone, twin = np.zeros((2, len(sets), targets))

    # Validation points are added up in order; a game is small.
    for block in one_by_one(space, NearestDistances(len(codes)), run):
        for at, row in enumerate(range(block.rows.start, block.rows.stop)):
            kernels.add_joining_shapley(
                block.order[at], block.distances[at], codes, codes_val[row], sets, wanted, *used, shift, alone, twin
            )
    return alone / len(codes_val), twin / len(codes_val)
