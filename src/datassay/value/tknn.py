"""What a record is worth to a threshold-neighbour classifier: everybody within τ votes (Mathematics §3).

No ranking is needed: the value of a record for one validation point depends on how many neighbours there are and
how many of them match, two numbers for each validation point. That makes it fast, and easy to release privately.
Reference: Wang et al. 2023 (TKNN-Shapley).
"""

from typing import Unpack

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import UsageError
from datassay._run import Run, documented
from datassay.data import Ids, Labels, Points
from datassay.neighbors import COSINE, Given, NeighbourGraph, Neighbours, WithinThreshold
from datassay.results import Values
from datassay.value.game import Weights, make_game
from datassay.value.knn import harmonic, knn_shapley
from datassay.value.streamed import streamed_threshold_total

NOTHING = 1e-15  # sums that are as small cancelled out, but for what rounding left; …
ROUNDED = 2.0**-51  # … for each validation point it may be that much


@documented(knn_shapley)
def tknn_shapley(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    tau: float = -0.5,
    metric: Metric = COSINE,
    weights: Weights = None,
    *,
    n_classes: int | None = None,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Values:
    """Exact Shapley value of every training record for a threshold-neighbour classifier.

    Neighbours are the records at a distance of at most ``tau``. With c neighbours of which p match, a neighbour
    with match bit b is worth (b − 1/C)/c + (b/c − (p − b)/(c(c−1))) (H_c − 1), and everyone else nothing. The number
    of records does not enter (Mathematics §3, finding 1).

    Parameters
    ----------
    tau
        The largest distance of a neighbour, in the metric's own scale: minus the cosine similarity by default, so −0.5
        means a similarity of at least 0.5; :func:`tune_tau` chooses one.

    Examples
    --------
    >>> import datassay as da
    >>> X, y = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], ["a", "a", "b"]
    >>> da.tknn_shapley(X, y, [[1.0, 0.05]], ["a"]).values.tolist()
    [0.25, 0.25, 0.0]
    """
    tau = _checks.number("tau", tau)
    if isinstance(X, Neighbours) and tau < 0 and X.metric in ("euclidean", "manhattan"):
        raise UsageError(f'tau={tau:g} is below 0, and no distance is: give tau, or Neighbours(…, metric="cosine")')
    game = make_game(Given(X, y, X_val, y_val, metric, ids), weights, n_classes, **run)
    if game.streamed:
        total = streamed_threshold_total(game, tau)
    else:
        sums = harmonic(game.n_players)
        kept = game.keeping("tknn_shapley", {"tau": tau})
        total = kept.total(WithinThreshold(tau), "add_threshold_shapley", sums, game.n_classes)
    nothing = max(NOTHING, ROUNDED * game.space.n_validation)
    alone = (
        ()
        if max(total.max(), -total.min()) > nothing or game.n_classes == 1
        else (f"every value is 0: no training record lies within tau={tau:g} of a validation point, or all cancel out",)
    )
    return game.result(game.mean(total), "tknn_shapley", {"tau": tau}, alone)
