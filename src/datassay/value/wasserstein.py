"""WaKA: how far a record moves the distribution of a k-NN's loss over all subsets of the data (Mathematics §4).

Adding a record moves the loss in one direction only: with a match it displaces the k-th nearest, a wrong label, and
the loss goes down by 1/k; without one, up. So the 1-Wasserstein distance between the distributions with and without
it is the shift of the mean, half the Banzhaf value of the subsets that have k others: one suffix sum over the
ranking (finding 2). The variants that look at a part of the losses weigh every displaced rank j by the chance that v
of the k−1 nearer ones are wrong, with v in that part: hypergeometric, given how many wrong labels come before j.

References: the thesis, chapter 2, and its earlier text; corrected: errata 2 to 4.
"""

import math
from collections.abc import Sequence
from typing import Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric, Variant
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, Run, documented
from datassay.data import Ids, Labels, Points
from datassay.neighbors import EUCLIDEAN, Given, NearestRanking, NeighbourGraph, Neighbours
from datassay.results import Floats, Parameter, Values
from datassay.value.game import Weights, make_game
from datassay.value.knn import approximate, banzhaf_chances, banzhaf_ranks, chance_of_fewer, knn_shapley


def rank_chances(k: int, n: int, tolerance: float | None) -> tuple[Floats, float | None]:
    """Chance that rank j is displaced, for as many ranks as the tolerance asks for, and what values may be off by.

    With J ranks the error is at most P(Bin(J−1, ½) < k)/(2k), half that of the Banzhaf value; without a tolerance J is
    where chances vanish in double precision.
    """
    chances = banzhaf_chances(k, n)
    if tolerance is not None:
        limit = banzhaf_ranks(k, len(chances), 2 * _checks.number("tolerance", tolerance, above=0))
        if limit < len(chances):
            return chances[:limit], chance_of_fewer(limit - 1, k) / (2 * k)
    return chances, None


def _nobody(k: int, n: int) -> tuple[str, ...]:
    """A note where no record can displace another: with k or fewer records everybody is among the k nearest."""
    if k < n:
        return ()
    return (f"k={k} is not less than the number of records ({n}): nobody is displaced, and nothing moves",)


