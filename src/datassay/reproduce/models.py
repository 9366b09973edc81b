"""Values by a model, done again: detection beside k-NN values, and Layered Shapley with and without privacy."""

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import datassay as da
from datassay._work import Bar
from datassay.reproduce.engine import Cell, Redone, reproduction, row
from datassay.reproduce.tknn import BELOW, detection_problem
from datassay.results import BLUE, GREEN, GREY, PURPLE, axes_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Table 9 of the TKNN paper, mislabelled records: TKNN-, KNN- and Data Shapley, leave-one-out, Data Banzhaf.
BASELINES = {
    "2dplanes": (0.919, 0.913, 0.552, 0.458, 0.548),
    "phoneme": (0.826, 0.873, 0.525, 0.484, 0.604),
}
FITS = 10_000
MARGIN = 0.15


@reproduction(
    "model-baselines",
    f"AUROC of finding mislabelled records: k-NN values against values by {FITS:,} fits of logistic regression "
    "(TKNN paper, Table 9)",
)
def _model_baselines() -> Redone:
    from sklearn.linear_model import LogisticRegression

    show: dict[str, Any] = {"progress": sys.stderr.isatty()}
    cells: list[Cell] = []
    margins = []
    for name, published in BASELINES.items():
        problem = detection_problem(name, "mislabelled")
        data = problem.data
        model = LogisticRegression(max_iter=1000)
        found = {
            "TKNN-Shapley": da.tknn_shapley(*data, tau=BELOW),
            "KNN-Shapley": da.knn_shapley(*data, k=5, metric="cosine"),
            "Data Shapley": da.data_shapley(model, *data, sampling="plain", max_coalitions=FITS, **show),
            "leave-one-out": da.leave_one_out(model, *data, **show),
            "Data Banzhaf": da.data_banzhaf(model, *data, max_coalitions=FITS, **show),
        }
        scores = {method: problem.auroc(values) for method, values in found.items()}
        cells += row(name, scores, published)
        best = max(scores["Data Shapley"], scores["leave-one-out"], scores["Data Banzhaf"])
        margins.append(min(scores["TKNN-Shapley"], scores["KNN-Shapley"]) - best)
    holds = min(margins) >= MARGIN
    finding = (
        f"k-NN values are better than the best of the others by at least {min(margins):.3f} AUROC: the finding "
        f"{'holds' if holds else 'does not hold'} (a margin of {MARGIN} was asked)"
    )
    return Redone(cells, finding, holds)


RECORDS = 100
SPLITS = 10
STEPS = tuple(round(0.05 * step, 2) for step in range(11))
ALPHA = BETA = 0.05


@dataclass(eq=False)
class _Removal:
    """Accuracies as records go, best first and worst first, by way of ordering; means over splits."""

    scores: dict[tuple[str, str], list[Floats]] = field(default_factory=dict)

    def add(self, way: str, first: str, curve: da.Curve) -> None:
        self.scores.setdefault((way, first), []).append(curve.scores["accuracy"])
        if way == "layered":  # the random orders are the same for all
            self.scores.setdefault(("random", first), []).append(curve.random["accuracy"])

    def mean(self, way: str, first: str) -> Floats:
        return np.asarray(np.mean(self.scores[way, first], axis=0))

    def draw(self, axes: "Axes") -> "Axes":
        axes = axes_on(axes, 7, 4)
        colours = {"random": GREY, "Monte Carlo": GREEN, "layered": BLUE, "private, ε = 1": PURPLE}
        for way, colour in colours.items():
            for first, line in (("highest", "-"), ("lowest", "--")):
                label = f"{way}, {'best' if first == 'highest' else 'worst'} first"
                axes.plot(STEPS, self.mean(way, first), line, color=colour, label=label)
        axes.set(xlabel="fraction of records removed", ylabel="accuracy on test records")
        axes.legend(frameon=False, fontsize=8)
        return axes


def _shown(splits: range) -> Iterator[int]:
    with Bar(sys.stderr.isatty(), len(splits), "splits") as report:
        for split in splits:
            yield split
            report(1)


@contextmanager
def _quietly() -> Iterator[None]:
    from threadpoolctl import threadpool_limits

    # One thread for BLAS: handing it models of a hundred records costs more than it saves.
    with warnings.catch_warnings(), threadpool_limits(1, "blas"):
        warnings.simplefilter("ignore", da.LowUtilityWarning)
        yield


