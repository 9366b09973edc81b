"""The disclosure game, done again on review embeddings: chapter 3 of the thesis, figures 3.2 to 3.13, in kind.

The thesis has 8,000 Yelp reviews with 1,024-dimensional embeddings, which are not to be had; ours are 2,000 film
reviews with 384. Its numbers stand beside ours where it prints any, to look at and not to be judged by.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import datassay as da
from datassay._work import Bar
from datassay.market import ConsumerView, Move, gini, knn_utility
from datassay.reproduce.engine import Cell, Redone, reproduction, row
from datassay.results import BLUE, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 100
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
SHUFFLES = 5


@dataclass(frozen=True, eq=False)
class _Reviews:
    """1,400 reviews to disclose, 300 to validate and 300 to test on; k is what predicts the validation labels best."""

    X: Floats
    y: Ints
    X_val: Floats
    y_val: Ints
    X_test: Floats
    y_test: Ints
    k: int
    target: float
    values: Floats

    @property
    def game(self) -> tuple[Floats, Ints, Floats, Ints]:
        return self.X, self.y, self.X_val, self.y_val

    def accuracy(self, rows: Ints) -> float:
        """On the test reviews, of these to learn from."""
        return _accuracy(self.X[rows], self.y[rows], self.X_test, self.y_test, self.k)

    def play(self, strategy: Any, **how: Any) -> da.Disclosure:
        """A rehearsal of so many rounds, target or not, by accuracy; noise as published."""
        settings: dict[str, Any] = {"t_max": ROUNDS, "target": 1.0, "utility": "accuracy", "bounds": "data", "seed": 0}
        game = da.disclosure_game(*self.game, strategy, 1.0, k=self.k, **(settings | how))
        if game.outcome == "interrupted":  # half a game shows nothing
            raise KeyboardInterrupt
        return game


def _accuracy(X: Floats, y: Ints, X_val: Floats, y_val: Ints, k: int) -> float:
    return knn_utility(X, y, X_val, y_val, 2, k=k, metric="euclidean", utility="accuracy")


@cache
def _reviews() -> _Reviews:
    table = da.load_dataset("movie_reviews_minilm", "y", scale="none")
    points, _ = da.fit_encoder(table).transform(table)
    X = np.ascontiguousarray(points, np.float64)
    y = np.unique(np.asarray(table.labels), return_inverse=True)[1].astype(np.int64)
    train, validation, test = np.split(np.random.default_rng(0).permutation(len(X)), [1400, 1700])
    parts = (X[train], y[train], X[validation], y[validation], X[test], y[test])
    scores = {k: _accuracy(*parts[:4], k) for k in range(1, 101, 2)}
    k = max(scores, key=lambda at: (scores[at], -at))
    return _Reviews(*parts, k, scores[k], da.knn_shapley(*parts[:4], k).values)


def _curves(
    x: Floats | Ints, lines: Mapping[str, Floats], colours: Sequence[str | None], target: float | None = None, **of: str
) -> "Callable[[Axes], Axes]":
    """What draws these lines over x, with a dashed one at the target; axes are called ``of``."""

    def draw(axes: "Axes") -> "Axes":
        for (name, y), colour in zip(lines.items(), colours, strict=True):
            axes.plot(x, y, color=colour, label=name)
        if target is not None:
            axes.axhline(target, color="black", linewidth=0.8, linestyle="dashed", label="target")
        axes.set(**of)
        axes.legend(frameon=False)
        return axes

    return draw


@reproduction(
    "disclosure-acquisition",
    "Test accuracy as reviews are acquired, by k-NN Shapley values and at random (thesis, Figure 3.2)",
)
def _acquisition() -> Redone:
    data = _reviews()
    n = len(data.y)
    shares = np.round(np.arange(0.05, 1.001, 0.05), 2)
    best = np.argsort(-data.values, kind="stable")
    orders = [np.random.default_rng([1, shuffle]).permutation(n) for shuffle in range(10)]
    by_value = np.array([data.accuracy(best[: round(share * n)]) for share in shares])
    at_random = np.array([[data.accuracy(order[: round(s * n)]) for s in shares] for order in orders]).mean(axis=0)
    cells = [
        Cell(f"{share:.0%} of the reviews", way, float(scores[at]))
        for at, share in enumerate(shares)
        if share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
        for way, scores in (("by value", by_value), ("at random", at_random))
    ]
    ahead = int((by_value[:-1] > at_random[:-1]).sum())
    gain = float((by_value - at_random)[:-1].mean())
    holds = gain > 0 and ahead > 0.75 * (len(shares) - 1)

    lines = {"by k-NN Shapley value": by_value, "at random (mean of 10 orders)": at_random}
    draw = _curves(shares, lines, (BLUE, "black"), xlabel="share of reviews acquired", ylabel="test accuracy")
    finding = (
        f"k = {data.k}; acquisition by value is ahead at {ahead} of {len(shares) - 1} shares, by {gain:.3f} on average:"
        f" it {'beats' if holds else 'does not beat'} random"
    )
    return Redone(cells, finding, holds, draw)


@reproduction(
    "disclosure-noise",
    f"Error of denoised centres, and rank correlation of their values with the true ones, over {ROUNDS} rounds "
    "(thesis, Figures 3.3 and 3.4)",
)
def _noise() -> Redone:
    data = _reviews()
    runs = {
        "noise as published (range of the records)": data.play("shapley", share=1.0),
        "range of the validation reviews": data.play("shapley", share=1.0, bounds="validation"),
        "public bounds −1 and 1": data.play("shapley", share=1.0, bounds=(-1.0, 1.0)),
    }
    cells = [
        Cell(name, f"{what} after {at} rounds", float(game.trajectory[column][at]))
        for name, game in runs.items()
        for column, what in (("error", "error"), ("spearman", "correlation"))
        for at in (1, 10, 25, 50, 100)
    ]
    first, certain = runs["noise as published (range of the records)"], runs["public bounds −1 and 1"]
    error, agree = first.trajectory["error"], first.trajectory["spearman"]
    steps = [1, 5, 10, 25, 50, 100]
    holds = bool((np.diff(error[steps]) < 0).all() and (np.diff(agree[steps]) > 0).all())

    distance = f"mean distance of centres, of {error[1]:.3g}"
    lines = {"rank correlation with true values": agree[1:], distance: error[1:] / error[1]}
    draw = _curves(np.arange(1, ROUNDS + 1), lines, (BLUE, PURPLE), xlabel="rounds")
    finding = (
        f"the error falls from {error[1]:.3g} to {error[-1]:.3g} (like 1/√rounds: {error[1] / 10:.3g}) and the "
        f"correlation rises from {agree[1]:.3f} to {agree[-1]:.3f}: the finding {'holds' if holds else 'fails'}; "
        f"bounds that are public for certain, −1 and 1, leave it at {certain.trajectory['spearman'][-1]:.3f}; "
        f"{ROUNDS} rounds cost a record ε = {first.guarantee.epsilon:,.0f}"
    )
    return Redone(cells, finding, holds, draw)


class _Oracle:
    """Queries and uses the truly best share."""

    def __init__(self, values: Floats, share: float) -> None:
        self.chosen = np.argsort(-values, kind="stable")[: round(share * len(values))]

    def __call__(self, view: ConsumerView) -> Move:
        return Move(self.chosen[view.remaining[self.chosen] > 0], self.chosen)


@reproduction(
    "disclosure-strategies",
    f"Rounds until validation accuracy is that of all reviews as they are, of {ROUNDS} at most: random, noisy Shapley, "
    "commit, oracle (thesis, Figures 3.5 to 3.9)",
)
def _strategies() -> Redone:
    data = _reviews()
    quiet: dict[str, Any] = {"diagnostics": False}
    cells: list[Cell] = []
    shown: dict[str, Floats] = {}
    reached: dict[tuple[str, float], float] = {}
    tested: dict[tuple[str, float], float] = {}
    with Bar(sys.stderr.isatty(), len(SHARES) * (SHUFFLES + 3), "games") as report:
        for share in SHARES:
            games: dict[str, list[da.Disclosure]] = {
                "random": [data.play("random", share=share, seed=seed, **quiet) for seed in range(SHUFFLES)],
                "noisy Shapley": [data.play("shapley", share=share, **quiet)],
                "commit after 10": [data.play("shapley-commit", share=share, bootstrap=10, **quiet)],
                "oracle": [data.play(_Oracle(data.values, share), **quiet)],
            }
            report(SHUFFLES + 3)
            for name, played in games.items():
                curves = np.array([game.trajectory["utility"] for game in played])
                there = curves >= data.target
                reached[name, share] = float(np.median(np.where(there.any(axis=1), there.argmax(axis=1), np.inf)))
                published = 25.0 if (name, share) == ("noisy Shapley", 0.6) else None
                mean, rounds = curves.mean(axis=0), reached[name, share]
                tested[name, share] = float(np.mean([game.score(data.X_test, data.y_test) for game in played]))
                cells.append(Cell(f"{share:.0%}, {name}", "best validation accuracy", float(mean.max())))
                cells.append(Cell(f"{share:.0%}, {name}", "test accuracy in the end", tested[name, share]))
                if np.isfinite(rounds):
                    cells.append(Cell(f"{share:.0%}, {name}", "rounds to target", rounds, published, judged=False))
                if share == 0.6:
                    shown[name] = mean[1:]
    whole = data.accuracy(np.arange(len(data.y)))
    small = [share for share in SHARES if share <= 0.6]
    works = all(np.isfinite(reached["noisy Shapley", share]) for share in SHARES[:-1])
    fails = all(not np.isfinite(reached["random", share]) for share in small)
    commits = [share for share in SHARES[:-1] if reached["commit after 10", share] < reached["noisy Shapley", share]]

    y = "validation accuracy, 60% of the reviews"
    draw = _curves(np.arange(1, ROUNDS + 1), shown, (None,) * 4, data.target, xlabel="rounds", ylabel=y)
    finding = (
        f"target {data.target:.3f} (k = {data.k}); noisy Shapley {'reaches' if works else 'does not reach'} it at "
        f"every share up to 80%, after {reached['noisy Shapley', 0.6]:.0f} rounds at 60%; a random subset "
        f"{'never does at up to 60%' if fails else 'does too'}; committing after 10 rounds is quicker at "
        f"{len(commits)} of {len(SHARES) - 1} shares. Values are made for validation reviews: on test reviews noisy "
        f"Shapley has {tested['noisy Shapley', 0.6]:.3f} at 60%, and the reviews as they are {whole:.3f}"
    )
    return Redone(cells, finding, works and fails, draw)


@reproduction(
    "disclosure-bandit",
    "The bandit at every budget and exploration: success, Gini of spending, correlation of Q with values (thesis, "
    "Figures 3.10 to 3.12)",
)
def _bandit() -> Redone:
    data = _reviews()
    budgets, explorations = (5, 10, 20, 30, 50), (0.0, 0.001, 0.01, 0.1, 1.0)
    show = sys.stderr.isatty()
    found = da.search_equilibrium(
        *data.game, [1.0], budgets, explorations, k=data.k, bounds="data", repeats=3, progress=show
    )
    rows, columns, share = found.table("reached")
    cells = [
        Cell(f"T_max = {t_max:g}", f"success, c = {c:g}", float(share[i, j]))
        for i, t_max in enumerate(rows)
        for j, c in enumerate(columns)
    ]
    # Spent to the last query, everything is spent evenly: Gini is compared half way.
    half = len(data.y) * 50 // 2
    spread = {}
    for c in explorations:
        played = [
            data.play("ucb", t_max=50, utility="votes", exploration=c, max_queries=half, seed=seed, diagnostics=False)
            for seed in range(2)
        ]
        spread[c] = float(np.mean([gini(game.queries) for game in played]))
        cells.append(Cell("half of T_max = 50 spent", f"Gini, c = {c:g}", spread[c]))
    for t_max in rows:
        at = found.t_max == t_max
        cells.append(Cell(f"T_max = {t_max:g}", "correlation of Q with values", float(np.nanmean(found.spearman[at]))))
    solved = found.solution()
    little, explored = found.t_max < 20, found.exploration > 0
    rare = float(found.reached[little].mean())
    often = float(found.reached[(found.t_max == 50) & explored].mean())
    never = float(found.reached[(found.t_max == 50) & ~explored].mean())
    even = list(spread.values())
    holds = rare < 0.5 < often and never < often and all(a >= b for a, b in pairwise(even))
    best = "nobody reaches it every time" if solved is None else (
        f"in equilibrium T_max = {solved['t_max']:g}, c = {solved['exploration']:g}, budget {solved['budget']:.0f}"
    )  # fmt: skip
    finding = (
        f"the target of {found.target:.3f} votes is reached in {rare:.0%} of the games below 20 queries a record, in "
        f"{often:.0%} at 50 with exploration and {never:.0%} without; Gini falls from {even[0]:.3f} to {even[-1]:.3f} "
        f"with exploration; {best}: the findings {'hold' if holds else 'do not hold'}"
    )
    return Redone(cells, finding, holds, lambda axes: found.plot("reached", None, axes))


# Thesis, Figure 3.13: LiRA on 1-NN, AUC and true positives at 5% false positives.
LEAKAGE = {"records": (0.81, 0.282), "centres after 25 rounds": (0.74, 0.089)}


@reproduction(
    "disclosure-leakage",
    "LiRA on 1-NN of the reviews and of their noisy centres after 25 rounds (thesis, Figure 3.13)",
)
def _leakage() -> Redone:
    data = _reviews()
    game = data.play("random", share=1.0, t_max=25, diagnostics=False)
    outside = da.disclosure_leakage(data.X, data.y, game)
    inside = da.disclosure_leakage(data.X, data.y, game, attacker="insider")
    places = {"records": outside.before, "centres after 25 rounds": outside.after}
    cells: list[Cell] = []
    for name, attack in (places | {"the same, by an insider": inside.after}).items():
        ours = {"AUC": attack.auc, "found at 5% false positives": attack.tpr(0.05)}
        cells += row(name, ours, LEAKAGE.get(name, (None, None)))
    low, high = outside.after.interval()[1], outside.before.interval()[0]
    holds = outside.after.auc < outside.before.auc and low < high
    finding = (
        f"an outsider's AUC falls from {outside.before.auc:.3f} to {outside.after.auc:.3f} (intervals "
        f"{'apart' if low < high else 'overlap'}); who knows the centres has {inside.after.auc:.3f}: noise hides "
        f"members from outsiders{' only' if inside.after.auc >= outside.before.auc - 0.02 else ''}"
    )
    return Redone(cells, finding, holds, outside.plot)