@documented(knn_shapley)
def waka(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    k: int = 5,
    variant: Variant = "signed",
    tau: float = 0.5,
    metric: Metric = EUCLIDEAN,
    weights: Weights = None,
    *,
    tolerance: float | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """Wasserstein k-NN attribution of every training record, the mean over validation points.

    Parameters
    ----------
    k
        Number of neighbours; with k or fewer records none is displaced, and values are 0.
    variant
        ``"signed"``: the distance W₁ that a record moves the loss, positive where its label matches. ``"removal"``:
        of a match, only what it moves among the utilities above 1 − τ counts; for deciding what to remove.
        ``"addition"``: of a wrong label, only what it moves among the losses up to τ counts; for what to add.
    tau
        The threshold τ of ``removal`` and ``addition``, between 0 and 1; ½ is where a majority turns.
    tolerance
        None for exact values, to double precision. Otherwise values may be off by as much, and fewer neighbours are
        looked at: as many as the bound in Mathematics §2 asks for, never a fixed number.

    Examples
    --------
    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    >>> da.waka(X, y, [[0.1]], ["a"], k=1).values.tolist()
    [0.25, -0.125, 0.0]
    """
    k = _checks.integer("k", k, at_least=1)
    _checks.choice("variant", variant, get_args(Variant))
    tau = _checks.number("tau", tau, at_least=0, at_most=1)
    game = make_game(Given(X, y, X_val, y_val, metric, ids), weights, **run)
    chances, error = rank_chances(k, game.n_players, tolerance)
    # The most wrong labels among the k−1 others for which a move counts, for matches and for wrong labels.
    most = [k - 1, k - 1]
    if variant == "removal":  # the utility before the move, (k−1−v)/k, is above 1 − τ
        most[0] = math.ceil(k * tau - 1 - 1e-9) - 1
    elif variant == "addition":  # the loss before the move, v/k, is at most τ
        most[1] = math.floor(k * tau + 1e-9)
    told: dict[str, Parameter] = {
        "k": k, "variant": variant, "tau": None if variant == "signed" else tau, "tolerance": tolerance,
    }  # fmt: skip
    total = game.keeping("waka", told).total(NearestRanking(len(chances)), "add_waka", chances, k, *most)
    notes = (*_nobody(k, game.n_players), *approximate(len(chances), error))
    return game.result(game.mean(total), "waka", told, notes, error)


@documented(waka, knn_shapley)
def self_waka(
    X: Points | Neighbours,
    y: Labels | None = None,
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    *,
    tolerance: float | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """How far each record moves the loss of predicting itself: high where its presence shows the most.

    The record is its own validation point and at rank 1, whatever its duplicates:
    (1/2k) Σ over the other ranks j with another label of C(j−2, k−1)/2^{j−1} (Mathematics §4). It goes with how well
    membership attacks do.

    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [9.0]], ["a", "a", "b"]
    >>> da.self_waka(X, y, k=1).values.tolist()
    [0.125, 0.125, 0.375]
    """
    k = _checks.integer("k", k, at_least=1)
    game = make_game(Given(X, y, metric=metric, ids=ids, among=True), **run)
    chances, error = rank_chances(k, game.space.n_train, tolerance)
    game.told["validation"] = "itself"
    told: dict[str, Parameter] = {"k": k, "tolerance": tolerance}
    view = NearestRanking(max(1, len(chances) - 1))
    values = game.keeping("self_waka", told).each(view, "write_self_waka", chances, k)
    notes = (*_nobody(k, game.space.n_train), *approximate(len(chances), error))
    return game.result(values, "self_waka", told, notes, error)


@documented(waka, knn_shapley)
def waka_influence(
    X: Points | Neighbours,
    y: Labels | None = None,
    removed: Sequence[int] | NDArray[np.generic] = (),
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    *,
    exact: bool = True,
    tolerance: float | None = None,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> Values:
    """How self-WaKA of the remaining records changes when some are removed: who is more exposed then, who less.

    Removed records are not in the result.

    Parameters
    ----------
    removed
        The records that go: their positions, or a Boolean mask.
    exact
        Evaluate self-WaKA again without all of them. Otherwise the changes from removing each one alone are added up,
        WaKAInf(Remove(Z) ⇒ z) = Σ_{z_j ∈ Z} [self-WaKA(z; D − z_j) − self-WaKA(z; D)] (Mathematics §4): removing rank r
        drops its own term, and every later rank comes one nearer. Both cost one pass.

    Examples
    --------
    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [2.0], [9.0]], ["a", "a", "b", "b"]
    >>> da.waka_influence(X, y, removed=[1], k=1).values.tolist()  # the first record loses the one that vouched for it
    [0.1875, -0.125, -0.0625]
    """
    k = _checks.integer("k", k, at_least=1)
    game = make_game(Given(X, y, metric=metric, ids=ids, among=True), in_memory=True, **run)
    n = game.space.n_train
    gone = _removed(removed, n)
    _checks.boolean("exact", exact)
    # Looking at fewer ranks leaves out something between 0 and the error, of both values: their difference is off by no
    # more than one error, and a sum of such differences by one for each.
    terms = 1 if exact else max(1, int(gone.sum()))
    each = None if tolerance is None else _checks.number("tolerance", tolerance, above=0) / terms
    chances, error = rank_chances(k, n, each)
    error = None if error is None else terms * error
    # As many ranks as may be wanted once the removed ones are skipped: all, if need be.
    wanted = len(chances) + int(gone.sum()) if exact else len(chances) + 1
    view = NearestRanking(min(n - 1, max(1, wanted - 1)))
    values = game.each(view, "write_waka_influence", gone, chances, k, exact)[~gone]
    told: dict[str, Parameter] = {"k": k, "exact": exact, "tolerance": tolerance, "removed": int(gone.sum())}
    return Values(
        values=values,
        ids=game.inputs.ids[~gone],
        method="waka_influence",
        parameters=told | {"metric": game.told["metric"]},
        labels=game.inputs.labels[~gone],
        notes=(*game.inputs.notes, *approximate(len(chances), error)),
        lower=None if error is None else values - error,
        upper=None if error is None else values + error,
    )


def _removed(removed: Sequence[int] | NDArray[np.generic], n: int) -> NDArray[np.bool_]:
    given = np.asarray(removed)
    if given.ndim != 1:
        raise UsageError("removed must be a list of positions, or a Boolean mask")
    gone = np.zeros(n, bool)
    if given.dtype == bool:
        if given.shape != (n,):
            raise UsageError(f"the mask of removed records has shape {given.shape} for {n} records")
        gone |= given
    elif given.size:
        if given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= n:
            raise UsageError(f"removed must be positions from 0 to {n - 1}, or a Boolean mask")
        gone[given.astype(np.intp)] = True
    if gone.sum() >= n - 1:
        raise InputError(f"removing {int(gone.sum())} of {n} records leaves fewer than two")
    return gone