@_quietly()
def _redo_layered(what: str, draw_split: Any, published: float | None) -> Redone:
    """Figure 1 of the paper for one data set: removal by four orders, and how much of the ranking noise leaves."""
    from scipy.stats import spearmanr
    from sklearn.linear_model import LogisticRegression

    removal, rank = _Removal(), {"certified": [], "textbook": [], "paper": [], "predicted": []}  # type: ignore[var-annotated]
    spread, scale = [], []
    model = da.StableLogisticRegression(kappa=1.0, lam=1.0, fit_intercept=False)
    theirs = LogisticRegression(max_iter=1000)
    for split in _shown(range(SPLITS)):
        (X, y), (X_val, y_val), (X_test, y_test) = draw_split(split)
        design = da.layered_design(len(X), ALPHA, BETA, model.c, seed=split)
        values = da.layered_shapley(model, X, y, X_val, y_val, design=design)
        plan = da.plan_private_layered(model, len(X), X_val, y_val, design=design, seed=split)
        rank["predicted"].append(plan.correlation)
        spread.append(values.values.std())
        scale.append(plan.scale.max())
        # As published: scikit-learn's logistic regression at C = 1, whose stability is taken for granted (c = 1).
        by_theirs: dict[str, Any] = {"scoring": "clipped_log_loss", "seed": split}
        ways = {
            "Monte Carlo": da.data_shapley(theirs, X, y, X_val, y_val, max_coalitions=20_000, **by_theirs).values,
            "layered": da.layered_shapley(theirs, X, y, X_val, y_val, design=design, **by_theirs).values,
            "layered, stable": values.values,
        }
        kinds: dict[str, Any] = {"certified": {}, "textbook": {"constants": "textbook"}, "paper": {"noise": "paper"}}
        for kind, settings in kinds.items():
            private = da.private_layered_shapley(model, X, y, X_val, y_val, design=design, predict=False, **settings)
            rank[kind].append(spearmanr(private.values, values.values)[0])
            if kind == "certified":
                ways["private, ε = 1"] = private.values
        for way, order in ways.items():
            for first in ("highest", "lowest"):
                curve = da.removal_curve(
                    order, X, y, X_test, y_test, model=theirs, first=first,
                    fractions=STEPS, n_random=10 if way == "layered" else 1, seed=split,
                )  # fmt: skip
                removal.add(way, first, curve)
    cells = []
    parts = (("best first", "highest", len(STEPS)), ("worst first", "lowest", 5), ("worst first", "lowest", len(STEPS)))
    for name, first, steps in parts:
        for way in ("random", "Monte Carlo", "layered", "layered, stable", "private, ε = 1"):
            where = f"accuracy, {name}, mean to {STEPS[steps - 1]:.0%}"
            cells.append(Cell(where, way, float(removal.mean(way, first)[:steps].mean())))
    correlations = {kind: float(np.mean(found)) for kind, found in rank.items() if None not in found}
    cells.append(Cell("Spearman, private", "certified noise", correlations["certified"], published, judged=False))
    cells.append(Cell("Spearman, private", "noise as published, not certified", correlations["paper"]))
    cells.append(Cell("Spearman, private", "certified noise, textbook constants", correlations["textbook"]))
    if "predicted" in correlations:
        cells.append(Cell("Spearman, private", "predicted before release", correlations["predicted"]))
    cells.append(Cell("noise and signal", "scale of certified noise", float(np.mean(scale))))
    cells.append(Cell("noise and signal", "deviation of values", float(np.mean(spread))))

    def gap(way: str, first: str, steps: int) -> float:
        return float((removal.mean(way, first) - removal.mean("random", first))[:steps].mean())

    # The published claim, for its weakest data set: removing the worst helps for the first fifth of the records.
    ways_judged = ("Monte Carlo", "layered")
    holds = all(gap(way, "highest", len(STEPS)) < 0 < gap(way, "lowest", 5) for way in ways_judged)
    ranked = "" if published is None else f" (published: {published:g})"
    finding = (
        f"{what}: removal by Monte Carlo and by layered values is {'' if holds else 'not '}worse than random, best "
        f"first, and better, worst first, for the first fifth; with noise that keeps its promise, the ranks of private "
        f"and layered values correlate by {correlations['certified']:.2f}{ranked}: noise of scale {np.mean(scale):.3g} "
        f"on values of deviation {np.mean(spread):.2g}"
    )
    return Redone(cells, finding, holds, removal.draw)


def _table_splits(table: da.Table) -> Any:
    """100 records to value, 300 public ones, the rest (at most 2,000) to test; encoded by the public ones alone."""

    def draw_split(seed: int) -> Any:
        n = len(table)
        parts = table.split(RECORDS / n, 300 / n, min(2000, n - 400) / n, seed=seed)
        encoder = da.fit_encoder(parts[1], source="validation")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [(np.asarray(encoder.transform(part)[0], np.float64), part.labels) for part in parts[:3]]

    return draw_split


