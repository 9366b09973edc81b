"""Evidence against a claim of privacy: what releases from two neighbouring data sets prove about ε.

If the claim is false, guesses from a release which of the two data sets it came from are right too often. True- and
false-positive rates are bounded by Clopper and Pearson, and used in two ways:

* *for any mechanism*, (TPR − δ)/FPR ≤ e^ε gives a lower bound on ε. Where one run holds many records that are in or
  out by coin flips, so does the number of right guesses about the coins (Steinke, Nasr, Jagielski, Privacy Auditing
  with One (1) Training Run, 2023).
* *if the noise is known*, a claim is the whole curve δ(ε) of the accountant, and every point of it is tested. That
  sees much smaller leaks in far fewer trials (Nasr et al., Tight Auditing of Differentially Private Machine Learning,
  2023). The most noise of that kind that allows such guesses gives an ε too, if the noise is of the kind claimed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from datassay.privacy.accounting import Cost, delta_curve, total_epsilon

Outputs = NDArray[np.float64]


def lower_rate(successes: int, trials: int, error: float) -> float:
    """Clopper–Pearson: at most the true rate, but for a chance of ``error``."""
    from scipy.special import betaincinv

    return 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, error))


def upper_rate(successes: int, trials: int, error: float) -> float:
    """Clopper–Pearson: at least the true rate, but for a chance of ``error``."""
    return 1.0 - lower_rate(trials - successes, trials, error)


_LOSSES = np.concatenate([np.linspace(0, 2, 201), np.geomspace(2, 100, 140)[1:]])


def delta_of(costs: Sequence[Cost]) -> NDArray[np.float64]:
    """δ(ε) of these costs at ``_LOSSES``."""
    return delta_curve(costs, _LOSSES, step=1e-3)


def most_true_positives(false_positives: float, deltas: NDArray[np.float64]) -> float:
    """The best true-positive rate at this false-positive rate for a mechanism with δ(ε) at ``_LOSSES``."""
    grow = np.exp(_LOSSES)
    direct = deltas + grow * false_positives
    other = 1 - (1 - deltas - false_positives) / grow
    return float(min(1.0, direct.min(), other.min()))


def _direct_bound(true: float, false: float, delta: float) -> float:
    """ε ≥ log((TPR − δ)/FPR), or the same for the opposite guess."""
    found = 0.0
    for right, wrong in ((true, false), (1 - false, 1 - true)):
        if right > delta:
            found = max(found, math.log((right - delta) / wrong) if wrong > 0 else math.inf)
    return found


def _noise_bound(rates: Sequence[tuple[float, float]], delta: float, costs: Sequence[Cost]) -> tuple[float, bool]:
    """ε of the most noise of the kind claimed that allows all these (TPR, FPR); whether the noise claimed does."""
    rates = [(true, false) for true, false in rates if true > false]
    if not rates:
        return 0.0, True

    def scaled(factor: float) -> list[Cost]:
        return [replace(cost, scale=cost.scale * factor) for cost in costs]

    def allowed(factor: float) -> bool:
        deltas = delta_of(scaled(factor))
        return all(true <= most_true_positives(false, deltas) for true, false in rates)

    claimed = allowed(1.0)
    low, high = (1.0, 2.0) if claimed else (0.5, 1.0)
    while claimed and high <= 64 and allowed(high):
        low, high = high, 2 * high
    while not claimed and low >= 1 / 64 and not allowed(low):
        low, high = low / 2, low
    if high > 64:
        return 0.0, True
    for _ in range(6):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return total_epsilon(scaled(high), delta), claimed


@dataclass(frozen=True, eq=False)
class Trials:
    """Releases from the two data sets, which of the two each is from, and linear guesses that are known to be good."""

    outputs: Outputs
    is_first: NDArray[np.bool_]
    guesses: tuple[Outputs, ...] = ()
    one_run: bool = False

    def split(self) -> tuple[tuple[Outputs, Outputs], tuple[Outputs, Outputs]]:
        """Every third release to learn from, of the first and of the second data set; the others to count, likewise."""
        learning = np.arange(len(self.outputs)) % 3 == 0
        parts = [
            (self.outputs[rows & self.is_first], self.outputs[rows & ~self.is_first]) for rows in (learning, ~learning)
        ]
        return parts[0], parts[1]


def in_turns(first: Outputs, second: Outputs, guesses: tuple[Outputs, ...] = ()) -> Trials:
    """As many releases from each data set, in turns."""
    outputs = np.empty((2 * len(first), first.shape[1]))
    outputs[::2], outputs[1::2] = first, second
    return Trials(outputs, np.arange(len(outputs)) % 2 == 0, guesses)


def _features(outputs: Outputs) -> Outputs:
    """What the learned guess is linear in: the outputs, their squares and products."""
    d = outputs.shape[1]
    if d > 12:
        return outputs
    left, right = np.triu_indices(d)
    return np.hstack([outputs, outputs[:, left] * outputs[:, right]])


def _learned_guess(first: Outputs, second: Outputs) -> Callable[[Outputs], Outputs]:
    """A quadratic logistic regression fitted to these releases, which finds most leaks."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    seen = np.concatenate([first, second])
    centre, width = seen.mean(axis=0), np.maximum(seen.std(axis=0), 1e-12)

    def prepared(outputs: Outputs) -> Outputs:
        return _features((outputs - centre) / width)

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=200))
    model.fit(prepared(seen), np.repeat([1, 0], [len(first), len(second)]))
    return lambda outputs: np.asarray(model.decision_function(prepared(outputs)))


