"""Games that put our own private functions to the test, each on the pair of data sets that is worst for it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from datassay._choices import AnyRelation, ReleaseKind
from datassay.privacy.accounting import NOISES, Cost, Noise, calibrate
from datassay.privacy.evidence import Outputs, Trials, in_turns
from datassay.privacy.layered_release import private_layered_shapley
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.promise import Promise
from datassay.privacy.records import NoisyRecords
from datassay.privacy.releases import private_knn_shapley, private_tknn_shapley
from datassay.privacy.values import PrivateValues

Costs = tuple[Cost, ...]


@dataclass(frozen=True, kw_only=True)
class Claim(Promise):
    """The promise of a mechanism, how it is set, how many trials are wanted, and the error allowed to each check."""

    release: ReleaseKind
    k: int
    wanted: int | None
    error: float

    def trials(self, usual: int) -> int:
        """Releases from both data sets together."""
        return self.wanted or usual


def _counts(released: PrivateValues) -> Outputs:
    """The noisy counts that were released."""
    assert released.statistics is not None
    return released.statistics.counts.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Rounds:
    """Trials by game, what the mechanism says that it does, and what was seen to be wrong with it."""

    games: dict[str, Trials]
    costs: list[Cost]
    faults: list[str] = field(default_factory=list)
    relation: AnyRelation | None = None


def _plain_noise(noise: Noise, claim: Claim) -> Rounds:
    """One count, 1 or 0, with noise of this kind."""
    cost = calibrate(noise, claim.epsilon, claim.delta)
    half = claim.trials(10_000) // 2
    one, none = (np.asarray(add_noise(np.full((half, 1), n), cost.noise, cost.scale), np.float64) for n in (1, 0))
    return Rounds({"one count": in_turns(one, none, (np.ones(1),))}, [cost], relation=claim.relation)


def _noisy_records(claim: Claim) -> Rounds:
    """Copies of the two records farthest from each other, in all features at once and in one of them.

    Bounds differ by feature, so that noise of one width for all would show; the records lie far beyond them, so that it
    would show if they were not cut off.
    """
    d, half = 4, claim.trials(10_000) // 4
    mechanism = NoisyRecords([0.0, -1.0, 5.0, 0.0], [1.0, 1.0, 5.5, 100.0], claim.epsilon / d)
    ends = mechanism.low, mechanism.high
    games = {}
    for name, moved in (("all features", [True] * d), ("one feature", [False, False, True, False])):
        drawn = []
        for end in ends[::-1]:
            beyond = end + 9 * (end - (mechanism.low + mechanism.high) / 2)
            record = np.where(moved, beyond, mechanism.low)
            copies = mechanism.release(mechanism.to_unit(np.tile(record, (half, 1))), n_jobs=-1)
            drawn.append((copies - mechanism.low) / mechanism.width)
        games[name] = in_turns(drawn[0], drawn[1], (np.asarray(moved, np.float64),))
    copies = np.concatenate([game.outputs[:, 2] for game in games.values()])
    faults = ["noise repeats itself"] if len(np.unique(copies)) < 0.9 * len(copies) else []
    return Rounds(games, [Cost("laplace", d / claim.epsilon, count=d, relation="replace")], faults, "replace-features")


def _sample_faults(claim: Claim) -> list[str]:
    """Faults of the samples, which must have the right size and be fresh for each point and release.

    With little noise the counts are the sizes of the samples, which differ by more than that; still less noise would
    take the accountant far longer.
    """
    from scipy.stats import binom, chi2

    chance, error = claim.sampling, claim.error
    if chance == 1:
        return []
    n, points = math.ceil(max(200, 20 / (chance * (1 - chance)))), 400
    records, labels = np.zeros((n, 1)), np.ones(n, np.int64)
    sizes, noise = [], 0.0
    for _ in range(2):
        released = private_tknn_shapley(
            records, labels, np.full((points, 1), 0.5), np.ones(points, np.int64), 1.0, "euclidean", epsilon=30.0,
            delta=1e-5, sampling=chance, release=claim.release, n_classes=2, n_jobs=1,
        )  # fmt: skip
        sizes.append(_counts(released)[:, 0])
        noise = released.costs[0].scale
    spread = n * chance * (1 - chance) + noise**2
    faults = []
    low, high = (binom.ppf(q, 2 * points * n, chance) for q in (error / 8, 1 - error / 8))
    slack = 8 * noise * math.sqrt(2 * points)
    if not low - slack <= sizes[0].sum() + sizes[1].sum() <= high + slack:
        faults.append("samples are not of the size claimed")
    if ((sizes[0] - sizes[0].mean()) ** 2).sum() / spread < chi2.ppf(error / 8, points - 1) * 0.8:
        faults.append("validation points share their samples")
    if ((sizes[0] - sizes[1]) ** 2).sum() / (2 * spread) < chi2.ppf(error / 8, points) * 0.8:
        faults.append("releases share their samples")
    return faults


def _histograms(claim: Claim) -> Rounds:
    """A run holds many games: pairs of validation points far from all others, each with a record of its own.

    A coin says whether the record is there (or, replaced, which label it has). It is near both points of its pair, or
    near one: the second game sees noise that is shared between points. By the geometry of the validation points, one
    record costs exactly the two points it can reach, so each game has the whole claim at stake.
    """
    tau, far, at_once = 1.0, 8.0, 2_000
    offsets = {"near both points": (0.75 * tau, 1.0), "near one of two": (0.0, 0.0)}
    wanted = claim.trials(20_000) // len(offsets)
    replaced = claim.relation == "replace"
    rng = np.random.default_rng()
    games: dict[str, Trials] = {}
    costs: list[Cost] = []
    for name, (offset, both) in offsets.items():
        views, coins = [], []
        for start in range(0, wanted, at_once):
            pairs = min(at_once, wanted - start)
            place = far * np.arange(pairs)
            points = np.stack([place, place + 1.5 * tau], axis=1).ravel()[:, None]
            is_in = rng.random(pairs) < 0.5
            records, labels = (place + offset)[:, None], is_in.astype(np.int64)
            if not replaced:
                records, labels = np.vstack([records[is_in], [[-far]]]), np.append(labels[is_in], 0)
            released = private_tknn_shapley(
                records, labels, points, np.ones(len(points), np.int64), tau, "euclidean",
                **claim.settings, geometry=True, n_classes=2, n_jobs=1,
            )  # fmt: skip
            views.append(_counts(released).reshape(pairs, 4))
            coins.append(is_in)
            costs = list(released.costs)
        view, present = np.concatenate(views), np.concatenate(coins)
        other = -1.0 if replaced else 0.0
        guess = np.array([1.0, other, both, both * other])
        games[name] = Trials(view, present, (guess,), one_run=not replaced)
    return Rounds(games, costs, _sample_faults(claim), claim.relation)


def _many_runs(claim: Claim, name: str, guess: Outputs, run: Callable[[bool], tuple[Outputs, Costs]]) -> Rounds:
    """As many runs on either data set, of which ``run`` says what was seen."""
    seen = {is_in: [run(is_in) for _ in range(claim.trials(4_000) // 2)] for is_in in (True, False)}
    first, second = (np.array([view for view, _ in seen[is_in]], np.float64) for is_in in (True, False))
    return Rounds({name: in_turns(first, second, (guess,))}, list(seen[False][-1][1]), relation=claim.relation)


def _paper_counts(claim: Claim) -> Rounds:
    """Many runs on one record more or less, near the only validation point."""
    data = {True: ([[0.0], [0.1], [5.0]], [1, 1, 0]), False: ([[0.0], [5.0]], [1, 0])}
    public: Any = {"X_val": [[0.2]], "y_val": [1], "tau": 1.0, "metric": "euclidean", "n_classes": 2, "n_jobs": 1}

    def run(is_in: bool) -> tuple[Outputs, Costs]:
        X, y = data[is_in]
        released = private_tknn_shapley(X, y, **public, **claim.settings, release="paper")
        return _counts(released)[0], released.costs

    rounds = _many_runs(claim, "one neighbour more", np.ones(3), run)
    return replace(rounds, faults=_sample_faults(claim))


def _knn_values(claim: Claim) -> Rounds:
    """Many runs on the pair that moves a value by all of 1/(k(k+1)): a record comes before the k-th of k matches."""
    k = claim.k

    def run(is_in: bool) -> tuple[Outputs, Costs]:
        others = [] if not is_in and claim.relation == "add-remove" else [0.5 if is_in else k + 1.0]
        records, labels = [*np.arange(1.0, k + 1), *others], [*([1] * k), *([0] * len(others))]
        X = np.array(records)[:, None]
        released = private_knn_shapley(X, labels, [[0.0]], [1], k=k, **claim.settings, n_jobs=1)
        return released.values[k - 1 : k], released.costs

    return _many_runs(claim, "one value", -np.ones(1), run)


def _layered_values(claim: Claim) -> Rounds:
    """One record is for or against, among many that say nothing; each of those who join them is one trial.

    The promise is for every design: here it is a single large coalition that holds the record, whose effect on those
    who join is small only if the learner is stable. An attacker who knows all but that record knows the values without
    noise, and looks at what is left.
    """
    from scipy.stats import gamma

    from datassay.value import Design, StableLogisticRegression, layered_shapley

    inside, joining, wanted = 100, 100, claim.trials(4_000) // 2
    n = inside + joining
    model = StableLogisticRegression(kappa=1.0, lam=1.0, fit_intercept=False)
    design = Design(n, 1.0, 0.05, model.c, "hoeffding", 0, np.ones(n), (np.arange(inside),), np.ones(1, np.int64))
    X_val, y_val = [[1.0], [-1.0]], [1, 0]
    X = np.concatenate([[1.0], np.zeros(inside - 1), np.ones(joining)])[:, None]
    labels = {True: np.ones(n, np.int64), False: np.append(0, np.ones(n - 1, np.int64))}
    known = layered_shapley(model, X, labels[False], X_val, y_val, design=design, n_jobs=1).values
    views: dict[bool, list[Outputs]] = {True: [], False: []}
    costs: list[Cost] = []
    for is_for, y in labels.items():
        for _ in range(math.ceil(wanted / joining)):
            released = private_layered_shapley(
                model, X, y, X_val, y_val, epsilon=claim.epsilon, design=design, predict=False, n_jobs=1
            )
            scale = float(released.parameters["scale"] or 1.0)
            views[is_for].append(((released.values - known) / scale)[inside:])
            costs = list(released.costs)
    first, second = (np.concatenate(views[is_for])[:wanted, None] for is_for in (True, False))
    faults = []
    # What is left of the second is noise alone: Laplace of scale 1, the sum of whose sizes has a gamma distribution.
    if np.abs(second).sum() < gamma.ppf(claim.error, len(second)):
        faults.append(f"there is less noise than claimed: {np.abs(second).mean():.3g} of it")
    textbook = private_layered_shapley(
        model, X, labels[True], X_val, y_val, epsilon=claim.epsilon, design=design, constants="textbook",
        predict=False, n_jobs=1,
    )  # fmt: skip
    needed = 2 * model.c * (1 / inside + 1 / (inside + 1)) / n / claim.epsilon  # Mathematics §6, by hand
    if float(textbook.parameters["scale"] or 0.0) < needed * (1 - 1e-9):
        faults.append("the noise is made for a smaller sensitivity than the learner has")
    games = {"one record for or against": in_turns(first, second, (np.ones(1),))}
    return Rounds(games, costs, [*faults, *_design_faults()], "replace")


def _design_faults() -> list[str]:
    """Faults of the values, which must be made of all coalitions of the design, and of no others.

    With next to no noise they are those of the formula, computed here one fit at a time. Many coalitions do worse than
    guessing with these labels: leaving those out would be a choice by the data.
    """
    from datassay.value import Design, StableLogisticRegression, layered_design

    n = 6
    model = StableLogisticRegression(kappa=2.0, lam=0.5)
    design = layered_design(n, alpha=0.8, beta=0.05, c=model.c, seed=2)
    rng = np.random.default_rng(3)
    X, X_val = rng.normal(size=(n, 2)), rng.normal(size=(20, 2))
    y, y_val = (X[:, 0] + rng.normal(size=n) > 0).astype(int), (X_val[:, 0] > 0).astype(int)

    def utility(members: list[int]) -> float:
        if not members:
            return -math.log(2)
        fitted = StableLogisticRegression(**model.get_params()).fit(X[members], y[members])
        side = fitted.decision_function(X_val) * (1 if fitted.classes_[-1] == 1 else -1)
        loss = np.logaddexp(0, -np.where(y_val == 1, 1, -1) * side).mean()
        return max(-float(loss), -math.log(2))

    expected = np.zeros(n)
    for members, repeats in zip(design.members, design.repeats, strict=True):
        before = utility(members.tolist())
        for i in set(range(n)) - set(members.tolist()):
            gain = utility(sorted([*members.tolist(), i])) - before
            expected[i] += repeats * gain / (n * design.expected[len(members)])
    released = private_layered_shapley(model, X, y, X_val, y_val, epsilon=1e9, design=design, predict=False, n_jobs=1)
    off = float(np.abs(released.values - expected).max())
    faults = [] if off < 1e-5 else [f"values are not those of the published design, but off by {off:.3g}"]
    # With the empty coalition alone a value gets no noise: it must not know of anybody else, to the last bit.
    alone = Design(n, 1.0, 0.05, model.c, "hoeffding", 0, np.ones(n), (np.empty(0, np.int64),), np.ones(1, np.int64))
    seen = []
    for last in (X[-1], 10 - X[-1]):
        others = np.vstack([X[:-1], last])
        values = private_layered_shapley(model, others, y, X_val, y_val, design=alone, predict=False, n_jobs=1).values
        seen.append(values[:-1])
    if (seen[0] != seen[1]).any():
        faults.append("values depend on records of others that are in none of their coalitions")
    return faults


GAMES: Final[Mapping[str, Callable[[Claim], Rounds]]] = {
    "private_tknn_shapley": lambda claim: _paper_counts(claim) if claim.release == "paper" else _histograms(claim),
    "private_knn_shapley": _knn_values,
    "private_layered_shapley": _layered_values,
    "noisy_records": _noisy_records,
    **{noise: partial(_plain_noise, noise) for noise in NOISES},
}
"""How each mechanism is played, by its name."""
