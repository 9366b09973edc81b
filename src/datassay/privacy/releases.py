"""Private values: tell every owner what their record is worth without telling about other records.

By Mathematics §3, finding 1, the value of a record needs only two numbers a validation point: how many neighbours have
the validation label, and how many have another. One record moves one of the two by one. They are released once, with
discrete Gaussian noise; every owner's value follows from them and the owner's own record, so that colluding owners
learn nothing beyond the released numbers (joint differential privacy).

The validation set is public and alone decides how columns are scaled and encoded, which classes there are, and the
threshold: a training record is counted, and has no other effect.
"""

import json
import math
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric, Relation, ReleaseKind
from datassay._errors import InputError, UsageError
from datassay._renamed import renamed
from datassay._run import Blocks, Schedule, documented
from datassay._tensors import as_array
from datassay.data import Ids, Labels, Points
from datassay.neighbors import (
    COSINE,
    EUCLIDEAN,
    FullRanking,
    Given,
    Neighbours,
    Ranked,
    Within,
    WithinThreshold,
    collect,
    make_space,
)
from datassay.privacy import sampling as samples
from datassay.privacy.accounting import Cost, total_epsilon
from datassay.privacy.ledger import Ledger
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.promise import PlannedRelease, Promise
from datassay.privacy.public import check_public, shared_records
from datassay.privacy.statistics import COUNTED, COUNTS, NoisyCounts, worths
from datassay.privacy.values import PrivateValues
from datassay.results import Floats
from datassay.value import Game, Weights, knn_shapley, make_game, shapley_total, tknn_shapley

Ints = NDArray[np.int64]


def _set_up(given: Given, promise: Promise, *, needs_classes: bool = True, **how: Any) -> tuple[Game, int, list[str]]:
    """The game of the data given (``how``: as ``make_game`` takes it), the public number of classes, and notes."""
    if not given.has_validation:
        raise UsageError("X_val must be given: a public validation set that is no part of the training data")
    if given.metric_used == "precomputed":
        raise UsageError("private values need features, so that they depend on each training record by itself")
    game = make_game(given, in_memory=True, **how)
    inputs = game.inputs
    notes = list(inputs.notes)
    shared = game.near.once("shared records", lambda: shared_records(inputs, features_alone=False))
    only_private = check_public(inputs, notes, shared)
    n_classes = how.get("n_classes")
    if needs_classes and n_classes is None and len(only_private):
        raise InputError(
            f"training has labels that the public validation set lacks ({_checks.listed(only_private)}); the number of "
            "classes must be public too: give it (n_classes, --classes)"
        )
    n = game.space.n_train
    if promise.delta >= 1 / n:
        notes.append(
            f"delta={promise.delta:g} is not below 1/N = {1 / n:.3g}: it allows some record to be told outright"
        )
    return game, game.n_classes if n_classes is not None else inputs.n_classes - len(only_private), notes


