"""How a consumer chooses what to query: at random, by the values of the centres, or by a function of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _choices
from datassay._choices import Metric
from datassay._errors import UsageError
from datassay._run import Schedule
from datassay.data import Labels
from datassay.value import knn_shapley

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STRATEGY_OPTIONS: Mapping[str, tuple[str, ...]] = {  # which mean something to which strategy
    "random": ("share",),
    "shapley": ("share",),
    "shapley-commit": ("share", "bootstrap"),
    "ucb": ("exploration", "learning_rate", "unseen"),
}
USUAL: Mapping[str, Any] = {
    "share": _choices.DEFAULT_SHARE,
    "bootstrap": _choices.DEFAULT_BOOTSTRAP,
    "exploration": _choices.DEFAULT_EXPLORATION,
    "learning_rate": _choices.DEFAULT_LEARNING_RATE,
    "unseen": "origin",
}


@dataclass(frozen=True, eq=False)
class ConsumerView:
    """What a consumer knows before a move: what it has received, and its own data.

    Attributes
    ----------
    step
        Moves made so far.
    centres, queries, remaining
        The mean of the noisy copies of every record (zeros where there are none), how many there are, and how many
        queries are left. ``centres`` changes as copies come in: copy it to keep it.
    labels, ids
        Of the records.
    X_val, y_val, k, metric, utility
        The consumer's validation points, and its k-NN classifier with its utility so far.
    """

    step: int
    centres: Floats
    queries: Ints
    remaining: Ints
    labels: NDArray[np.generic]
    ids: NDArray[np.generic]
    X_val: Floats
    y_val: NDArray[np.generic]
    k: int
    metric: Metric
    utility: float


@dataclass(frozen=True, eq=False)
class Move:
    """What to query, by position, and what to use afterwards: positions, or a function of the view after the query.

    ``use=None`` uses every record that was queried so far.
    """

    query: ArrayLike
    use: ArrayLike | Callable[[ConsumerView], ArrayLike] | None = None


Strategy = Callable[[ConsumerView], Move | ArrayLike]


def check_options(strategy: object, given: Mapping[str, object]) -> tuple[str, ...]:
    """The options of a strategy; one that was given (is not None) and means nothing to it is refused."""
    known = STRATEGY_OPTIONS[strategy] if isinstance(strategy, str) else ()
    for name, option in given.items():
        if option is not None and name not in known:
            whose = f"strategy {strategy!r}" if isinstance(strategy, str) else "a strategy of your own"
            of = ", ".join(repr(one) for one, options in STRATEGY_OPTIONS.items() if name in options)
            raise UsageError(f"{name} does not apply to {whose}, but to {of}; leave it out")
    return known


class RandomSubset:
    """Commit to a random share of the records, and query all of them in every round."""

    def __init__(self, n: int, share: float, rng: np.random.Generator) -> None:
        self.chosen = np.sort(rng.permutation(n)[: n_chosen(n, share)])

    def __call__(self, view: ConsumerView) -> Move:
        """All of the chosen that have budget left."""
        return Move(self.chosen[view.remaining[self.chosen] > 0], self.chosen)


class NoisyShapley:
    """Query every record in every round, value the centres, and use the best share of them.

    With ``bootstrap``, commit to the best share after so many rounds and query these alone.
    """

    def __init__(self, n: int, share: float, bootstrap: int | None, run: Schedule) -> None:
        self.share, self.bootstrap, self.run = share, bootstrap, run
        self.scores = np.full(n, np.nan)
        self.committed: Ints | None = None

    def __call__(self, view: ConsumerView) -> Move:
        """Everybody, or those committed to."""
        if self.bootstrap is not None and view.step >= self.bootstrap:
            if self.committed is None:
                self.committed = self.best()
            return Move(self.committed[view.remaining[self.committed] > 0], self.committed)
        return Move(np.flatnonzero(view.remaining > 0), self._after)

    def best(self) -> Ints:
        """The best share by the values of the last round; ties to the smaller index."""
        order = np.argsort(-self.scores, kind="stable")
        return np.sort(order[: n_chosen(len(order), self.share)]).astype(np.int64)

    def _after(self, view: ConsumerView) -> Ints:
        """The best by the k-NN Shapley values of the centres as they are now; records without one come last."""
        seen = view.queries > 0
        held, labels = view.centres[seen], view.labels[seen]
        values = np.full(len(seen), -np.inf)
        values[seen] = shapley_values(held, labels, view.X_val, view.y_val, view.k, view.metric, self.run)
        self.scores = values
        return self.best()


def shapley_values(
    points: Floats, labels: Labels, points_val: Floats, labels_val: Labels, k: int, metric: Metric, run: Schedule
) -> Floats:
    """k-NN Shapley values of points that one of the two sides holds."""
    found = knn_shapley(points, labels, points_val, labels_val, k, metric=metric, n_jobs=run.n_jobs, memory=run.memory)
    return np.asarray(found.values)


def n_chosen(n: int, share: float) -> int:
    """So many of n: the share, rounded, and one at least."""
    return max(1, min(n, round(share * n)))