def _best_threshold(first: Outputs, second: Outputs, error: float) -> float:
    """The threshold that promises the most, judged by the shift of a Gaussian."""
    from scipy.special import ndtri

    both = np.sort(np.concatenate([first, second]))
    candidates = np.unique(both[np.linspace(0, len(both) - 1, 200).astype(int)])
    best, chosen = -math.inf, float(candidates[0])
    for threshold in candidates:
        true = lower_rate(int((first > threshold).sum()), len(first), error)
        false = upper_rate(int((second > threshold).sum()), len(second), error)
        shift = float(ndtri(max(true, 1e-12)) - ndtri(min(max(false, 1e-12), 1 - 1e-12)))
        if shift > best:
            best, chosen = shift, float(threshold)
    return chosen


def one_run_bound(correct: int, guesses: int, coins: int, delta: float, error: float) -> float:
    """The least ε for which so many correct guesses about coins of one run are not too unlikely.

    Under (ε, δ)-differential privacy the number of correct guesses about which of ``coins`` records are in the input
    is, but for δ, at most binomial with chance e^ε/(1 + e^ε) (Steinke et al. 2023, theorem 5.2).

    >>> one_run_bound(50, 100, 100, 1e-5, 0.05)
    0.0
    >>> 2.5 < one_run_bound(100, 100, 100, 1e-6, 0.05) < 3.5  # 0.05 = (e^ε/(1+e^ε))^100
    True
    """
    from scipy.stats import binom

    def chance(epsilon: float) -> float:
        q = 1 / (1 + math.exp(-epsilon))
        below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, q))
        alpha = float((below / np.arange(1, correct + 1)).max()) if correct else 0.0
        return min(1.0, float(binom.sf(correct - 1, guesses, q)) + 2 * coins * delta * alpha)

    if chance(0.0) > error:
        return 0.0
    low, high = 0.0, 1.0
    while chance(high) <= error and high < 60:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) <= error else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: bounds on ε by name, whether the claimed noise allows it, and the best guesser's rates."""

    bounds: dict[str, float]
    noise_bound: float | None
    noise_allowed: bool
    false_positives: NDArray[np.float64]
    true_positives: NDArray[np.float64]


def evaluate(games: dict[str, Trials], delta: float, costs: Sequence[Cost], error: float) -> Found:
    """Bounds by game and way of looking, all of which hold but for a chance of ``error``; the best guesser's rates."""
    looks = sum(len(trials.guesses) + 1 for trials in games.values())
    runs = sum(trials.one_run for trials in games.values())
    error /= looks + runs
    bounds: dict[str, float] = {}
    observed: list[tuple[float, float]] = []
    best = 0.0
    curve = np.array([[0.0, 0.0], [1.0, 1.0]])
    for name, trials in games.items():
        learning, counting = trials.split()
        guessers = {"learned guess": _learned_guess(*learning)}
        guessers |= {f"known guess {i + 1}": partial(_weighted, w) for i, w in enumerate(trials.guesses)}
        for how, guess in guessers.items():
            threshold = _best_threshold(guess(learning[0]), guess(learning[1]), error / 2)
            ours, theirs = guess(counting[0]), guess(counting[1])
            true = lower_rate(int((ours > threshold).sum()), len(ours), error / 2)
            false = upper_rate(int((theirs > threshold).sum()), len(theirs), error / 2)
            bounds[f"{name}, {how}"] = _direct_bound(true, false, delta)
            observed.append((true, false))
            if true - false >= best:
                cuts = np.quantile(np.concatenate([ours, theirs]), np.linspace(1, 0, 201))
                best, curve = true - false, np.array([[(s > c).mean() for s in (theirs, ours)] for c in cuts])
            if trials.one_run and how == "known guess 1":
                bounds[f"{name}, one run"] = _one_run(ours, theirs, delta, error)
    noise_bound, allowed = _noise_bound(observed, delta, costs) if costs else (None, True)
    return Found(bounds, noise_bound, allowed, curve[:, 0], curve[:, 1])


def _weighted(weights: Outputs, outputs: Outputs) -> Outputs:
    return np.asarray(outputs @ weights)


def _one_run(ours: Outputs, theirs: Outputs, delta: float, error: float) -> float:
    """The one-run bound from guesses about the clearest fifth of the coins; the others are passed over."""
    scores = np.concatenate([ours, theirs])
    is_in = np.repeat([True, False], [len(ours), len(theirs)])
    low, high = np.quantile(scores, [0.1, 0.9])
    sure = (scores > high) | (scores < low)
    return one_run_bound(int(((scores > high) == is_in)[sure].sum()), int(sure.sum()), len(scores), delta, error)