@reproduction(
    "layered-adult", "Removal by Layered Shapley values, with and without privacy, on Adult (Watson et al., Figure 1)"
)
def _layered_adult() -> Redone:
    adult = da.load_dataset("adult", label="income", ignore=["split", "fnlwgt", "education"])
    return _redo_layered("Adult", _table_splits(adult), 0.61)


@reproduction(
    "layered-breast-cancer",
    "The same on breast cancer, in place of the paper's diabetes data (Watson et al., Figure 1)",
)
def _layered_breast_cancer() -> Redone:
    table = da.load_dataset("breast_cancer")
    return _redo_layered("Breast cancer (published for diabetes)", _table_splits(table), 0.89)


@reproduction("layered-gaussian", "The same on the 50-dimensional Gaussian of the paper (Watson et al., Figure 1)")
def _layered_gaussian() -> Redone:
    def draw_split(seed: int) -> Any:
        # As in Ghorbani & Zou: features N(0, I), the label a coin whose chance is logistic in a few of them.
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(RECORDS + 300 + 2000, 50))
        w = np.zeros(50)
        w[:5] = rng.normal(size=5) * 2
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-X @ w))).astype(int)
        cuts = [0, RECORDS, RECORDS + 300, len(X)]
        return [(X[a:b], y[a:b]) for a, b in pairwise(cuts)]

    return _redo_layered("50-dimensional Gaussian", draw_split, None)


SIZES = (50, 100, 200, 500, 1000, 2000, 5000)


@reproduction("layered-growth", "Coalitions a record and share of the data touched, n = 50 … 5,000 (Theorems 3.3, 3.4)")
def _layered_growth() -> Redone:
    alpha, beta, c = 0.5, 0.05, 1.0
    cells: list[Cell] = []
    coalitions, touched = [], []
    for n in SIZES:
        seeds = range(20 if n <= 1000 else 8)
        designs = [da.layered_design(n, alpha, beta, c, seed=seed) for seed in seeds]
        coalitions.append(float(np.mean([design.coalitions_per_player for design in designs])))
        touched.append(float(np.mean([design.share_touched for design in designs])))
        log = math.log(2 * n / beta)
        ours = {
            "coalitions a record": coalitions[-1],
            "  Theorem 3.3, before rounding up": 1 + c**2 / (2 * alpha**2) * log * math.pi**2 / 6,
            "share of the others touched": touched[-1],
            "  Theorem 3.4, before rounding up": min(1.0, c**2 / (2 * alpha**2) * (1 + math.log(n)) * log / n),
        }
        cells += [Cell(f"n = {n:,}", column, number) for column, number in ours.items()]
    logs = np.log(2 * np.array(SIZES) / beta)
    squares = np.log(SIZES) * logs / np.array(SIZES)
    per_log, per_square = np.array(coalitions) / logs, np.array(touched) / squares
    holds = bool(per_log.max() / per_log.min() < 1.5 and per_square[2:].max() / per_square[2:].min() < 1.5)

    def draw(axes: "Axes") -> "Axes":
        axes.plot(SIZES, coalitions, "o-", color=BLUE, label="coalitions a record")
        axes.plot(SIZES, logs * np.mean(per_log), ":", color=BLUE, label="∝ ln(2n/β)")
        axes.set(xscale="log", xlabel="records n", ylabel="coalitions a record")
        axes.set_ylim(0)
        right = axes.twinx()
        right.plot(SIZES, touched, "s-", color=PURPLE, label="share of the data touched")
        expected = np.minimum(1, squares * np.mean(per_square[2:]))
        right.plot(SIZES, expected, ":", color=PURPLE, label="∝ ln n · ln(2n/β) / n")
        right.set(yscale="log", ylabel="share of the data touched")
        lines = [*axes.get_lines(), *right.get_lines()]
        axes.legend(lines, [str(line.get_label()) for line in lines], frameon=False, fontsize=8, loc="lower left")
        return axes

    finding = (
        f"coalitions a record divided by ln(2n/β) stay between {per_log.min():.2f} and {per_log.max():.2f}, the share "
        f"touched divided by ln n · ln(2n/β)/n between {per_square[2:].min():.2f} and {per_square[2:].max():.2f} from "
        f"n = {SIZES[2]} on"
    )
    return Redone(cells, finding, holds, draw)
