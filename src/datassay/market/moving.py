"""The utility of a k-NN model whose points move one at a time, kept up to date instead of computed anew."""

from typing import Any, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric, Unseen, Utility
from datassay._errors import InputError
from datassay._run import Schedule
from datassay.neighbors import NearestRanking, Ranked, as_floats, collect, make_space

METRICS = ("euclidean", "manhattan", "cosine")
Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]


class Classifier(TypedDict):
    """A k-NN classifier, and what it is judged by."""

    k: int
    metric: Metric
    utility: Utility


class MovingNeighbours:
    """A k-NN classifier whose points are placed and moved one after the other, and its utility at every moment.

    A moved point costs one distance to every validation point and the repair of the rankings it enters or leaves:
    in all O(M d), against O(N M d) for a new evaluation. The utility is exactly that of a new evaluation.

    Parameters
    ----------
    n, codes, X_val, codes_val, n_classes
        How many points there are and their labels, as codes 0 … n_classes − 1; validation points and theirs.
    k, metric
        Of the classifier.
    utility
        ``"votes"``: the share of right labels among the k nearest (of those there are). ``"accuracy"``: the share of
        validation points that the majority is right about; of equal classes the first wins.
    unseen
        Where points are that were never placed: ``"absent"``, or all at the ``"origin"``.

    Examples
    --------
    >>> import numpy as np
    >>> from datassay.market import MovingNeighbours
    >>> model = MovingNeighbours(2, np.array([0, 1]), np.array([[1.0]]), np.array([1]), 2, k=1, unseen="absent")
    >>> model.utility, model.move(0, np.array([3.0])), model.move(1, np.array([2.0])), model.move(0, np.array([1.5]))
    (0.5, 0.0, 1.0, 0.0)
    """

    def __init__(
        self,
        n: int,
        codes: Codes,
        X_val: Floats,
        codes_val: Codes,
        n_classes: int,
        *,
        k: int,
        metric: Metric = "euclidean",
        utility: Utility = "votes",
        unseen: Unseen = "origin",
    ) -> None:
        from datassay.market import kernels
        from datassay.neighbors import kernels as still

        _checks.choice("metric", metric, METRICS)
        _checks.choice("utility", utility, get_args(Utility))
        _checks.choice("unseen", unseen, get_args(Unseen))
        k = _checks.integer("k", k, at_least=1)
        n, n_classes = _checks.integer("n", n, at_least=1), _checks.integer("n_classes", n_classes, at_least=1)
        k = min(k, n)
        for name, given, length in (("codes", codes, n), ("codes_val", codes_val, len(X_val))):
            if np.shape(given) != (length,) or np.asarray(given).dtype.kind not in "iu":
                raise InputError(f"{name} must be {length} whole numbers, got shape {np.shape(given)}")
            if len(given) and not (np.min(given) >= 0 and np.max(given) < n_classes):
                raise InputError(f"{name} must lie between 0 and {n_classes - 1}, the codes of {n_classes} classes")
        queries = np.array(as_floats("X_val", X_val), np.float64, order="C")
        if metric == "cosine":
            still.to_unit_length(queries)
        m, d = queries.shape
        tiles = np.empty((-(-m // still.TILE), d, still.TILE))
        still.fill_tiles(queries, tiles)
        code, judged = METRICS.index(metric), get_args(Utility).index(utility)
        room = min(n, max(2 * k, k + 32))
        self._far, self._votes = np.empty(m), np.empty(n_classes, np.int64)
        home = np.empty(m)
        kernels.distances_to(code, tiles, np.zeros(d), home)
        self.state = kernels.State(
            code, judged, k, n_classes, tiles, queries, np.zeros((n, d)), np.zeros(n, np.bool_),
            np.ascontiguousarray(codes, np.int64), np.ascontiguousarray(codes_val, np.int64), home,
            np.empty((m, room)), np.empty((m, room), np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64),
            np.empty(k, np.int64), np.array([0, 0, n if unseen == "origin" else 0, 0], np.int64),
        )  # fmt: skip
        kernels.call_waiting(self.state)
        for v in range(m):
            self.state.count[v] = kernels.count_votes(self.state, v, self._votes)
        self.state.tally[1] = self.state.count.sum()

    @property
    def centres(self) -> Floats:
        """Where the points are; zeros for those never placed."""
        return np.asarray(self.state.centres)

    @property
    def utility(self) -> float:
        """Of the points as they are now; 1/classes where there are none."""
        from datassay.market import kernels

        return float(kernels.utility_of(self.state))

    def move(self, i: int, to: Floats) -> float:
        """Place point i, or move it; the utility after that."""
        from datassay.market import kernels

        i, to = self._check(i, to)
        self.state.centres[i] = to
        kernels.place(self.state, i, self._far, self._votes)
        return self.utility

    def receive(self, i: int, sample: Floats, copies: int) -> float:
        """Average the latest of so many noisy copies of point i into its centre; the utility after that."""
        from datassay.market import kernels

        i, sample = self._check(i, sample)
        copies = _checks.integer("copies", copies, at_least=1)
        return float(kernels.receive(self.state, i, sample, copies, self._far, self._votes))

    def _check(self, i: int, point: Floats) -> tuple[int, Floats]:
        n, d = self.state.centres.shape
        i = _checks.integer("i", i, at_least=0, at_most=n - 1)
        given = _checks.real_numbers(point)
        if given is None or given.shape != (d,) or not np.isfinite(given).all():
            raise InputError(f"a point must be {d} finite numbers, got {point!r}")
        return i, given


def knn_utility(
    points: Floats,
    codes: Codes,
    X_val: Floats,
    codes_val: Codes,
    n_classes: int,
    *,
    run: Schedule | None = None,
    **how: Unpack[Classifier],
) -> float:
    """The utility of a k-NN classifier of these points, computed anew; 1/classes if there are none.

    >>> import numpy as np
    >>> X, y = np.array([[0.0], [3.0]]), np.array([0, 1])
    >>> knn_utility(X, y, np.array([[1.0]]), np.array([1]), 2, k=1, metric="euclidean", utility="votes")
    0.0
    """
    if len(points) == 0:
        return 1.0 / n_classes
    used, utility = min(how["k"], len(points)), how["utility"]
    space = make_space(points, X_val, how["metric"], zero_rows=True)

    def compute(block: Ranked) -> tuple[NDArray[Any]]:
        near, labels = codes[block.order], codes_val[block.rows]
        if utility == "votes":
            return ((near == labels[:, None]).sum(axis=1),)
        votes = np.stack([(near == c).sum(axis=1) for c in range(n_classes)], axis=1)
        return (votes.argmax(axis=1) == labels,)

    (right,) = collect(space, NearestRanking(used), compute, run or Schedule())
    return float(right.sum() / (len(right) * (used if utility == "votes" else 1)))