@renamed(neighbours="relation")
@documented(tknn_shapley)
def private_tknn_shapley(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    tau: float = -0.5,
    metric: Metric = COSINE,
    weights: Weights = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    relation: Relation = "add-remove",
    sampling: float = 1.0,
    release: ReleaseKind = "histogram",
    geometry: bool = False,
    ledger: Ledger | None = None,
    n_classes: int | None = None,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> PrivateValues:
    """Differentially private threshold-neighbour Shapley values, one for each owner.

    Released are, for each validation point, the numbers of matching and of other neighbours, with discrete Gaussian
    noise; one record moves one of the two by one. Every value follows from them and the owner's own record
    (Mathematics §5), so the guarantee holds against any number of owners who put their values together, and the noisy
    counts may be published.

    Parameters
    ----------
    X, y
        Private features and labels: arrays, a data frame of numbers, or a :class:`Table` (then y may be left out); or
        :class:`Neighbours` in the place of all data, metric and ids. Tables are encoded by the validation table alone;
        features given as numbers must not have been scaled by private statistics.
    X_val, y_val
        Validation features and labels. They are public, and must be no part of the training data.
    tau
        Distance within which a record is a neighbour; public, and not to be chosen by the private data.
    metric
        ``"euclidean"``, ``"cosine"`` (minus the similarity) or ``"manhattan"``.
    epsilon, delta
        What is promised: (ε, δ)-differential privacy.
    relation
        What one record may do: be added or removed (``add-remove``), or be replaced (``replace``). Its earlier name,
        ``neighbours=``, is taken as well.
    sampling
        Chance with which a record takes part in each validation point's counts (fresh Poisson samples): less noise
        for the same promise, at the price of counting fewer.
    release
        ``"histogram"``, or ``"paper"``: the three counts of the TKNN paper, which need √3 times the noise.
    geometry
        Use that one record can be near only so many of the (public) validation points; needs less noise where they
        are spread out.
    ledger
        Asked before any noise is drawn. A release made before is served again from it, at no cost.
    n_classes
        Number of classes; those of the validation set if left out.

    References
    ----------
    Wang et al., Threshold KNN-Shapley: A Linear-Time and Privacy-Friendly Approach to Data Valuation, 2023.
    Mathematics §5.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(500, 2)), rng.normal(size=(20, 2))
    >>> y, y_val = X[:, 0] > 0, X_val[:, 0] > 0
    >>> private = da.private_tknn_shapley(X, y, X_val, y_val, epsilon=1.0, delta=1e-4)
    >>> private.guarantee.epsilon <= 1.0, private.guarantee.audience
    (True, 'owner')
    >>> newcomer = private.value_record([1.0, 0.5], True)  # costs nothing
    """
    tau = _checks.number("tau", tau)
    given = Given(X, y, X_val, y_val, metric, ids, fitted_on="validation")
    by = given.metric_used
    if by == "cosine" and not -1 <= tau <= 1:
        raise UsageError(f"tau={tau:g} is no cosine distance: minus a similarity lies between -1 and 1")
    if by in ("euclidean", "manhattan") and tau < 0:
        raise UsageError(f"tau={tau:g} is below 0, and no distance is")
    _checks.choice("release", release, tuple(COUNTS))
    _checks.boolean("geometry", geometry)
    promise = Promise(epsilon, delta, relation, sampling, ledger)
    game, classes, notes = _set_up(given, promise, weights=weights, n_classes=n_classes, **run)
    if release == "paper" and (relation != "add-remove" or geometry):
        raise UsageError(
            'release="paper" counts all records at every validation point and is published for add-remove; use the '
            "histogram for replaced records and for geometry"
        )
    inputs, m = game.inputs, game.space.n_validation
    points = as_array(inputs.points_val)
    reached = _near_validation_points(points, tau, by, game.run) if geometry else m
    if geometry and reached == m:
        notes.append("geometry changes nothing here: a record can be near all validation points")
    cost = _threshold_cost(release, promise, max(1, reached))
    what = f"{COUNTED[release]} of {m} validation points, {cost.noise} noise of scale {cost.scale:.4g} on each count"
    if reached < m:
        what += f"; a record can be near at most {reached} of the points"
    settings = {
        "tau": tau, "metric": by, **promise.settings, "release": release, "geometry": geometry, "sigma": cost.scale,
        "n_validation": m, "n_classes": classes,
    }  # fmt: skip
    planned = PlannedRelease("private_tknn_shapley", settings, what, cost, "owner")
    paid = planned.pay(ledger, inputs, [points, inputs.labels_val, game.weights], notes)
    columns = len(COUNTS[release])
    if paid.earlier is None:
        key = samples.new_key()
        noise = np.rint(add_noise(np.zeros((m, columns), np.int64), cost.noise, cost.scale)).astype(np.int64)
        counts = np.zeros((m, columns), np.int64)
    else:
        assert paid.earlier.result is not None
        counts = np.array(json.loads(paid.earlier.result), np.int64)
        key, noise = bytes.fromhex(paid.earlier.secret or ""), None
    values = _evaluate(game, classes, tau, promise.sampling, key, noise, counts)
    paid.complete(counts.tolist(), secret=key.hex() if promise.sampling < 1 else None)
    typical = max(0.0, float(np.median(counts.sum(axis=1) if release == "histogram" else counts[:, 1])))
    if cost.scale > typical / 2:
        notes.append(
            f"the noise (deviation {cost.scale:.3g}) is large against the neighbours of a validation point (about "
            f"{typical:.3g}): expect rough values. Fewer validation points, sampling, geometry or a larger ε help"
        )
    statistics = NoisyCounts(
        counts, points, inputs.labels_val, game.weights, tau, by, classes, COUNTS[release], inputs.encoder
    )
    return planned.result(inputs, values, promise.kept(planned), notes, statistics)


def _threshold_cost(release: ReleaseKind, promise: Promise, points: int) -> Cost:
    """Noise that keeps the promise when one record can be near ``points`` validation points.

    Added or removed, a record moves one of the two counts of each by one (all three of the paper's: a distance of √3).
    Replaced, it may leave one count and enter the other; in a sample, the accountant then knows Gaussian noise only,
    which is rounded at no cost.
    """
    if release == "paper":
        return promise.least("gaussian", math.sqrt(3), points)
    if promise.relation == "replace" and promise.sampling < 1:
        return promise.least("gaussian", 1.0, points)
    return promise.least("discrete gaussian", 1.0, points * (2 if promise.relation == "replace" else 1))


def _near_validation_points(points: NDArray[np.floating[Any]], tau: float, metric: str, run: Schedule) -> int:
    """The most validation points that one record can be near, wherever it is: max_t #{t' : d(t, t') ≤ 2τ}.

    A little is added to both distances for what rounding may do to them.
    """
    slack = 8 * (points.shape[1] + 8) * float(np.finfo(points.dtype).eps)
    if metric == "cosine":  # the angle is a metric; twice the angle, back to minus a cosine
        angle = 2 * math.acos(min(1.0, max(-1.0, -(tau + slack))))
        reach = 1.0 if angle >= math.pi else min(1.0, slack - math.cos(angle))
    else:  # squares of very small differences vanish
        reach = 2 * tau * (1 + slack) + 4 * math.sqrt(float(np.finfo(points.dtype).tiny))

    def compute(block: Within) -> tuple[NDArray[Any]]:
        return (block.inside.sum(axis=1),)

    here = replace(run, progress=None, here=True)
    (seen,) = collect(make_space(points, points, metric), WithinThreshold(float(reach)), compute, here)
    return int(seen.max())


def _evaluate(
    game: Game, n_classes: int, tau: float, sampling: float, key: bytes, noise: Ints | None, released: Ints
) -> Floats:
    """One pass: fill ``released`` (without noise it holds an earlier release already), and value every record."""
    n, codes = game.space.n_train, game.inputs.codes

    def add(block: Within, total: Floats) -> None:
        from datassay.privacy import kernels

        rows, targets = block.rows, game.inputs.codes_val[block.rows]
        counts = np.empty((len(block.inside), 3), np.int64)
        if noise is not None and sampling == 1:
            kernels.count_neighbours(block.inside, codes, targets, counts)
        for at in range(len(counts) if sampling < 1 else 0):  # one point's sample at a time
            row = slice(at, at + 1)
            members = samples.members(key, (rows.start + at,), n, sampling)
            if noise is not None:
                kernels.count_members(block.inside[row], codes, targets[row], members, counts[row])
                released[rows.start + at] = _released(counts[row], released.shape[1])[0] + noise[rows.start + at]
            joining, counted = worths(released[rows][row], game.weights[rows][row], n_classes)
            kernels.add_members(block.inside[row], codes, targets[row], members, counted - joining, total)
        if noise is not None and sampling == 1:
            released[rows] = _released(counts, released.shape[1]) + noise[rows]
        joining, counted = worths(released[rows], game.weights[rows], n_classes)
        kernels.add_worths(block.inside, codes, targets, counted if sampling == 1 else joining, total)

    # Noise and the coins of samples are secret, and stay in this process.
    return game.mean(game.near.accumulate(WithinThreshold(tau), add, replace(game.run, here=True)))


def _released(counts: Ints, columns: int) -> Ints:
    """What is released of (records, neighbours, matching): all three, or matching and others."""
    return counts if columns == 3 else np.stack([counts[:, 2], counts[:, 1] - counts[:, 2]], axis=1)


@renamed(neighbours="relation")
@documented(private_tknn_shapley, knn_shapley)
def private_knn_shapley(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    weights: Weights = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    relation: Relation = "add-remove",
    sampling: float = 1.0,
    ledger: Ledger | None = None,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> PrivateValues:
    """Differentially private k-NN Shapley values: the baseline that :func:`private_tknn_shapley` improves on.

    A ``fraction`` value moves by at most 1/(k(k+1)) when another record comes, goes or is replaced (Mathematics §5).
    Every value gets Gaussian noise of its own, so the guarantee is for an owner who sees one value: owners who share
    theirs weaken it, and the result says by how much. Values are of the order 1/N, the noise is not: expect little.

    Parameters
    ----------
    sampling
        Chance with which the others take part: below 1 every value is computed among a fresh Poisson sample of them for
        each validation point, which needs less noise and takes time in proportion to N².

    References
    ----------
    Wang et al., Threshold KNN-Shapley, 2023, appendix B.4. Mathematics §5.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(50, 2)), rng.normal(size=(20, 2))
    >>> y, y_val = X[:, 0] > 0, X_val[:, 0] > 0
    >>> da.private_knn_shapley(X, y, X_val, y_val, delta=1e-3).guarantee.audience
    'owner, no collusion'
    """
    k = _checks.integer("k", k, at_least=1)
    promise = Promise(epsilon, delta, relation, sampling, ledger)
    given = Given(X, y, X_val, y_val, metric, ids, fitted_on="validation")
    game, _, notes = _set_up(given, promise, needs_classes=False, weights=weights, **run)
    inputs, m, sampled = game.inputs, game.space.n_validation, promise.sampling < 1
    # Without samples, noise on the mean (which moves by no more than each value) is the composition over validation
    # points; with them, each point's sample is fresh, and what is released is the mean of m noisy values.
    cost = promise.least("gaussian", 1 / (k * (k + 1)), m if sampled else 1)
    share = float(np.sqrt((game.weights**2).sum()) / game.weights.sum()) if sampled else 1.0
    scale = cost.scale * share
    settings = {
        "k": k, "utility": "fraction", "metric": game.near.metric, **promise.settings, "sigma": scale,
        "n_validation": m,
    }  # fmt: skip
    what = f"one k-NN Shapley value an owner, Gaussian noise of deviation {scale:.4g} on each"
    planned = PlannedRelease("private_knn_shapley", settings, what, cost, "owner, no collusion")
    paid = planned.pay(ledger, inputs, [as_array(inputs.points_val), inputs.labels_val, game.weights], notes)

    def draw() -> Floats:
        total = _sampled_shapley(game, k, promise.sampling) if sampled else shapley_total(game, k)
        return np.asarray(add_noise(game.mean(total), "gaussian", scale), np.float64)

    values = paid.values(draw)
    together = replace(cost, count=10 * cost.count)
    notes.append(
        f"noise is independent from owner to owner: ten owners who share their values face "
        f"ε = {total_epsilon([together], promise.delta):.3g} instead of {total_epsilon([cost], promise.delta):.3g}"
    )
    return planned.result(inputs, values, promise.kept(planned), notes)


def _sampled_shapley(game: Game, k: int, chance: float) -> Floats:
    """``fraction`` values, every owner's among a fresh sample of the others for each validation point."""
    n = game.space.n_train
    key, log_skip = samples.new_key(), math.log1p(-chance)
    chunk = max(1, int(2**20 / (n * chance + 2)))  # owners whose coins are drawn at a time: 8 MiB of them

    def add(block: Ranked, total: Floats) -> None:
        from datassay.privacy import kernels

        codes, codes_val = game.inputs.codes, game.inputs.codes_val
        for at, row in enumerate(range(block.rows.start, block.rows.stop)):
            point = (codes, codes_val[row], game.weights[row], k, log_skip)
            for start in range(0, n, chunk):
                stop = min(n, start + chunk)
                wanted = int((stop - start) * (n * chance + 1) * 1.2) + 64
                used = -1
                while used < 0:
                    coins = samples.words(key, (row, start), wanted)
                    used = kernels.add_sampled_shapley(block.order[at], start, stop, *point, coins, total)
                    wanted *= 2

    return game.near.accumulate(FullRanking(), add, replace(game.run, here=True))
