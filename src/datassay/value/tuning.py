"""Choosing k and τ by validation accuracy: one neighbour pass scores every candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import UsageError
from datassay._run import Blocks, documented
from datassay._version import __version__
from datassay.data import Labels, Points
from datassay.neighbors import COSINE, EUCLIDEAN, EveryDistance, Given, NearestRanking, NeighbourGraph, Neighbours
from datassay.results import Axes, Columns, Fact, Floats, Parameter, Result, as_facts, axes_on
from datassay.value.figures import draw_tuning
from datassay.value.game import Game, Weights, make_game
from datassay.value.knn import knn_shapley


@dataclass(frozen=True, eq=False)
class Tuning(Result):
    """Validation accuracy of every candidate, and the best one.

    Attributes
    ----------
    parameter
        What was chosen: k or tau.
    candidates, scores
        Its values in rising order, and the accuracy with each; in data frames the columns ``k`` or ``tau``, and
        ``accuracy``.
    best
        The best of the candidates.
    parameters, notes, version
        How accuracy was measured.
    """

    COLUMNS: ClassVar = {"candidate": "candidates", "accuracy": "scores"}

    parameter: str
    candidates: NDArray[np.generic]
    scores: Floats
    best: int | float
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"Tuning({self.parameter}={self.best:g} is best of {len(self)}: {self.scores.max():.4f})"

    def _who(self) -> str:
        return "candidates"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``best_k`` or ``best_tau``, its ``accuracy``, how many ``candidates`` there were."""
        return as_facts({f"best_{self.parameter}": self.best, "accuracy": self.scores.max(), "candidates": len(self)})

    def _columns(self) -> Columns:
        return {self.parameter: self.candidates, "accuracy": self.scores}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        return super()._fields(header, columns | {"candidate": columns[header["parameter"]]})

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw accuracy against the parameter, the best marked; returns the axes.

        ``label`` names these candidates in a legend, so that several results can share the axes.
        """
        return draw_tuning(axes_on(ax, 6, 3.5), self.parameter, self.candidates, self.scores, self.best, label)


@documented(knn_shapley)
def tune_k(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    candidates: Sequence[int] | None = None,
    metric: Metric = EUCLIDEAN,
    weights: Weights = None,
    **run: Unpack[Blocks],
) -> Tuning:
    """Choose k by the accuracy of the k-NN majority vote on the validation set (or leave-one-out without one).

    All candidates come from one pass over the nearest neighbours. Votes tie to the class that sorts first; among
    equally good k the smallest is best.

    Parameters
    ----------
    candidates
        Numbers of neighbours to try, 1 to 50 if left out.

    Examples
    --------
    >>> import datassay as da
    >>> X, y = [[0.0], [1.0], [2.0], [9.0]], ["a", "b", "a", "b"]
    >>> da.tune_k(X, y, [[0.9], [8.0]], ["a", "b"], candidates=[1, 3]).scores.tolist()
    [0.5, 1.0]
    """
    game = make_game(Given(X, y, X_val, y_val, metric), weights, in_memory=True, **run)
    chosen = range(1, min(50, game.n_players) + 1) if candidates is None else candidates
    if len(chosen) == 0:
        raise UsageError("candidates is empty; give at least one k")
    ks = np.unique([_checks.integer("candidates", k, at_least=1) for k in chosen])
    depth = min(int(ks.max()), game.n_players)
    correct = game.each(NearestRanking(depth), "write_votes", len(game.inputs.classes), like=np.empty(depth, np.bool_))
    # More neighbours than there are means all of them.
    scores = np.average(correct[:, np.minimum(ks, depth) - 1], axis=0, weights=game.weights)
    return Tuning("k", ks, scores, int(ks[scores.argmax()]), game.told, game.inputs.notes)


@documented(knn_shapley)
def tune_tau(
    X: Points | Neighbours,
    y: Labels | None = None,
    X_val: Points | NeighbourGraph | None = None,
    y_val: Labels | None = None,
    candidates: Sequence[float] | None = None,
    metric: Metric = COSINE,
    weights: Weights = None,
    **run: Unpack[Blocks],
) -> Tuning:
    """Choose τ by the accuracy of the vote of all neighbours within it; nobody within counts as a guess, 1/C.

    All candidates come from one pass. Among equally good τ the largest is best, as it gives more records a value.

    Parameters
    ----------
    candidates
        Thresholds to try. Left out, −0.9, −0.8, … −0.1 for cosine; for other metrics 20 quantiles of the distances seen
        from up to 64 validation points.

    Examples
    --------
    >>> import datassay as da
    >>> X, y = [[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]], ["a", "a", "b"]
    >>> da.tune_tau(X, y, [[1.0, 0.1]], ["a"], candidates=[-0.9, 0.5]).best
    0.5
    """
    game = make_game(Given(X, y, X_val, y_val, metric), weights, in_memory=True, **run)
    space = game.space
    if isinstance(space, NeighbourGraph):
        raise UsageError("tune_tau needs features or a full distance matrix, not a neighbour graph")
    if candidates is None:
        taus = np.round(np.arange(-0.9, 0.0, 0.1), 1) if game.near.metric == "cosine" else _quantiles(game)
    else:
        taus = np.unique([_checks.number("candidates", tau) for tau in candidates])
    if len(taus) == 0:
        raise UsageError("candidates is empty; give at least one tau")
    thresholds = np.array([space.threshold(float(tau)) for tau in taus])
    classes = len(game.inputs.classes)
    score = game.each(EveryDistance(), "write_threshold_votes", thresholds, classes, like=thresholds)
    scores = np.average(score, axis=0, weights=game.weights)
    best = len(scores) - 1 - int(scores[::-1].argmax())
    return Tuning("tau", taus, scores, float(taus[best]), game.told, game.inputs.notes)


def _quantiles(game: Game) -> Floats:
    """Distances that hold 0.1% to 50% of the training points, as seen from a few validation points."""
    space = game.space
    assert not isinstance(space, NeighbourGraph)
    rows = np.unique(np.linspace(0, space.n_validation - 1, 64).astype(int))
    shares = np.geomspace(0.001, 0.5, 20)
    found = np.empty((len(rows), len(shares)))
    row = np.empty((1, space.n_train), space.dtype)
    for at, start in enumerate(rows):
        space.fill(int(start), row)
        found[at] = np.quantile(space.true_distances(row[np.isfinite(row)]), shares)
    return np.unique(np.median(found, axis=0))
